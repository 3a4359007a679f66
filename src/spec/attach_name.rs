//! Names of attach points as people write them: sections of programs (`kprobe/vfs_read`) and
//! the probes of bpftrace (`kprobe:vfs_read`, `k:vfs_read`).

use super::section::{Section, SectionRule};
use crate::util::nearest_first;

/// The kinds that a name may begin with: the words before `:` or `/`, those of bpftrace that are
/// only written before `:`, and the prefix of the section. Other sections are left out on
/// purpose: `xdp:xdp_exception` is a tracepoint of the group `xdp`.
const KINDS: [(&str, &[&str], &str); 32] = [
    ("tracepoint", &["t"], "tp"),
    ("tp", &[], "tp"),
    ("tracepoint.s", &[], "tp.s"),
    ("tp.s", &[], "tp.s"),
    ("raw_tracepoint", &["rawtracepoint", "rt"], "raw_tp"),
    ("raw_tp", &[], "raw_tp"),
    ("raw_tracepoint.s", &[], "raw_tp.s"),
    ("raw_tp.s", &[], "raw_tp.s"),
    ("raw_tracepoint.w", &[], "raw_tp.w"),
    ("raw_tp.w", &[], "raw_tp.w"),
    ("tp_btf", &[], "tp_btf"),
    ("tp_btf.s", &[], "tp_btf.s"),
    ("kprobe", &["k"], "kprobe"),
    ("kretprobe", &["kr"], "kretprobe"),
    ("kprobe.multi", &[], "kprobe.multi"),
    ("kretprobe.multi", &[], "kretprobe.multi"),
    ("kprobe.session", &[], "kprobe.session"),
    ("ksyscall", &[], "ksyscall"),
    ("kretsyscall", &[], "kretsyscall"),
    ("uprobe", &["u"], "uprobe"),
    ("uprobe.s", &[], "uprobe.s"),
    ("uretprobe", &["ur"], "uretprobe"),
    ("uretprobe.s", &[], "uretprobe.s"),
    ("usdt", &["U"], "usdt"),
    ("fentry", &["kfunc", "f"], "fentry"),
    ("fentry.s", &[], "fentry.s"),
    ("fexit", &["kretfunc", "fr"], "fexit"),
    ("fexit.s", &[], "fexit.s"),
    ("fmod_ret", &[], "fmod_ret"),
    ("lsm", &[], "lsm"),
    ("lsm.s", &[], "lsm.s"),
    ("iter", &[], "iter"),
];

/// An attach point with its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachName {
    /// The prefix of its section: `tp`, `kprobe`.
    pub prefix: &'static str,
    /// What follows the prefix: `sched/sched_switch`, `vfs_read`, `/bin/sh:main`.
    pub target: String,
}

impl AttachName {
    /// Parses a name that begins with a kind; `None` if it begins with none.
    ///
    /// ```
    /// use bpflab::spec::AttachName;
    /// let name = AttachName::parse("tracepoint:sched:sched_switch").unwrap();
    /// assert_eq!(name.section(), "tp/sched/sched_switch");
    /// assert_eq!(AttachName::parse("sched:sched_switch"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, target) = text.split_once([':', '/'])?;
        let is_probe = text.strip_prefix(kind)?.starts_with(':');
        let (_, _, prefix) = KINDS
            .iter()
            .find(|(name, short, _)| *name == kind || is_probe && short.contains(&kind))?;
        let target = match *prefix {
            "tp" | "tp.s" => target.replacen(':', "/", 1),
            // bpftrace writes the module of a function or raw tracepoint, or `vmlinux`.
            "raw_tp" | "tp_btf" | "kprobe" | "kretprobe" | "fentry" | "fexit" if is_probe => {
                target.strip_prefix("vmlinux:").unwrap_or(target).to_owned()
            }
            _ => target.to_owned(),
        };
        Some(Self { prefix, target })
    }

    /// The name of the section for it: `tp/sched/sched_switch`.
    #[must_use]
    pub fn section(&self) -> String {
        format!("{}/{}", self.prefix, self.target)
    }

    /// The rule of its section.
    #[must_use]
    pub fn rule(&self) -> Option<&'static SectionRule> {
        Section::classify(self.prefix).map(|section| section.rule)
    }
}

/// The target of a name with or without a kind, as sections write it: `sched/sched_switch` for
/// `tracepoint:sched:sched_switch`, `tp/sched/sched_switch` and perf's `sched:sched_switch`.
#[must_use]
pub fn attach_target(text: &str) -> String {
    match (AttachName::parse(text), text.split_once(':')) {
        (Some(name), _) => name.target,
        (None, Some((group, event))) if !text.contains('/') && !event.contains(':') => {
            format!("{group}/{event}")
        }
        _ => text.to_owned(),
    }
}

