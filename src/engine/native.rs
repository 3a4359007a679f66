//! Machine code of a lowered program as data: `jit` generates it, and the fast interpreter
//! enters it.

use std::fmt::Debug;
#[cfg(feature = "jit")]
use std::ops::Range;

/// Machine code for all functions of a lowered program.
#[derive(Debug)]
pub(crate) struct Native {
    /// Keeps the code in memory.
    _memory: Box<dyn Debug + Send + Sync>,
    entry_points: EntryPoints,
    /// For each function the host address of its code.
    functions: Vec<u64>,
    /// The host addresses of all of the code.
    #[cfg(feature = "jit")]
    extent: Range<u64>,
}

/// Host addresses of the entry points of a program's machine code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryPoints {
    /// Into any function.
    pub function: u64,
    /// Into the main program; this code may be shorter.
    pub main: u64,
    /// Into the main program from another program's machine code, in its frame: r1 and the
    /// count are in the run.
    pub tail: u64,
    /// The same from Rust, given [`tail`](Self::tail) as the function.
    pub in_place: u64,
}

/// How to enter a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryPoint {
    /// The host address that Rust calls.
    pub enter: u64,
    /// The host address that the entry code calls.
    pub code: u64,
}

impl Native {
    /// Takes over code in `memory` that keeps the invariant of the fast interpreter's
    /// `Enter`.
    #[cfg(feature = "jit")]
    pub(crate) fn new(
        memory: impl Debug + Send + Sync + 'static,
        entry_points: EntryPoints,
        functions: Vec<u64>,
        extent: Range<u64>,
    ) -> Self {
        Self {
            _memory: Box::new(memory),
            entry_points,
            functions,
            extent,
        }
    }

    /// Host addresses and sizes of the entry code, and of each function.
    #[cfg(feature = "jit")]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        let Range { start, end } = self.extent;
        let starts = std::iter::once(start).chain(self.functions.iter().copied());
        let ends = self.functions.iter().copied().chain(std::iter::once(end));
        starts
            .zip(ends)
            .map(|(start, end)| (start, end.saturating_sub(start)))
    }

    /// The entry point of a function of the program.
    #[inline]
    pub(crate) fn entry_point(&self, function: u16) -> EntryPoint {
        let code = self.functions.get(usize::from(function));
        let enter = match function {
            0 => self.entry_points.main,
            _ => self.entry_points.function,
        };
        EntryPoint {
            enter,
            code: code.copied().unwrap_or_default(),
        }
    }

    /// The same for the main program in another program's frame.
    pub(crate) const fn tail_entry_point(&self) -> EntryPoint {
        EntryPoint {
            enter: self.entry_points.in_place,
            code: self.entry_points.tail,
        }
    }

    /// See [`EntryPoints::tail`].
    #[cfg(feature = "jit")]
    pub(crate) const fn tail(&self) -> u64 {
        self.entry_points.tail
    }
}
