//! The facts between two operations.

use smallvec::SmallVec;

use crate::isa::Reg;
use crate::verifier::scalar::Scalar;
use crate::verifier::tnum::Tnum;

/// The value of a register or stack slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// The frame pointer plus this many bytes.
    Frame(i32),
    /// A number; other addresses are numbers, too.
    Number(Scalar),
}

impl Value {
    /// Anything.
    pub const UNKNOWN: Self = Self::Number(Scalar::UNKNOWN);

    /// The value as a number.
    pub const fn number(self) -> Scalar {
        match self {
            Self::Frame(_) => Scalar::UNKNOWN,
            Self::Number(number) => number,
        }
    }

    /// The join of two values.
    fn join(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => Self::Number(union(&a, &b)),
            _ => Self::UNKNOWN,
        }
    }
}

/// A scalar with the members of both, or more.
pub(super) fn union(a: &Scalar, b: &Scalar) -> Scalar {
    Scalar {
        bits: a.bits.union(b.bits),
        umin: a.umin.min(b.umin),
        umax: a.umax.max(b.umax),
        smin: a.smin.min(b.smin),
        smax: a.smax.max(b.smax),
        umin32: a.umin32.min(b.umin32),
        umax32: a.umax32.max(b.umax32),
        smin32: a.smin32.min(b.smin32),
        smax32: a.smax32.max(b.smax32),
    }
}

/// Bytes of the frame that were stored as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// From the frame's end.
    off: i16,
    size: u8,
    value: Value,
}

impl Slot {
    fn overlaps(&self, off: i16, size: u8) -> bool {
        self.off < off.saturating_add(size.into())
            && off < self.off.saturating_add(self.size.into())
    }
}

/// The number of tracked slots: enough for the keys and spilled registers that programs
/// have at once; others are unknown.
const SLOTS: usize = 8;

/// The values of all registers and of some stack slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    regs: [Value; Reg::COUNT],
    slots: SmallVec<[Slot; 4]>,
}

impl State {
    /// The state at a function's entry, with unknown arguments.
    pub fn at_entry() -> Self {
        let mut regs = [Value::UNKNOWN; Reg::COUNT];
        regs[Reg::FP.index()] = Value::Frame(0);
        Self {
            regs,
            slots: SmallVec::new(),
        }
    }

    pub const fn reg(&self, reg: Reg) -> Value {
        self.regs[reg.index()]
    }

    pub const fn set(&mut self, reg: Reg, value: Value) {
        self.regs[reg.index()] = value;
    }

    /// The value stored to exactly these bytes of the frame.
    pub fn slot(&self, off: i16, size: u8) -> Option<Value> {
        let is_it = |slot: &&Slot| (slot.off, slot.size) == (off, size);
        self.slots.iter().find(is_it).map(|slot| slot.value)
    }

    /// Stores a value to these bytes of the frame.
    pub fn store(&mut self, off: i16, size: u8, value: Value) {
        self.forget(off, size);
        if self.slots.len() == SLOTS {
            self.slots.remove(0);
        }
        self.slots.push(Slot { off, size, value });
    }

    /// Forgets these bytes of the frame.
    pub fn forget(&mut self, off: i16, size: u8) {
        self.slots.retain(|slot| !slot.overlaps(off, size));
    }

    /// Forgets all bytes of the frame.
    pub fn forget_all(&mut self) {
        self.slots.clear();
    }

    /// Joins another state, widening at `widen`'s thresholds; returns whether fewer facts
    /// are left.
    pub fn join(&mut self, other: &Self, widen: Option<&[u64]>) -> bool {
        let mut is_less = false;
        let mut meet = |mine: &mut Value, theirs: Value| {
            let joined = mine.join(theirs);
            if joined != *mine {
                *mine = match widen {
                    Some(thresholds) => widened(*mine, joined, thresholds),
                    None => joined,
                };
                is_less = true;
            }
        };
        for (mine, theirs) in self.regs.iter_mut().zip(other.regs) {
            meet(mine, theirs);
        }
        let before = self.slots.len();
        self.slots
            .retain(|slot| match other.slot(slot.off, slot.size) {
                Some(theirs) => {
                    meet(&mut slot.value, theirs);
                    true
                }
                None => false,
            });
        is_less || self.slots.len() != before
    }
}

