//! Section names of `bpftrace --emit-elf`: `s_`, the probe as in the script, `_` and a
//! number. libbpf doesn't know them; each is mapped to a libbpf name.

/// bpftrace's probe name, libbpf's name, and whether the attach target follows it.
const PROBES: &[(&str, &str, bool)] = &[
    ("kprobe", "kprobe", true),
    ("kretprobe", "kretprobe", true),
    ("uprobe", "uprobe", true),
    ("uretprobe", "uretprobe", true),
    ("usdt", "usdt", true),
    ("tracepoint", "tracepoint", true),
    ("rawtracepoint", "raw_tracepoint", true),
    ("fentry", "fentry", true),
    ("fexit", "fexit", true),
    ("kfunc", "fentry", true),
    ("kretfunc", "fexit", true),
    ("iter", "iter", true),
    ("profile", "perf_event", false),
    ("interval", "perf_event", false),
    ("software", "perf_event", false),
    ("hardware", "perf_event", false),
    ("watchpoint", "perf_event", false),
    ("asyncwatchpoint", "perf_event", false),
    // bpftrace runs these through uprobes on functions of its own.
    ("BEGIN", "uprobe", false),
    ("END", "uprobe", false),
    ("self", "uprobe", false),
];

/// libbpf's name for such a section.
pub(super) fn libbpf_name(section: &str) -> Option<String> {
    let (probe, number) = section.strip_prefix("s_")?.rsplit_once('_')?;
    number.parse::<u32>().ok()?;
    let (kind, target) = probe.split_once(':').unwrap_or((probe, ""));
    let (_, name, takes_target) = PROBES.iter().find(|(known, ..)| *known == kind)?;
    Some(match (*takes_target, kind) {
        (false, _) => (*name).to_owned(),
        (true, "tracepoint") => format!("{name}/{}", target.replacen(':', "/", 1)),
        (true, _) => format!("{name}/{target}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_have_libbpfs_names() {
        for (section, name) in [
            ("s_kprobe:vfs_read_1", Some("kprobe/vfs_read")),
            (
                "s_tracepoint:syscalls:sys_enter_write_12",
                Some("tracepoint/syscalls/sys_enter_write"),
            ),
            ("s_interval:s:1_2", Some("perf_event")),
            ("s_BEGIN_1", Some("uprobe")),
            (
                "s_kfunc:vmlinux:vfs_read_1",
                Some("fentry/vmlinux:vfs_read"),
            ),
            ("s_kprobe:vfs_read", None),
            ("s_unheard_1", None),
            ("kprobe/x", None),
        ] {
            assert_eq!(libbpf_name(section).as_deref(), name, "{section}");
        }
    }
}
