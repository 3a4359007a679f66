//! `--vm`: verbs in virtual machines, with each kernel of the cache of `bpflab kernels`. A start
//! takes seconds, so a test does much in one machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::shared::{Need, command, corpus, is_emulated, skip};

/// The releases of the cache for this machine, oldest first; none skips the test.
fn kernels() -> Vec<String> {
    if is_emulated() {
        return Vec::new();
    }
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    if let Err(error) = qemu {
        skip(Need::Guest, format_args!("qemu-system-x86_64: {error}"));
        return Vec::new();
    }
    let listed = bpflab("kernels list --json");
    let lines = json(&listed);
    let native = lines
        .iter()
        .filter(|line| line["arch"] == std::env::consts::ARCH);
    let releases: Vec<String> = native.map(|line| text(&line["release"])).collect();
    if releases.is_empty() {
        skip(
            Need::Guest,
            "no kernel for this machine in the cache (bpflab kernels add)",
        );
    }
    releases
}

/// Runs bpflab with these words in the project's folder.
pub fn bpflab(words: &str) -> Output {
    let mut command = command::bpflab();
    command
        .args(words.split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command.output().expect("the command runs")
}

pub fn json(output: &Output) -> Vec<Value> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let parsed = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    parsed.collect()
}

pub fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The exit code, standard output and standard error.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A file that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("bpflab-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn every_kernel_judges_beside_bpflab() {
    let kernels = kernels();
    if kernels.is_empty() {
        return;
    }
    let objects = "examples/bpf/write_hist.bpf.o tests/verifier_mistakes/null_check_missing.bpf.o";
    let images = kernels.join(",");
    let output = bpflab(&format!("verify {objects} --vm {images} --json"));
    let (code, out, err) = said(&output);
    assert_eq!(code, Some(0), "all verdicts are equal: {out}{err}");
    let rows = json(&output);
    assert_eq!(rows.len(), 2 * kernels.len(), "{out}");
    for (rows, release) in rows.chunks(2).zip(&kernels) {
        for (row, verdict) in rows.iter().zip(["accept", "reject"]) {
            assert_eq!(text(&row["vm"]), *release);
            assert_eq!(text(&row["kernel"]["verdict"]), verdict, "{row}");
        }
        let line = "R0 invalid mem access 'map_value_or_null'";
        assert_eq!(text(&rows[1]["kernel"]["message"]), line, "{}", rows[1]);
    }
    if kernels.len() > 1 {
        let (code, out, err) = said(&bpflab(&format!("kernel load {objects} --vm {images}")));
        assert_eq!(code, Some(1), "one is rejected: {out}{err}");
        let head = out.lines().next().unwrap_or_default();
        assert!(
            kernels.iter().all(|release| head.contains(release)),
            "{out}"
        );
        let row = out.lines().nth(2).unwrap_or_default();
        assert_eq!(row.matches("accept").count(), kernels.len(), "{out}");
    }
}

