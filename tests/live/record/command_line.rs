//! The command line of `bpflab record`.

use crate::shared::{Need, skip};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::command::bpflab;
use super::ending::{Scratch, json};
use super::recorded::{WRITES, dd, is_there};

fn run(arguments: &[&str], file: &Path, command: &[&str]) -> Output {
    let mut bpflab = bpflab();
    bpflab.arg("record").args(arguments).arg("-o").arg(file);
    if !command.is_empty() {
        bpflab.arg("--").args(command);
    }
    bpflab.stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_recorded_is_told() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("told");
    let output = run(
        &[WRITES, "count_write"],
        &file.0,
        &["sh", "-c", &dd(1000, 64)],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        ": 1000 events in ",
        ", 0 lost",
        "count_write  tp/syscalls/sys_enter_write     1000       0",
        "the command exited with 0",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let line = format!("{}; exit 3", dd(10, 1));
    let output = run(
        &[WRITES, "--json", "--buffer", "1M"],
        &file.0,
        &["sh", "-c", &line],
    );
    let row = json(&output);
    assert_eq!(output.status.code(), Some(0), "{row}");
    assert_eq!((&row["events"], &row["lost"]), (&10.into(), &0.into()));
    assert_eq!(
        (&row["ended"], &row["exit_code"]),
        (&"exited".into(), &3.into())
    );
    assert_eq!(row["buffer_bytes"], 1 << 20);
    assert_eq!(row["programs"][0]["recorded"], "firings");
    assert_eq!(row["programs"][0]["firings"], 10);
}

#[test]
fn a_buffer_that_is_too_small_loses_and_says_so() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("lossy");
    let arguments = [WRITES, "--json", "--buffer", "4K"];
    let output = run(&arguments, &file.0, &["sh", "-c", &dd(200_000, 1)]);
    let row = json(&output);
    assert_eq!(output.status.code(), Some(1), "{row}");
    let (events, lost) = (
        row["events"].as_u64().unwrap(),
        row["lost"].as_u64().unwrap(),
    );
    assert!(lost > 0 && events > 0);
    assert_eq!(
        events + lost,
        200_000,
        "none vanishes without a word: {row}"
    );
    assert_eq!(row["losses"][0]["cause"], "ring buffer full");
    let recorded = file.read();
    assert_eq!(
        recorded.losses.iter().map(|loss| loss.count).sum::<u64>(),
        lost
    );
    assert!(!recorded.gaps().is_empty());
}

