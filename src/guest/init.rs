//! The guest's side: bpflab as the first process of a virtual machine.
//!
//! The kernel starts it as `/init`. It mounts what tracing programs need, loads the modules,
//! runs the command of the [`Job`], passes on what the command prints and writes, and switches
//! the machine off.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::frames::Frame;
use super::job::{FILE, INIT, Job, MODULES};
use crate::kernel::init::{drain, load_module, make_raw, mount, power_off};
use crate::kernel::{UNPRIVILEGED, Uname, set_device_up};

/// The time between two signs of life.
pub(super) const BEAT: Duration = Duration::from_secs(2);

/// Whether this process is a guest's first.
pub(crate) fn is_guest() -> bool {
    std::process::id() == 1 && Path::new(FILE).exists()
}

/// The file systems that tracing programs use, in the order of mounting. A kernel may lack some.
const MOUNTS: [(&CStr, &CStr); 8] = [
    (c"proc", c"/proc"),
    (c"sysfs", c"/sys"),
    (c"devtmpfs", c"/dev"),
    (c"tracefs", c"/sys/kernel/tracing"),
    (c"debugfs", c"/sys/kernel/debug"),
    (c"securityfs", c"/sys/kernel/security"),
    (c"bpf", c"/sys/fs/bpf"),
    (c"cgroup2", c"/sys/fs/cgroup"),
];

/// The ways out of the guest, best first: a port of a virtual console, the second serial line.
const WAYS_OUT: [&str; 2] = ["/dev/vport0p1", "/dev/ttyS1"];

/// Does the job, and switches the machine off. What goes wrong before the host can be told is
/// on the console.
pub(crate) fn main() {
    if let Err(error) = run() {
        say(&format!("bpflab: {error}"));
    }
    power_off();
}

fn run() -> io::Result<()> {
    let job: Job = serde_json::from_slice(&fs::read(FILE)?)?;
    for (file_system, folder) in MOUNTS {
        if let Err(errno) = mount(file_system, folder) {
            let (name, place) = (file_system.to_string_lossy(), folder.to_string_lossy());
            say(&format!(
                "bpflab: {name} can't be mounted at {place}: {errno}"
            ));
        }
    }
    // Loaders without CAP_BPF get verdicts, too. Debian's kernels refuse them by default.
    if let Err(error) = fs::write(UNPRIVILEGED, "0") {
        say(&format!("bpflab: {UNPRIVILEGED}: {error}"));
    }
    for number in 0..job.modules {
        let module = fs::read(Path::new(MODULES).join(number.to_string()))?;
        if let Err(errno) = load_module(&module) {
            say(&format!("bpflab: module {number} can't be loaded: {errno}"));
        }
    }
    if let Err(errno) = set_device_up("lo") {
        say(&format!("bpflab: device lo: {errno}"));
    }
    let out = Out::open()?;
    out.send(Frame::Hello(Uname::here().release))?;
    let code = thread::scope(|scope| {
        let beats = scope.spawn(|| {
            loop {
                thread::park_timeout(BEAT);
                if out.send(Frame::Alive).is_err() || out.is_over() {
                    return;
                }
            }
        });
        let code = command(&job, &out);
        out.end();
        beats.thread().unpark();
        code
    });
    let code = match code {
        Ok(code) => code,
        Err(error) => {
            let program = job.program.as_deref().unwrap_or(Path::new(INIT));
            let text = format!("{}: {error}\n", program.display());
            out.send(Frame::Err(text.into_bytes()))?;
            3
        }
    };
    for (number, path) in (0..).zip(&job.outputs) {
        send(path, &|below| Frame::File(number, below), "", &out)?;
    }
    out.send(Frame::Exit(code))?;
    out.flush();
    Ok(())
}

/// Sends a file, or all files of a folder; `below` is its path in the output that `frame` names.
fn send(path: &Path, frame: &dyn Fn(String) -> Frame, below: &str, out: &Out) -> io::Result<()> {
    if !path.is_dir() {
        let Ok(file) = File::open(path) else {
            return Ok(());
        };
        out.send(frame(below.to_owned()))?;
        return Frame::copy(file, Frame::Bytes, |frame| out.send(frame));
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let below = Path::new(below).join(&name);
        send(&path.join(&name), frame, &below.to_string_lossy(), out)?;
    }
    Ok(())
}

/// Runs the command and passes on what it prints. Returns its exit code; 128 and the signal's
/// number for one that a signal ended, as a shell has it.
fn command(job: &Job, out: &Out) -> io::Result<u8> {
    let program = job.program.as_deref().unwrap_or(Path::new(INIT));
    let mut child = Command::new(program)
        .args(&job.arguments)
        .current_dir(&job.folder)
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let status = thread::scope(|scope| {
        if let Some(stdout) = stdout {
            scope.spawn(move || pass_on(stdout, Frame::Out, out));
        }
        if let Some(stderr) = stderr {
            scope.spawn(move || pass_on(stderr, Frame::Err, out));
        }
        child.wait()
    })?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX))
}

/// An error of the way out ends the passing on; the host notices by the missing end.
fn pass_on(source: impl Read, make: fn(Vec<u8>) -> Frame, out: &Out) {
    let _ = Frame::copy(source, make, |frame| out.send(frame));
}

/// The way out of the guest, which several threads use.
struct Out {
    file: Mutex<File>,
    over: AtomicBool,
}

impl Out {
    fn open() -> io::Result<Self> {
        let mut last = io::Error::other("no way out");
        for path in WAYS_OUT {
            match OpenOptions::new().write(true).open(path) {
                Ok(file) => {
                    make_raw(file.as_fd());
                    return Ok(Self {
                        file: Mutex::new(file),
                        over: AtomicBool::new(false),
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn send(&self, frame: Frame) -> io::Result<()> {
        let mut file = self.file.lock().map_err(|_| io::Error::other("a panic"))?;
        frame.write(&mut *file)
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until all has left the guest.
    fn flush(&self) {
        if let Ok(file) = self.file.lock() {
            drain(file.as_fd());
        }
    }
}

/// Prints to the console, of which the host shows the end if the guest fails.
fn say(text: &str) {
    // Without a console there is nobody to tell.
    let _ = writeln!(io::stderr(), "{text}");
}
