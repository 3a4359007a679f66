//! Machine code of a lowered program as data: `jit` makes it, and the fast interpreter
//! enters it.

use std::fmt::Debug;
#[cfg(feature = "jit")]
use std::ops::Range;

/// Machine code for all functions of a lowered program.
#[derive(Debug)]
pub(crate) struct Native {
    /// Keeps the code where it is.
    _memory: Box<dyn Debug + Send + Sync>,
    ways: Ways,
    /// For each function the host address of its code.
    functions: Vec<u64>,
    /// The host addresses of all of the code.
    #[cfg(feature = "jit")]
    extent: Range<u64>,
}

/// Host addresses of the ways into a program's machine code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    /// Into any function.
    pub function: u64,
    /// Into the main program, which may be shorter.
    pub main: u64,
    /// Into the main program from machine code, in a frame that was another program's:
    /// r1 and the count are in the run.
    #[cfg(feature = "jit")]
    pub tail: u64,
}

/// A way into a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// The host address of what Rust is to call.
    pub enter: u64,
    /// The host address of what that is told to call.
    pub code: u64,
}

impl Native {
    /// Code in `memory` that keeps to the invariant of the fast interpreter's `Enter`.
    #[cfg(feature = "jit")]
    pub(crate) fn new(
        memory: impl Debug + Send + Sync + 'static,
        ways: Ways,
        functions: Vec<u64>,
        extent: Range<u64>,
    ) -> Self {
        Self {
            _memory: Box::new(memory),
            ways,
            functions,
            extent,
        }
    }

    /// Host addresses and sizes of what leads into functions, and of each function.
    #[cfg(feature = "jit")]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        let Range { start, end } = self.extent;
        let starts = std::iter::once(start).chain(self.functions.iter().copied());
        let ends = self.functions.iter().copied().chain(std::iter::once(end));
        starts
            .zip(ends)
            .map(|(start, end)| (start, end.saturating_sub(start)))
    }

    /// The way into a function, which is one of the program's.
    #[inline]
    pub(crate) fn way_into(&self, function: u16) -> Way {
        let code = self.functions.get(usize::from(function));
        let enter = match function {
            0 => self.ways.main,
            _ => self.ways.function,
        };
        Way {
            enter,
            code: code.copied().unwrap_or_default(),
        }
    }

    /// The same for the main program, in a frame that was another one's.
    #[cfg(feature = "jit")]
    pub(crate) const fn way_in_place(&self) -> Way {
        Way {
            enter: self.ways.function,
            code: self.ways.tail,
        }
    }

    /// See [`Ways::tail`].
    #[cfg(feature = "jit")]
    pub(crate) const fn tail(&self) -> u64 {
        self.ways.tail
    }
}
