//! Whether a kept state covers the current one: whatever is safe from there on is
//! safe from here on (`states_equal`).
//!
//! The kept ("old") state is known to be safe, so it may know less: a register that is
//! never read again covers anything, a number on which nothing rests covers any number,
//! a wider range covers a narrower one.

use super::ids::IdMap;
use crate::verifier::reg::{ADD_CONST, Kind, RegState};
use crate::verifier::stack::{SLOT, Slot, SlotKind};
use crate::verifier::state::{Frame, Reference, State};
use crate::verifier::structure::InsnInfo;

/// How closely two states are compared (`enum exact_level`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closeness {
    /// The old state's marks are complete: what is not precise does not matter.
    NotExact,
    /// They are to be the same.
    Exact,
    /// The old state's marks are not complete yet: every number matters.
    RangeWithin,
}

/// A comparison under way.
pub(super) struct Comparison<'a> {
    pub insns: &'a [InsnInfo],
    pub ids: &'a mut IdMap,
    pub closeness: Closeness,
    /// The register of the innermost frame that told the two apart last.
    pub hint: u8,
}

impl Comparison<'_> {
    /// Whether `old` covers `current`.
    pub(super) fn states(&mut self, old: &State, current: &State) -> bool {
        if old.sleepable != current.sleepable || !old.same_callsites(current) {
            return false;
        }
        // What told the two apart last most likely does again.
        let hint = usize::from(self.hint);
        if let (Some(a), Some(b)) = (old.frame().regs.get(hint), current.frame().regs.get(hint))
            && self.live(old, old.current()) >> hint & 1 == 1
            && !self.reg(a, b)
        {
            return false;
        }
        self.ids.forget();
        if !self.references(&old.refs, &current.refs) {
            return false;
        }
        let mut frames = old.frames.iter().zip(&current.frames).enumerate();
        frames.all(|(number, (a, b))| {
            let live = self.live(old, number);
            self.frames(a, b, live)
        })
    }

    /// The registers of a frame that may still be read.
    fn live(&self, state: &State, frame: usize) -> u16 {
        let info = self.insns.get(state.frame_pc(frame).index());
        info.map_or(u16::MAX, |info| info.live)
    }

    /// `refsafe`: what is held is the same.
    fn references(&mut self, old: &[Reference], current: &[Reference]) -> bool {
        old.len() == current.len()
            && old
                .iter()
                .zip(current)
                .all(|(a, b)| a.held == b.held && self.ids.same(a.id, b.id))
    }

    /// `func_states_equal`: `live` are the registers that may still be read.
    fn frames(&mut self, old: &Frame, current: &Frame, live: u16) -> bool {
        if old.callback_depth > current.callback_depth {
            return false;
        }
        for (number, (a, b)) in (0u8..).zip(old.regs.iter().zip(&current.regs)) {
            if live >> number & 1 == 1 && !self.reg(a, b) {
                self.hint = number;
                return false;
            }
        }
        self.stacks(&old.stack, &current.stack)
    }

    /// `regsafe`.
    fn reg(&mut self, old: &RegState, current: &RegState) -> bool {
        if self.closeness == Closeness::Exact {
            return self.same(old, current);
        }
        match old.kind {
            // What the old state has not read it may read on the way round a loop: while
            // marks are not complete, it stands for an uninitialised register alone.
            Kind::NotInit => self.closeness == Closeness::NotExact || current.kind == Kind::NotInit,
            _ if !old.same_type(current) => false,
            Kind::Scalar => self.number(old, current),
            Kind::MapKey { .. }
            | Kind::MapValue { .. }
            | Kind::Mem { .. }
            | Kind::Buf
            | Kind::TpBuffer => {
                old.kind == current.kind
                    && old.off == current.off
                    && current.var.is_subset_of(&old.var)
                    && self.ids.same(old.id, current.id)
                    && self.ids.same(old.ref_id, current.ref_id)
            }
            Kind::Packet { .. } | Kind::PacketMeta { .. } => {
                covers_range(old.range(), current.range())
                    && old.off == current.off
                    && self.ids.same(old.id, current.id)
                    && current.var.is_subset_of(&old.var)
            }
            _ => self.same(old, current),
        }
    }

    /// Numbers of any range will do where nothing rests on them. Else the range, and
    /// what the old state had linked has to be linked here: a bound learnt of the one
    /// was a bound of the other.
    fn number(&mut self, old: &RegState, current: &RegState) -> bool {
        if !old.precise && self.closeness == Closeness::NotExact {
            return true;
        }
        // How the register is apart from those that it is linked to.
        let distance = |reg: &RegState| reg.id & ADD_CONST;
        if old.id != 0 && distance(old) != distance(current) {
            return false;
        }
        if distance(old) != 0 && old.off != current.off {
            return false;
        }
        current.var.is_subset_of(&old.var) && self.ids.same_number(old.id, current.id)
    }

    /// `regs_exact`: equal but for the names of ids.
    pub(super) fn same(&mut self, old: &RegState, current: &RegState) -> bool {
        same_value(old, current)
            && self.ids.same(old.id, current.id)
            && self.ids.same(old.ref_id, current.ref_id)
    }

    /// `stacksafe`: what the current stack holds beyond the old one was not used.
    fn stacks(&mut self, old: &[Slot], current: &[Slot]) -> bool {
        let mut slots = old.iter().enumerate();
        slots.all(|(number, slot)| self.slot(slot, current.get(number)))
    }

    fn slot(&mut self, old: &Slot, current: Option<&Slot>) -> bool {
        // Bytes that hold anything asked for nothing.
        if self.closeness == Closeness::NotExact && old.is_all_misc() {
            return true;
        }
        let Some(current) = current else {
            return false;
        };
        for at in 0..SLOT {
            let kind = old.bytes[at];
            let differs = kind != current.bytes[at];
            if self.closeness != Closeness::NotExact && differs {
                return false;
            }
            if matches!(kind, SlotKind::Invalid | SlotKind::Misc) {
                continue;
            }
            // Eight bytes of anything are read as a number, which any number covers.
            if let (Some(a), Some(b)) = (as_number(old), as_number(current)) {
                return self.reg(a, b);
            }
            if differs {
                return false;
            }
        }
        old.bytes[SLOT - 1] != SlotKind::Spill || self.reg(&old.reg, &current.reg)
    }
}

