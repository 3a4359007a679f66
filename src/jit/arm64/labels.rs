//! Labels of a program's code, and what is put off to later places in it.

use dynasmrt::aarch64::Aarch64Relocation;
use dynasmrt::{DynamicLabel, VecAssembler};

use crate::lower::{Lowered, Target};

/// The labels of a program's code.
#[derive(Debug)]
pub(super) struct Labels {
    /// For each operation that of its code.
    ops: Vec<DynamicLabel>,
    /// For each function that of its entry.
    functions: Vec<DynamicLabel>,
    /// What is rarely executed, and not yet written.
    stubs: Vec<(DynamicLabel, Stub)>,
    /// How the function under way ends.
    pub ends: Ends,
}

/// Where a function's code goes on at its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// r0 and the count are in their registers, the count without a phase; the frame is
    /// to be left, and who it is lent to told.
    pub leave: DynamicLabel,
    /// r0 is in its register, the count in the run; the frame is to be left.
    pub back: DynamicLabel,
    /// The run stops.
    pub stop: DynamicLabel,
}

/// Code that is put off.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stub {
    /// The interpreter goes on at an operation.
    Bail(Target),
    /// A jump forward that changes the count, or goes far.
    Edge {
        /// The jump.
        from: Target,
        /// Its target.
        to: Target,
    },
    /// The interpreter's step does the operation, and the code goes on after it.
    Step(Target),
    /// The same for as many operations as were to be executed at once.
    Plain {
        /// The first one.
        at: Target,
        /// How many.
        n: u8,
    },
    /// The run stops.
    Stop,
}

impl Ends {
    pub(super) fn new(code: &mut VecAssembler<Aarch64Relocation>) -> Self {
        Self {
            leave: code.new_dynamic_label(),
            back: code.new_dynamic_label(),
            stop: code.new_dynamic_label(),
        }
    }
}

impl Labels {
    pub(super) fn new(code: &mut VecAssembler<Aarch64Relocation>, lowered: &Lowered) -> Self {
        let mut labels = |n: usize| (0..n).map(|_| code.new_dynamic_label()).collect();
        Self {
            ops: labels(lowered.ops().len()),
            functions: labels(lowered.functions().len()),
            stubs: Vec::new(),
            ends: Ends::new(code),
        }
    }

    /// That of an operation. (All targets are operations; where the run stops is a
    /// harmless place for what does not exist.)
    pub(super) fn op(&self, op: Target) -> DynamicLabel {
        let label = self.ops.get(op as usize).copied();
        label.unwrap_or(self.ends.stop)
    }

    /// That of a function; none where it does not exist.
    pub(super) fn function(&self, function: u16) -> Option<DynamicLabel> {
        self.functions.get(usize::from(function)).copied()
    }

    /// Puts code off, whose label it is.
    pub(super) fn put_off(&mut self, label: DynamicLabel, stub: Stub) -> DynamicLabel {
        self.stubs.push((label, stub));
        label
    }

    /// How much code waits.
    pub(super) fn waiting(&self) -> usize {
        self.stubs.len()
    }

    /// The next one that waits.
    pub(super) fn next_stub(&mut self) -> Option<(DynamicLabel, Stub)> {
        self.stubs.pop()
    }
}
