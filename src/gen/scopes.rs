//! Steps with a beginning and an end: references, critical sections, iterators, dynptrs.
//! The steps in between don't return.

use super::body::Body;
use super::branch::forget_what_may_change;
use super::calls::KEPT;
use super::kernel::{Iterator, Kfunc};
use super::maps;
use super::packet;
use super::state::{Area, BUFFER, BUFFER_AT, Holds, MemoryKind};
use crate::isa::{Insn, JumpOp, Operand, Reg, RegSet, Width};
use crate::spec::kfuncs::{KfuncFlags, KfuncResult, ParameterKind};

/// The most references and sections at a time.
const MOST: usize = 3;
/// Bytes for objects on the stack, below the buffer.
const ROOM: i16 = 80;
/// Bytes of a dynptr and of a saved interrupt state.
const DYNPTR: i16 = 16;
const IRQ_STATE: i16 = 8;

impl Body<'_> {
    /// Steps before whose end no path returns.
    pub(super) fn inside(&mut self, pinned: RegSet, most: usize) {
        let steps = self.choices.below(most);
        self.held += 1;
        self.within(pinned, steps);
        self.held -= 1;
    }

    /// The offset of unused bytes on the stack, to be given back by [`vacate`](Self::vacate).
    fn occupy(&mut self, size: i16) -> Option<i16> {
        if !self.is_main() || self.room + size > ROOM {
            return None;
        }
        self.room += size;
        Some(BUFFER_AT - self.room)
    }

    fn vacate(&mut self, size: i16) {
        self.room -= size;
    }

    /// Forgets the records and slices of dynptrs.
    pub(super) fn forget_records(&mut self) {
        self.state.change(|holds| match holds {
            Holds::Pointer(area) | Holds::Maybe(_, area) if area.kind == MemoryKind::Record => {
                Holds::Nothing
            }
            other => other,
        });
    }

    /// The kfunc of this name, if the program may call it.
    fn kfunc(&self, name: &str) -> Option<Kfunc> {
        let found = self.kernel()?.function(name)?;
        self.setting.allows(found.row).then_some(found)
    }
}

/// Whether another reference can be acquired here.
pub(super) fn may_hold(body: &Body<'_>) -> bool {
    let homes = KEPT.minus(body.pinned);
    body.held < MOST && !body.function().role.is_callback() && !homes.is_empty()
}

/// Keeps the reference in r0 that a function acquired, and releases it after some steps.
pub(super) fn hold(body: &mut Body<'_>, acquire: Kfunc, holds: Holds) {
    let KfuncResult::Pointer(base) = acquire.row.result else {
        return;
    };
    let release = body.kernel().and_then(|kernel| kernel.release(base));
    let (Some(home), Some(release)) = (body.free_and_kept(), release) else {
        return;
    };
    body.mov(home, Reg::R0);
    body.state.set(home, Holds::Nothing);
    if acquire.has(KfuncFlags::RET_NULL) && !body.slips() {
        body.open_jump(JumpOp::Eq, Width::W64, home, Operand::Imm(0));
    }
    body.state.set(home, holds);
    body.inside(RegSet::of(&[home]), 6);
    if body.slips() {
        return;
    }
    let swaps = base.ends_with(maps::KPTR_OBJECT) && body.choices.chance(30);
    if !swaps || !exchange(body, home) {
        body.mov(Reg::R1, home);
    }
    body.call_kernel(release, Holds::Nothing);
    if !body.slips() {
        let gone = |other| {
            if other == holds {
                Holds::Nothing
            } else {
                other
            }
        };
        body.state.change(gone);
    }
}

/// Exchanges a reference for the one in the map, which is in r1 then if it is not null.
fn exchange(body: &mut Body<'_>, home: Reg) -> bool {
    let Some(helper) = body.setting.helper("kptr_xchg") else {
        return false;
    };
    body.value_of(Reg::R1, maps::KPTRS);
    body.mov(Reg::R2, home);
    body.call(helper, Holds::Nothing);
    if !body.slips() {
        body.open_jump(JumpOp::Eq, Width::W64, Reg::R0, Operand::Imm(0));
    }
    body.mov(Reg::R1, Reg::R0);
    true
}

