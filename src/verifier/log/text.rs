//! The text of the log. If it is off, logging costs only a test of a flag.

use std::fmt::{self, Write};

use super::touched::Touched;
use crate::isa::Reg;
use crate::verifier::verdict::LogLevel;

/// The position of the last instruction's line in the log.
#[derive(Debug)]
pub(super) struct LastInsn {
    /// The end of the log after the line.
    pub end: usize,
    /// The length of its text.
    pub len: usize,
    /// The index of the source line that was printed last.
    pub source: Option<usize>,
}

/// The text so far.
#[derive(Debug)]
pub(crate) struct Log {
    level: LogLevel,
    text: String,
    shows_addresses: bool,
    pub(super) last: LastInsn,
    pub(super) touched: Touched,
}

impl Log {
    pub(crate) const fn new(level: LogLevel) -> Self {
        Self {
            level,
            text: String::new(),
            shows_addresses: true,
            last: LastInsn {
                end: 0,
                len: 0,
                source: None,
            },
            touched: Touched::NONE,
        }
    }

    /// Whether the addresses of maps are printed.
    pub(crate) const fn shows_addresses(&self) -> bool {
        self.shows_addresses
    }

    /// Sets whether the addresses of maps are printed.
    pub(crate) const fn show_addresses(&mut self, show: bool) {
        self.shows_addresses = show;
    }

    /// Whether the path is logged: level 1 or 2.
    pub(crate) const fn is_on(&self) -> bool {
        self.level.intersects(LogLevel::PATH.union(LogLevel::ALL))
    }

    /// Whether every instruction is logged: level 2.
    pub(crate) const fn is_full(&self) -> bool {
        self.level.contains(LogLevel::ALL)
    }

    /// The length of the text.
    pub(crate) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Truncates the text: at level 1 only the failing path is kept.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.text.truncate(len);
    }

    /// Appends text, if the log is on; see [`log!`].
    pub(crate) fn write(&mut self, text: fmt::Arguments<'_>) {
        if self.is_on() {
            // Writing to a string can't fail.
            let _ = self.text.write_fmt(text);
        }
    }

    /// Shows a register in the next line.
    pub(crate) fn touch(&mut self, reg: Reg) {
        self.touched.add_reg(reg);
    }

    /// Shows a slot of the innermost frame in the next line.
    pub(crate) fn touch_slot(&mut self, slot: usize) {
        self.touched.add_slot(slot);
    }

    /// Shows all registers and slots in the next line.
    pub(crate) fn touch_all(&mut self) {
        self.touched = Touched::ALL;
    }

    /// The text, to which the caller appends the error and the statistics.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Appends to the log of a [`Verifier`](super::env::Verifier) if it is on, without adding a
/// newline.
macro_rules! log {
    ($verifier:expr, $($text:tt)+) => {
        if $verifier.log.is_on() {
            $verifier.log.write(format_args!($($text)+));
        }
    };
}
pub(crate) use log;
