//! Steps that load and store: the stack, the context, values, records, packets.

use super::body::Body;
use super::branch::mask;
use super::state::{Area, BUFFER, BUFFER_AT, Holds, MemoryKind, Slot};
use crate::isa::{AluOp, AtomicOp, Insn, Operand, Reg, SignedSize, Size, Width};

/// Stores a register or a constant to the stack.
pub(super) fn spill(body: &mut Body<'_>) {
    let number = body.choices.below(8);
    let off = Body::slot_off(number);
    let held = body.state.with(|holds| holds != Holds::Nothing);
    let src = if body.choices.chance(70) {
        body.one_of(held)
    } else {
        None
    };
    let holds = src.map_or(Holds::Number, |reg| body.state.get(reg));
    if holds != Holds::Number {
        // In a loop, the next round would find a number where this one stored a pointer.
        if let (0, Some(reg)) = (body.loops, src) {
            body.store(Size::Dw, Reg::FP, off, Operand::Reg(reg));
            body.state.slots[number] = Slot::Spilled(holds);
        }
        return;
    }
    let size = body.choices.pick(&[Size::Dw, Size::W, Size::H, Size::B]);
    let within = within(body, size);
    let src = src.map_or_else(|| Operand::Imm(body.choices.imm()), Operand::Reg);
    if let (Size::B | Size::H | Size::W | Size::Dw, Operand::Reg(reg)) = (size, src)
        && body.choices.chance(10)
    {
        body.code.emit(Insn::StoreRelease {
            size,
            base: Reg::FP,
            off: off + within,
            src: reg,
        });
    } else {
        body.store(size, Reg::FP, off + within, src);
    }
    let slot = &mut body.state.slots[number];
    *slot = slot.and(bits(size, within));
}

/// An offset within a slot.
fn within(body: &mut Body<'_>, size: Size) -> i16 {
    let places = 8 / usize::from(size.bytes());
    i16::try_from(body.choices.below(places)).unwrap_or_default() * i16::from(size.bytes())
}

/// The bytes of a slot that an access uses, one bit each.
fn bits(size: Size, within: i16) -> u8 {
    let ones = u16::MAX >> (16 - u16::from(size.bytes()));
    u8::try_from(ones << within).unwrap_or(u8::MAX)
}

/// Loads what is on the stack.
pub(super) fn fill(body: &mut Body<'_>) {
    let number = body.choices.below(8);
    let off = Body::slot_off(number);
    let dst = body.free();
    match body.state.slots[number] {
        Slot::Spilled(holds) => {
            body.load(Size::Dw, dst, Reg::FP, off);
            body.state.set(dst, holds);
        }
        slot => {
            let sizes = [Size::Dw, Size::W, Size::H, Size::B];
            let size = body.choices.pick(&sizes);
            let within = within(body, size);
            let wanted = bits(size, within);
            if slot.written() & wanted != wanted {
                // Unwritten bytes are undefined; bpflab reads zeros.
                let is_clean = matches!(slot, Slot::Bytes(_));
                if body.setting.options.defined || !is_clean || body.choices.chance(80) {
                    return;
                }
            }
            load(body, size, dst, Reg::FP, off + within, false);
        }
    }
}

/// A load of one of the three kinds. The acquiring one is for memory that several threads
/// can access.
fn load(body: &mut Body<'_>, size: Size, dst: Reg, base: Reg, off: i16, may_acquire: bool) {
    let signed = SignedSize::ALL.iter().find(|from| from.size() == size);
    match (body.choices.below(8), signed) {
        (1 | 2, Some(&from)) => body.code.emit(Insn::LoadSx {
            from,
            dst,
            base,
            off,
        }),
        (3, _) if may_acquire => body.code.emit(Insn::LoadAcquire {
            size,
            dst,
            base,
            off,
        }),
        _ => body.load(size, dst, base, off),
    }
    body.state.set(dst, Holds::Number);
}

/// Loads or stores a field of the context.
pub(super) fn context(body: &mut Body<'_>) {
    let Some(base) = body.context() else {
        return;
    };
    let setting = body.setting;
    match body.choices.below(4) {
        1 => {
            if let Some(field) = body.choices.any(&setting.context.writes) {
                let src = if body.choices.chance(60) {
                    Operand::Reg(body.number())
                } else {
                    Operand::Imm(body.choices.imm())
                };
                body.store(field.size, base, field.off, src);
            }
        }
        2 => {
            if let Some(field) = body.choices.any(&setting.context.signed_reads)
                && let Some(&from) = SignedSize::ALL.iter().find(|s| s.size() == field.size)
            {
                let (dst, off) = (body.free(), field.off);
                body.code.emit(Insn::LoadSx {
                    from,
                    dst,
                    base,
                    off,
                });
                body.state.set(dst, Holds::Number);
            }
        }
        _ => {
            if let Some(field) = body.choices.any(&setting.context.reads) {
                let dst = body.free();
                body.load(field.size, dst, base, field.off);
                body.state.set(dst, Holds::Number);
            }
        }
    }
}

/// A pointer to the buffer in the frame.
pub(super) fn buffer(body: &mut Body<'_>) {
    let dst = body.free();
    let by = i16::try_from(body.choices.below(usize::try_from(BUFFER).unwrap_or(1)));
    let by = by.unwrap_or_default() & body.choices.pick(&[!7, !3, !1, !0]);
    body.frame_address(dst, BUFFER_AT + by);
    let area = Area::new(MemoryKind::Stack, BUFFER).moved(by, by, step(by));
    body.state
        .set(dst, area.map_or(Holds::Nothing, Holds::Pointer));
}

