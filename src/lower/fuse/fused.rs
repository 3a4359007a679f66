//! Several operations as one.
//!
//! Fused operations overlay the plain ones:
//! [`Lowered::fused`](crate::lower::Lowered::fused) returns the fused form of the
//! operations from an index on. No jump leads into their middle. An engine may use it or
//! not, each time anew. The rules:
//!
//! - The fused operation has the same result as the plain ones, except for dead registers
//!   (written again before they are read), which may hold anything. The fused form writes
//!   none of these.
//! - Counts are those of the plain operations. All of them are executed, except for
//!   [`Branch::skips`] and [`Fused::skipped`].
//! - It can't fault ([`MemRef::Kernel`], [`MemRef::Arena`] and [`MemRef::Checked`] are never
//!   fused). If an
//!   access has to be checked ([`MemRef::Table`] or [`MemRef::Packet`] with an entry of 0),
//!   this is found before anything else is done, and the plain operations are executed
//!   instead.
//! - Only the last operation has an effect on memory, so a budget that ends in the middle
//!   needs no fused form: the partial results can't be observed.

use crate::isa::{AluOp, JumpOp, Operand, Reg, Size, Width};
use crate::lower::op::{MemRef, Target};

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
    /// `dst = src` rotated left by 1 to width - 1 bits; 32-bit results are zero-extended.
    /// Fused from two shifts and an `or`, `xor` or `+` of them.
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
    /// `dst` = the `size` bytes at `mem`, zero-extended, with `left + right` (64 bits) as
    /// the base of `mem`. The base register is dead, unless it is `dst`.
    LoadIndexed {
        /// Of the load.
        size: Size,
        /// The address relative to the sum: [`MemRef::MapValue`], [`MemRef::Packet`] or
        /// [`MemRef::Table`].
        mem: MemRef,
        /// What is written.
        dst: Reg,
        /// Added for the address.
        left: Reg,
        /// Added for the address.
        right: Operand,
    },
    /// `dst = if left op right { yes } else { no }`: a branch over one or two moves. If the
    /// condition holds, [`skipped`](Fused::skipped) operations are not executed.
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
        /// The value if the condition holds.
        yes: SelectValue,
        /// The value if it does not.
        no: SelectValue,
    },
    /// `loaded` = the `size` bytes at `mem`, zero-extended; `dst op= ` the same number.
    /// Unless `op` is a move, `loaded` is not `dst`.
    LoadAlu {
        /// Of the load.
        size: Size,
        /// Where from.
        mem: MemRef,
        /// The loaded number; none if it is dead.
        loaded: Option<Reg>,
        /// The operation on it.
        op: AluOp,
        /// Of the operation.
        width: Width,
        /// The first operand, and what is written.
        dst: Reg,
    },
    /// The number at `mem` = the number at `mem` `op` `src`, by a load, an operation and a
    /// store; not atomic.
    Update {
        /// Of load and store.
        size: Size,
        /// Where.
        mem: MemRef,
        /// The operation on the number, zero-extended.
        op: AluOp,
        /// Of the operation.
        width: Width,
        /// The second operand.
        src: Operand,
        /// The whole result; none if it is dead.
        dst: Option<Reg>,
    },
    /// The `size` bytes at `to` = those at `from`, by a load and a store.
    Copy {
        /// Of load and store.
        size: Size,
        /// Where from.
        from: MemRef,
        /// Where to: [`MemRef::Stack`], [`MemRef::Context`] or [`MemRef::MapValue`].
        to: MemRef,
        /// The number, zero-extended; none if it is dead.
        via: Option<Reg>,
    },
    /// A branch: a test of single bits (`tmp = left; tmp &= right; if tmp == 0 …`), or a
    /// branch over a jump, inverted.
    Branch(Branch),
    /// The `copy` if there is one, then `dst op= src`, then the branch. (In the program the
    /// copy is between the two, but independent of both.)
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
        /// The branch; it may read `dst` and the copy.
        branch: Branch,
    },
    /// The `size` bytes at `mem`, zero-extended, then the branch, whose `left` is that
    /// number.
    LoadBranch {
        /// Of the load.
        size: Size,
        /// Where from.
        mem: MemRef,
        /// The register of the number, which is then `left`; none if it is dead.
        dst: Option<Reg>,
        /// The branch on it.
        branch: Branch,
    },
}

/// The value of one side of a [`Fused::Select`]: a move of this width, then a logical right
/// shift by `right` bits, less than the width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SelectValue {
    /// Of move and shift.
    pub width: Width,
    /// What is moved.
    pub from: Operand,
    /// The shift distance; 0 for no shift operation.
    pub right: u8,
}

impl Fused {
    /// How many of the last fused operations are neither executed nor counted if the
    /// condition of a [`Select`](Self::Select) holds.
    #[must_use]
    pub fn skipped(&self) -> u8 {
        match self {
            Self::Select { no, .. } => 1 + u8::from(no.right > 0),
            _ => 0,
        }
    }
}

/// The branch at the end of fused operations.
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
    /// Jumps to the target if the condition has this value, else continues after the fused
    /// operations.
    pub when: bool,
    /// The jump target.
    pub target: Target,
    /// The last of the fused operations is a jump to the target, which the plain branch
    /// skips if the fused one does not go there: it is executed, and counted, only if the
    /// fused branch goes to the target.
    pub skips: bool,
}
