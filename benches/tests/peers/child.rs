//! A peer in a process of its own: C and machine code may end the process, or never end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::{Made, Peer};

/// Tells the test binary that it is a child, and which peer it has.
const VARIABLE: &str = "BPFLAB_PEER";
/// Begins the line of an answer, among what the test harness prints.
const ANSWER: &str = "answer: ";
/// After this time a program counts as endless.
const LIMIT: Duration = Duration::from_secs(20);

/// A process with a peer, which is started again after a program that ended it.
pub struct Process {
    /// The peer's title.
    title: &'static str,
    running: Option<Running>,
}

struct Running {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Process {
    /// A process for the peer with this title, started when it is asked.
    pub const fn new(title: &'static str) -> Self {
        Self {
            title,
            running: None,
        }
    }

    /// Runs a program.
    pub fn run(&mut self, code: &[u8]) -> Made {
        let title = self.title;
        let running = self.running.get_or_insert_with(|| Running::start(title));
        let mut request: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
        request.push('\n');
        let sent = running.requests.write_all(request.as_bytes());
        // A pipe that is closed has no answers, either.
        drop(sent);
        match running.answers.recv_timeout(LIMIT) {
            Ok(answer) => Made::parse(&answer).expect("an answer of this binary"),
            Err(why) => {
                let mut ended = self.running.take().expect("it is there");
                if why == RecvTimeoutError::Timeout {
                    ended.child.kill().expect("it is ours");
                }
                let status = ended.child.wait().expect("it is ours");
                match why {
                    RecvTimeoutError::Timeout => Made::Endless,
                    RecvTimeoutError::Disconnected => Made::Ended(status.to_string()),
                }
            }
        }
    }
}

/// The child ends with its input.
impl Drop for Process {
    fn drop(&mut self) {
        if let Some(Running {
            mut child,
            requests,
            ..
        }) = self.running.take()
        {
            drop(requests);
            let _ = child.wait();
        }
    }
}

impl Running {
    fn start(title: &str) -> Self {
        let binary = std::env::current_exe().expect("this test");
        let mut child = Command::new(binary)
            .args(["--exact", "serve", "--ignored", "--nocapture"])
            .env(VARIABLE, title)
            // uBPF's JIT allocates megabytes of zeros for each program: glibc then maps them, and
            // does not write them: a thousand programs take 0.2 s for 5.9.
            .env("MALLOC_MMAP_THRESHOLD_", "65536")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // uBPF prints its errors there.
            .stderr(Stdio::null())
            .spawn()
            .expect("this binary starts");
        let requests = child.stdin.take().expect("it is a pipe");
        let output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let (sender, answers) = channel();
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            for line in lines {
                let answer = line.strip_prefix(ANSWER);
                if answer.is_some_and(|it| sender.send(it.to_owned()).is_err()) {
                    break;
                }
            }
        });
        Self {
            child,
            requests,
            answers,
        }
    }
}

/// Runs the programs that standard input has, a line of hexadecimal digits each, on the peer that
/// the parent names. Without a parent it does nothing.
pub fn serve(peers: &[Peer]) {
    let Ok(title) = std::env::var(VARIABLE) else {
        return;
    };
    let peer = peers.iter().find(|peer| peer.title == title);
    let run = peer.expect("a peer of the parent").run;
    for line in std::io::stdin().lines() {
        let line = line.expect("the parent writes text");
        let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal digits");
        let code = (0..line.len()).step_by(2).map(byte).collect();
        // The harness may have begun a line.
        println!("\n{ANSWER}{}", Made::of(run(code)));
    }
}
