//! Conditional jumps: which branches are possible, and what holds on each of them
//! (`check_cond_jmp_op`).
//!
//! A comparison of scalars bounds both operands and every scalar linked to them. A
//! comparison with null makes a nullable pointer non-null, or the scalar 0. A comparison
//! with a packet's end sets the range of packet pointers.

use super::env::Verifier;
use super::history::{Linked, LinkedSet};
use super::maps::Maps;
use super::reg::{ADD_CONST, ADD_CONST32, Kind, MapRef, RegState};
use super::reject::{Reject, VerifyResult, reject};
use super::scalar::Scalar;
use super::state::State;
use crate::btf::FieldKind;
use crate::isa::{AluOp, JumpOp, Operand, Reg, Width};
use crate::spec::MapType;
use crate::spec::helpers::TypeFlags;
use crate::util::{Errno, Pc};

/// A conditional jump.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    pub op: JumpOp,
    pub width: Width,
    pub dst: Reg,
    pub src: Operand,
    /// The target if the condition holds.
    pub target: Pc,
}

impl Verifier<'_> {
    /// Checks a conditional jump, and pushes the other branch's state if both are possible.
    /// Returns where the current state continues.
    pub(super) fn check_jump_if(&mut self, jump: &Comparison, next: Pc) -> VerifyResult<Pc> {
        let Comparison {
            op,
            width,
            dst,
            src,
            target,
        } = *jump;
        self.check_read(dst)?;
        if let Operand::Reg(src) = src {
            self.check_read(src)?;
        }
        let (left, right) = (*self.reg(dst), self.operand(src));
        if let Operand::Reg(src) = src
            && !(left.is_packet_any() && right.is_packet_any())
        {
            self.check_comparable(src)?;
        }
        self.note_stack_operands(&left, &right);

        if let Some(taken) = outcome(op, width, &left, &right) {
            if left.is_scalar() {
                self.mark_precise(dst)?;
            }
            if let Operand::Reg(src) = src
                && right.is_scalar()
            {
                self.mark_precise(src)?;
            }
            let (to, other) = if taken {
                (target, next)
            } else {
                (next, target)
            };
            if !self.privileges.bypass_spec_v1 {
                // Speculation may take the other branch, whatever the operands are.
                let path = self.push_speculative(other, Errno::EFAULT)?;
                for reg in [Some(dst), src.reg()].into_iter().flatten() {
                    *path.reg_mut(reg) = RegState::UNKNOWN;
                }
            }
            self.log_insn_state();
            return Ok(to);
        }

        let mut linked = LinkedSet::default();
        if let Operand::Reg(_) = src
            && right.is_scalar()
            && right.id != 0
        {
            self.collect_linked(right.id, &mut linked);
        }
        if left.is_scalar() && left.id != 0 {
            self.collect_linked(left.id, &mut linked);
        }
        if linked.len() > 1 {
            self.note_step(None, linked);
        }

        let pc = self.pc();
        self.push_branch(target, pc, Errno::EFAULT)?;
        self.refine_bounds(jump, linked)?;
        if !self.refine_pointers(jump) {
            self.check_comparable(dst)?;
        }
        self.log_insn_state();
        Ok(next)
    }

    /// Checks that the result of a comparison with this register may be known to the loader.
    fn check_comparable(&self, reg: Reg) -> VerifyResult {
        if self.is_pointer_value(self.reg(reg)) {
            reject!(EACCES, "R{} pointer comparison prohibited", reg.number());
        }
        Ok(())
    }

    /// Refines the bounds of scalars on both branches (`reg_set_min_max`).
    fn refine_bounds(&mut self, jump: &Comparison, linked: LinkedSet) -> VerifyResult {
        let Comparison {
            op,
            width,
            dst,
            src,
            ..
        } = *jump;
        // Collecting the links may have cleared a register's id: a step holds only six.
        let (left, right, src) = (*self.reg(dst), self.operand(src), src.reg());
        if !left.is_scalar() || !right.is_scalar() {
            return Ok(());
        }
        let is_same = src == Some(dst);
        let refined = |taken| match is_same {
            true => {
                let same = Scalar::refine_same(op, width, &left.var, taken);
                (same, same)
            }
            false => Scalar::refine(op, width, &left.var, &right.var, taken),
        };
        let (taken, not_taken) = (refined(true), refined(false));
        let is_never = |taken: bool, (a, b): &(Scalar, Scalar)| {
            let holds = match is_same {
                // What holds for one number and itself holds for all, but for common bits.
                true => (op != JumpOp::Set).then(|| op.eval64(0, 0)),
                false => Scalar::is_taken(op, width, a, b),
            };
            holds == Some(!taken) || !a.is_consistent() || !b.is_consistent()
        };
        let never = (is_never(true, &taken), is_never(false, &not_taken));
        if self.options.order_free && (never.0 || never.1) {
            // One way ends here, which depends on the operands.
            self.mark_precise(dst)?;
            if let Some(src) = src {
                self.mark_precise(src)?;
            }
        }
        let mut consistent = |(a, b), names: (&str, &str)| {
            let a = self.consistent(a, names.0)?;
            // The same register is not looked at again after its bounds were reset.
            let b = if is_same {
                a
            } else {
                self.consistent(b, names.1)?
            };
            Ok::<_, Reject>((a, b))
        };
        let taken = consistent(taken, ("true_reg1", "true_reg2"))?;
        let not_taken = consistent(not_taken, ("false_reg1", "false_reg2"))?;
        let pc = self.pc();
        let Some(other) = self.worklist.last_mut() else {
            return Ok(());
        };
        let ways = [
            (&mut self.state, not_taken, never.1),
            (other, taken, never.0),
        ];
        for (state, (a, b), never) in ways {
            if never {
                state.contradiction.get_or_insert(pc);
            }
            state.reg_mut(dst).var = a;
            if let Some(src) = src {
                state.reg_mut(src).var = b;
                if right.id != 0 {
                    sync_linked(state, src, linked);
                }
            }
            if left.id != 0 {
                sync_linked(state, dst, linked);
            }
        }
        Ok(())
    }

    /// Refines pointers on both branches: null, or not null, or the range of a packet. Returns
    /// whether it was a test for null or for the packet's end.
    fn refine_pointers(&mut self, jump: &Comparison) -> bool {
        let Comparison {
            op,
            width,
            dst,
            src,
            ..
        } = *jump;
        if width == Width::W32 {
            return false;
        }
        let maps = &self.maps;
        let Some(other) = self.worklist.last_mut() else {
            return false;
        };
        let this = &mut self.state;
        let left = *this.reg(dst);
        let equal = match op {
            JumpOp::Eq => Some(true),
            JumpOp::Ne => Some(false),
            _ => None,
        };
        match src {
            Operand::Reg(src) => {
                let right = *this.reg(src);
                let kernel = |reg: &RegState| matches!(reg.kind, Kind::BtfId { .. });
                let pointers = left.is_pointer() && right.is_pointer();
                // A pointer that equals a non-null pointer is not null.
                if pointers && !kernel(&left) && !kernel(&right) {
                    let state = match equal {
                        Some(true) => Some(&mut *other),
                        Some(false) => Some(&mut *this),
                        None => None,
                    };
                    if let Some(state) = state {
                        if !left.maybe_null() && right.maybe_null() {
                            not_null(maps, state.reg_mut(src));
                        } else if !right.maybe_null() && left.maybe_null() {
                            not_null(maps, state.reg_mut(dst));
                        }
                    }
                }
                super::packet::refine_range(op, dst, src, this, other)
            }
            Operand::Imm(0) if left.maybe_null() => {
                if let Some(equal) = equal {
                    mark_null(maps, this, dst, !equal);
                    mark_null(maps, other, dst, equal);
                }
                equal.is_some()
            }
            Operand::Imm(_) => false,
        }
    }

    /// Records which operands are stack pointers: backtracking doesn't need their values.
    fn note_stack_operands(&mut self, left: &RegState, right: &RegState) {
        let stack = |reg: &RegState| matches!(reg.kind, Kind::Stack { .. });
        self.note_compared_pointers(stack(left), stack(right));
    }

    /// Collects the registers and slots with an id, in every frame. Those for which there
    /// is no room lose their id (`collect_linked_regs`).
    fn collect_linked(&mut self, id: u32, set: &mut LinkedSet) {
        let id = id & !ADD_CONST;
        let structure = self.structure;
        for number in (0..self.state.frames.len()).rev() {
            let pc = if number == self.state.current() {
                self.pc()
            } else {
                self.state.frame_pc(number)
            };
            let live = structure.insns[pc.index()].live;
            let frame = &mut self.state.frames[number];
            let mut add = |reg: &mut RegState, at: usize, is_reg: bool| {
                if reg.is_scalar() && reg.id & !ADD_CONST == id {
                    // There are at most 8 frames, 64 slots in each.
                    let frame = u8::try_from(number).unwrap_or(0);
                    let at = u8::try_from(at).unwrap_or(0);
                    if !set.push(Linked { frame, at, is_reg }) {
                        reg.unlink();
                    }
                }
            };
            for (at, reg) in frame.regs.iter_mut().enumerate().take(Reg::FP.index()) {
                if live >> at & 1 == 1 {
                    add(reg, at, true);
                }
            }
            for (at, slot) in frame.stack.iter_mut().enumerate() {
                if slot.is_spill() {
                    add(&mut slot.reg, at, false);
                }
            }
        }
    }
}

