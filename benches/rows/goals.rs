//! Goals for the figures.

use std::fmt::{self, Display};

/// Whether a smaller or a larger figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

/// A figure and its goals.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The name of the figure.
    pub what: &'static str,
    /// The unit, printed after the numbers.
    pub unit: &'static str,
    pub better: Better,
    pub least: f64,
    pub aim: f64,
}

macro_rules! goals {
    ($($name:ident: $what:literal, $unit:literal, $better:ident, $least:literal, $aim:literal;)*) => {
        $(pub const $name: Goal = Goal {
            what: $what,
            unit: $unit,
            better: Better::$better,
            least: $least,
            aim: $aim,
        };)*
    };
}

goals! {
    INTERP_RBPF: "interp: times faster than rbpf's interpreter, the twelve, geometric mean", "", Higher, 6.0, 8.5;
    INTERP_SBPF: "interp: times faster than sbpf's interpreter, the twelve, geometric mean", "", Higher, 4.0, 6.0;
    INTERP_KERNEL: "interp / kernel, the twelve, geometric mean", "", Lower, 10.0, 7.0;
    INTERP_KERNEL_WORST: "interp / kernel, the twelve, worst", "", Lower, 10.0, 7.0;
    JIT_KERNEL: "jit / kernel, the twelve, geometric mean", "", Lower, 0.85, 0.80;
    JIT_KERNEL_WORST: "jit / kernel, the twelve, worst", "", Lower, 1.05, 1.0;
    JIT_HELPERS: "jit / kernel, helper calls", "", Lower, 0.30, 0.15;
    JIT_CALLS: "jit / kernel, function calls", "", Lower, 0.30, 0.15;
    JIT_NATIVE: "jit / native C, the twelve, geometric mean", "", Lower, 1.05, 1.0;
    JIT_ARRAY: "jit / kernel, `map[log2(count)]++` on an array", "", Lower, 0.9, 0.7;
    JIT_HASH: "jit / kernel, `map[log2(count)]++` on a hash", "", Lower, 0.5, 0.25;
    ENTRY: "entering and leaving an empty program, jit", " ns", Lower, 2.5, 1.5;
    COMPILE: "compiling 1,000 to 60,000 instructions, the worst, each", " ns", Lower, 25.0, 12.0;
    COMPILE_SMALL: "compiling 90 instructions", " µs", Lower, 5.0, 2.0;
    LOADING: "open, relocate, verify, compile: times faster than the kernel's load", "", Higher, 4.0, 8.0;
    VERIFYING: "verification of more than 100,000 processed instructions: times faster than the kernel's, geometric mean", "", Higher, 5.0, 8.0;
    ARRAY_CHECKED: "a look-up in an array, checked", " ns", Lower, 20.0, 20.0;
    ARRAY_JIT: "a look-up in an array, jit", " ns", Lower, 1.0, 1.0;
    HASH_CHECKED: "a look-up in a hash map of 10,000, checked", " ns", Lower, 60.0, 60.0;
    HASH_JIT: "a look-up in a hash map of 10,000, jit", " ns", Lower, 15.0, 15.0;
    RING_CHECKED: "ring-buffer output of 64 bytes, checked", " ns", Lower, 40.0, 40.0;
    RING_JIT: "ring-buffer output of 64 bytes, jit", " ns", Lower, 40.0, 40.0;
    EVENTS: "20 million write events through the histogram, million a second", "", Higher, 80.0, 150.0;
}

/// A goal and its measured value.
#[derive(Debug)]
pub struct Figure {
    pub goal: Goal,
    pub measured: Option<f64>,
    /// A note, such as the program with the worst value.
    pub note: String,
}

impl Goal {
    /// The figure of this goal with a measured value.
    pub fn measured(self, measured: Option<f64>) -> Figure {
        Figure {
            goal: self,
            measured: measured.filter(|value| value.is_finite()),
            note: String::new(),
        }
    }

    const fn is_met(&self, measured: f64, wanted: f64) -> bool {
        match self.better {
            Better::Lower => measured <= wanted,
            Better::Higher => measured >= wanted,
        }
    }
}

impl Figure {
    /// The same figure with a note.
    pub fn noted(self, note: impl Into<String>) -> Self {
        let note = note.into();
        Self { note, ..self }
    }
}

/// The heading of the table of figures.
pub const HEADING: &str = "| figure | measured | at least | aim | |\n|---|--:|--:|--:|---|\n";

/// A row of the table.
impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Goal {
            what,
            unit,
            least,
            aim,
            ..
        } = self.goal;
        let what = match self.note.as_str() {
            "" => what.to_owned(),
            note => format!("{what} ({note})"),
        };
        let (measured, verdict) = match self.measured {
            None => ("–".to_owned(), "not available here"),
            Some(measured) if self.goal.is_met(measured, aim) => (number(measured), "as aimed"),
            Some(measured) if self.goal.is_met(measured, least) => (number(measured), "enough"),
            Some(measured) => (number(measured), "**short**"),
        };
        writeln!(
            f,
            "| {what} | {measured}{unit} | {least}{unit} | {aim}{unit} | {verdict} |"
        )
    }
}

/// Formats a number with about three digits.
pub fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
