//! The BPF instruction set: all of RFC 9669 and of Linux 6.18.
//!
//! A program is a sequence of 8-byte slots, [`RawInsn`]. [`decode`] converts one or two of
//! them to an [`Insn`] with all fields checked, so that later layers match on it and never
//! on an opcode; [`Insn::encode`] is the inverse. [`Code`] is a decoded program, indexed by
//! position.
//!
//! [`Insn::text`] and [`disassemble`] print instructions in the kernel's notation;
//! [`assemble`] reads the kernel's and LLVM's. [`AluOp::eval`], [`JumpOp::eval`] and
//! similar functions compute the results of operations on plain numbers.
//!
//! ```
//! use bpflab::isa::{Insn, assemble, decode_program};
//!
//! let slots = assemble("r0 = 6; the answer's factors\n r0 *= 7\n exit")?;
//! let mut r0 = 0;
//! for insn in decode_program(&slots)? {
//!     match insn {
//!         Insn::Exit => break,
//!         insn => r0 = insn.fold(|_| r0).expect("arithmetic only"),
//!     }
//! }
//! assert_eq!(r0, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The operations are tables (`table/`): each is a macro that passes its rows to another
//! macro. One row contains all facts about an operation, and a layer that lacks a case for
//! it does not compile.

#[cfg(test)]
pub(crate) mod arbitrary;
mod asm;
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
