//! Labels of a program's code, and its stubs.

use dynasmrt::aarch64::Aarch64Relocation;
use dynasmrt::{DynamicLabel, VecAssembler};

use crate::lower::{Lowered, Target};

/// The labels of a program's code.
#[derive(Debug)]
pub(super) struct Labels {
    /// For each operation the label of its code.
    ops: Vec<DynamicLabel>,
    /// For each function the label of its entry.
    functions: Vec<DynamicLabel>,
    /// Stubs, for rarely executed code, that are not yet written.
    stubs: Vec<(DynamicLabel, Stub)>,
    /// The ends of the current function.
    pub ends: Ends,
}

/// The labels of the ends of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// r0 and the count are in their registers, the count without a phase; the frame is to
    /// be left, and made stale if it escapes.
    pub leave: DynamicLabel,
    /// r0 is in its register, the count in the run; the frame is to be left.
    pub back: DynamicLabel,
    /// The run stops.
    pub stop: DynamicLabel,
}

/// Deferred code.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stub {
    /// Bails out: the interpreter continues at an operation.
    Bail(Target),
    /// A forward jump that changes the count, or goes far.
    Edge {
        /// The jump.
        from: Target,
        /// Its target.
        to: Target,
    },
    /// The interpreter's step executes the operation, and the code continues after it.
    Step(Target),
    /// The same for the operations of a fused one.
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

    /// The label of an operation. (All targets are operations; for others the stop code is
    /// a harmless target.)
    pub(super) fn op(&self, op: Target) -> DynamicLabel {
        let label = self.ops.get(op as usize).copied();
        label.unwrap_or(self.ends.stop)
    }

    /// The label of a function; none if it does not exist.
    pub(super) fn function(&self, function: u16) -> Option<DynamicLabel> {
        self.functions.get(usize::from(function)).copied()
    }

    /// Adds a stub; returns its label.
    pub(super) fn add_stub(&mut self, label: DynamicLabel, stub: Stub) -> DynamicLabel {
        self.stubs.push((label, stub));
        label
    }

    /// The number of waiting stubs.
    pub(super) fn waiting(&self) -> usize {
        self.stubs.len()
    }

    /// The next waiting stub.
    pub(super) fn next_stub(&mut self) -> Option<(DynamicLabel, Stub)> {
        self.stubs.pop()
    }
}
