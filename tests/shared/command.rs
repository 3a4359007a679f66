//! Running the command as a user does.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The command, in the folder of the crate. Where the tests run in an emulator, so
/// does it: cargo's variable for the runner of foreign programs says which.
pub fn bpflab() -> Command {
    const BIN: &str = env!("CARGO_BIN_EXE_bpflab");
    let runner = format!(
        "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER",
        std::env::consts::ARCH
    );
    let mut command = match std::env::var(runner.to_uppercase()) {
        Ok(runner) => {
            let mut words = runner.split_whitespace();
            let mut command = Command::new(words.next().expect("a runner"));
            command.args(words).arg(BIN);
            command
        }
        Err(_) => Command::new(BIN),
    };
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Runs the command with these arguments and this standard input.
#[allow(dead_code, reason = "not every test with this file needs it")]
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, input: &str) -> Output {
    let mut command = bpflab();
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that fails early does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}
