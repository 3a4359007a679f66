//! Two verdicts on one program, and their differences.

use crate::object::cases::KernelSays;
use crate::verifier::{Decision, Verdict};

/// Our verdict on a program.
#[derive(Debug, Clone)]
pub struct Ours {
    /// Accepted, rejected or unjudged; rejected if it panicked.
    pub decision: Decision,
    /// The error number, 0 for none.
    pub errno: i32,
    /// The error line.
    pub line: String,
    /// Instructions processed.
    pub processed: u64,
    /// The position and message of a panic.
    pub panic: Option<String>,
}

impl Ours {
    /// Of a verdict.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        Self {
            decision: verdict.decision,
            errno: verdict.errno.map_or(0, |errno| i32::from(errno.0)),
            processed: verdict.processed(),
            line: verdict.message.clone(),
            panic: None,
        }
    }

    /// Of a verification that panicked.
    #[must_use]
    pub fn panicked(panic: impl Into<String>) -> Self {
        Self {
            decision: Decision::Reject,
            errno: 0,
            line: String::new(),
            processed: 0,
            panic: Some(panic.into()),
        }
    }
}

/// A kind of difference, by which cases can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The verifier panicked.
    Panic,
    /// We accept what the kernel rejects.
    FalseAccept,
    /// We reject what the kernel accepts.
    FalseReject,
    /// Both reject, with different error numbers.
    Errno,
    /// Both reject, with different error lines.
    Line,
    /// Both accept, after different numbers of instructions.
    Processed,
}

impl Difference {
    /// All of them with their names.
    pub const ALL: [(Self, &str); 6] = [
        (Self::Panic, "panic"),
        (Self::FalseAccept, "false-accept"),
        (Self::FalseReject, "false-reject"),
        (Self::Errno, "errno"),
        (Self::Line, "line"),
        (Self::Processed, "processed"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(which, _)| *which == self);
        found.map_or("", |(_, name)| name)
    }

    /// The differences from the kernel's verdict.
    #[must_use]
    pub fn between(ours: &Ours, says: &KernelSays) -> Vec<Self> {
        let mut found = Vec::new();
        if ours.panic.is_some() {
            found.push(Self::Panic);
        }
        match (ours.decision, says.accepts()) {
            // Without a verdict, nothing is compared.
            (Decision::Unjudged, _) => {}
            (Decision::Accept, false) => found.push(Self::FalseAccept),
            (Decision::Reject, true) => found.push(Self::FalseReject),
            (Decision::Reject, false) => {
                // The file descriptor may have been another open file when the case was
                // recorded.
                let no_map = " is not pointing to valid bpf_map";
                if !(ours.line.ends_with(no_map) && says.log_last.ends_with(no_map)) {
                    if ours.errno != says.errno {
                        found.push(Self::Errno);
                    }
                    if ours.line != says.log_last {
                        found.push(Self::Line);
                    }
                }
            }
            (Decision::Accept, true) => {
                if ours.processed != says.processed {
                    found.push(Self::Processed);
                }
            }
        }
        found
    }
}

/// Two verdicts on one program.
#[derive(Debug, Clone)]
pub struct Both {
    /// Our verdict.
    pub ours: Ours,
    /// The kernel's verdict.
    pub kernel: KernelSays,
    /// Their differences.
    pub differences: Vec<Difference>,
}

impl Both {
    /// A key that is about the same for differences with one cause: the difference, and both
    /// messages without numbers. `None` without a difference.
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        let first = *self.differences.first()?;
        let name = first.name();
        let (ours, kernel) = (template(&self.ours.line), template(&self.kernel.log_last));
        Some(match first {
            Difference::Processed => {
                let more = self.ours.processed > self.kernel.processed;
                format!("{name}: {}", if more { "more" } else { "less" })
            }
            _ => format!("{name}: ours [{ours}], kernel [{kernel}]"),
        })
    }
}

/// A message without its numbers.
#[must_use]
pub fn template(line: &str) -> String {
    let mut template = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if template.ends_with('#') => {}
            '0'..='9' => template.push('#'),
            c => template.push(c),
        }
    }
    template
}
