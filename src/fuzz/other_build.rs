//! The engines of another build of bpflab: one for another architecture, whose machine code runs in
//! an emulator. It is a process that gets candidates as cases, one a line, and answers each with a
//! line.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;

use super::candidate::Candidate;
use super::case::FuzzCase;
use super::oracle::Oracle;
use super::problem::Problem;
use crate::compare::Answer;
use crate::harness::converts;
use crate::object::cases::Hex;
use crate::spec::ProgType;

/// The longest time for an answer. Emulators are slow.
const LIMIT: Duration = Duration::from_secs(120);
/// The verb of the other build.
const VERB: &str = "fuzz";
/// The version, which both builds must have: a program's verdict depends on it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The first line of the other build.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    version: String,
    arch: String,
}

impl Hello {
    /// That of this build.
    pub(super) fn own() -> Self {
        Self {
            version: VERSION.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
        }
    }
}

/// A candidate.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// As a case.
    pub case: Json,
    /// The BTF of its programs.
    pub btf: Option<Hex>,
}

/// What the other build did with a candidate.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// Its engines ran it.
    Ran {
        /// The number of runs.
        runs: u64,
        /// The checked engine's answer ([`Answer::texts`]).
        answer: Vec<(String, String)>,
        /// A difference between its engines: the kind, the checked answer, the other.
        problem: Option<(String, String, String)>,
    },
    /// Its verifier does not accept it, and says this.
    NotAccepted(String),
    /// It did not run it, and why.
    Failed(String),
}

/// Why another build can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OtherBuildError {
    /// The file can't be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The file is no program for an architecture that bpflab has machine code for.
    #[error("{}: not an ELF program for x86-64 or arm64", .0.display())]
    Machine(PathBuf),
    /// The program, or the emulator that it needs, can't be started.
    #[error("{program} can't be started: {error}; programs of other architectures need qemu-user")]
    Start {
        /// The program.
        program: String,
        /// What is wrong.
        error: io::Error,
    },
    /// It did not answer as a bpflab of this version does.
    #[error("{}: not bpflab {VERSION}{said}", path.display())]
    NotBpflab {
        /// The file.
        path: PathBuf,
        /// What it printed instead.
        said: String,
    },
}

converts! {
    OtherBuildError;
}

/// Another build of bpflab, whose engines are compared by the oracle *value*.
#[derive(Debug, Clone)]
pub struct OtherBuild {
    /// The file, as it was given.
    file: PathBuf,
    /// The emulator, if one is needed, and the arguments.
    command: Vec<OsString>,
    /// Its architecture, as [`std::env::consts::ARCH`] has it.
    arch: String,
}

impl OtherBuild {
    /// The build in a file, which is started once to see that it runs: directly, or if it is for
    /// another architecture by qemu's user mode emulator. It takes the types of kernel objects from
    /// `btf`, or the running kernel.
    ///
    /// # Errors
    /// A file that is no bpflab of this version, or can't be run here.
    pub fn find(path: &Path, btf: Option<&Path>) -> Result<Self, OtherBuildError> {
        let file = |error| OtherBuildError::File {
            path: path.to_owned(),
            error,
        };
        // Not looked for in PATH.
        let program = path.canonicalize().map_err(file)?;
        let arch = machine(&program).map_err(file)?;
        let arch = arch.ok_or_else(|| OtherBuildError::Machine(path.to_owned()))?;
        let mut command = Vec::new();
        if arch != std::env::consts::ARCH {
            command.push(format!("qemu-{arch}").into());
        }
        command.push(program.into());
        command.extend([VERB, "--answer"].map(OsString::from));
        if let Some(btf) = btf {
            command.extend(["--btf".into(), btf.into()]);
        }
        let build = Self {
            file: path.to_owned(),
            command,
            arch: arch.to_owned(),
        };
        let started = build.command().stdin(Stdio::null()).output();
        let started = started.map_err(|error| OtherBuildError::Start {
            program: build.to_string(),
            error,
        })?;
        let said = String::from_utf8_lossy(&started.stdout);
        let first = said.lines().next().unwrap_or_default();
        match serde_json::from_str::<Hello>(first) {
            Ok(hello) if hello.version == VERSION => Ok(build),
            _ => {
                let errors = String::from_utf8_lossy(&started.stderr);
                let said = [first, errors.trim()].map(|text| match text {
                    "" => String::new(),
                    text => format!("; it says: {text}"),
                });
                Err(OtherBuildError::NotBpflab {
                    path: path.to_owned(),
                    said: said.concat(),
                })
            }
        }
    }

