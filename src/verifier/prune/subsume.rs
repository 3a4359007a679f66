//! Subsumption: whether an explored state subsumes the current one (`states_equal`).
//!
//! Rule: `old` subsumes `current` if every concrete state that `current` describes is also
//! described by `old`, as far as the explored paths from `old` depend on it. Then all paths
//! from `current` are safe, because those from `old` are. So a dead register in `old`
//! subsumes anything, an imprecise scalar any scalar, a wider range a narrower one.
//!
//! Counterexample:
//!
//! ```text
//!    4: r1 = r10
//!    5: r1 += r6                ; r6 = -8 in old, -1000 in current
//!    6: *(u8 *)(r1 + 0) = 0     ; valid for old only
//! ```
//!
//! At insn 4, `r6` is live and precise in `old`, and `[-8, -8]` doesn't contain -1000: the
//! current state has to be explored.

use super::ids::IdMap;
use crate::spec::helpers::TypeFlags;
use crate::verifier::pool::Pools;
use crate::verifier::references::References;
use crate::verifier::reg::{ADD_CONST, Kind, RegState};
use crate::verifier::scalar::Scalar;
use crate::verifier::stack::{SLOT, Slot, SlotKind};
use crate::verifier::state::{Frame, SavedFrame, SavedState, State, ValueId};
use crate::verifier::structure::InsnInfo;
use crate::verifier::tnum::Tnum;

/// How strictly two states are compared (`enum exact_level`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExactLevel {
    /// The old state's precision marks are complete: imprecise scalars are not compared.
    NotExact,
    /// The states have to be identical.
    Exact,
    /// The old state's precision marks are incomplete: every scalar is compared by its
    /// range.
    RangeWithin,
}

/// What is compared in addition for some loaders; by default nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strictness {
    /// The program must not read unwritten stack bytes: they differ from unknown ones.
    pub uninit: bool,
    /// Unwritten stack subsumes only unwritten stack, though no path relied on it.
    pub unwritten: bool,
    /// A scalar subsumes only the same scalar.
    pub scalars: bool,
}

/// A comparison of two states.
pub(super) struct Comparison<'a> {
    pub insns: &'a [InsnInfo],
    /// The registers and slots of the old states.
    pub pools: &'a Pools,
    pub ids: &'a mut IdMap,
    pub level: ExactLevel,
    pub strictness: Strictness,
    /// Whether the program may sleep here.
    pub sleepable: bool,
    /// The register of the innermost frame that differed last.
    pub hint: u8,
}

