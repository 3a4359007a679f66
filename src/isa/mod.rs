//! The BPF instruction set.

#[cfg(test)]
mod arbitrary;
mod asm;
mod cfg;
mod code;
mod decode;
mod display;
mod encode;
mod eval;
mod insn;
mod names;
mod opcode;
mod raw;
mod reg;
mod table;

pub use asm::{AsmError, AsmErrorKind, Assembly, assemble, assemble_with};
pub use cfg::{Block, BlockId, Cfg, CfgError, Subprogram};
pub use code::Code;
pub use decode::{DecodeError, Field, Problem, decode, decode_all, decode_program};
pub use display::{Text, disassemble};
pub use encode::{Encoded, encode};
pub use eval::{low32, movsx, neg, sign_extend32};
pub use insn::{CallTarget, Flow, Insn, Operand};
pub use names::{Names, NoNames};
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
