//! Where machine code finds what in the [`Run`]: offsets in bytes from its start.

use std::mem::offset_of;

use crate::interp::Run;
use crate::isa::Reg;

/// An offset as instructions have it.
const fn field(offset: usize) -> i32 {
    assert!(offset < 1 << 15, "a run is small");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "see above"
    )]
    let offset = offset as i32;
    offset
}

/// How many instructions are left.
pub(super) const LEFT: i32 = field(offset_of!(Run<'static>, left));
/// What the stack pointer is for who stops.
pub(super) const UNWIND: i32 = field(offset_of!(Run<'static>, unwind));
/// The host address of the frame's end.
pub(super) const FRAME_END: i32 = field(offset_of!(Run<'static>, host.frame_end));
/// The host address of the context.
pub(super) const CONTEXT: i32 = field(offset_of!(Run<'static>, host.context));
/// The host address of the table of deltas.
pub(super) const DELTAS: i32 = field(offset_of!(Run<'static>, host.deltas));

/// A BPF register.
pub(super) const fn saved(reg: Reg) -> i32 {
    field(offset_of!(Run<'static>, host.regs)) + 8 * reg.number() as i32
}