/// A critical section.
pub(super) fn section(body: &mut Body<'_>) {
    const NAMES: [(&str, &str, i16); 4] = [
        ("bpf_rcu_read_lock", "bpf_rcu_read_unlock", 0),
        ("bpf_rcu_read_lock", "bpf_rcu_read_unlock", 0),
        ("bpf_preempt_disable", "bpf_preempt_enable", 0),
        ("bpf_local_irq_save", "bpf_local_irq_restore", IRQ_STATE),
    ];
    // RCU read sections don't nest.
    let names = if body.sections > 0 {
        &NAMES[2..]
    } else {
        &NAMES[..]
    };
    let (enter, leave, size) = body.choices.pick(names);
    let (Some(enter), Some(leave)) = (body.kfunc(enter), body.kfunc(leave)) else {
        return;
    };
    if body.held >= MOST || body.function().role.is_callback() {
        return;
    }
    let Some(off) = body.occupy(size) else {
        return;
    };
    let call = |body: &mut Body<'_>, function| {
        if size > 0 {
            body.frame_address(Reg::R1, off);
        }
        body.call_kernel(function, Holds::Nothing);
    };
    call(body, enter);
    body.sections += 1;
    body.inside(RegSet::EMPTY, 7);
    body.sections -= 1;
    if !body.slips() {
        call(body, leave);
    }
    body.vacate(size);
}

/// An iterator on the stack, and a loop over its elements.
pub(super) fn iterate(body: &mut Body<'_>) {
    let iterators = &body.setting.iterators;
    if body.loops > 0 || body.held >= MOST || body.function().role.is_callback() {
        return;
    }
    let Some(iterator) = body.choices.any(iterators) else {
        return;
    };
    if !body.may_call(iterator.new) {
        return;
    }
    let Some(off) = body.occupy(iterator.size) else {
        return;
    };
    over_elements(body, iterator, off);
    body.vacate(iterator.size);
}

/// Creates the iterator, and goes through its elements.
fn over_elements(body: &mut Body<'_>, iterator: Iterator, off: i16) {
    let rest = Reg::ARGUMENTS.into_iter().skip(1);
    for (dst, parameter) in rest.zip(iterator.new.row.parameters.iter().skip(1)) {
        if parameter.name == "unsafe_ptr__ign" {
            body.frame_address(dst, BUFFER_AT);
        } else if parameter.kind == ParameterKind::Scalar {
            let few = i32::try_from(body.choices.below(5)).unwrap_or_default();
            body.mov_imm(dst, few);
        } else if !body.satisfy(dst, parameter) {
            return;
        }
    }
    body.frame_address(Reg::R1, off);
    body.call_kernel(iterator.new, Holds::Number);
    body.state.set(Reg::R0, Holds::Nothing);
    forget_what_may_change(body);
    let before = body.state.clone();
    let head = body.code.here();
    let out = body.code.label();
    body.frame_address(Reg::R1, off);
    body.call_kernel(iterator.next, Holds::Nothing);
    let after = body.state.clone();
    let end = Insn::JumpIf {
        op: JumpOp::Eq,
        width: Width::W64,
        dst: Reg::R0,
        src: Operand::Imm(0),
        off: 0,
    };
    if !body.slips() {
        body.code.aim(end, out);
    }
    let kernel = body.kernel();
    let element = match iterator.next.row.result {
        KfuncResult::Pointer("int") => Holds::Pointer(Area::new(MemoryKind::Key, 4)),
        KfuncResult::Pointer(base) => {
            let of = kernel.and_then(|kernel| kernel.structure(base));
            let sure = true;
            of.map_or(Holds::Nothing, |of| Holds::Object { of, sure })
        }
        _ => Holds::Nothing,
    };
    body.state.set(Reg::R0, element);
    if body.choices.chance(80) {
        body.keep(element);
    }
    // A loop in the loop would make exploration long.
    body.held += 1;
    body.loops += 1;
    body.rounds(RegSet::EMPTY, &before);
    body.loops -= 1;
    body.held -= 1;
    body.code.aim(Insn::Jump { off: 0 }, head);
    body.code.bind(out);
    body.state = after;
    if !body.slips() {
        body.frame_address(Reg::R1, off);
        body.call_kernel(iterator.destroy, Holds::Nothing);
    }
}

/// A dynptr on the stack, of the program's memory, of a record or of the packet.
pub(super) fn dynptr(body: &mut Body<'_>) {
    if body.held >= MOST || body.function().role.is_callback() {
        return;
    }
    let Some(off) = body.occupy(DYNPTR) else {
        return;
    };
    let release = match body.choices.below(4) {
        0 => local(body, off),
        1 | 2 => record(body, off),
        _ => of_packet(body, off),
    };
    if let Some(release) = release {
        body.dynptrs.push(off);
        body.inside(RegSet::EMPTY, 8);
        body.dynptrs.pop();
        body.forget_records();
        if let (Some(release), false) = (release, body.slips()) {
            body.frame_address(Reg::R1, off);
            body.mov_imm(Reg::R2, 0);
            body.call(release, Holds::Nothing);
        }
    }
    body.vacate(DYNPTR);
}

/// The helper that releases a dynptr; the outer `None` if there is no dynptr.
type Released = Option<Option<crate::util::HelperId>>;

