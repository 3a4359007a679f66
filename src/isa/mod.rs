//! The BPF instruction set.

#[cfg(test)]
mod arbitrary;
mod decode;
mod encode;
mod insn;
mod opcode;
mod raw;
mod reg;
mod table;

pub use decode::{DecodeError, Field, Problem, decode, decode_all, decode_program};
pub use encode::{Encoded, encode};
pub use insn::{CallTarget, Flow, Insn, Operand};
pub use raw::RawInsn;
pub use reg::{Reg, RegSet};
pub use table::{
    AluOp, AtomicOp, EndianOp, EndianSize, IsaVersion, JumpOp, Pseudo, PseudoKind, SignedSize,
    Size, Width,
};
#[expect(
    unused_imports,
    reason = "the layers that expand the tables are being built"
)]
pub(crate) use table::{
    for_each_alu_op, for_each_atomic_op, for_each_endian_op, for_each_jump_op,
    for_each_signed_size, for_each_size,
};