/// Whether at least as many bytes of a packet are checked. (The range counts even where
/// it is below the offset: bytes before the pointer may have been accessed.) Below zero
/// it says where the end is, and that some way was not taken.
const fn covers_range(old: i32, current: i32) -> bool {
    old == current || old >= 0 && old <= current
}

/// The number that a read of eight bytes would give (`scalar_reg_for_stack`).
fn as_number(slot: &Slot) -> Option<&RegState> {
    if slot.is_scalar_spill64() {
        Some(&slot.reg)
    } else {
        slot.is_all_misc().then_some(&RegState::UNKNOWN)
    }
}

/// Whether two registers hold the same, whatever their ids say: what the kernel
/// compares as bytes up to the ids.
pub(super) fn same_value(old: &RegState, current: &RegState) -> bool {
    // Numbers differ most often.
    old.var == current.var
        && old.off == current.off
        && old.flags == current.flags
        && old.kind == current.kind
}

/// Whether the innermost frames look the same at a glance (`states_maybe_looping`).
/// `hint` is the register that told them apart last, and most likely does again.
pub(super) fn may_loop(old: &State, current: &State, hint: &mut u8) -> bool {
    let (old_regs, regs) = (&old.frame().regs, &current.frame().regs);
    let differs = |at: usize| match (old_regs.get(at), regs.get(at)) {
        (Some(a), Some(b)) => !same_value(a, b) || (a.id, a.ref_id) != (b.id, b.ref_id),
        _ => false,
    };
    if old.frames.len() != current.frames.len() || differs(usize::from(*hint)) {
        return false;
    }
    match (0..).take(regs.len()).find(|at| differs(usize::from(*at))) {
        Some(at) => *hint = at,
        None => return true,
    }
    false
}

#[cfg(test)]
mod tests;
