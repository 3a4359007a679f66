//! An ELF file becomes programs.

pub mod core;
