//! The layout of [`Run`] for machine code: offsets in bytes from its start.

use std::mem::offset_of;

use crate::engine::fast::Run;
use crate::isa::Reg;

/// An offset as an instruction's operand.
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

/// The number of instructions left.
pub(super) const LEFT: i32 = field(offset_of!(Run<'static>, left));
/// The stack pointer to restore when the run stops.
pub(super) const UNWIND: i32 = field(offset_of!(Run<'static>, unwind));
/// The host address of the frame's end.
pub(super) const FRAME_END: i32 = field(offset_of!(Run<'static>, host.frame_end));
/// The host address of the context.
pub(super) const CONTEXT: i32 = field(offset_of!(Run<'static>, host.context));
/// The host address of the table of deltas.
pub(super) const DELTAS: i32 = field(offset_of!(Run<'static>, host.deltas));
/// The host address of the table of recently read kernel objects.
pub(super) const RECENT: i32 = field(offset_of!(Run<'static>, recent));

/// The host address of the bytes that say which pages of the arena are there.
pub(super) const ARENA: i32 = field(offset_of!(Run<'static>, arena));
/// The difference from a packet address to its host address.
pub(super) const PACKET: i32 = field(offset_of!(Run<'static>, packet));

/// A BPF register.
pub(super) const fn saved(reg: Reg) -> i32 {
    field(offset_of!(Run<'static>, host.regs)) + 8 * reg.number() as i32
}

/// The result of a helper that is constant during a run: see
/// [`KnownValues`](crate::lower::KnownValues).
pub(super) const fn known(which: u8) -> i32 {
    field(offset_of!(Run<'static>, known)) + 8 * which as i32
}

/// One of the first [`POINTERS`](crate::engine::fast::POINTERS) of the context's pointers.
pub(super) const fn pointer(number: usize) -> i32 {
    field(offset_of!(Run<'static>, pointers) + 8 * number)
}
