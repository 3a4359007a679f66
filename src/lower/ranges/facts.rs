//! Facts about operations at the fixed point.

use crate::isa::{AluOp, JumpOp, Width};
use crate::lower::note::Notes;
use crate::lower::op::MemRef;
use crate::verifier::scalar::Scalar;

/// Facts that hold each time an operation is executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fact {
    pub notes: Notes,
    /// The branch is always taken (true), or never.
    pub goes: Option<bool>,
    /// The memory of a look-up's key.
    pub key: Option<MemRef>,
    /// The key of a look-up is an index within the map.
    pub index: Option<Index>,
}

/// An index within a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// The index varies.
    Below,
    /// The index is constant: the address of its value.
    Constant(u64),
}

impl Fact {
    pub fn noted(notes: Notes) -> Self {
        Self {
            notes,
            ..Self::default()
        }
    }
}

const LOW: u64 = u32::MAX as u64;
const SIGNED_LOW: u64 = i32::MAX as u64;

/// The notes of a branch on these numbers.
pub(super) fn branch_notes(op: JumpOp, width: Width, x: &Scalar, y: &Scalar) -> Notes {
    let most = match op {
        JumpOp::Sgt | JumpOp::Sge | JumpOp::Slt | JumpOp::Sle => SIGNED_LOW,
        _ => LOW,
    };
    let is_narrow = width == Width::W64 && x.umax <= most && y.umax <= most;
    when(Notes::NARROW, is_narrow)
}

fn when(notes: Notes, holds: bool) -> Notes {
    if holds { notes } else { Notes::empty() }
}

pub(super) mod notes {
    //! Notes on operations that compute.

    use super::{AluOp, LOW, SIGNED_LOW, Scalar, Width, when};
    pub(in crate::lower::ranges) use crate::lower::note::Notes;

    /// The notes of `result` = `x op y`, where register `y` may be the destination itself.
    pub(in crate::lower::ranges) fn arithmetic(
        op: AluOp,
        width: Width,
        x: &Scalar,
        y: &Scalar,
        result: &Scalar,
        is_same: bool,
    ) -> Notes {
        let mut notes = when(
            Notes::NARROW,
            width == Width::W64 && is_narrow(op, x, y, result),
        );
        if matches!(op, AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod) {
            let (has_zero, has_minus_one, least) = match width {
                Width::W64 => (y.contains(0), y.contains(u64::MAX), x.smin == i64::MIN),
                Width::W32 => (
                    y.umin32 == 0,
                    y.smin32 <= -1 && y.smax32 >= -1,
                    x.smin32 == i32::MIN,
                ),
            };
            notes |= when(Notes::DIVISOR_NOT_ZERO, !has_zero);
            notes |= when(Notes::NO_OVERFLOW, !(has_minus_one && least));
        }
        notes | when(Notes::NO_EFFECT, is_idle(op, width, x, y, is_same))
    }

    /// The notes of a sign-extending move with this result.
    pub(in crate::lower::ranges) fn extended(width: Width, result: &Scalar) -> Notes {
        when(Notes::NARROW, width == Width::W64 && result.umax <= LOW)
    }

    /// The notes of an access whose address is aligned or not.
    pub(in crate::lower::ranges) fn aligned(is_aligned: bool) -> Notes {
        when(Notes::ALIGNED, is_aligned)
    }

    /// Whether the 32-bit form of a 64-bit operation has the same result.
    fn is_narrow(op: AluOp, x: &Scalar, y: &Scalar, result: &Scalar) -> bool {
        let both = |most| x.umax <= most && y.umax <= most;
        match op {
            AluOp::Mov => y.umax <= LOW,
            // A result that fits the low half involved no carry into the upper half.
            AluOp::Add | AluOp::Sub | AluOp::Mul => both(LOW) && result.umax <= LOW,
            AluOp::Or | AluOp::Xor | AluOp::Div | AluOp::Mod => both(LOW),
            AluOp::And => x.umax <= LOW || y.umax <= LOW,
            AluOp::Lsh => both(LOW) && y.umax < 32 && result.umax <= LOW,
            AluOp::Rsh => both(LOW) && y.umax < 32,
            AluOp::Sdiv | AluOp::Smod => both(SIGNED_LOW),
            AluOp::Arsh => both(SIGNED_LOW) && y.umax < 32,
        }
    }

    /// Whether the operation leaves the destination unchanged.
    fn is_idle(op: AluOp, width: Width, x: &Scalar, y: &Scalar, is_same: bool) -> bool {
        let fits = width == Width::W64 || x.umax <= LOW;
        fits && match op {
            AluOp::Mov => is_same,
            AluOp::And => match y.value() {
                Some(mask) => x.bits.max() & !mask == 0,
                None => is_same,
            },
            AluOp::Or => is_same || y.value() == Some(0),
            AluOp::Add | AluOp::Sub | AluOp::Xor => !is_same && y.value() == Some(0),
            _ => false,
        }
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            /// Notes hold for all members of the operands.
            #[test]
            fn notes_hold(
                op in proptest::sample::select(AluOp::ALL),
                is_wide in any::<bool>(),
                x in any::<(u64, u64)>(),
                y in any::<(u64, u64)>(),
                shift in (0u32..64, 0u32..64),
            ) {
                let width = if is_wide { Width::W64 } else { Width::W32 };
                let (x, y) = ((x.0 >> shift.0, x.1 >> shift.0), (y.0 >> shift.1, y.1 >> shift.1));
                let range = |(a, b): (u64, u64)| Scalar::range(a.min(b), a.max(b));
                let result = Scalar::alu(op, width, &range(x), &range(y));
                let notes = arithmetic(op, width, &range(x), &range(y), &result, false);
                for (a, b) in [(x.0, y.0), (x.0, y.1), (x.1, y.0), (x.1, y.1)] {
                    let value = op.eval(width, a, b);
                    if notes.contains(Notes::NARROW) {
                        prop_assert_eq!(value, op.eval(Width::W32, a, b));
                    }
                    if notes.contains(Notes::NO_EFFECT) {
                        prop_assert_eq!(value, a);
                    }
                    if notes.contains(Notes::DIVISOR_NOT_ZERO) {
                        prop_assert_ne!(Scalar::constant(b).bits.at(width).value, 0);
                    }
                }
            }
        }
    }
}
