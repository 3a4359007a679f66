//! The instruction set as data.
//!
//! Each family of operations is one table: a `for_each_…!` macro that passes all its rows
//! to the macro it is given. A row contains all facts about an operation: its name,
//! documentation, bits, text in the notations of the kernel and of LLVM, the version that
//! introduced it, and its value. Users expand the table for the columns they need:
//! decoding, encoding, printing, assembling and evaluation here; engines and the verifier
//! in their own modules. An operation added to a table without a case in each expansion
//! does not compile.
//!
//! Sources: RFC 9669 (sections 4 and 5), `include/uapi/linux/bpf.h` of Linux 6.18;
//! versions are the values of clang's `-mcpu`.

mod alu;
mod atomic;
mod endian;
mod jump;
mod memory;
mod pseudo;
mod version;

pub use alu::AluOp;
pub(crate) use alu::for_each_alu_op;
pub use atomic::AtomicOp;
pub(crate) use atomic::for_each_atomic_op;
pub(crate) use atomic::{LOAD_ACQUIRE, STORE_RELEASE};
pub(crate) use endian::for_each_endian_op;
pub use endian::{EndianOp, EndianSize};
pub use jump::JumpOp;
pub(crate) use jump::for_each_jump_op;
pub use memory::{SignedSize, Size, Width};
pub(crate) use memory::{for_each_signed_size, for_each_size};
pub use pseudo::{Pseudo, PseudoKind};
pub use version::IsaVersion;
