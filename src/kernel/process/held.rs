//! A command that is held before its first instruction.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;

use thiserror::Error;

use super::child::Child;
use crate::kernel::sys;

/// Why a command did not run.
#[derive(Debug, Error)]
pub enum SpawnError<E> {
    /// It could not be started.
    #[error(transparent)]
    Start(io::Error),
    /// The `prepare` callback failed; the command has not run.
    #[error(transparent)]
    Prepare(E),
}

/// Starts a command and holds it before its first instruction, calls `prepare` with its process
/// id, then releases it. `prepare` runs on another thread; the calling thread forks the
/// process.
///
/// # Errors
/// The command can't be started, or `prepare` failed: the command has not run then.
pub fn spawn_held<E: Send>(
    command: &mut Command,
    prepare: impl FnOnce(u32) -> Result<(), E> + Send,
) -> Result<Child, SpawnError<E>> {
    let (socket, over) = sys::hold(command).map_err(SpawnError::Start)?;
    let (spawned, prepared) = thread::scope(|scope| {
        let preparing = scope.spawn(|| prepare_and_release(&socket, prepare));
        // Returns when the process has done its `execve`, or has failed.
        let spawned = command.spawn();
        // Unblocks the other thread if no process was created.
        let _ = socket.shutdown(Shutdown::Both);
        let prepared = preparing.join();
        (spawned, prepared)
    });
    over.store(true, Ordering::Relaxed);
    match prepared {
        Ok(Err(error)) => Err(SpawnError::Prepare(error)),
        Ok(Ok(())) => spawned.and_then(Child::new).map_err(SpawnError::Start),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs `prepare` for the process waiting on the socket, then releases it. If the socket closes
/// first, also by a panic, the process exits.
fn prepare_and_release<E>(
    mut socket: &UnixStream,
    prepare: impl FnOnce(u32) -> Result<(), E>,
) -> Result<(), E> {
    let mut pid = [0; 4];
    if socket.read_exact(&mut pid).is_err() {
        return Ok(()); // No process was created; the caller of spawn has the error.
    }
    let closing = Closing(socket);
    prepare(u32::from_ne_bytes(pid))?;
    // If the process has been killed, its status tells.
    let _ = socket.write_all(&[1]);
    std::mem::forget(closing);
    Ok(())
}

/// Closes the socket on drop.
struct Closing<'a>(&'a UnixStream);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // It may be closed already.
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

    /// The comm of a process.
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
        assert_ne!(seen.1, "sleep\n", "it had run nothing yet");
        assert_eq!(runs(child.id()), "sleep\n");
        let stop = Stop::new().unwrap();
        let soon = Some(Instant::now() + Duration::from_millis(20));
        let wait = |until, stop: &Stop| Ended::wait(Some(&child), until, &[stop]);
        assert_eq!(wait(soon, &stop), Ok(Ended::Duration));
        stop.now();
        assert_eq!(wait(None, &stop), Ok(Ended::Stopped));
        let status = child.end().unwrap();
        assert!(!status.success());
        assert_eq!(runs(child.id()), "", "reaped");
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
