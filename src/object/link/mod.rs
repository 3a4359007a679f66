//! Static linking: several object files become one, as `bpftool gen object` makes it
//! (libbpf, `linker.c`). Sections of one name are put one behind the other, symbols
//! are resolved, types are merged. What comes out is an [`Image`], so that an object
//! that was linked here is collected like one that was linked on disk.

mod compare;
mod driver;
mod input;
mod sections;
mod symbols;
mod types;

pub(super) use driver::link;
pub(super) use input::Input;
