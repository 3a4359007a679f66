//! Steps that look up, change and delete elements of maps.

use super::body::{Body, Open};
use super::maps;
use super::output::pointer_into;
use super::state::{Area, BUFFER_AT, Holds, MemoryKind, Slot};
use crate::isa::{Insn, JumpOp, Operand, Pseudo, Reg, Size, Width};
use crate::util::HelperId;

impl Body<'_> {
    /// A map's address.
    pub(super) fn map_into(&mut self, dst: Reg, index: u32) {
        let source = Pseudo::MapIdx { index };
        self.code.emit(Insn::LoadPseudo { dst, source });
        self.state.set(dst, Holds::Nothing);
    }

    /// The address of the only value of a map.
    pub(super) fn value_of(&mut self, dst: Reg, index: u32) {
        let source = Pseudo::MapIdxValue { index, off: 0 };
        self.code.emit(Insn::LoadPseudo { dst, source });
        self.state.set(dst, Holds::Nothing);
    }

    /// Stores a key on the stack, mostly a small one, and puts its address into a register.
    fn key_into(&mut self, dst: Reg) {
        let number = self.choices.below(8);
        let off = Self::slot_off(number);
        let numbers = self.state.with(|holds| holds == Holds::Number);
        let src = if self.choices.chance(25) {
            self.one_of(numbers)
        } else {
            None
        };
        let few = i32::try_from(self.choices.below(6)).unwrap_or_default();
        let src = src.map_or(Operand::Imm(few), Operand::Reg);
        self.store(Size::Dw, Reg::FP, off, src);
        self.state.slots[number] = Slot::Bytes(u8::MAX);
        self.frame_address(dst, off);
    }

    /// A pointer to a value of `len` bytes: the buffer, or an existing pointer.
    fn value_into(&mut self, dst: Reg, len: i16) {
        pointer_into(self, dst, |area| {
            area.kind != MemoryKind::Packet && area.holds(len)
        });
    }

    /// Checks r0 for null, now or later.
    fn found(&mut self, area: Area) {
        let id = self.new_maybe();
        self.state.set(Reg::R0, Holds::Maybe(id, area));
        if self.choices.chance(80)
            && let Some(kept) = self.free_and_kept()
        {
            self.mov(kept, Reg::R0);
            self.state.set(kept, Holds::Maybe(id, area));
        }
        if self.choices.chance(90) {
            null_check(self);
        }
    }

    /// Whether elements may be added and removed here. A kernel reuses the memory of
    /// removed elements, so if only defined behaviour counts, no pointer to such memory may
    /// remain.
    fn may_change_elements(&self) -> bool {
        !self.setting.options.defined || self.is_main() && self.loops == 0
    }

    /// Forgets pointers to elements that may have been removed.
    fn forget_elements(&mut self, map: u32) {
        if !self.setting.options.defined || !maps::HASHES.contains(&map) {
            return;
        }
        let gone = |area: Area| area.kind == MemoryKind::Value(map);
        let change = |holds| match holds {
            Holds::Pointer(area) | Holds::Maybe(_, area) if gone(area) => Holds::Nothing,
            other => other,
        };
        self.state.change(change);
        for open in &mut self.open {
            open.state.change(change);
        }
    }
}

/// Checks one of the pointers that may be null; if it is, the path skips the following
/// steps, or returns.
pub(super) fn null_check(body: &mut Body<'_>) {
    let maybes = body.state.with(|holds| holds.maybe().is_some());
    let Some(reg) = body.one_of(maybes) else {
        return;
    };
    let Some(id) = body.state.get(reg).maybe() else {
        return;
    };
    let is_it = move |holds: Holds| holds.maybe() == Some(id);
    let is_null = |holds| if is_it(holds) { Holds::Number } else { holds };
    let is_there = |holds: Holds| if is_it(holds) { holds.checked() } else { holds };
    if body.slips() {
        return body.state.change(is_there);
    }
    if body.may_leave() && body.choices.chance(40) {
        let there = body.code.label();
        let insn = Insn::JumpIf {
            op: JumpOp::Ne,
            width: Width::W64,
            dst: reg,
            src: Operand::Imm(0),
            off: 0,
        };
        body.code.aim(insn, there);
        body.leave();
        body.code.bind(there);
    } else {
        body.open_jump(JumpOp::Eq, Width::W64, reg, Operand::Imm(0));
        if let Some(Open { state, .. }) = body.open.last_mut() {
            state.change(is_null);
        }
    }
    body.state.change(is_there);
}

