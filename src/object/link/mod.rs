//! Static linking: merges object files into one, like `bpftool gen object` (libbpf,
//! `linker.c`). Sections of the same name are concatenated, symbols are resolved, types are
//! merged. The result is an [`Image`], which is collected like that of any object file.

mod compare;
mod driver;
mod input;
mod sections;
mod symbols;
mod types;

pub(super) use driver::link;
pub(super) use input::Input;
