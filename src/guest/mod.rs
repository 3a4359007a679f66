//! A command in a virtual machine, with another kernel and without root.
//!
//! The machine is qemu's. Its first file system is built in memory: bpflab itself as the first
//! process ([`init`]), the libraries that it needs, and the files of the command. What the
//! command prints and writes comes out as [frames], and the machine ends with the command:
//! there is no disk, no network, and nothing is left.

mod accelerator;
mod cpio;
mod elf;
mod error;
mod frames;
pub(crate) mod init;
mod job;
pub(crate) mod kernels;
mod libraries;
pub(crate) mod package;
#[cfg(test)]
#[path = "../../tests/shared/packages.rs"]
mod packages;
mod qemu;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use accelerator::Accelerator;
pub(crate) use error::GuestError;
use frames::Frame;
pub(crate) use job::Job;
use kernels::Image;
use qemu::Machine;

/// Where the command's output goes.
pub(crate) trait Sink {
    /// A guest is started.
    fn starting(&mut self, accelerator: Accelerator);
    /// The guest runs this release.
    fn up(&mut self, release: &str, accelerator: Accelerator, boot: Duration);
    /// It did not come up, and is started again.
    fn again(&mut self, why: &GuestError);
    /// Standard output of the command.
    fn out(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Standard error of the command.
    fn err(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Runs a command with a kernel, and returns the command's exit code.
///
/// # Errors
/// A guest that doesn't come up twice, one that ends before its command, a file that can't be
/// read or written.
pub(crate) fn run(job: &Job, image: &Image, sink: &mut dyn Sink) -> Result<u8, GuestError> {
    let mut machine = start(job, image, sink)?;
    let mut file: Option<(PathBuf, File)> = None;
    loop {
        match machine.next_frame()? {
            Frame::Hello(_) | Frame::Alive => {}
            Frame::Out(bytes) => sink.out(&bytes).map_err(GuestError::Output)?,
            Frame::Err(bytes) => sink.err(&bytes).map_err(GuestError::Output)?,
            Frame::File(number, below) => {
                let output = job.outputs.get(usize::from(number));
                let path = output.and_then(|output| inside(output, Path::new(&below)));
                file = path.map(create).transpose()?;
            }
            Frame::Bytes(bytes) => {
                if let Some((path, file)) = &mut file {
                    file.write_all(&bytes)
                        .map_err(|error| GuestError::file(path.as_path(), error))?;
                }
            }
            Frame::Exit(code) => return Ok(code),
        }
    }
}

/// The path of a file in an output of the guest, which may not be outside.
fn inside(output: &Path, below: &Path) -> Option<PathBuf> {
    let mut parts = below.components();
    let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| match below.as_os_str().is_empty() {
        true => output.to_owned(),
        false => output.join(below),
    })
}

/// Creates a file that came from a guest, and the folders above it.
fn create(path: PathBuf) -> Result<(PathBuf, File), GuestError> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let created = folder.and_then(|()| File::create(&path));
    let file = created.map_err(|error| GuestError::file(&path, error))?;
    Ok((path, file))
}

/// Starts a guest; once more if it doesn't come up. Where KVM runs no guests, TCG does.
fn start(job: &Job, image: &Image, sink: &mut dyn Sink) -> Result<Machine, GuestError> {
    let first = Accelerator::best(image.arch);
    let once = |accelerator, sink: &mut dyn Sink| {
        sink.starting(accelerator);
        let begin = Instant::now();
        let started = Machine::start(image, job.file_system(image)?, job.memory, accelerator)?;
        Ok((started, accelerator, begin.elapsed()))
    };
    let ((machine, release), accelerator, boot) = match once(first, sink) {
        Err(error @ GuestError::Gone { .. }) => {
            sink.again(&error);
            let again = once(Accelerator::Tcg, sink)?;
            if first == Accelerator::Kvm {
                accelerator::kvm_fails();
            }
            again
        }
        started => started?,
    };
    sink.up(&release, accelerator, boot);
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_guest_stay_in_its_outputs() {
        let within = |below| inside(Path::new("/findings"), Path::new(below));
        assert_eq!(within(""), Some("/findings".into()));
        assert_eq!(within("btf/types"), Some("/findings/btf/types".into()));
        assert_eq!(within("../passwd"), None);
        assert_eq!(within("btf/../../passwd"), None);
        assert_eq!(within("/etc/passwd"), None);
    }
}