    /// The option of `bpflab fuzz` for this build, after a space.
    pub(super) fn option(&self) -> String {
        format!(" --other-bpflab {}", self.file.display())
    }

    fn command(&self) -> Command {
        let mut words = self.command.iter();
        let mut command = Command::new(words.next().map_or("".as_ref(), OsString::as_os_str));
        command.args(words);
        command
    }

    fn start(&self) -> io::Result<Process> {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (sender, lines) = channel();
        let output = child.stdout.take();
        let mut process = Process {
            input: child.stdin.take(),
            child,
            lines,
        };
        let output = output.ok_or(io::ErrorKind::BrokenPipe)?;
        // It ends with the process, or with the receiver.
        thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        })?;
        process.next_line().map_err(io::Error::other)?;
        Ok(process)
    }
}

impl fmt::Display for OtherBuild {
    /// The emulator and the program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.command.iter().take_while(|word| *word != VERB);
        let words: Vec<_> = words.map(|word| word.display().to_string()).collect();
        f.write_str(&words.join(" "))
    }
}

/// The architecture that a file has machine code for, if bpflab has any for it.
fn machine(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = [0; 20];
    File::open(path)?.read_exact(&mut head)?;
    let [0x7f, b'E', b'L', b'F', .., low, high] = head else {
        return Ok(None);
    };
    // `e_machine`: EM_X86_64, EM_AARCH64.
    Ok(match u16::from_le_bytes([low, high]) {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        _ => None,
    })
}

/// A process of another build. It ends with the value.
#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Sends a line, if it can be sent; the answer tells.
    fn ask(&mut self, line: &str) -> Result<String, String> {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
        self.next_line()
    }

    /// The next line of the process, or what became of it.
    fn next_line(&mut self) -> Result<String, String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer in {} s", LIMIT.as_secs())),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait();
                let status = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                Err(format!("the process ended: {status}"))
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks another build about candidates. Its process is started with the first.
#[derive(Debug)]
pub(super) struct OtherEngines {
    pub build: OtherBuild,
    process: Option<Process>,
}

impl OtherEngines {
    pub(super) const fn new(build: OtherBuild) -> Self {
        Self {
            build,
            process: None,
        }
    }

    /// Has an accepted candidate run on the engines of the other build. `checked` is the answer of
    /// the checked engine here. Returns the number of runs, and a difference.
    pub(super) fn compare(
        &mut self,
        candidate: &Candidate,
        checked: &Answer,
    ) -> (u64, Option<Problem>) {
        let arch = self.build.arch.clone();
        match self.ask(candidate) {
            Ok(Reply::Ran {
                runs,
                answer,
                problem,
            }) => {
                let own = || problem.map(|(kind, ours, other)| of(&arch, &kind, ours, &other));
                (runs, differing(&arch, checked, &answer).or_else(own))
            }
            // Contexts with registers, whose verdicts depend on the architecture.
            Ok(Reply::NotAccepted(_)) if has_registers(candidate) => (0, None),
            Ok(Reply::NotAccepted(why)) => (0, Some(of(&arch, &why, "accepted".to_owned(), &why))),
            Ok(Reply::Failed(why)) | Err(why) => (
                0,
                Some(of(&arch, &why, "the engines run it".to_owned(), &why)),
            ),
        }
    }

    fn ask(&mut self, candidate: &Candidate) -> Result<Reply, String> {
        let case = FuzzCase::of_candidate(candidate).in_case("candidate", &candidate.program);
        let btf = candidate.program.btf.as_ref();
        let request = Request {
            case: case.map_err(|error| error.to_string())?.to_json(),
            btf: btf.map(|btf| Hex(btf.to_bytes())),
        };
        let request = serde_json::to_string(&request).map_err(|error| error.to_string())?;
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.build.start().map_err(|error| error.to_string())?,
        };
        let line = process.ask(&request)?;
        // One that ended, or has an answer left, is not asked again.
        self.process = Some(process);
        serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))
    }
}

/// Whether a candidate's context has the registers of an architecture.
fn has_registers(candidate: &Candidate) -> bool {
    matches!(
        candidate.entry().prog_type,
        ProgType::Kprobe | ProgType::PerfEvent
    )
}

/// A problem on another architecture.
fn of(arch: &str, kind: &str, ours: String, other: &str) -> Problem {
    let kind = format!("{arch}: {kind}");
    Problem::new(Oracle::VALUE, &kind, ours, format!("{arch}: {other}"))
}

