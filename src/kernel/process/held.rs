//! A command that waits before its first instruction.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;

use thiserror::Error;

use super::child::Child;
use crate::kernel::sys;

/// Why a command does not run.
#[derive(Debug, Error)]
pub enum SpawnError<E> {
    /// It can't be started.
    #[error(transparent)]
    Start(io::Error),
    /// What was to be done before it runs has failed; it has not run.
    #[error(transparent)]
    Prepare(E),
}

/// Starts a command, and calls `prepare` with its number when it is a process that has
/// not run anything yet. Then it is set free. `prepare` is called on another thread, the
/// process is forked by the calling one.
///
/// # Errors
/// The command can't be started, or `prepare` has failed: nothing has run then.
pub fn spawn_held<E: Send>(
    command: &mut Command,
    prepare: impl FnOnce(u32) -> Result<(), E> + Send,
) -> Result<Child, SpawnError<E>> {
    let (gate, over) = sys::hold(command).map_err(SpawnError::Start)?;
    let (spawned, prepared) = thread::scope(|scope| {
        let keeper = scope.spawn(|| keep(&gate, prepare));
        // This returns when the process has become its command, or could not.
        let spawned = command.spawn();
        // Where there was no process nobody would tell its number.
        let _ = gate.shutdown(Shutdown::Both);
        let prepared = keeper.join();
        (spawned, prepared)
    });
    over.store(true, Ordering::Relaxed);
    match prepared {
        Ok(Err(error)) => Err(SpawnError::Prepare(error)),
        Ok(Ok(())) => spawned.and_then(Child::new).map_err(SpawnError::Start),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Prepares for the process that waits at the gate, and opens it. Closed, also by a panic,
/// it lets nothing through: the process ends itself.
fn keep<E>(mut gate: &UnixStream, prepare: impl FnOnce(u32) -> Result<(), E>) -> Result<(), E> {
    let mut pid = [0; 4];
    if gate.read_exact(&mut pid).is_err() {
        return Ok(()); // There is no process, and who spawns it knows why.
    }
    let closing = Closing(gate);
    prepare(u32::from_ne_bytes(pid))?;
    // A process that is gone has been killed by somebody, as its status will tell.
    let _ = gate.write_all(&[1]);
    std::mem::forget(closing);
    Ok(())
}

/// Closes the gate when it is dropped.
struct Closing<'a>(&'a UnixStream);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // It can be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::process::{Ended, Stop};
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    fn command(program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// The name of what a process runs.
    fn runs(pid: u32) -> String {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
    }

    #[test]
    fn a_command_waits_for_what_is_prepared() {
        let mut seen = (0, String::new());
        let mut child = spawn_held::<()>(&mut command("sleep", &["30"]), |pid| {
            seen = (pid, runs(pid));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen.0, child.id());
        assert_ne!(seen.1, "sleep\n", "it had not run anything");
        assert_eq!(runs(child.id()), "sleep\n");
        let stop = Stop::new().unwrap();
        let soon = Some(Instant::now() + Duration::from_millis(20));
        let wait = |until, stop: &Stop| Ended::wait(Some(&child), until, &[stop]);
        assert_eq!(wait(soon, &stop), Ok(Ended::Duration));
        stop.now();
        assert_eq!(wait(None, &stop), Ok(Ended::Stopped));
        let status = child.end().unwrap();
        assert!(!status.success());
        assert_eq!(runs(child.id()), "", "it has been waited for");
    }

    #[test]
    fn what_fails_before_leaves_no_process() {
        let mut pid = 0;
        let failed = spawn_held(&mut command("sleep", &["30"]), |held| {
            pid = held;
            Err("no")
        });
        assert!(matches!(failed, Err(SpawnError::Prepare("no"))));
        assert_eq!(runs(pid), "");
        let panics = std::panic::AssertUnwindSafe(|| {
            spawn_held::<()>(&mut command("sleep", &["30"]), |_| panic!("on purpose"))
        });
        std::panic::catch_unwind(panics).unwrap_err();
        let failed = spawn_held::<()>(&mut command("/no/such/command", &[]), |_| Ok(()));
        let Err(SpawnError::Start(error)) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_command_can_be_spawned_again() {
        let mut command = command("true", &[]);
        for _ in 0..2 {
            let mut prepared = false;
            let child = spawn_held::<()>(&mut command, |_| {
                prepared = true;
                Ok(())
            });
            let mut child = child.unwrap();
            assert_eq!(Ended::wait(Some(&child), None, &[]), Ok(Ended::Command));
            assert!(child.end().unwrap().success() && prepared);
        }
    }
}
