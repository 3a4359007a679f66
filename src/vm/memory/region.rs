//! Regions: the live objects in the machine's address space.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::name::Name;
use super::pages::Pages;
use super::shared::SharedBytes;
use super::slab::Slab;
use crate::spec::ContextKind;

/// What a program may do with a region's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Read and write.
    ReadWrite,
    /// Read only: frozen data, `BPF_F_RDONLY_PROG` maps, kernel memory.
    Read,
    /// Write only: `BPF_F_WRONLY_PROG` maps.
    Write,
}

/// The bytes of a region.
#[derive(Debug, Clone)]
pub enum Body {
    /// A range of a block: context, packet, stack frame, record, kernel object.
    /// Offset 0 of the region is the block's start; only `window` is accessible.
    Bytes {
        /// The block.
        bytes: Arc<SharedBytes>,
        /// The accessible range of the block.
        window: Range<usize>,
    },
    /// The values of a map, with unused bytes after each.
    Elements(Arc<Slab>),
    /// The pages of an arena.
    Pages(Arc<Pages>),
    /// An object that all CPUs share, such as the kernel's structure of a map.
    Object(Arc<SharedBytes>),
    /// An object with an address but no bytes: a map, a function, a socket.
    Opaque,
}

/// A context field that the kernel replaces by a pointer on load (`data`, `data_end` of
/// `xdp_md`): 4 bytes in the struct, 8 in the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerField {
    /// Offset of the field.
    pub offset: u32,
    /// Its size in the struct.
    pub size: u32,
    /// The pointer that a load returns.
    pub value: u64,
}

/// An object with its name, rights and bytes.
#[derive(Debug, Clone)]
pub struct Region {
    /// The region's name in messages: `context`, `map value hist`, `stack of main`.
    pub name: Name,
    /// What programs may do with its bytes.
    pub rights: Rights,
    /// Its bytes.
    pub body: Body,
    /// Number of bytes at the start that the program must not access (a tracepoint context
    /// holds the registers' pointer in the first 8).
    pub hidden: u32,
    /// The context kind, if the kernel rewrites accesses to some of its fields
    /// ([`loaded_as`](crate::spec::context::loaded_as)).
    pub context: Option<ContextKind>,
    /// Fields that load as pointers.
    pub pointers: SmallVec<[PointerField; 4]>,
    /// Whether every access is checked, even if it was proved to be in bounds: the region's
    /// size or meaning depends on the test, as for a context.
    pub judged: bool,
}

impl Region {
    /// A region over a whole block.
    #[must_use]
    pub fn bytes(name: impl Into<Name>, bytes: Arc<SharedBytes>) -> Self {
        let window = 0..bytes.len();
        Self::window(name, bytes, window)
    }

    /// A region over a block of which only `window` is accessible.
    #[must_use]
    pub fn window(name: impl Into<Name>, bytes: Arc<SharedBytes>, window: Range<usize>) -> Self {
        Self::new(name, Body::Bytes { bytes, window })
    }

    /// The values of a map.
    #[must_use]
    pub fn elements(name: impl Into<Name>, slab: Arc<Slab>) -> Self {
        Self::new(name, Body::Elements(slab))
    }

    /// The memory of an arena.
    #[must_use]
    pub fn pages(name: impl Into<Name>, pages: Arc<Pages>) -> Self {
        Self::new(name, Body::Pages(pages))
    }

    /// An object without bytes.
    #[must_use]
    pub fn opaque(name: impl Into<Name>) -> Self {
        Self::new(name, Body::Opaque)
    }

    fn new(name: impl Into<Name>, body: Body) -> Self {
        Self {
            name: name.into(),
            rights: Rights::ReadWrite,
            body,
            hidden: 0,
            context: None,
            pointers: SmallVec::new(),
            judged: false,
        }
    }

    /// Sets `judged`.
    #[must_use]
    pub fn judged(self) -> Self {
        Self {
            judged: true,
            ..self
        }
    }

    /// Sets the rights.
    #[must_use]
    pub fn with_rights(self, rights: Rights) -> Self {
        Self { rights, ..self }
    }

    /// Makes the region a context of this kind.
    #[must_use]
    pub fn as_context(self, kind: ContextKind) -> Self {
        Self {
            context: Some(kind),
            ..self
        }
    }

    /// Makes the first bytes inaccessible to programs.
    #[must_use]
    pub fn with_hidden(self, hidden: u32) -> Self {
        Self { hidden, ..self }
    }

    /// Sets the bytes of a block to zero.
    pub fn clear(&self) {
        if let Body::Bytes { bytes, .. } = &self.body {
            bytes.clear();
        }
    }

    /// Address distance between elements ([`Slab::span`]).
    #[must_use]
    pub const fn element_span(value_size: usize) -> u64 {
        Slab::span(value_size)
    }

    /// The offset of its end.
    pub(super) fn end(&self) -> i64 {
        let end = match &self.body {
            Body::Bytes { window, .. } => window.end as u64,
            Body::Elements(slab) => {
                let span = Self::element_span(slab.value_size());
                span.saturating_mul(slab.count() as u64)
            }
            Body::Pages(pages) => u64::from(pages.start()) + pages.bytes().len() as u64,
            Body::Object(bytes) => bytes.len() as u64,
            Body::Opaque => 0,
        };
        i64::try_from(end).unwrap_or(i64::MAX)
    }

    /// Whether all CPUs share the region: map values, objects of maps, and objects without
    /// bytes. A block of bytes belongs to the CPU that inserted it.
    pub(super) const fn is_shared(&self) -> bool {
        !matches!(self.body, Body::Bytes { .. })
    }

    /// The host address of offset 0, if a fast engine may use it for addresses that were proved
    /// to be in bounds.
    pub(super) fn host_address(&self) -> Option<u64> {
        match &self.body {
            Body::Bytes { bytes, .. } if !self.judged => Some(bytes.host_address()),
            Body::Elements(slab) if !self.judged && slab.is_spread() => {
                Some(slab.values().host_address())
            }
            _ => None,
        }
    }

    /// Offset of an element from the region's start.
    #[must_use]
    pub fn element_offset(value_size: usize, element: usize) -> u64 {
        element as u64 * Self::element_span(value_size)
    }
}
