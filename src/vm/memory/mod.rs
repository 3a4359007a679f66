//! Invalid accesses to memory. Every live object (context, packet, stack frame, map value,
//! record) is a region of a virtual address space, with gaps around it and a generation. Above
//! all regions is kernel memory, with the mocked kernel's own objects.

mod address;
mod deltas;
mod fault;
mod kernel;
mod name;
mod pages;
pub(crate) mod raw;
mod recent;
mod region;
mod shared;
mod slab;
mod space;
mod touched;
mod zeroed;

pub use fault::{AccessFault, AccessKind, Pointer, Problem};
pub use kernel::KernelMemoryFull;
pub use space::SpaceFull;

#[doc(hidden)]
pub use address::Address;
#[doc(hidden)]
pub use kernel::{Area, Block, BlockType, KernelBlocks, NewBlock};
#[doc(hidden)]
pub use name::Name;
#[doc(hidden)]
pub use pages::Pages;
pub(crate) use recent::RecentBlocks;
#[doc(hidden)]
pub use region::{Body, PointerField, Region, Rights};
#[doc(hidden)]
pub use shared::SharedBytes;
#[doc(hidden)]
pub use slab::Slab;
pub(super) use slab::key_words;
#[doc(hidden)]
pub use space::{Location, RegionMut, Space};
pub(in crate::vm) use zeroed::zeroed;
