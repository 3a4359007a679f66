//! The text of the log, which costs a test of a flag where it is off.

use std::fmt::{self, Write};

use crate::verifier::verdict::LogLevel;

/// What the log remembers of the line of the last instruction.
#[derive(Debug)]
pub(super) struct LastInsn {
    /// Where the log ended behind it.
    pub end: usize,
    /// How long its text was.
    pub len: usize,
    /// The source line that was printed last, as an index into the program's.
    pub source: Option<usize>,
}

/// The text so far.
#[derive(Debug)]
pub(crate) struct Log {
    level: LogLevel,
    text: String,
    pub(super) last: LastInsn,
}

impl Log {
    pub(crate) const fn new(level: LogLevel) -> Self {
        Self {
            level,
            text: String::new(),
            last: LastInsn {
                end: 0,
                len: 0,
                source: None,
            },
        }
    }

    /// Whether the path is logged: level 1 or 2.
    pub(crate) const fn is_on(&self) -> bool {
        self.level.intersects(LogLevel::PATH.union(LogLevel::ALL))
    }

    /// Whether every instruction is logged: level 2.
    pub(crate) const fn is_full(&self) -> bool {
        self.level.contains(LogLevel::ALL)
    }

    /// How long the text is.
    pub(crate) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Takes back what came after: at level 1 only the path that fails is kept.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.text.truncate(len);
    }

    /// Appends, if the log is on; see [`log!`].
    pub(crate) fn write(&mut self, text: fmt::Arguments<'_>) {
        if self.is_on() {
            // Writing to a string does not fail.
            let _ = self.text.write_fmt(text);
        }
    }

    /// The text, to be appended to by the statistics and the error.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Appends to the log of a [`Verifier`](super::env::Verifier) if it is on, without a
/// line's end of its own.
macro_rules! log {
    ($verifier:expr, $($text:tt)+) => {
        if $verifier.log.is_on() {
            $verifier.log.write(format_args!($($text)+));
        }
    };
}
pub(crate) use log;