impl Comparison<'_> {
    /// Whether `old` subsumes `current`.
    pub(super) fn states(&mut self, old: &SavedState, current: &State) -> bool {
        if old.sleepable != current.sleepable || !old.same_callsites(current) {
            return false;
        }
        // On a speculative path errors are no rejects.
        if old.speculative && !current.speculative {
            return false;
        }
        // The register that differed last time is the most likely to differ again.
        let hint = usize::from(self.hint);
        if let (Some(a), Some(b)) = (old.frame().regs.get(hint), current.frame().regs.get(hint))
            && self.live(old, old.current()) >> hint & 1 == 1
            && !self.reg(self.pools.regs.get(*a), b)
        {
            return false;
        }
        self.ids.clear();
        if (old.rcu_locks, old.preempt_locks) != (current.rcu_locks, current.preempt_locks)
            || !self.references(&old.refs, &current.refs)
            || !self.ids.same(old.irq_id, current.irq_id)
        {
            return false;
        }
        let mut frames = old.frames.iter().zip(&current.frames).enumerate();
        frames.all(|(number, (a, b))| {
            let live = self.live(old, number);
            self.frames(a, b, live)
        })
    }

    /// The range of the hinted register of the innermost frame, if it is a precise scalar, so
    /// that no state is subsumed in which it is out of range, as in this one.
    pub(super) fn violated_range(
        &self,
        old: &SavedState,
        current: &[RegState],
    ) -> Option<PreciseRange> {
        let number = usize::from(self.hint);
        let reg = self.pools.regs.get(*old.frame().regs.get(number)?);
        let is_live = self.live(old, old.current()) >> number & 1 == 1;
        let range = PreciseRange {
            number: self.hint,
            var: reg.var,
        };
        let violated = is_live && reg.is_scalar() && reg.precise && range.excludes(current);
        violated.then_some(range)
    }

    /// The live registers of a frame.
    fn live(&self, state: &SavedState, frame: usize) -> u16 {
        let info = self.insns.get(state.frame_pc(frame).index());
        info.map_or(u16::MAX, |info| info.live)
    }

    /// `refsafe`: the same references are acquired.
    fn references(&mut self, old: &References, current: &References) -> bool {
        old.len() == current.len()
            && std::iter::zip(old.oldest_first(), current.oldest_first())
                .all(|(a, b)| a.kind == b.kind && self.ids.same(a.id, b.id))
    }

    /// `func_states_equal`: `live` are the live registers.
    fn frames(&mut self, old: &SavedFrame, current: &Frame, live: u16) -> bool {
        if old.callback_depth > current.callback_depth {
            return false;
        }
        for (number, (a, b)) in (0u8..).zip(old.regs.iter().zip(&current.regs)) {
            if live >> number & 1 == 1 && !self.reg(self.pools.regs.get(*a), b) {
                self.hint = number;
                return false;
            }
        }
        self.stacks(&old.stack, &current.stack)
    }

    /// `regsafe`.
    fn reg(&mut self, old: &RegState, current: &RegState) -> bool {
        if self.level == ExactLevel::Exact {
            return self.same(old, current);
        }
        match old.kind {
            // A register that the old state has not read yet may be read in a later
            // iteration of the loop: while marks are incomplete, it subsumes only an
            // uninitialised register.
            Kind::NotInit => self.level == ExactLevel::NotExact || current.kind == Kind::NotInit,
            _ if !old.same_type(current) => false,
            Kind::Scalar => self.number(old, current),
            // Any address may be accessed.
            Kind::Arena => true,
            Kind::MapKey { .. }
            | Kind::MapValue { .. }
            | Kind::Mem { .. }
            | Kind::Buf
            | Kind::TpBuffer => {
                old.kind == current.kind
                    && old.dynptr_id == current.dynptr_id
                    && old.off == current.off
                    && current.var.is_subset_of(&old.var)
                    && self.ids.same(old.id, current.id)
                    && self.ids.same(old.ref_id, current.ref_id)
            }
            Kind::Packet { .. } | Kind::PacketMeta { .. } => {
                subsumes_range(old.range(), current.range())
                    && old.off == current.off
                    && self.ids.same(old.id, current.id)
                    && current.var.is_subset_of(&old.var)
            }
            _ => self.same(old, current),
        }
    }

    /// Compares scalars. An imprecise old scalar subsumes any scalar. A precise one needs
    /// the range, and its links: a bound of one linked scalar is a bound of the other.
    fn number(&mut self, old: &RegState, current: &RegState) -> bool {
        if self.strictness.scalars {
            return same_value(old, current) && self.ids.same_number(old.id, current.id);
        }
        if !old.precise && self.level == ExactLevel::NotExact {
            return true;
        }
        // The kind of distance to the linked register.
        let distance = |reg: &RegState| reg.id & ADD_CONST;
        if old.id != 0 && distance(old) != distance(current) {
            return false;
        }
        if distance(old) != 0 && old.off != current.off {
            return false;
        }
        current.var.is_subset_of(&old.var) && self.ids.same_number(old.id, current.id)
    }

    /// `regs_exact`: identical up to a renaming of ids.
    pub(super) fn same(&mut self, old: &RegState, current: &RegState) -> bool {
        same_value(old, current)
            && self.ids.same(old.id, current.id)
            && self.ids.same(old.ref_id, current.ref_id)
    }

    /// `stacksafe`: slots beyond the old stack were not used by the old state.
    fn stacks(&mut self, old: &[ValueId], current: &[Slot]) -> bool {
        let pools = self.pools;
        let beyond = current.get(old.len()..).unwrap_or_default();
        if self.strictness.unwritten && !beyond.iter().all(Slot::is_unwritten) {
            return false;
        }
        let mut slots = old.iter().enumerate();
        slots.all(|(number, slot)| self.slot(pools.slots.get(*slot), current.get(number)))
    }

    fn slot(&mut self, old: &Slot, current: Option<&Slot>) -> bool {
        let inexact = self.level == ExactLevel::NotExact;
        let Strictness {
            uninit, unwritten, ..
        } = self.strictness;
        let unwritten_differ = uninit || unwritten;
        let is_any = match unwritten {
            true => *old == Slot::DEAD,
            // Bytes of unknown value have not been relied on.
            false => old.is_unwritten() || !uninit && old.is_all_misc(),
        };
        if inexact && is_any {
            return true;
        }
        let Some(current) = current else {
            return inexact && old.is_unwritten();
        };
        let same = old.same_kinds(current);
        if !same && !inexact {
            return false;
        }
        if let (Some(old), Some(current)) = (
            as_number(old, unwritten_differ),
            as_number(current, unwritten_differ),
        ) {
            return self.reg(old, current);
        }
        let subsumes = |(old, current): (&SlotKind, &SlotKind)| match old {
            SlotKind::Invalid => !unwritten || *current == SlotKind::Invalid,
            SlotKind::Misc if !unwritten_differ => true,
            SlotKind::Misc => matches!(current, SlotKind::Misc | SlotKind::Zero),
            _ => old == current,
        };
        if !same && !std::iter::zip(&old.bytes, &current.bytes).all(subsumes) {
            return false;
        }
        match old.bytes[SLOT - 1] {
            SlotKind::Spill => self.reg(&old.reg, &current.reg),
            SlotKind::Dynptr | SlotKind::Iter | SlotKind::IrqFlag => {
                // The kernel subsumes an iterator that is left from an RCU read section
                // (docs/findings.md). It is harmless where the program as a whole is in one.
                let is_left = |slot: &Slot| slot.reg.flags.contains(TypeFlags::PTR_UNTRUSTED);
                same_object(old.reg.kind, current.reg.kind)
                    && self.ids.same(old.reg.ref_id, current.reg.ref_id)
                    && (!self.sleepable || is_left(old) || !is_left(current))
            }
            _ => true,
        }
    }
}

