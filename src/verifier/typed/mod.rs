//! Pointers to objects of BTF types (`PTR_TO_BTF_ID`): what they reach, how far a pointer
//! loaded through them can be trusted, and kernel pointers in map values.
//!
//! | module | what it checks |
//! |---|---|
//! | `walk` | what the bytes at an offset of a structure are |
//! | `access` | loads and stores through such pointers, and through map pointers |
//! | `trust` | trusted pointers, RCU read sections |
//! | `kptr` | kernel pointers in map values |
//! | `operations` | what struct_ops programs get and may write |
//! | `symbol` | the address of a kernel variable |

mod access;
mod kptr;
mod operations;
mod symbol;
mod trust;
mod walk;

pub(super) use access::ObjectAccess;
pub(super) use trust::TRUSTED;
pub(super) use walk::holds;
