//! The host's side: starts qemu and reads what the guest tells.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::accelerator::Accelerator;
use super::error::GuestError;
use super::frames::Frame;
use super::init::BEAT;
use super::kernels::{Arch, Image};
use crate::kernel::init::{kill_with_parent, memory_file};

/// The time without a sign of life after which a guest is given up.
const SILENCE: Duration = Duration::from_secs(BEAT.as_secs() * 30);
/// How many lines of the console are kept.
const LINES: usize = 30;

/// A running virtual machine. Dropping it ends the machine.
pub(super) struct Machine {
    child: Child,
    frames: Receiver<io::Result<Frame>>,
    /// Reads the console, and ends with its last lines.
    console: Option<JoinHandle<VecDeque<String>>>,
    /// The kernel, which qemu opens by this process's descriptor.
    _kernel: File,
}

impl Machine {
    /// Starts a machine with this memory beside its first file system, in MiB, and waits until its
    /// first process runs. Returns the kernel's release, too.
    ///
    /// # Errors
    /// No qemu, or a guest that ended or did not come up.
    pub fn start(
        image: &Image,
        file_system: File,
        memory: u64,
        accelerator: Accelerator,
    ) -> Result<(Self, String), GuestError> {
        let mut machine = Self::spawn(image, file_system, memory, accelerator)?;
        match machine.next(accelerator.boot_limit())? {
            Frame::Hello(release) => Ok((machine, release)),
            _ => Err(machine.gone("the guest did not say that it runs")),
        }
    }

    fn spawn(
        image: &Image,
        file_system: File,
        memory: u64,
        accelerator: Accelerator,
    ) -> Result<Self, GuestError> {
        let size = file_system.metadata().map_err(GuestError::Start)?.len();
        let (qemu, console, machine, cpu) = match image.arch {
            Arch::X86_64 => ("qemu-system-x86_64", "ttyS0", "pc", "max"),
            Arch::Arm64 => (
                "qemu-system-aarch64",
                "ttyAMA0",
                "virt",
                cpu_of_arm64(accelerator),
            ),
        };
        let kernel = in_memory(&image.kernel).map_err(GuestError::Start)?;
        let kernel_path = format!("/proc/{}/fd/{}", std::process::id(), kernel.as_raw_fd());
        let memory = memory + size.div_ceil(1 << 20) * 2;
        let mut command = Command::new(qemu);
        command
            .args(["-machine", machine, "-accel", accelerator.option()])
            .args(["-cpu", cpu, "-m", &format!("{memory}M")])
            // Nothing but what is named: no network, no disk, no display, no configuration.
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            // The console and qemu's own errors: standard error.
            .args([
                "-chardev",
                "file,id=console,path=/dev/stderr",
                "-serial",
                "chardev:console",
            ])
            // The way out: standard output, by a virtual console or by a serial line.
            .args(["-chardev", "file,id=out,path=/dev/stdout"])
            .args(["-device", "virtio-serial-pci"])
            .args(["-device", "virtserialport,chardev=out,name=bpflab"])
            .args(["-kernel", &kernel_path])
            .args(["-initrd", "/dev/stdin"])
            .args([
                "-append",
                &format!("console={console} quiet panic=-1 no_timer_check lsm=bpf"),
            ])
            .stdin(Stdio::from(file_system))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if image.arch == Arch::X86_64 {
            command.args(["-serial", "file:/dev/stdout"]);
        }
        kill_with_parent(&mut command);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => GuestError::NoQemu(qemu),
            _ => GuestError::Start(error),
        })?;
        let (sender, frames) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut source = BufReader::new(stdout);
                loop {
                    let frame = Frame::read(&mut source);
                    let over = frame.is_err();
                    if sender.send(frame).is_err() || over {
                        return;
                    }
                }
            });
        }
        let stderr = child.stderr.take();
        Ok(Self {
            child,
            frames,
            console: stderr.map(|stderr| thread::spawn(move || last_lines(stderr))),
            _kernel: kernel,
        })
    }

    /// The next frame but signs of life.
    ///
    /// # Errors
    /// The machine has ended, or was silent for too long.
    pub fn next_frame(&mut self) -> Result<Frame, GuestError> {
        loop {
            match self.next(SILENCE)? {
                Frame::Alive => {}
                frame => return Ok(frame),
            }
        }
    }

    fn next(&mut self, limit: Duration) -> Result<Frame, GuestError> {
        match self.frames.recv_timeout(limit) {
            Ok(Ok(frame)) => Ok(frame),
            Ok(Err(error)) if error.kind() == ErrorKind::InvalidData => {
                Err(self.gone("it wrote what is no frame"))
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                Err(self.gone("the virtual machine ended too soon"))
            }
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("no sign of life for {} s", limit.as_secs());
                Err(self.gone(&why))
            }
        }
    }

    /// The error for a machine that does not go on, with the end of its console.
    fn gone(&mut self, why: &str) -> GuestError {
        // The console ends with qemu.
        self.end();
        let console = self.console.take().and_then(|console| console.join().ok());
        GuestError::Gone {
            why: why.to_owned(),
            console: console.unwrap_or_default().into(),
        }
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Under TCG signed pointers by a plain hash: to emulate the architecture's own is slow.
const fn cpu_of_arm64(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Tcg => "max,pauth-impdef=on",
        Accelerator::Kvm => "max",
    }
}

/// A file in memory with these bytes.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = memory_file(c"kernel")?;
    file.write_all(bytes)?;
    Ok(file)
}

/// The last lines of the console that are not empty.
fn last_lines(source: impl Read) -> VecDeque<String> {
    let mut source = BufReader::new(source);
    let (mut kept, mut line) = (VecDeque::new(), Vec::new());
    while matches!(source.read_until(b'\n', &mut line), Ok(len) if len > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if text.is_empty() {
            continue;
        }
        if kept.len() == LINES {
            kept.pop_front();
        }
        kept.push_back(text);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_the_console_are_kept() {
        let text: String = (0..100).map(|n| format!("line {n}\r\n\n")).collect();
        let kept = last_lines(text.as_bytes());
        assert_eq!(kept.len(), LINES);
        assert_eq!(
            (kept[0].as_str(), kept[LINES - 1].as_str()),
            ("line 70", "line 99")
        );
    }
}