/// Extensions, programs that trace programs, and structures of operations that the machine's own
/// kernel may refuse. Error lines are those of 6.18; for the first two 6.12 has the same.
#[test]
fn what_the_machine_refuses_is_judged_alike() {
    let folder = "tests/attach_targets";
    let judge = |release: &str, object: &str, options: &str, figures: &str| {
        let options = format!("{options} --vm {release} --report never");
        let words = format!("verify {folder}/{object}.bpf.o --vs-kernel {options}");
        let words: Vec<_> = words.split_whitespace().collect();
        let (_, out, err) = said(&bpflab(&words.join(" ")));
        assert!(out.contains(figures), "{release} {object}: {out}{err}");
    };
    let kernels = kernels();
    let is_known = |release: &&String| ["6.12.", "6.18."].iter().any(|it| release.starts_with(it));
    let known: Vec<_> = kernels.iter().filter(is_known).collect();
    if known.is_empty() && !kernels.is_empty() {
        skip(Need::Guest, "neither Linux 6.12 nor 6.18 in the cache");
    }
    for release in &known {
        for (object, target, count) in [
            ("tracing", "filters", 19),
            ("tracing_again", "traces", 2),
            ("extension", "filters", 20),
            ("extension_tracing", "watches", 5),
            ("extension_tracing", "traces", 5),
        ] {
            let target = format!("--target {folder}/target.bpf.o:{target}");
            let figures = format!("{count} compared: {count} match, 0 mismatch; 0 without");
            judge(release, object, &target, &figures);
        }
        // docs/findings.md: Linux accepts both.
        let target = format!("--target {folder}/target.bpf.o:filters");
        let figures = "2 compared: 0 match, 2 mismatch (verdict 2); 0 without";
        judge(release, "extension_relies", &target, figures);
        let target = format!("--target {folder}/target_lsm.bpf.o:watches");
        let figures = "5 compared: 5 match, 0 mismatch; 0 without";
        judge(release, "extension_tracing", &target, figures);
        // Not `doubles`: this extension of a struct_ops program, once accepted, is a null pointer
        // to Linux 6.18 and 7.2 (docs/findings.md).
        let programs = "asks_for_task takes_other_number reads_context replaces_main";
        let target = format!("{programs} --target {folder}/target_tcp.bpf.o:watches");
        let figures = "4 compared: 4 match, 0 mismatch; 0 without";
        judge(release, "extension_tracing", &target, figures);
    }
    for release in known.iter().filter(|it| it.starts_with("6.18.")) {
        // `docs/verifier-differences.md` has the two that differ.
        for (object, figures) in [
            ("tcp", "33 compared: 33 match, 0 mismatch; 0 without"),
            (
                "qdisc",
                "20 compared: 19 match, 1 mismatch (verdict 1); 0 without",
            ),
            ("scheduler", "9 compared: 9 match, 0 mismatch; 0 without"),
            (
                "scheduler_rest",
                "15 compared: 15 match, 0 mismatch; 0 without",
            ),
            (
                "sched_ext",
                "11 compared: 10 match, 1 mismatch (message 1); 0 without",
            ),
        ] {
            judge(release, object, "", figures);
        }
    }
}

/// Ordinary users, whom the machine's own kernel may refuse: our programs on each kernel, and the
/// shared corpus on Linux 7.2, which has the rules of 6.18 for them. Earlier kernels reject for an
/// error on a speculative path, and 6.18.15 contradicts itself on some of these.
#[test]
fn ordinary_users_get_the_same_verdicts() {
    let own = "verify --cases tests/cli/loaders.jsonl --unprivileged --vs-kernel";
    let kernels = kernels();
    for release in &kernels {
        let (code, out, err) = said(&bpflab(&format!("{own} --vm {release}")));
        // Error lines were others before: exit code 1, though the verdicts are the same.
        let (figures, expected) = match is_before(release, (6, 12)) {
            false => ("5 match, 0 mismatch;", Some(0)),
            true => ("4 match, 1 mismatch (message 1);", Some(1)),
        };
        let figures = format!("5 compared: {figures} 0 without");
        assert!(out.contains(&figures), "{release}: {out}{err}");
        assert_eq!(code, expected, "{release}: {out}{err}");
    }
    let newest = kernels.iter().find(|release| release.starts_with("7.2."));
    let (Some(release), Some(cases)) = (newest, corpus()) else {
        return;
    };
    // The guest has no links.
    let cases = cases.canonicalize().expect("a file");
    let folder = cases.parent().expect("a folder");
    let mut command = command::bpflab();
    command.args(["verify", "--unprivileged", "--vs-kernel", "--json"]);
    command.args(["--vm", release, "--btf", "vmlinux-6.18.44.btf.xz"]);
    command.arg("--cases").arg(&cases);
    let output = command.current_dir(folder).output().expect("it runs");
    let rows = json(&output);
    let judged =
        |row: &&Value| row["kernel"]["verdict"] == "accept" || row["kernel"]["verdict"] == "reject";
    let compared: Vec<_> = rows.iter().filter(judged).collect();
    assert!(compared.len() > 1600, "{}", compared.len());
    for row in &compared {
        assert_eq!(row["match"]["verdict"], true, "{row}");
    }
    let accepted = compared
        .iter()
        .filter(|row| row["verdict"] == "accept")
        .count();
    assert!(accepted > 250, "{accepted}");
}

