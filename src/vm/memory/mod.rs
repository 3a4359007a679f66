//! The machine's memory. Every live object (context, packet, stack frame, map value, record)
//! is a region of a virtual address space, with gaps around it and a generation. Above all
//! regions is kernel memory, with the mocked kernel's own objects.

mod address;
mod fault;
mod kernel;
mod name;
mod pages;
pub(crate) mod raw;
mod region;
mod shared;
mod slab;
mod space;
mod zeroed;

pub use address::Address;
pub use fault::{AccessFault, AccessKind, Pointer, Problem};
pub use kernel::{Area, Block, BlockType, KernelBlocks, KernelMemoryFull, NewBlock};
pub use name::Name;
pub use pages::Pages;
pub use region::{Body, PointerField, Region, Rights};
pub use shared::SharedBytes;
pub use slab::Slab;
pub(super) use slab::key_words;
pub use space::{Location, RegionMut, Space, SpaceFull};
pub(in crate::vm) use zeroed::zeroed;
