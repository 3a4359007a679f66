//! Several operations as one.
//!
//! Fused operations lie over the plain ones: [`Lowered::fused`](crate::lower::Lowered::fused)
//! says that the operations from an index on, into whose middle nothing jumps, may be
//! executed as one. An engine takes it or leaves it, at each place anew. The law is:
//!
//! - The fused operation leaves what the plain ones leave, except for registers that
//!   nobody reads before they are written again: these may hold anything. (None of them
//!   is written by the fused form.)
//! - Counts are those of the plain operations. All of them are executed, except where
//!   [`Branch::skips`] or [`Fused::skipped`] says otherwise.
//! - Nothing of it faults ([`Place::Checked`] is never fused). Where a place turns out
//!   to have to be judged ([`Place::Table`], [`Place::Packet`] with an entry of 0), that
//!   is the first thing done: the plain operations are executed instead.
//! - Only the last operation has an effect on memory, so that a budget that ends in the
//!   middle needs no fused form: nobody sees how far it came.

use crate::isa::{AluOp, JumpOp, Operand, Reg, Size, Width};
use crate::lower::op::{Place, Target};

/// Several operations as one. Immediates extend their sign, as in
/// [`Op::Alu`](crate::lower::Op::Alu); all operands are read before anything is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fused {
    /// `dst = left op right`: `dst = left; dst op= right`. `op` is no move.
    Alu {
        /// As [`AluOp::eval`] has it.
        op: AluOp,
        /// Of the operation.
        width: Width,
        /// What is written.
        dst: Reg,
        /// The first operand.
        left: Reg,
        /// The second operand.
        right: Operand,
    },
    /// `dst = src` rotated to the left by so many bits, from 1 to one less than the
    /// width; 32 bits are zero-extended. From two shifts, and an `or`, `xor` or `+` of
    /// them.
    Rotate {
        /// Bits that take part.
        width: Width,
        /// What is written.
        dst: Reg,
        /// What is rotated.
        src: Reg,
        /// By how many bits.
        by: u8,
    },
    /// `dst = src << left >> right`: both shifts have the width, and are less than it;
    /// the second one is an arithmetic one if it is `signed`.
    Extract {
        /// Of both shifts.
        width: Width,
        /// What is written.
        dst: Reg,
        /// What is shifted.
        src: Reg,
        /// Bits to the left at first.
        left: u8,
        /// Bits to the right then.
        right: u8,
        /// Whether the sign is extended.
        signed: bool,
    },
    /// `dst = src >> right & mask`: the shift is a logical one and less than the width.
    Bits {
        /// Of both operations.
        width: Width,
        /// What is written.
        dst: Reg,
        /// What is shifted.
        src: Reg,
        /// Bits to the right.
        right: u8,
        /// The bits that are kept.
        mask: i32,
    },
    /// `dst = base + (index << left)`, 64 bits; the shift is from 1 to 3.
    ShiftAdd {
        /// What is written.
        dst: Reg,
        /// Added to.
        base: Reg,
        /// Shifted and added.
        index: Reg,
        /// Bits to the left.
        left: u8,
    },
    /// `dst` = the `size` bytes at `place`, zero-extended, but that the place's base
    /// register would hold `left + right` (64 bits). It is dead, unless it is `dst`.
    LoadIndexed {
        /// Of the load.
        size: Size,
        /// Where from, seen from the sum: [`Place::MapValue`], [`Place::Packet`] or
        /// [`Place::Table`].
        place: Place,
        /// What is written.
        dst: Reg,
        /// Added for the address.
        left: Reg,
        /// Added for the address.
        right: Operand,
    },
    /// `dst = if left op right { yes } else { no }`: a branch over a move or two. Where
    /// the condition holds, [`skipped`](Fused::skipped) operations are not executed.
    Select {
        /// The condition, as [`JumpOp::eval`] has it.
        op: JumpOp,
        /// Of the comparison.
        width: Width,
        /// The condition's first operand.
        left: Reg,
        /// The condition's second operand.
        right: Operand,
        /// What is written.
        dst: Reg,
        /// Where the condition holds.
        yes: Source,
        /// Where it does not.
        no: Source,
    },
    /// `loaded` = the `size` bytes at `place`, zero-extended; `dst op= ` the same number.
    /// Unless it is a move, `loaded` is not `dst`.
    LoadAlu {
        /// Of the load.
        size: Size,
        /// Where from.
        place: Place,
        /// What was loaded; none where nobody reads it afterwards.
        loaded: Option<Reg>,
        /// What is done with it.
        op: AluOp,
        /// Of the operation.
        width: Width,
        /// The first operand, and what is written.
        dst: Reg,
    },
    /// The number at `place` = the number at `place` `op` `src`, by a load, an operation
    /// and a store; not atomic.
    Update {
        /// Of load and store.
        size: Size,
        /// Where.
        place: Place,
        /// What is done with the number, zero-extended.
        op: AluOp,
        /// Of the operation.
        width: Width,
        /// The second operand.
        src: Operand,
        /// The whole result; none where nobody reads it afterwards.
        dst: Option<Reg>,
    },
    /// The `size` bytes at `to` = those at `from`, by a load and a store.
    Copy {
        /// Of load and store.
        size: Size,
        /// Where from.
        from: Place,
        /// Where to: [`Place::Stack`], [`Place::Context`] or [`Place::MapValue`].
        to: Place,
        /// The number, zero-extended; none where nobody reads it afterwards.
        via: Option<Reg>,
    },
    /// A branch: a test of single bits (`tmp = left; tmp &= right; if tmp == 0 …`), or a
    /// branch over a jump, inverted.
    Branch(Branch),
    /// A `copy` if there is one, then `dst op= src`, then the branch. (The copy stands
    /// between the two in the program, but neither hinders the other.)
    AluBranch {
        /// `.0 = .1`, 64 bits.
        copy: Option<(Reg, Reg)>,
        /// As [`AluOp::eval`] has it; a move too.
        op: AluOp,
        /// Of the operation.
        width: Width,
        /// The first operand, and what is written.
        dst: Reg,
        /// The second operand.
        src: Operand,
        /// What follows; it may read `dst` and the copy.
        branch: Branch,
    },
    /// The `size` bytes at `place`, zero-extended, then the branch, whose `left` is that
    /// number.
    LoadBranch {
        /// Of the load.
        size: Size,
        /// Where from.
        place: Place,
        /// The number, which is `left` then; none where nobody reads it afterwards.
        dst: Option<Reg>,
        /// What is done with it.
        branch: Branch,
    },
}

/// What a register is set to: by a move of this width, and a logical shift to the right
/// of it by `right` bits, which is less than the width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// Of move and shift.
    pub width: Width,
    /// What is moved.
    pub from: Operand,
    /// How far it is shifted; 0 for not at all, without an operation of its own.
    pub right: u8,
}

impl Fused {
    /// How many of the fused operations, the last ones, are not executed and not counted
    /// where the condition of a [`Select`](Self::Select) holds.
    #[must_use]
    pub fn skipped(&self) -> u8 {
        match self {
            Self::Select { no, .. } => 1 + u8::from(no.right > 0),
            _ => 0,
        }
    }
}

/// How fused operations end that branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The condition, as [`JumpOp::eval`] has it.
    pub op: JumpOp,
    /// Of the comparison.
    pub width: Width,
    /// The first operand.
    pub left: Reg,
    /// The second operand.
    pub right: Operand,
    /// Goes on at the target if the condition has this value, else behind the fused
    /// operations.
    pub when: bool,
    /// Where to.
    pub target: Target,
    /// The last of the fused operations is a jump to the target, over which the plain
    /// branch leads if the fused one does not go there: it is executed, and counted,
    /// only if the fused branch goes to the target.
    pub skips: bool,
}
