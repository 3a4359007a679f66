//! The process whose writes are timed: this command again, which calls write(2) as often as
//! standard input says and answers with the elapsed time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::exit::{Exit, Failure};

/// The file it writes to: its write(2) does nothing, so that beside the tracing only the cost
/// of a system call is measured.
pub(super) const TARGET: &str = "/dev/null";

/// A process that writes on request. It ends with this value, or when this process ends, which
/// closes its standard input.
pub(super) struct Writer {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Writer {
    /// Starts the process; each of its writes has `size` bytes.
    pub fn start(size: u16) -> Result<Self, Failure> {
        let size = size.to_string();
        let mut command = Command::new("/proc/self/exe");
        command.args(["bench", "tracepoint", "--writer", &size]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = || Failure::with(Exit::Unavailable, "cannot start the writer process");
        let mut child = command.spawn().map_err(|_| failed())?;
        let (orders, answers) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or_else(failed)?;
        Ok(Self {
            child,
            orders: Some(orders),
            answers: BufReader::new(answers),
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes it write `times` times; returns the elapsed time.
    pub fn write(&mut self, times: u32) -> Result<Duration, Failure> {
        let answer = self.ask(times);
        answer.map_err(|error| Failure::bad(format!("the writer process ended: {error}")))
    }

    fn ask(&mut self, times: u32) -> io::Result<Duration> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(format!("{times}\n").as_bytes())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let nanoseconds = line.trim().parse();
        let nanoseconds = nanoseconds.map_err(|_| io::ErrorKind::UnexpectedEof)?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It ends by itself; its status does not matter.
        let _ = self.child.wait();
    }
}

/// Runs as the writer process.
pub(super) fn serve(size: u16) -> io::Result<()> {
    let bytes = vec![0; size.into()];
    let mut file = File::options().write(true).open(TARGET)?;
    let mut answers = io::stdout().lock();
    for order in io::stdin().lock().lines() {
        let times: u32 = order?.trim().parse().map_err(io::Error::other)?;
        let start = Instant::now();
        for _ in 0..times {
            // A single call: /dev/null takes all bytes at once.
            let _ = file.write(&bytes)?;
        }
        let elapsed = start.elapsed().as_nanos();
        // The answer is a single write, too.
        answers.write_all(format!("{elapsed}\n").as_bytes())?;
        answers.flush()?;
    }
    Ok(())
}