/// Whether the jump is taken, if that is known (`is_branch_taken`).
fn outcome(op: JumpOp, width: Width, left: &RegState, right: &RegState) -> Option<bool> {
    if left.is_packet_any() && right.is_packet_any() && width == Width::W64 {
        return super::packet::is_taken(op, left, right);
    }
    if left.is_scalar() && right.is_scalar() {
        return Scalar::is_taken(op, width, &left.var, &right.var);
    }
    // A pointer and a constant: a non-null pointer is not 0. Its lower half may be 0, for all
    // that Linux 6.18 says (`is_branch_taken`).
    if width == Width::W32 {
        return None;
    }
    let constant = |reg: &RegState| reg.var.value().filter(|_| reg.is_scalar());
    let (pointer, value) = match (constant(right), constant(left)) {
        (Some(value), _) => (left, value),
        (None, Some(value)) => (right, value),
        (None, None) => return None,
    };
    if !pointer.is_not_null() || value != 0 {
        return None;
    }
    match op {
        JumpOp::Eq => Some(false),
        JumpOp::Ne => Some(true),
        _ => None,
    }
}

/// Copies the bounds of a scalar to the scalars linked to it (`sync_linked_regs`).
///
/// After `r2 = r1; r2 += 4`, the branch `r1 < 10` gives `r2` in `[4, 13]`.
fn sync_linked(state: &mut State, from: Reg, linked: LinkedSet) {
    let known = *state.reg(from);
    let current = state.current();
    for link in linked.iter() {
        let (frame, at) = (usize::from(link.frame), usize::from(link.at));
        if link.is_reg && frame == current && at == from.index() {
            continue;
        }
        let reg = match state.frames.get_mut(frame) {
            Some(frame) if link.is_reg => frame.regs.get_mut(at),
            Some(frame) => frame.stack.get_mut(at).map(|slot| &mut slot.reg),
            None => None,
        };
        let Some(reg) = reg else { continue };
        if !reg.is_scalar() || reg.id & !ADD_CONST != known.id & !ADD_CONST {
            continue;
        }
        let (this, that) = (reg.id & ADD_CONST, known.id & ADD_CONST);
        if this != 0 && that != 0 && this != that {
            // One is linked by a 32-bit addition, the other not.
            continue;
        }
        if this | that == 0 || reg.off == known.off {
            *reg = known;
        } else {
            let delta = i64::from(reg.off) - i64::from(known.off);
            let (id, off) = (reg.id, reg.off);
            *reg = known;
            (reg.id, reg.off) = (id, off);
            reg.var = if (this | that) & ADD_CONST32 == 0 {
                known.var.add_const(delta)
            } else {
                let delta = Scalar::constant(delta.cast_unsigned());
                Scalar::alu(AluOp::Add, Width::W32, &known.var, &delta)
            };
        }
    }
}