/// A look-up in an array or a hash, per-CPU or not.
pub(super) fn look_up(body: &mut Body<'_>) {
    let Some(lookup) = body.setting.helper("map_lookup_elem") else {
        return;
    };
    let map = body.choices.pick(&maps::VALUES);
    body.key_into(Reg::R2);
    body.map_into(Reg::R1, map);
    body.call(lookup, Holds::Nothing);
    body.found(Area::new(MemoryKind::Value(map), maps::value_size(map)));
}

/// A look-up of another CPU's value.
pub(super) fn look_up_on_cpu(body: &mut Body<'_>) {
    let Some(lookup) = body.setting.helper("map_lookup_percpu_elem") else {
        return;
    };
    if body.setting.options.defined {
        return;
    }
    let map = body
        .choices
        .pick(&[maps::PER_CPU_ARRAY, maps::PER_CPU_HASH]);
    let cpu = i32::try_from(body.choices.below(3)).unwrap_or_default();
    body.key_into(Reg::R2);
    body.map_into(Reg::R1, map);
    body.mov_imm(Reg::R3, cpu);
    body.call(lookup, Holds::Nothing);
    body.found(Area::new(MemoryKind::Value(map), maps::value_size(map)));
}

/// A look-up in an inner map.
pub(super) fn look_up_inner(body: &mut Body<'_>) {
    let Some(lookup) = body.setting.helper("map_lookup_elem") else {
        return;
    };
    body.key_into(Reg::R2);
    body.map_into(Reg::R1, maps::OUTER);
    body.call(lookup, Holds::Nothing);
    body.open_jump(JumpOp::Eq, Width::W64, Reg::R0, Operand::Imm(0));
    body.mov(Reg::R1, Reg::R0);
    body.key_into(Reg::R2);
    body.call(lookup, Holds::Nothing);
    body.found(Area::new(MemoryKind::Value(maps::OUTER), maps::INNER_VALUE));
}

/// The address of a map's only value, in the instruction itself.
pub(super) fn direct(body: &mut Body<'_>) {
    let dst = body.free();
    let len = maps::value_size(maps::RESULTS);
    let off = i16::try_from(body.choices.below(usize::try_from(len).unwrap_or(1)) & !7);
    let off = off.unwrap_or_default();
    let source = Pseudo::MapIdxValue {
        index: maps::RESULTS,
        off: u32::try_from(off).unwrap_or_default(),
    };
    body.code.emit(Insn::LoadPseudo { dst, source });
    let area = Area::new(MemoryKind::Value(maps::RESULTS), len).moved(off, off, 8);
    body.state
        .set(dst, area.map_or(Holds::Nothing, Holds::Pointer));
}

/// Updates an element, with any of the flags.
pub(super) fn update(body: &mut Body<'_>) {
    let Some(update) = body.setting.helper("map_update_elem") else {
        return;
    };
    let map = body.choices.pick(&maps::VALUES);
    if maps::HASHES.contains(&map) && !body.may_change_elements() {
        return;
    }
    body.value_into(Reg::R3, maps::value_size(map));
    body.key_into(Reg::R2);
    body.map_into(Reg::R1, map);
    let flags = body.choices.pick(&[0, 1, 2]);
    body.mov_imm(Reg::R4, flags);
    body.call(update, Holds::Number);
    body.forget_elements(map);
}

/// Deletes an element.
pub(super) fn delete(body: &mut Body<'_>) {
    let Some(delete) = body.setting.helper("map_delete_elem") else {
        return;
    };
    if !body.may_change_elements() {
        return;
    }
    let map = body.choices.pick(&maps::HASHES);
    body.key_into(Reg::R2);
    body.map_into(Reg::R1, map);
    body.call(delete, Holds::Number);
    body.forget_elements(map);
}

/// Pushes, pops or peeks a value of a queue or a stack.
pub(super) fn queue(body: &mut Body<'_>) {
    let helper = |body: &Body<'_>, name| body.setting.helper(name);
    let map = body.choices.pick(&[maps::QUEUE, maps::STACK]);
    let kind = body.choices.below(3);
    let name = ["map_push_elem", "map_pop_elem", "map_peek_elem"][kind];
    let Some(helper): Option<HelperId> = helper(body, name) else {
        return;
    };
    if kind == 0 {
        body.value_into(Reg::R2, maps::value_size(map));
        let flags = body.choices.pick(&[0, 2]);
        body.mov_imm(Reg::R3, flags);
    } else {
        body.frame_address(Reg::R2, BUFFER_AT);
    }
    body.map_into(Reg::R1, map);
    body.call(helper, Holds::Number);
}