/// The largest power of two up to 8 that divides a number.
fn step(by: i16) -> u8 {
    match by.trailing_zeros() {
        0 => 1,
        1 => 2,
        2 => 4,
        _ => 8,
    }
}

impl Body<'_> {
    /// A register with a pointer, and the memory that it points to.
    pub(super) fn pointer(&mut self, is: impl Fn(Area) -> bool) -> Option<(Reg, Area)> {
        let is_one = |holds| matches!(holds, Holds::Pointer(area) if is(area));
        let reg = self.one_of(self.state.with(is_one))?;
        match self.state.get(reg) {
            Holds::Pointer(area) => Some((reg, area)),
            _ => None,
        }
    }

    /// Whether a program may store to this kind of memory.
    pub(super) fn is_writable(&self, kind: MemoryKind) -> bool {
        match kind {
            MemoryKind::Key => false,
            MemoryKind::Packet => self.setting.writes_packets(),
            MemoryKind::Stack | MemoryKind::Value(_) | MemoryKind::Record => true,
        }
    }
}

/// Loads, stores and atomics through a pointer.
pub(super) fn access(body: &mut Body<'_>) {
    let src = body.number();
    let Some((base, area)) = body.pointer(|_| true) else {
        return buffer(body);
    };
    let size = body.choices.pick(&[Size::Dw, Size::W, Size::H, Size::B]);
    let is_shared = area.kind != MemoryKind::Packet;
    let kind = body.choices.below(6);
    let is_atomic = kind >= 4 && is_shared;
    let offsets = area.offsets(size, is_atomic || is_shared);
    let Some(off) = body.choices.any(&offsets) else {
        return;
    };
    match kind {
        _ if !body.is_writable(area.kind) && !body.slips_often() => {
            let dst = body.free();
            load(body, size, dst, base, off, false);
        }
        2 => {
            let imm = body.choices.imm();
            body.store(size, base, off, Operand::Imm(imm));
        }
        3 => body.store(size, base, off, Operand::Reg(src)),
        4 if is_atomic => body.code.emit(Insn::StoreRelease {
            size,
            base,
            off,
            src,
        }),
        5 if is_atomic => atomic(body, base, area),
        _ => {
            let dst = body.free();
            load(body, size, dst, base, off, is_shared);
        }
    }
}

/// An atomic of either width, whose source register may become the old value.
fn atomic(body: &mut Body<'_>, base: Reg, area: Area) {
    let width = body.choices.pick(Width::ALL);
    let offsets = area.offsets(width.size(), true);
    let Some(off) = body.choices.any(&offsets) else {
        return;
    };
    let op = body.choices.pick(AtomicOp::ALL);
    // The destination must not be the pointer's register.
    let numbers = body.state.with(|holds| holds == Holds::Number);
    if numbers.minus(body.pinned).is_empty() {
        return;
    }
    let src = if op.fetches() && !op.compares() {
        body.own_number()
    } else {
        body.number()
    };
    if op.compares() && body.state.get(Reg::R0) != Holds::Number {
        if base == Reg::R0 {
            return;
        }
        body.constant_into(Reg::R0);
    }
    body.code.emit(Insn::Atomic {
        op,
        width,
        base,
        off,
        src,
    });
}

/// Moves a pointer by a constant or by a number that is bounded first.
pub(super) fn move_pointer(body: &mut Body<'_>) {
    let Some((base, area)) = body.pointer(|area| area.kind != MemoryKind::Record) else {
        return;
    };
    let dst = body.free();
    let room = usize::try_from(area.high).unwrap_or_default();
    if body.choices.chance(50) {
        let by = i16::try_from(body.choices.below(room)).unwrap_or_default();
        let Some(moved) = area.moved(by, by, step(by)) else {
            return;
        };
        if dst != base {
            body.mov(dst, base);
        }
        body.add_imm(dst, by.into());
        return body.state.set(dst, Holds::Pointer(moved));
    }
    // A packet pointer plus an unknown number has unknown bounds.
    let by = body.own_number();
    if area.kind == MemoryKind::Packet || by == dst || by == base || body.pinned.contains(by) {
        return;
    }
    let bound = body.choices.pick(&[7, 3, 1, 8, 4, 12, 15]);
    let Some(moved) = area.moved(0, bound, step(bound)) else {
        return;
    };
    mask(body, by, bound.into());
    if dst != base {
        body.mov(dst, base);
    }
    body.alu(AluOp::Add, Width::W64, dst, Operand::Reg(by));
    body.state.set(dst, Holds::Pointer(moved));
}

/// Turns addresses into numbers, which only privileged programs may do, and which differ
/// between machines.
pub(super) fn leak(body: &mut Body<'_>) {
    if body.setting.options.defined {
        return;
    }
    let Some((reg, area)) = body.pointer(|area| area.kind != MemoryKind::Record) else {
        return;
    };
    let is_value = |kind| matches!(kind, MemoryKind::Value(_));
    if let Some((base, value)) = body.pointer(|area| is_value(area.kind))
        && let Some(off) = body.choices.any(&value.offsets(Size::Dw, true))
        && body.choices.chance(50)
    {
        body.store(Size::Dw, base, off, Operand::Reg(reg));
        let dst = body.free();
        body.load(Size::Dw, dst, base, off);
        return body.state.set(dst, Holds::Number);
    }
    if let Some((other, _)) = body.pointer(|other| other.kind == area.kind)
        && !body.pinned.contains(reg)
    {
        body.alu(AluOp::Sub, Width::W64, reg, Operand::Reg(other));
        body.state.set(reg, Holds::Number);
    }
}