/// Marks every register with the id of this one as null or not (`mark_ptr_or_null_regs`).
fn mark_null(maps: &Maps<'_>, state: &mut State, reg: Reg, is_null: bool) {
    let RegState { id, ref_id, .. } = *state.reg(reg);
    if is_null && ref_id != 0 && ref_id == id {
        // The acquisition failed: there is no reference to release.
        state.refs.remove(|reference| reference.id == id);
    }
    for reg in state.all_regs_mut() {
        if !reg.maybe_null() || reg.id != id {
            continue;
        }
        if is_null {
            *reg = RegState {
                precise: reg.precise,
                // That of the node in an element of a list or tree.
                off: reg.off,
                dynptr_id: reg.leftover(),
                ..RegState::constant(0)
            };
        } else {
            not_null(maps, reg);
            if !maps.may_hold_lock(reg) {
                reg.id = 0;
            }
        }
    }
}

/// Makes a pointer non-null (`mark_ptr_not_null_reg`). A value of a map of maps becomes a
/// map pointer.
pub(super) fn not_null(maps: &Maps<'_>, reg: &mut RegState) {
    let Kind::MapValue { map, .. } = reg.kind else {
        reg.flags -= TypeFlags::PTR_MAYBE_NULL;
        return;
    };
    reg.flags = TypeFlags::empty();
    let inner = MapRef { inner: true, ..map };
    let Some(def) = maps.def(map) else {
        return;
    };
    if def.inner.is_some() {
        // Values from different look-ups may be different maps.
        let watched = [FieldKind::Timer, FieldKind::Workqueue, FieldKind::TaskWork];
        let told_apart = watched.iter().any(|kind| maps.has(inner, *kind));
        let uid = if told_apart { reg.id } else { 0 };
        reg.kind = Kind::MapPtr { map: inner, uid };
        return;
    }
    match def.map_type {
        MapType::Xskmap => reg.kind = Kind::XdpSock,
        MapType::Sockmap | MapType::Sockhash => reg.kind = Kind::Socket,
        _ => {}
    }
}