/// kfuncs and functions of a module, whose BTF both sides look up by name. Error lines differ
/// between the kernels.
#[test]
fn programs_on_a_module_are_judged_alike() {
    for release in kernels()
        .iter()
        .filter(|release| !is_before(release, (6, 12)))
    {
        let words = "verify tests/attach_targets/conntrack.bpf.o --btf-module nf_conntrack \
                     --vs-kernel --json --report never --vm";
        let output = bpflab(&format!("{words} {release}"));
        let rows = json(&output);
        assert_eq!(rows.len(), 12, "{}", said(&output).2);
        for row in &rows {
            // docs/verifier-differences.md, "Not compared with a kernel".
            if release.starts_with("6.18.") && row["program"] == "marks" {
                assert_eq!(row["kernel"]["message"], "only read is supported", "{row}");
                continue;
            }
            assert_eq!(row["match"]["verdict"], true, "{release}: {row}");
            if row["verdict"] == "accept" {
                assert_eq!(row["match"]["processed"], true, "{release}: {row}");
            }
        }
        let accepted = rows.iter().filter(|row| row["verdict"] == "accept");
        assert_eq!(accepted.count(), 4, "{release}");
    }
}

/// Whether a release is before another one.
fn is_before(release: &str, other: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|digits| digits.parse().ok());
    number().zip(number()).is_some_and(|it| it < other)
}

/// The oldest kernel: 5.10 knows no array of descriptors, little locked memory, and fewer kinds
/// of BTF types; what it can't do is said in words.
#[test]
fn the_oldest_kernel_judges_and_says_what_it_lacks() {
    let Some(release) = kernels().into_iter().next() else {
        return;
    };
    let objects = "examples/bpf/runqlat.bpf.o examples/bpf/vfs_read_latency.bpf.o \
                   examples/bpf/execsnoop.bpf.o examples/bpf/usdt_latency.bpf.o";
    let words = format!("kernel load {objects} --vm {release}");
    let (_, out, err) = said(&bpflab(
        &words.split_whitespace().collect::<Vec<_>>().join(" "),
    ));
    assert!(out.contains(", 0 not judged\n"), "no errors: {out}{err}");
    let accepted = out
        .lines()
        .filter(|line| line.starts_with("accept"))
        .count();
    assert!(accepted >= 6, "{out}{err}");
    if !is_before(&release, (5, 12)) {
        return;
    }
    let words = format!("compare examples/bpf/write_hist.bpf.o --vm {release} -- true");
    let (code, out, err) = said(&bpflab(&words));
    assert_eq!(code, Some(1), "{out}{err}");
    let why = "a recorded form needs atomic instructions that return the former value: Linux 5.12";
    assert!(out.contains(why), "{out}{err}");
}

/// Linux 6.1 has two limits that later kernels don't: it takes a record of a ring buffer that is
/// tested twice for one that may be null, and operations of maps return 32 bits.
#[test]
fn ring_buffers_and_failing_map_operations_are_equal_on_the_oldest_that_records() {
    let oldest = kernels().into_iter().find(|it| !is_before(it, (5, 12)));
    let Some(release) = oldest else {
        return;
    };
    for (object, command) in [
        ("examples/bpf/execsnoop.bpf.o", "true"),
        (
            "tests/objects/map_errors.bpf.o",
            "dd if=/dev/zero of=/dev/null count=30",
        ),
    ] {
        let (code, out, err) = said(&bpflab(&format!(
            "compare {object} --vm {release} -- {command}"
        )));
        assert_eq!(code, Some(0), "{release} {object}: {out}{err}");
        assert!(out.contains("verdict: equal"), "{release} {object}: {out}");
    }
}

