//! Options of program generation.

use super::kernel::KernelTypes;
use crate::spec::ProgType;

/// Which programs are generated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The type of the programs; any of [`TYPES`](super::TYPES), or of attach points with typed
    /// arguments, if none is given.
    pub prog_type: Option<ProgType>,
    /// Omits undefined and machine-dependent behaviour, so that a kernel's run has the same
    /// result: bytes of the stack that were not written, the bits of addresses, and the
    /// results of some helpers (time, random numbers, CPU), which a program still calls but
    /// drops: [`Made::masked`](super::Made::masked) counts them.
    pub defined: bool,
    /// For recorded runs of a tracing program: machine-dependent results are used in
    /// computations, since the recording has them; any memory is read; and operations that
    /// can't be recorded (iterating hashes) are rare.
    pub recorded: bool,
    /// Programs that tail-call one another and themselves from any of their functions,
    /// static and global, up to the limit of tail calls and beyond, and continue with the
    /// results that the callers get.
    pub tail_calls: bool,
    /// Programs that use this kernel's objects: typed pointers, kfuncs, dynptrs, iterators.
    pub kernel: Option<&'a KernelTypes>,
    /// With a kernel: makes a mistake now and then, such as a missing null check or release.
    pub mistakes: bool,
}

impl Options<'_> {
    /// Tracing programs of a type, to be recorded in a kernel and replayed.
    #[must_use]
    pub const fn recorded(prog_type: ProgType) -> Self {
        Self {
            prog_type: Some(prog_type),
            defined: true,
            recorded: true,
            tail_calls: false,
            kernel: None,
            mistakes: false,
        }
    }

    /// Whether a program drops machine-dependent results.
    pub(super) const fn masks(self) -> bool {
        self.defined && !self.recorded
    }
}