/// Whether two parts of objects in stack slots are the same. The steps of an iterator are
/// not compared: their number only prevents the detection of an infinite loop.
fn same_object(old: Kind, current: Kind) -> bool {
    match (old, current) {
        (
            Kind::Iter { kind, state, .. },
            Kind::Iter {
                kind: current_kind,
                state: current_state,
                ..
            },
        ) => kind == current_kind && state == current_state,
        _ => old == current,
    }
}

/// Whether at least as many bytes of the packet are checked. (The range counts even if it
/// is smaller than the offset: bytes before the pointer may have been accessed.) A negative
/// range says where the end is; a branch may have been skipped because of it.
const fn subsumes_range(old: i32, current: i32) -> bool {
    old == current || old >= 0 && old <= current
}

/// The scalar that an 8-byte load would give (`scalar_reg_for_stack`): eight unknown bytes
/// are read as an unknown scalar, also unwritten ones if they may be read.
fn as_number(slot: &Slot, unwritten_differ: bool) -> Option<&RegState> {
    if slot.is_scalar_spill64() {
        return Some(&slot.reg);
    }
    let readable = !unwritten_differ || slot.is_written();
    (readable && slot.is_all_misc()).then_some(&RegState::UNKNOWN)
}

/// Whether two registers are identical except for their ids: the part that the kernel
/// compares with `memcmp`.
pub(super) fn same_value(old: &RegState, current: &RegState) -> bool {
    // Scalars differ most often.
    old.var == current.var
        && old.off == current.off
        && old.flags == current.flags
        && old.dynptr_id == current.dynptr_id
        && old.kind == current.kind
}

/// The register of the innermost frame that differed last, with its bits in the checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Differed {
    number: u8,
    bits: Tnum,
}

impl Differed {
    /// The register `old`, which has this number.
    pub(super) const fn new(number: u8, old: &RegState) -> Self {
        Self {
            number,
            bits: old.var.bits,
        }
    }

    /// Whether the register still differs from that of the current frame.
    #[inline]
    pub fn still(&self, current: &[RegState]) -> bool {
        let reg = current.get(usize::from(self.number));
        reg.is_some_and(|reg| reg.var.bits != self.bits)
    }
}

/// The range of a live and precise scalar in the innermost frame of a checkpoint: neither it nor
/// its mark changes any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreciseRange {
    number: u8,
    var: Scalar,
}

impl PreciseRange {
    /// Whether the register is a scalar that is out of range.
    #[inline]
    pub(super) fn excludes(&self, current: &[RegState]) -> bool {
        let reg = current.get(usize::from(self.number));
        reg.is_some_and(|reg| reg.is_scalar() && !reg.var.is_subset_of(&self.var))
    }
}

/// Whether the innermost frames have the same registers, as a quick check
/// (`states_maybe_looping`); notes the first that differs.
pub(super) fn may_loop(
    old: &SavedState,
    pools: &Pools,
    current: &State,
    differed: &mut Differed,
) -> bool {
    if old.frames.len() != current.frames.len() {
        return false;
    }
    let pairs = std::iter::zip(&old.frame().regs, &current.frame().regs);
    for (number, (old, current)) in (0..).zip(pairs) {
        let old = pools.regs.get(*old);
        let same = same_value(old, current) && (old.id, old.ref_id) == (current.id, current.ref_id);
        if !same {
            *differed = Differed::new(number, old);
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;
