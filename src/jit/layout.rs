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

/// What is added to an address in the packet for its host address.
pub(super) const PACKET: i32 = field(offset_of!(Run<'static>, packet));

/// A BPF register.
pub(super) const fn saved(reg: Reg) -> i32 {
    field(offset_of!(Run<'static>, host.regs)) + 8 * reg.number() as i32
}

/// What a helper returns throughout the run: see [`KnownValues`](crate::lower::KnownValues).
pub(super) const fn known(which: u8) -> i32 {
    field(offset_of!(Run<'static>, known)) + 8 * which as i32
}

/// One of the first [`POINTERS`](crate::interp::POINTERS) of the context's pointers.
pub(super) const fn pointer(number: usize) -> i32 {
    field(offset_of!(Run<'static>, pointers) + 8 * number)
}
