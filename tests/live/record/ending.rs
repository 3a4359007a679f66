//! How a recording ends: by a signal, by its duration, by being killed; and that nothing stays
//! behind.

use crate::shared::is_emulated;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bpflab::kernel::process::spawn_held;
use bpflab::kernel::program_ids;
use serde_json::Value;

use super::command::bpflab;
use super::recorded::{Recorded, WRITES, dd, is_there};

/// A file that is removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let name = format!("bpflab-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub fn read(&self) -> Recorded {
        Recorded::read(&std::fs::read(&self.0).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits until a condition holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let last = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < last, "{what}");
        sleep(Duration::from_millis(10));
    }
}

/// Records a shell that writes for a long time, until the file has contents; with the shell's
/// process id.
fn recording(file: &Scratch) -> (Child, u32) {
    let rounds = "for round in $(seq 3000)";
    let line = format!("echo $$; {rounds}; do {}; sleep 0.01; done", dd(10, 64));
    let mut child = bpflab()
        .args(["record", WRITES, "--json", "-o"])
        .arg(&file.0)
        .args(["--", "sh", "-c", &line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    // With --json the command's output goes there.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let command = line.trim().parse().unwrap_or_else(|_| panic!("{line:?}"));
    child.stderr = Some(stderr.into_inner());
    // Items wait in the recorder's memory for up to a second.
    until("firings in the file", || {
        let bytes = std::fs::read(&file.0).unwrap_or_default();
        !bytes.is_empty() && !Recorded::read(&bytes).firings.is_empty()
    });
    (child, command)
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill")
        .arg(name)
        .arg(process.to_string())
        .status();
    assert!(status.unwrap().success());
}

fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_else(|| panic!("{output:?}"));
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_signal_ends_it_and_all_is_written() {
    if !is_there() {
        return;
    }
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        let file = Scratch::new(name);
        let (child, command) = recording(&file);
        signal(name, child.id());
        let output = child.wait_with_output().unwrap();
        let row = json(&output);
        assert_eq!(output.status.code(), Some(0), "{row}");
        assert_eq!(
            (&row["ended"], &row["signal"]),
            (&"interrupted".into(), &number.into())
        );
        let recorded = file.read();
        assert!(recorded.end.is_some());
        assert_eq!(recorded.gaps(), []);
        assert_eq!(row["events"], recorded.firings.len());
        until("the command ends, too", || !is_alive(command));
    }
}

#[test]
fn time_ends_it() {
    if !is_there() {
        return;
    }
    let file = Scratch::new("duration");
    let started = Instant::now();
    let output = bpflab()
        .args(["record", WRITES, "--json", "--duration", "0.3", "-o"])
        .arg(&file.0)
        .args(["--", "sleep", "30"])
        .output()
        .unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(json(&output)["ended"], "duration");
    assert!(file.read().end.is_some());
}

#[test]
fn a_recorder_that_is_killed_leaves_nothing_but_what_it_wrote() {
    if !is_there() {
        return;
    }
    let before: BTreeSet<u32> = program_ids().unwrap().into_iter().collect();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let file = Scratch::new("killed");
    let (mut child, command) = recording(&file);
    let during: BTreeSet<u32> = program_ids().unwrap().into_iter().collect();
    let own: BTreeSet<_> = during.difference(&before).copied().collect();
    // The program itself, and the two that follow the command.
    assert!(own.len() >= 3, "{own:?}");
    signal("-KILL", child.id());
    child.wait().unwrap();

    until("the command ends", || !is_alive(command));
    // Other tests load programs, too, and unload them.
    until("the programs are gone", || {
        program_ids().unwrap().iter().all(|id| !own.contains(id))
    });
    assert_eq!(
        std::fs::read_to_string("/proc/self/mounts").unwrap(),
        mounts
    );
    let recorded = file.read();
    assert!(recorded.end.is_none(), "it is cut off");
    assert!(!recorded.firings.is_empty());
    assert_eq!(recorded.header.programs[0].name, "count_write");
}

/// The process below: it starts a stopped command, prints its process id, and waits to be killed.
#[test]
#[ignore = "only as a process of the test below"]
fn hold_and_wait() {
    let held = spawn_held::<()>(Command::new("sleep").arg("60"), |pid| {
        println!("\nheld {pid}");
        sleep(Duration::from_secs(60));
        Ok(())
    });
    drop(held);
}

#[test]
fn a_command_that_is_held_ends_with_its_recorder() {
    if is_emulated() {
        return;
    }
    let mut recorder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "record::ending::hold_and_wait",
            "--ignored",
            "--nocapture",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    let mut numbers = lines.map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("held ")
            .map(|number| number.parse().unwrap())
    });
    let held: u32 = numbers.next().expect("a number");
    assert!(is_alive(held));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    until("the command that was held is gone", || !is_alive(held));
}