/// The name that was meant by one of an unknown kind: `kprobe/vfs_read` for `kprob:vfs_read`.
/// A probe of bpftrace, whose kind is known, becomes a section. `None` if nothing is close, or
/// if it is a section's name already.
#[must_use]
pub fn nearest_section(text: &str) -> Option<String> {
    if let Some(name) = AttachName::parse(text) {
        return Some(name.section()).filter(|_| Section::classify(text).is_none());
    }
    let (kind, target) = text.split_once([':', '/'])?;
    // The groups of tracepoints that perf and tracefs make of probes.
    if matches!(kind, "kprobes" | "uprobes") {
        return None;
    }
    let known = KINDS.iter().map(|(name, ..)| (*name).to_owned());
    let nearest = nearest_first(kind, known.collect()).into_iter().next()?;
    let name = AttachName::parse(&format!("{nearest}:{target}"))?;
    is_misspelt(kind, &nearest).then(|| name.section())
}

/// Whether one word becomes the other by changing, adding or removing a letter, or by swapping
/// two neighbours. Words below four letters are too short to tell.
fn is_misspelt(word: &str, known: &str) -> bool {
    if word.len() < 4 || known.len() < 4 || word == known {
        return false;
    }
    let (a, b) = (word.as_bytes(), known.as_bytes());
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([x, y, a @ ..], [z, w, b @ ..]) if x == w && y == z && a == b => true,
        ([_, a @ ..], [_, c @ ..]) if a == c => true,
        ([_, a @ ..], _) if a == b => true,
        (_, [_, b @ ..]) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_and_sections_are_the_same_names() {
        for (text, section) in [
            ("tracepoint:sched:sched_switch", "tp/sched/sched_switch"),
            ("t:sched:sched_switch", "tp/sched/sched_switch"),
            ("tp/sched/sched_switch", "tp/sched/sched_switch"),
            ("rt:vmlinux:sched_switch", "raw_tp/sched_switch"),
            ("kprobe:vfs_read", "kprobe/vfs_read"),
            ("k:vfs_read", "kprobe/vfs_read"),
            ("kretprobe:vfs_read", "kretprobe/vfs_read"),
            ("uprobe:/bin/sh:main", "uprobe//bin/sh:main"),
            ("fentry:vmlinux:vfs_read", "fentry/vfs_read"),
            ("kfunc:vfs_read", "fentry/vfs_read"),
        ] {
            let name = AttachName::parse(text).unwrap();
            assert_eq!(name.section(), section, "{text}");
        }
        for text in [
            "vfs_read",
            "k/vfs_read",
            "xdp:xdp_exception",
            "/bin/sh:main",
        ] {
            assert_eq!(AttachName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_kind_is_a_section_that_takes_a_target() {
        for (name, _, prefix) in KINDS {
            let section = format!("{prefix}/x");
            assert!(Section::classify(&section).is_some_and(|it| it.rule.takes_target));
            assert!(Section::classify(&format!("{name}/x")).is_some(), "{name}");
        }
    }

    #[test]
    fn targets_need_no_kind() {
        assert_eq!(attach_target("sched:sched_switch"), "sched/sched_switch");
        assert_eq!(attach_target("tp/sched/sched_switch"), "sched/sched_switch");
        assert_eq!(attach_target("/bin/sh:main"), "/bin/sh:main");
        assert_eq!(attach_target("vfs_read"), "vfs_read");
    }

    #[test]
    fn a_mistyped_kind_has_a_nearest_one() {
        let nearest = |text| nearest_section(text);
        let switch = Some("tp/sched/sched_switch".to_owned());
        assert_eq!(nearest("tracepont/sched/sched_switch"), switch);
        assert_eq!(nearest("tracepoint:sched:sched_switch"), switch);
        assert_eq!(
            nearest("kporbe/vfs_read").as_deref(),
            Some("kprobe/vfs_read")
        );
        assert_eq!(
            nearest("kprobee/vfs_read").as_deref(),
            Some("kprobe/vfs_read")
        );
        for text in [
            "kprobe/vfs_read",
            "bpflab/unheard_of",
            "http/get",
            "2/7",
            "vfs_read",
        ] {
            assert_eq!(nearest(text), None, "{text}");
        }
        assert_eq!(nearest("kprobes:mine"), None);
    }
}
