//! Memory of the machine: a virtual address space in which every live object
//! (context, packet, stack frame, map value, record) is a region of its own, with gaps
//! around it and a generation; and above all regions kernel memory, where the mocked
//! kernel's own objects are.

mod address;
mod fault;
mod kernel;
mod name;
mod pages;
mod region;
mod shared;
mod slab;
mod space;

pub use address::Address;
pub use fault::{AccessFault, AccessKind, Pointer, Problem};
pub use kernel::{Area, Block, BlockType, KernelBlocks, KernelMemoryFull, NewBlock};
pub use name::Name;
pub use pages::Pages;
pub use region::{Body, PointerField, Region, Rights};
pub use shared::SharedBytes;
pub use slab::Slab;
pub(super) use slab::key_words;
pub use space::{Place, RegionMut, Space, SpaceFull};