/// The first difference between the answers of the checked engines.
fn differing(arch: &str, checked: &Answer, answer: &[(String, String)]) -> Option<Problem> {
    let own = checked.texts();
    let found = own.iter().zip(answer).find(|(one, other)| one != other);
    let ((what, one), (_, other)) = match found {
        Some(found) => found,
        None if own.len() == answer.len() => return None,
        None => {
            let [one, other] = [own.len(), answer.len()].map(|len| format!("{len} results"));
            return Some(of(arch, "checked: results", one, &other));
        }
    };
    let kind = format!("checked: {what}");
    let ours = format!("{}: {one}", std::env::consts::ARCH);
    Some(of(arch, &kind, ours, other))
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::compare::{Engine, Ours};
    use crate::harness::EngineKind;
    use crate::isa::assemble;
    use crate::program::Program;
    use crate::shared::is_emulated;

    /// A build that is a script of a shell, which gets a candidate in `$line`.
    fn script(answers: &str) -> OtherEngines {
        let greeting = serde_json::to_string(&Hello::own()).unwrap();
        let text = format!("echo '{greeting}'; while read -r line; do {answers}; done");
        OtherEngines::new(OtherBuild {
            file: "other".into(),
            command: ["/bin/sh", "-c", &text].map(OsString::from).to_vec(),
            arch: "other".to_owned(),
        })
    }

    fn candidate() -> (Candidate, Answer) {
        let insns = assemble("r0 = 7\nexit").unwrap();
        let program = Arc::new(Program::new("seven", ProgType::Xdp, insns));
        let candidate = Candidate::of_file(program, 1);
        let checked = Ours::new(EngineKind::Checked).run(&candidate.subject());
        (candidate, checked.unwrap())
    }

    fn ran(answer: Vec<(String, String)>, problem: Option<(String, String, String)>) -> String {
        let runs = 3;
        let reply = Reply::Ran {
            runs,
            answer,
            problem,
        };
        format!("echo '{}'", serde_json::to_string(&reply).unwrap())
    }

    #[test]
    fn equal_answers_are_no_problem() {
        if is_emulated() {
            return;
        }
        let (candidate, checked) = candidate();
        let mut same = script(&ran(checked.texts(), None));
        assert_eq!(same.compare(&candidate, &checked), (3, None));
        assert_eq!(same.compare(&candidate, &checked), (3, None));
    }

    #[test]
    fn a_difference_is_named() {
        if is_emulated() {
            return;
        }
        let (candidate, checked) = candidate();
        let mut answer = checked.texts();
        let place = answer.iter().position(|(name, _)| name == "return value");
        "Some(8)".clone_into(&mut answer[place.unwrap()].1);
        let mut other = script(&ran(answer.clone(), None));
        let problem = other.compare(&candidate, &checked).1.unwrap();
        assert_eq!(problem.kind, "other: checked: return value");
        assert!(problem.ours.ends_with(": Some(7)"), "{}", problem.ours);
        assert_eq!(problem.other, "other: Some(8)");

        answer.pop();
        let mut other = script(&ran(answer, None));
        assert!(other.compare(&candidate, &checked).1.is_some());

        let own = ["jit: runs", "one", "two"].map(str::to_owned);
        let own = own.into();
        let mut other = script(&ran(checked.texts(), Some(own)));
        let problem = other.compare(&candidate, &checked).1.unwrap();
        assert_eq!(problem.kind, "other: jit: runs");
    }

    /// It ends, does not answer as it should, or refuses the program; it is asked again.
    #[test]
    fn no_answer_is_a_problem() {
        if is_emulated() {
            return;
        }
        let (candidate, checked) = candidate();
        let kind = |answers: &str| {
            let mut other = script(answers);
            let first = other.compare(&candidate, &checked).1.unwrap();
            let second = other.compare(&candidate, &checked).1.unwrap();
            assert_eq!(first, second);
            assert_eq!(first.oracle, Oracle::VALUE);
            first.kind
        };
        assert!(kind("kill -SEGV $$").contains("the process ended: signal"));
        assert!(kind("echo nonsense").contains("expected"));
        let refused = serde_json::to_string(&Reply::NotAccepted("R2 !read_ok".to_owned()));
        assert_eq!(
            kind(&format!("echo '{}'", refused.unwrap())),
            "other: R# !read_ok"
        );
    }
}