#[test]
fn functions_are_listed_with_what_can_attach() {
    let Some(release) = kernels().pop() else {
        return;
    };
    let words = format!(
        "kernel functions vfs_rea?,vfs_raed kprobe/__netif_receive_skb_core* --vm {release}"
    );
    let (code, out, err) = said(&bpflab(&words));
    assert_eq!(code, Some(1), "one pattern matches nothing: {out}{err}");
    assert!(out.starts_with("function "), "{out}");
    let line = |name: &str| {
        let line = out.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {out}{err}"));
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("vfs_read "), "yes yes");
    assert!(line("__netif_receive_skb_core").starts_with("yes "));
    assert!(
        err.contains("no function matches 'vfs_raed'; similar are vfs_read"),
        "{err}"
    );
}

#[test]
fn probes_are_recorded_in_a_guest_and_replayed_here() {
    let object = "examples/bpf/vfs_read_latency.bpf.o";
    let recorded = kernels().into_iter().filter(|it| !is_before(it, (5, 12)));
    for release in recorded {
        let recording = Scratch::new(&format!("{release}.rec"));
        let file = recording.0.to_str().expect("a path");
        let words = format!("{object} --vm {release} -- dd if=/dev/zero of=/dev/null count=300");
        let (code, out, err) = said(&bpflab(&format!("compare {words}")));
        assert_eq!(code, Some(0), "{release}: {out}{err}");
        assert!(out.contains("verdict: equal"), "{release}: {out}");
        let firings = |program: &str| {
            let line = out
                .lines()
                .find(|line| line.trim_start().starts_with(program));
            let count = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            count.unwrap_or(0u64)
        };
        assert!(
            firings("enter") >= 300 && firings("leave") >= 300,
            "{release}: {out}"
        );

        let (code, out, err) = said(&bpflab(&format!("record -o {file} {words}")));
        assert_eq!(code, Some(0), "{release}: {out}{err}");
        assert!(err.contains(&format!("Linux {release} under ")), "{err}");
        let (code, out, err) = said(&bpflab(&format!("replay {object} {file} --btf own")));
        assert_eq!(code, Some(0), "{release}: {out}{err}");
        assert!(out.contains("verdict: equal"), "{release}: {out}");
    }
}

#[test]
fn engines_are_compared_with_each_kernel() {
    for release in kernels() {
        let what = "fuzz --programs 20 --seed 4 --oracle value --strategy scalars";
        let output = bpflab(&format!("{what} --json --vm {release}"));
        assert_eq!(output.status.code(), Some(0), "{release}: {output:?}");
        let summary = json(&output).pop().expect("a summary");
        assert_eq!(summary["programs"], 20, "{release}");
        assert_ne!(summary["kernel_runs"], 0, "{release}");
    }
}

/// A kernel that bpflab does not model has other verdicts. The findings come back as cases.
#[test]
fn findings_of_a_guest_are_cases_here() {
    let mut kernels = kernels().into_iter();
    let Some(release) = kernels.find(|release| !release.starts_with("6.18.")) else {
        return;
    };
    let folder = Scratch::new("findings");
    let words = "fuzz --oracle verdict --programs 200 --seed 3 --findings 1 --no-reduce";
    let vm = format!("--vm {release}");
    let output = bpflab(&format!("{words} --output {} {vm}", folder.0.display()));
    let (code, out, err) = said(&output);
    assert_eq!(code, Some(1), "{out}{err}");
    let files = std::fs::read_dir(&folder.0).expect("the folder of the findings");
    let files = files.map(|entry| entry.expect("an entry").path());
    let mut cases = files.filter(|file| file.extension().is_some_and(|ext| ext == "jsonl"));
    let case = cases.next().expect("a case").display().to_string();
    let again = format!("fuzz --replay {case} --oracle verdict {vm}");
    assert!(out.contains(&format!("again: bpflab {again}\n")), "{out}");
    let (code, out, err) = said(&bpflab(&again));
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("kernel: "), "{out}");
    let (code, out, err) = said(&bpflab(&format!(
        "fuzz --replay {case} --oracle round-trip"
    )));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with(": no finding\n"), "{out}");
}

