//! Steps that access packets: directly, by the legacy instructions, by helpers.

use super::body::Body;
use super::branch::mask;
use super::state::{Area, BUFFER, BUFFER_AT, Holds, MemoryKind};
use crate::isa::{AluOp, Insn, JumpOp, Operand, Reg, RegSet, Size, Width};

/// The most bytes that a program accesses.
const MOST: usize = 48;

/// Accesses packet bytes after a comparison with the packet's end, of which there are many
/// forms; sometimes from a variable offset on.
pub(super) fn direct(body: &mut Body<'_>) {
    let (Some((data, end)), Some(context)) = (body.setting.context.packet, body.context()) else {
        return;
    };
    let Some(dst) = body.free_and_kept() else {
        return;
    };
    let others = RegSet::of(&[Reg::R2, Reg::R3]);
    if others.contains(context) {
        return;
    }
    let by = body.choices.chance(30).then(|| body.own_number());
    body.load(Size::W, dst, context, data);
    body.load(Size::W, Reg::R2, context, end);
    body.state.set(Reg::R2, Holds::PacketEnd);
    body.state.set(dst, Holds::Nothing);
    if let Some(by) = by
        && by != dst
        && !others.contains(by)
    {
        let bound = body.choices.pick(&[15, 7, 14, 31]);
        mask(body, by, bound);
        body.alu(AluOp::Add, Width::W64, dst, Operand::Reg(by));
    }
    let len = i16::try_from(1 + body.choices.below(MOST)).unwrap_or(1);
    body.mov(Reg::R3, dst);
    body.add_imm(Reg::R3, len.into());
    body.state.set(Reg::R3, Holds::Nothing);
    let (after, end) = (Reg::R3, Reg::R2);
    let (op, one, two) = match body.choices.below(4) {
        0 => (JumpOp::Gt, after, end),
        1 => (JumpOp::Lt, end, after),
        2 => (JumpOp::Le, after, end),
        _ => (JumpOp::Ge, end, after),
    };
    if matches!(op, JumpOp::Gt | JumpOp::Lt) {
        body.open_jump(op, Width::W64, one, Operand::Reg(two));
    } else if body.may_leave() {
        let there = body.code.label();
        let insn = Insn::JumpIf {
            op,
            width: Width::W64,
            dst: one,
            src: Operand::Reg(two),
            off: 0,
        };
        body.code.aim(insn, there);
        body.leave();
        body.code.bind(there);
    } else {
        return;
    }
    let area = Area::new(MemoryKind::Packet, len);
    body.state.set(dst, Holds::Pointer(area));
}

/// `LD_ABS` and `LD_IND`: bytes of the packet in host order, or the end of the program.
pub(super) fn load(body: &mut Body<'_>) {
    const NETWORK: i32 = -0x10_0000;
    const LINK: i32 = -0x20_0000;
    let may = body.setting.loads_packets() && body.is_main() && body.may_leave();
    if !may || body.state.get(Reg::R6) != Holds::Context {
        return;
    }
    let size = body.choices.pick(&[Size::B, Size::H, Size::W]);
    let off = i32::try_from(body.choices.below(MOST)).unwrap_or_default();
    let from = body.choices.pick(&[0, 0, 0, NETWORK, LINK]);
    let index = if body.choices.chance(40) {
        let index = body.own_number();
        if body.choices.chance(80) {
            mask(body, index, 31);
        }
        Some(index)
    } else {
        None
    };
    body.code.emit(Insn::LoadPacket {
        size,
        index,
        off: from + off,
    });
    body.state.after_call(Holds::Number);
}

/// A helper that copies from or to the packet, at an offset that may be outside.
pub(super) fn copy(body: &mut Body<'_>) {
    const NAMES: [&str; 4] = [
        "skb_load_bytes",
        "xdp_load_bytes",
        "skb_store_bytes",
        "xdp_store_bytes",
    ];
    let name = body.choices.pick(&NAMES);
    let stores = name.contains("store");
    let Some(helper) = body.setting.helper(name) else {
        return;
    };
    let Some(context) = body.context() else {
        return;
    };
    if stores && !may_change_packet(body) {
        return;
    }
    let kept = !Reg::ARGUMENTS.contains(&context);
    if !kept {
        return;
    }
    let off = i32::try_from(body.choices.below(MOST)).unwrap_or_default();
    let len = 1 + body.choices.below(usize::try_from(BUFFER).unwrap_or(1));
    body.mov(Reg::R1, context);
    body.mov_imm(Reg::R2, off);
    body.frame_address(Reg::R3, BUFFER_AT);
    body.mov_imm(Reg::R4, i32::try_from(len).unwrap_or(1));
    body.mov_imm(Reg::R5, 0);
    body.call(helper, Holds::Number);
    if stores {
        forget_packets(body);
    }
}

/// Grows or shrinks a packet at either end.
pub(super) fn adjust(body: &mut Body<'_>) {
    let name = body.choices.pick(&["xdp_adjust_head", "xdp_adjust_tail"]);
    let Some(helper) = body.setting.helper(name) else {
        return;
    };
    let Some(context) = body.context() else {
        return;
    };
    if Reg::ARGUMENTS.contains(&context) || !may_change_packet(body) {
        return;
    }
    let by = body.choices.pick(&[0, 4, -4, 8, -8, 14, -14, -20, 1000]);
    body.mov(Reg::R1, context);
    body.mov_imm(Reg::R2, by);
    body.call(helper, Holds::Number);
    forget_packets(body);
}

/// Whether the packet may be changed: callers of a function rely on their packet pointers.
fn may_change_packet(body: &Body<'_>) -> bool {
    body.is_main() && body.loops == 0 && body.setting.writes_packets()
}

/// Forgets pointers into the packet.
pub(super) fn forget_packets(body: &mut Body<'_>) {
    let change = |holds| match holds {
        Holds::Pointer(Area {
            kind: MemoryKind::Packet,
            ..
        })
        | Holds::PacketEnd => Holds::Nothing,
        other => other,
    };
    body.state.change(change);
}