/// Widens a value that has grown: each bound that moved goes to the next threshold, in
/// rising order, so that the analysis of a loop terminates.
fn widened(before: Value, grown: Value, thresholds: &[u64]) -> Value {
    let (Value::Number(old), Value::Number(new)) = (before, grown) else {
        return grown;
    };
    let above = |least: u64| {
        let at = thresholds.partition_point(|end| *end < least);
        thresholds.get(at).copied()
    };
    // Keeps the lower bound of a number that only rises, as counters do.
    let umax = if new.umax > old.umax {
        above(new.umax).unwrap_or(u64::MAX)
    } else {
        new.umax
    };
    let umin = if new.umin < old.umin { 0 } else { new.umin };
    if umin == 0 && umax == u64::MAX {
        // Keeps the known bits below those that vary: those of multiples.
        let varies = u64::MAX.checked_shl(new.bits.mask.trailing_zeros());
        let mask = varies.unwrap_or(0);
        let bits = Tnum {
            value: new.bits.value & !mask,
            mask,
        };
        return Value::Number(
            Scalar {
                bits,
                ..Scalar::UNKNOWN
            }
            .synced(),
        );
    }
    let bits = new.bits.union(Tnum::range(umin, umax));
    let number = Scalar {
        bits,
        ..Scalar::range(umin, umax)
    };
    Value::Number(union(&number.synced(), &new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_forgotten() {
        let mut state = State::at_entry();
        let number = |n| Value::Number(Scalar::constant(n));
        state.store(-8, 8, number(1));
        state.store(-16, 4, number(2));
        assert_eq!(state.slot(-8, 8), Some(number(1)));
        assert_eq!(state.slot(-8, 4), None);
        state.store(-4, 4, number(3));
        assert_eq!(state.slot(-8, 8), None);
        assert_eq!(state.slot(-16, 4), Some(number(2)));
        state.forget(-20, 6);
        assert_eq!(state.slot(-16, 4), None);
        for at in 0..20 {
            state.store(-8 * at, 8, number(4));
        }
        assert_eq!(state.slots.len(), SLOTS);
    }

    #[test]
    fn a_join_knows_what_both_do() {
        let (mut a, mut b) = (State::at_entry(), State::at_entry());
        a.set(Reg::R1, Value::Number(Scalar::constant(3)));
        b.set(Reg::R1, Value::Number(Scalar::constant(9)));
        a.set(Reg::R2, Value::Frame(-8));
        b.set(Reg::R2, Value::Frame(-8));
        a.store(-4, 4, Value::UNKNOWN);
        assert!(a.join(&b, None));
        let joined = a.reg(Reg::R1).number();
        assert_eq!((joined.umin, joined.umax), (3, 9));
        assert_eq!(a.reg(Reg::R2), Value::Frame(-8));
        assert_eq!(a.slot(-4, 4), None);
        assert!(!a.join(&b, None));
    }

    #[test]
    fn a_counter_goes_on_to_the_next_end() {
        let (mut a, mut b) = (State::at_entry(), State::at_entry());
        a.set(Reg::R1, Value::Number(Scalar::constant(0)));
        b.set(Reg::R1, Value::Number(Scalar::constant(1)));
        assert!(a.join(&b, Some(&[0, 99, 100])));
        let number = a.reg(Reg::R1).number();
        assert_eq!((number.umin, number.umax), (0, 99));
        b.set(Reg::R1, Value::Number(Scalar::constant(500)));
        assert!(a.join(&b, Some(&[0, 99, 100])));
        assert_eq!(a.reg(Reg::R1).number().umax, u64::MAX);
    }
}