/// A dynptr of a map's value.
fn local(body: &mut Body<'_>, off: i16) -> Released {
    let helper = body.setting.helper("dynptr_from_mem")?;
    let is_value = |kind| matches!(kind, MemoryKind::Value(_));
    let (base, area) = body.pointer(|area| is_value(area.kind) && area.low <= 0)?;
    if RegSet::CALLER_SAVED.contains(base) {
        return None;
    }
    body.mov(Reg::R1, base);
    body.mov_imm(Reg::R2, area.high.into());
    body.mov_imm(Reg::R3, 0);
    body.frame_address(Reg::R4, off);
    body.call(helper, Holds::Number);
    Some(None)
}

/// A dynptr of a ring buffer's record, which may be null and is released in any case.
fn record(body: &mut Body<'_>, off: i16) -> Released {
    let reserve = body.setting.helper("ringbuf_reserve_dynptr")?;
    let name = body
        .choices
        .pick(&["ringbuf_submit_dynptr", "ringbuf_discard_dynptr"]);
    let release = body.setting.helper(name)?;
    let len = i32::try_from(8 * (1 + body.choices.below(6))).unwrap_or(8);
    body.map_into(Reg::R1, maps::RING);
    body.mov_imm(Reg::R2, len);
    body.mov_imm(Reg::R3, 0);
    body.frame_address(Reg::R4, off);
    body.call(reserve, Holds::Number);
    // Unwritten bytes would have their old contents.
    if let Some(clear) = body.kfunc("bpf_dynptr_memset") {
        body.frame_address(Reg::R1, off);
        body.mov_imm(Reg::R2, 0);
        body.mov_imm(Reg::R3, len);
        body.mov_imm(Reg::R4, 0);
        body.call_kernel(clear, Holds::Number);
    }
    Some(Some(release))
}

/// A dynptr of the packet.
fn of_packet(body: &mut Body<'_>, off: i16) -> Released {
    const NAMES: [&str; 3] = [
        "bpf_dynptr_from_skb",
        "bpf_dynptr_from_xdp",
        "bpf_dynptr_from_skb_meta",
    ];
    let name = body.choices.pick(&NAMES);
    let from = body.kfunc(name)?;
    if !body.argument(Reg::R1, Holds::Context) {
        return None;
    }
    body.mov_imm(Reg::R2, 0);
    body.frame_address(Reg::R3, off);
    body.call_kernel(from, Holds::Number);
    Some(None)
}

/// A helper, or a clone, of a dynptr.
pub(super) fn use_dynptr(body: &mut Body<'_>) {
    let live = body.dynptrs.clone();
    let Some(off) = body.choices.any(&live) else {
        return;
    };
    let len = i16::try_from(1 + body.choices.below(usize::from(BUFFER.unsigned_abs())));
    let len = len.unwrap_or(1);
    let at = body.choices.pick(&[0, 0, 4, 8, 40]);
    match body.choices.below(4) {
        0 => {
            let Some(helper) = body.setting.helper("dynptr_data") else {
                return;
            };
            body.frame_address(Reg::R1, off);
            body.mov_imm(Reg::R2, at);
            body.mov_imm(Reg::R3, len.into());
            body.call(helper, Holds::Nothing);
            let id = body.new_maybe();
            body.keep(Holds::Maybe(id, Area::new(MemoryKind::Record, len)));
        }
        1 => {
            let Some(helper) = body.setting.helper("dynptr_read") else {
                return;
            };
            body.frame_address(Reg::R1, BUFFER_AT);
            body.mov_imm(Reg::R2, len.into());
            body.frame_address(Reg::R3, off);
            body.mov_imm(Reg::R4, at);
            body.mov_imm(Reg::R5, 0);
            body.call(helper, Holds::Number);
        }
        2 => {
            let Some(helper) = body.setting.helper("dynptr_write") else {
                return;
            };
            body.frame_address(Reg::R1, off);
            body.mov_imm(Reg::R2, at);
            body.frame_address(Reg::R3, BUFFER_AT);
            body.mov_imm(Reg::R4, len.into());
            body.mov_imm(Reg::R5, 0);
            body.call(helper, Holds::Number);
            // A packet's slices end here.
            body.forget_records();
            packet::forget_packets(body);
        }
        _ => clone(body, off),
    }
}

/// A clone, which lives for some steps.
fn clone(body: &mut Body<'_>, off: i16) {
    let (Some(clone), true) = (body.kfunc("bpf_dynptr_clone"), body.held < MOST) else {
        return;
    };
    let Some(to) = body.occupy(DYNPTR) else {
        return;
    };
    body.frame_address(Reg::R1, off);
    body.frame_address(Reg::R2, to);
    body.call_kernel(clone, Holds::Number);
    body.dynptrs.push(to);
    body.inside(RegSet::EMPTY, 5);
    body.dynptrs.pop();
    body.vacate(DYNPTR);
}
