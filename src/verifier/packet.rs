//! Packet pointers: how many bytes after a pointer are known to be in the packet
//! (`try_match_pkt_pointers`, `find_good_pkt_pointers`).
//!
//! ```text
//! 0: r2 = *(u32 *)(r1 + 0)    ; r2 = data, range 0
//! 1: r3 = *(u32 *)(r1 + 4)    ; r3 = data_end
//! 2: r4 = r2
//! 3: r4 += 14
//! 4: if r4 > r3 goto +1       ; falls through: r2 and r4 get range 14
//! 5: r5 = *(u8 *)(r2 + 13)
//! ```
//!
//! Every packet pointer with the same id gets the range. The end of the metadata is the
//! start of the packet.

use super::reg::{AT_END, BEYOND_END, Kind, RegState};
use super::state::State;
use crate::isa::{JumpOp, Reg};
use crate::spec::limits::MAX_PACKET_OFFSET;

/// The outcome of a comparison with the packet's end, if an earlier comparison decides it
/// (`is_pkt_ptr_branch_taken`).
pub(super) fn is_taken(op: JumpOp, left: &RegState, right: &RegState) -> Option<bool> {
    let (packet, op) = if right.kind == Kind::PacketEnd {
        (left, op)
    } else if left.kind == Kind::PacketEnd {
        (right, op.swapped())
    } else {
        return None;
    };
    match (op, packet.range()) {
        (JumpOp::Le | JumpOp::Gt, BEYOND_END) => Some(op == JumpOp::Gt),
        (JumpOp::Lt | JumpOp::Ge, BEYOND_END | AT_END) => Some(op == JumpOp::Ge),
        _ => None,
    }
}

/// Sets the range after a comparison with the end of a packet or of its metadata. `this` is
/// the fall-through state, `other` that of the taken branch. Returns whether it was such a
/// comparison.
pub(super) fn refine_range(
    op: JumpOp,
    dst: Reg,
    src: Reg,
    this: &mut State,
    other: &mut State,
) -> bool {
    let (left, right) = (*this.reg(dst), *this.reg(src));
    // Puts the packet pointer on the left.
    let (pointer, reg, op) = if is_inside(&left, &right) {
        (left, dst, op)
    } else if is_inside(&right, &left) {
        (right, src, op.swapped())
    } else {
        return false;
    };
    // In `inside`, the pointer is at most at the end, or (`open`) before it. In `outside`,
    // it is past the end, or (`open`) at least at the end.
    let (inside, outside, open) = match op {
        JumpOp::Gt => (this, other, false),
        JumpOp::Lt => (other, this, true),
        JumpOp::Ge => (this, other, true),
        JumpOp::Le => (other, this, false),
        _ => return false,
    };
    check_bytes(inside, &pointer, open);
    let outside = outside.reg_mut(reg);
    if matches!(outside.kind, Kind::Packet { .. }) {
        outside.set_range(if open { AT_END } else { BEYOND_END });
    }
    true
}

/// Whether the second register is the end of the region of the first.
fn is_inside(pointer: &RegState, end: &RegState) -> bool {
    match (pointer.kind, end.kind) {
        (Kind::Packet { .. }, Kind::PacketEnd) => true,
        // `reg_is_init_pkt_pointer`: the very start of the packet.
        (Kind::PacketMeta { .. }, Kind::Packet { .. }) => {
            end.off == 0 && end.id == 0 && end.var.value() == Some(0)
        }
        _ => false,
    }
}

/// Sets the range to the bytes before `pointer`, with `open` including the byte it points
/// to.
fn check_bytes(state: &mut State, pointer: &RegState, open: bool) {
    let off = pointer.off;
    if off < 0 || off == 0 && open {
        return;
    }
    let most = u64::from(MAX_PACKET_OFFSET);
    let reach = pointer.var.umax.checked_add(u64::from(off.unsigned_abs()));
    if pointer.var.umax > most || reach.is_none_or(|reach| reach > most) {
        return;
    }
    let range = off + i32::from(open);
    for reg in state.all_regs_mut() {
        if reg.same_type(pointer) && reg.id == pointer.id {
            reg.set_range(reg.range().max(range));
        }
    }
}
