//! Packet pointers: how many bytes from a pointer on are checked.
//!
//! `if (data + 14 > data_end) return` proves that fourteen bytes are there: every packet
//! pointer of the same id gets that range. The metadata before the packet ends where the
//! packet begins. (`try_match_pkt_pointers`, `find_good_pkt_pointers`.)

use super::reg::{AT_END, BEYOND_END, Kind, RegState};
use super::state::State;
use crate::isa::{JumpOp, Reg};
use crate::spec::limits::MAX_PACKET_OFFSET;

/// Whether a comparison of a packet pointer with the end is decided by an earlier one
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

/// What a comparison with the end of a packet, or of its metadata, teaches: `this` is
/// the way on which the condition does not hold.
pub(super) fn learn_range(op: JumpOp, dst: Reg, src: Reg, this: &mut State, other: &mut State) {
    let (left, right) = (*this.reg(dst), *this.reg(src));
    // With the pointer into the packet on the left.
    let (pointer, reg, op) = if is_inside(&left, &right) {
        (left, dst, op)
    } else if is_inside(&right, &left) {
        (right, src, op.swapped())
    } else {
        return;
    };
    // On `inside`, the pointer is at the end at most, or (`open`) before it; on
    // `outside`, past it, or (`open`) at it at least.
    let (inside, outside, open) = match op {
        JumpOp::Gt => (this, other, false),
        JumpOp::Lt => (other, this, true),
        JumpOp::Ge => (this, other, true),
        JumpOp::Le => (other, this, false),
        _ => return,
    };
    check_bytes(inside, &pointer, open);
    let outside = outside.reg_mut(reg);
    if matches!(outside.kind, Kind::Packet { .. }) {
        outside.set_range(if open { AT_END } else { BEYOND_END });
    }
}

/// Whether the second register is the end of what the first points into.
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

/// The bytes before `pointer` are there, and with `open` the one that it points to.
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