#[test]
fn bad_usage_is_told_and_leaves_no_file() {
    let file = Scratch::new("usage");
    let echo = ["echo"];
    for (arguments, command, part) in [
        (&[WRITES][..], &[][..], "nothing to record: name a command"),
        (&["nothing.bpf.o"], &echo, "nothing.bpf.o: neither a file"),
        (&["nothing"], &echo, "neither a file nor a tracepoint"),
        (&["README.md"], &echo, "not an ELF file"),
        (&[WRITES, "--buffer", "3x"], &echo, "--buffer"),
        (&[WRITES, "--duration=-1"], &echo, "--duration"),
        (&[WRITES, "--all", "--pid", "1"], &[], "cannot be used with"),
        (
            &[WRITES, "--pid", "4194305"],
            &[],
            "no process 4194305 to follow: it does not exist; name one that runs",
        ),
        (
            &["syscalls/sys_enter_write", "--pid", "4194305"],
            &[],
            "no process 4194305 to follow",
        ),
        (
            &[WRITES, "--attach", "nobody=a/b"],
            &echo,
            "no such program",
        ),
    ] {
        let output = run(arguments, &file.0, command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{part}: {text}");
        assert!(!file.0.exists());
    }
    if !is_there() {
        return;
    }
    for (arguments, command, part) in [
        (
            &[WRITES][..],
            &["/no/such/command"][..],
            "/no/such/command: can't be started",
        ),
        (&[WRITES, "nobody"], &echo, "no such program"),
        (&[WRITES, "--buffer", "5000"], &echo, "a power of two"),
        (&["syscalls/sys_enter_wrte"], &echo, "sys_enter_write"),
        (
            &[WRITES, "--attach", "count_write=no/such"],
            &echo,
            "no/such",
        ),
    ] {
        let output = run(arguments, &file.0, command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn programs_made_up_have_a_session_of_their_own() {
    for other in [
        &[WRITES][..],
        &["--all"],
        &["--pid", "1"],
        &["--attach", "a=b/c"],
        &["--frequency", "9"],
        &["--btf", "own"],
        &["-o", "file.rec"],
        &["--", "echo"],
    ] {
        let mut bpflab = bpflab();
        let output = bpflab.args(["compare", "--generated", "1"]).args(other);
        let output = output.output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{other:?}: {text}");
        assert!(text.contains("cannot be used with"), "{other:?}: {text}");
    }
}

#[test]
fn what_has_no_place_here_is_left_out_and_the_rest_compared() {
    if !is_there() {
        return;
    }
    let mut bpflab = bpflab();
    let arguments = ["compare", "examples/bpf/one_liners.bpf.o", "--", "sh", "-c"];
    let output = bpflab.args(arguments).arg(dd(10, 1)).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    let reason = "not compared: program count_event: not attached: ";
    assert!(text.contains(reason), "{text}");
    assert!(text.ends_with("verdict: partly compared\n"), "{text}");
    // A program's number is not its index among those that ran.
    assert!(text.contains("\n  read_sizes "), "{text}");
}

/// Without an event nothing is compared on any engine, nor in a replay of the recording.
#[test]
fn without_an_event_nothing_is_equal() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("silent");
    let path = file.0.to_str().unwrap();
    for arguments in [
        &["compare", WRITES, "-o", path, "--", "sleep", "0"][..],
        &["replay", WRITES, path],
    ] {
        let output = bpflab().args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
        assert!(!text.contains("equal"), "{text}");
        let verdict = "verdict: nothing compared: no event came\n";
        assert!(text.ends_with(verdict), "{text}");
    }
    let mut bpflab = bpflab();
    let output = bpflab
        .args(["replay", "--json", WRITES, path])
        .output()
        .unwrap();
    let row = json(&output);
    assert_eq!(row["verdict"], "nothing_compared");
    assert_eq!(row["programs"][0]["verdict"], "nothing_compared");
    assert_eq!(row["programs"][0]["why"], "it never ran");
    let gaps = row["not_compared"].as_array().unwrap();
    assert_eq!(
        (&gaps[0]["program"], &gaps[1]["map"]),
        (&"count_write".into(), &"hist".into())
    );
}

/// The id of a process's map of this type, from `/proc/PID/fdinfo`.
fn map_of(process: u32, map_type: u32, max_entries: u32) -> Option<String> {
    let folder = std::fs::read_dir(format!("/proc/{process}/fdinfo")).ok()?;
    let mut files = folder
        .flatten()
        .filter_map(|file| std::fs::read_to_string(file.path()).ok());
    files.find_map(|text| {
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let is_it = field("map_type:")? == map_type.to_string()
            && field("max_entries:")? == max_entries.to_string();
        is_it.then(|| field("map_id:"))?
    })
}

/// Another process changes a map while it is recorded: the finding says so.
#[test]
fn a_map_that_is_changed_from_outside_is_named() {
    if !is_there() {
        return;
    }
    // The command says when it has written, and goes on when the map was changed.
    let flag = |name| {
        let name = format!("outside-{}-{name}", std::process::id());
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
    };
    let (written, changed_flag) = (flag("written"), flag("changed"));
    let line = format!(
        "{}; : > {}; while [ ! -e {} ]; do sleep 0.05; done; {}",
        dd(20, 300),
        written.display(),
        changed_flag.display(),
        dd(20, 300)
    );
    let mut compare = bpflab();
    compare.args(["compare", WRITES, "--", "sh", "-c", &line]);
    let running = compare.stdout(Stdio::piped()).spawn().unwrap();
    let waited = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        written.exists()
    });
    // An array of 64 counters.
    let id = map_of(running.id(), 2, 64).unwrap_or_default();
    let words = format!("map update id {id} key 8 0 0 0 value 77 0 0 0 0 0 0 0");
    let changed = Command::new("bpftool").args(words.split(' ')).status();
    std::fs::write(&changed_flag, "").unwrap();
    let output = running.wait_with_output().unwrap();
    let _ = std::fs::remove_file(written);
    let _ = std::fs::remove_file(changed_flag);
    assert!(
        waited && !id.is_empty(),
        "the command ran and the map is there"
    );
    if !changed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: bpftool can't change the map");
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let cause = "map hist was likely changed from outside meanwhile, by bpftool or";
    assert!(text.contains(cause), "{text}");
    assert!(text.ends_with("verdict: different\n"), "{text}");
}

#[test]
fn a_full_disk_is_told() {
    if !is_there() {
        return;
    }
    let output = run(&[WRITES], Path::new("/dev/full"), &["sleep", "10"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let expected = "error: /dev/full: the recording can't be written: No space left on device";
    assert!(text.starts_with(expected), "{text}");
}

/// What fitted on the disk can be read.
#[test]
fn a_disk_that_fills_up_is_told_with_its_file() {
    if !is_there() {
        return;
    }
    let folder = Scratch::new("small-disk");
    let path = folder.0.to_str().expect("a path");
    std::fs::create_dir(path).expect("a folder");
    // The mount is in a namespace of its own, so the file is looked at there, too.
    let bpflab = env!("CARGO_BIN_EXE_bpflab");
    let script = format!(
        "mount -t tmpfs -o size=16k none {path} && cd {} && \
         {bpflab} record {WRITES} -o {path}/full.rec -- \
         dd if=/dev/zero of=/dev/null bs=512 count=60000 status=none; echo code $?; \
         {bpflab} inspect {path}/full.rec; echo code $?",
        env!("CARGO_MANIFEST_DIR")
    );
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output()
        .expect("unshare");
    std::fs::remove_dir(path).expect("the folder");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
    if err.contains("unshare: ") || err.contains("mount: ") {
        return skip(Need::Tools, err);
    }
    let expected = format!("error: {path}/full.rec: the recording can't be written: No space");
    assert!(err.contains(&expected), "{out}{err}");
    assert!(err.contains("the file is cut off there"), "{err}");
    assert!(out.starts_with("code 2\nrecording "), "{out}{err}");
    assert!(out.contains("cut off"), "{out}");
}

#[test]
fn what_is_missing_is_told() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("missing");
    // Kernels without kprobes don't have this attach point.
    if !Path::new("/sys/bus/event_source/devices/kprobe").exists() {
        let object = "examples/bpf/vfs_read_latency.bpf.o";
        let output = run(&[object], &file.0, &["echo"]);
        assert_eq!(output.status.code(), Some(3));
        assert!(
            stderr(&output).contains("not available here"),
            "{}",
            stderr(&output)
        );
    }
    // As another user, who can read world-readable files only.
    let binary = Scratch::new("binary");
    std::fs::copy(env!("CARGO_BIN_EXE_bpflab"), &binary.0).unwrap();
    let object = Scratch::new("object.o");
    std::fs::copy(WRITES, &object.0).unwrap();
    let mut nobody = Command::new(&binary.0);
    nobody
        .args(["record"])
        .arg(&object.0)
        .arg("-o")
        .arg(&file.0)
        .args(["--", "echo"]);
    let output = nobody
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("run this as root"), "{text}");
    assert!(!file.0.exists());
}

#[test]
fn a_namespace_of_processes_changes_nothing() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("namespace");
    let inside = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let mut unshare = Command::new("unshare");
    unshare.args(inside).arg(env!("CARGO_BIN_EXE_bpflab"));
    unshare
        .args(["record", WRITES, "--json", "-o"])
        .arg(&file.0);
    unshare.args(["--", "sh", "-c", &format!("{}; {}", dd(100, 7), dd(100, 8))]);
    let Ok(output) = unshare.current_dir(env!("CARGO_MANIFEST_DIR")).output() else {
        skip(Need::Tools, "there is no unshare");
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let row = json(&output);
    assert_eq!((&row["events"], &row["lost"]), (&200.into(), &0.into()));
    assert_eq!(file.read().sizes().len(), 200);
}

#[test]
fn a_program_can_be_attached_elsewhere() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("elsewhere");
    let elsewhere = "count_write=syscalls/sys_enter_pwrite64";
    let output = run(
        &[WRITES, "--json", "--attach", elsewhere],
        &file.0,
        &["sh", "-c", &dd(5, 1)],
    );
    let row = json(&output);
    assert_eq!(
        row["programs"][0]["attach"],
        "tp/syscalls/sys_enter_pwrite64"
    );
    assert_eq!(row["events"], 0, "dd writes by other means");
}
