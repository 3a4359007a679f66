//! BPF object files: converts ELF files to [`Program`](crate::program::Program)s.
//!
//! An object has three forms: the plain contents of a file (`image`, read by `elf`, merged
//! by `link`), the opened [`Object`], which can be changed (created by `collect`, changed
//! by `configure`, `map_mut` and `globals`), and programs (`resolve`, `assemble`,
//! `programs`). Conventions are libbpf's; files that implement one of them name libbpf's
//! function.

mod add_entry;
mod assemble;
mod bpftrace;
mod btf_fixup;
mod bundled;
pub mod cases;
mod collect;
mod configure;
pub mod core;
mod elf;
mod error;
mod externs;
mod fuzz;
mod globals;
mod image;
mod kconfig;
mod kernel_types;
mod link;
mod map_mut;
mod maps_btf;
mod maps_data;
mod maps_legacy;
mod model;
mod open;
mod programs;
mod relocations;
mod relocs;
mod resolve;
mod slots;
mod struct_ops;
mod target;
mod types;
mod untyped;

pub use error::{ErrorLocation, Known, ObjectError, Problem};
#[doc(hidden)]
pub use fuzz::exercise;
#[cfg(feature = "cli")]
pub(crate) use globals::plain as plain_number;
pub use kconfig::{ValueKind as KconfigKind, Variable as KconfigVariable, build_options};
pub use map_mut::MapMut;
pub use model::{Entry, Extern, ExternKind, Global, Note, Object};
pub use programs::Programs;
pub use relocations::{Relocation, RelocationKind};
pub use target::Target;