#[test]
fn a_folder_of_a_guest_comes_back_with_its_folders() {
    let Some(release) = kernels().pop() else {
        return;
    };
    let folder = Scratch::new("corpus");
    let words = format!("fuzz --corpus {} --vm {release}", folder.0.display());
    let (code, out, err) = said(&bpflab(&words));
    assert_eq!(code, Some(0), "{out}{err}");
    let (count, _) = out.split_once(" inputs in ").expect("the number of inputs");
    let targets = std::fs::read_dir(&folder.0).expect("the folder of the corpus");
    let inputs = targets.flat_map(|target| {
        std::fs::read_dir(target.expect("an entry").path()).expect("a folder of inputs")
    });
    assert_eq!(inputs.count().to_string(), count, "{out}");
}

#[test]
fn a_command_runs_with_its_files_and_its_code_is_told() {
    let Some(release) = kernels().pop() else {
        return;
    };
    let vm = format!("kernel exec --vm {release}");
    let (code, out, _) = said(&bpflab(&format!("{vm} -- cat Cargo.toml /proc/version")));
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).expect("the manifest");
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with(&manifest) && out.contains(&release),
        "{out}"
    );

    let (code, _, err) = said(&bpflab(&format!("{vm} -- ls /no/such/folder")));
    assert_eq!(code, Some(1));
    assert!(err.contains("the command ended with code 2"), "{err}");
}

#[test]
fn what_is_wrong_is_told_before_a_machine_starts() {
    for (words, expected) in [
        (
            "kernel check --vm 0.1",
            "0.1: no such file, and no such kernel in the cache",
        ),
        (
            "kernel exec -- true",
            "no virtual machine: name a kernel (--vm IMAGE)",
        ),
        (
            "record x.bpf.o -o x.rec --vm a,b -- true",
            "x.rec: one output for several kernels; name one",
        ),
        (
            "kernel exec --vm 0.1 -- no-such-command",
            "no-such-command: no such command",
        ),
    ] {
        let (code, _, err) = said(&bpflab(words));
        assert_eq!(code, Some(2), "{words}: {err}");
        assert!(err.contains(expected), "{words}: {err}");
    }
}

/// The qemu processes that boot a kernel of this process.
fn guests_of(pid: u32) -> Vec<PathBuf> {
    let kernel = format!("/proc/{pid}/fd/");
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let theirs = |path: &Path| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&kernel)
    };
    processes
        .map(|entry| entry.path())
        .filter(|path| theirs(path))
        .collect()
}

#[test]
fn a_killed_command_leaves_no_machine() {
    let Some(release) = kernels().pop() else {
        return;
    };
    // At different moments of the start.
    for millis in [300, 1500] {
        let mut command = command::bpflab();
        command.args(["kernel", "exec", "--vm", &release, "--", "sleep", "1000"]);
        let mut child = command.spawn().expect("the command starts");
        let begin = Instant::now();
        while guests_of(child.id()).is_empty() && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!guests_of(child.id()).is_empty(), "no machine was started");
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().expect("a signal");
        child.wait().expect("its end");
        let begin = Instant::now();
        while !guests_of(child.id()).is_empty() && begin.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(guests_of(child.id()), Vec::<PathBuf>::new());
    }
}
