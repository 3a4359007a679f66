//! The 16-byte dynptr that a program keeps on its stack.

use crate::util::Errno;
use crate::vm::memory::{AccessFault, AccessKind, Address, Body, Location, Space};

/// The kind of memory of a dynptr (`enum bpf_dynptr_type`, `include/linux/bpf.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynptrKind {
    /// Memory of the program: a map value, or a sample of a user ring buffer.
    Local = 1,
    /// A record of a ring buffer.
    Ringbuf = 2,
    /// The packet of an `sk_buff`.
    Skb = 3,
    /// The packet of an `xdp_buff`.
    Xdp = 4,
    /// The metadata in front of an `sk_buff`'s packet.
    SkbMeta = 5,
}

impl DynptrKind {
    const ALL: [Self; 5] = [
        Self::Local,
        Self::Ringbuf,
        Self::Skb,
        Self::Xdp,
        Self::SkbMeta,
    ];

    /// Its name in the verifier's log (`dynptr_type_str`, `kernel/bpf/log.c`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Ringbuf => "ringbuf",
            Self::Skb => "skb",
            Self::Xdp => "xdp",
            Self::SkbMeta => "skb_meta",
        }
    }
}

/// `struct bpf_dynptr_kern` (`include/linux/bpf.h`).
///
/// ```text
///  0         8                        12        16
/// ┌─────────┬────────────────────────┬─────────┐
/// │ data    │ size                   │ offset  │
/// └─────────┴────────────────────────┴─────────┘
///            31: read-only, 30..28: kind, 23..0: bytes
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dynptr {
    /// The address of the memory, or of the packet's context; 0 in a null dynptr.
    pub data: u64,
    size: u32,
    /// Bytes from `data` to where it begins.
    pub offset: u32,
}

const KIND_SHIFT: u32 = 28;
const SIZE_MASK: u32 = (1 << 24) - 1;
const RDONLY: u32 = 1 << 31;

impl Dynptr {
    /// Size of a dynptr.
    pub const BYTES: usize = 16;
    /// The maximum number of bytes of its memory (`DYNPTR_MAX_SIZE`).
    pub const MAX_SIZE: u32 = SIZE_MASK;
    /// The null dynptr.
    pub const NULL: Self = Self {
        data: 0,
        size: 0,
        offset: 0,
    };

    /// A dynptr to the first `size` bytes at `data`. Only the low bits of sizes above
    /// [`MAX_SIZE`](Self::MAX_SIZE) are used.
    #[must_use]
    pub const fn new(kind: DynptrKind, data: u64, size: u32) -> Self {
        Self {
            data,
            size: size & SIZE_MASK | (kind as u32) << KIND_SHIFT,
            offset: 0,
        }
    }

    /// Makes it read-only.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self {
            size: self.size | RDONLY,
            ..self
        }
    }

    /// Whether it is the null dynptr.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.data == 0
    }

    /// Whether it is read-only.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.size & RDONLY != 0
    }

    /// The kind of memory; `None` if the bytes are not a valid dynptr.
    #[must_use]
    pub fn kind(&self) -> Option<DynptrKind> {
        let number = (self.size & !RDONLY) >> KIND_SHIFT;
        let mut kinds = DynptrKind::ALL.into_iter();
        kinds.find(|kind| *kind as u32 == number)
    }

    /// Number of bytes of its memory.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size & SIZE_MASK
    }

    /// Narrows it to `start..end`, relative to the current offset.
    #[must_use]
    pub const fn between(self, start: u32, end: u32) -> Self {
        Self {
            offset: self.offset.wrapping_add(start),
            size: self.size & !SIZE_MASK | end.wrapping_sub(start) & SIZE_MASK,
            ..self
        }
    }

    /// Checks that it has `len` bytes from `offset` on (`bpf_dynptr_check_off_len`).
    ///
    /// # Errors
    /// `E2BIG` if it has not.
    pub const fn check(&self, offset: u32, len: u32) -> Result<(), Errno> {
        match self.size().checked_sub(len) {
            Some(last) if offset <= last => Ok(()),
            _ => Err(Errno::E2BIG),
        }
    }

    /// Loads the dynptr at an address.
    ///
    /// # Errors
    /// [`AccessFault`] if the address is not accessible.
    pub fn load(space: &Space, at: u64) -> Result<Self, AccessFault> {
        let location = location(space, at, AccessKind::Read)?;
        // All 16 bytes are in bounds.
        let number = |at: usize, len| {
            location
                .bytes
                .load(location.at + at, len)
                .unwrap_or_default()
        };
        let half = |at| u32::try_from(number(at, 4)).unwrap_or_default();
        Ok(Self {
            data: number(0, 8),
            size: half(8),
            offset: half(12),
        })
    }

    /// Stores it at an address.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn store(&self, space: &Space, at: u64) -> Result<(), AccessFault> {
        let location = location(space, at, AccessKind::Write)?;
        location.bytes.store(location.at, 8, self.data);
        location.bytes.store(location.at + 8, 4, self.size.into());
        location
            .bytes
            .store(location.at + 12, 4, self.offset.into());
        Ok(())
    }
}

/// The location of a dynptr's 16 bytes. Those of a [`KernelDynptr`](super::KernelDynptr) are
/// not accessible to programs, but to helpers.
fn location(space: &Space, at: u64, kind: AccessKind) -> Result<Location<'_>, AccessFault> {
    let held = Address::from_register(at)
        .filter(|address| address.offset() == 0)
        .and_then(|address| space.region(address))
        .filter(|region| region.hidden as usize == Dynptr::BYTES);
    match held.map(|region| &region.body) {
        Some(Body::Bytes { bytes, window }) if window.len() == Dynptr::BYTES => {
            Ok(Location { bytes, at: 0 })
        }
        _ => space.locate(at, Dynptr::BYTES, kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_bytes_are_the_kernels() {
        let pointer = Dynptr::new(DynptrKind::Ringbuf, 0x8000_0001_0000_0000, 100).read_only();
        assert_eq!(pointer.size, 0xa000_0064);
        assert_eq!((pointer.size(), pointer.offset), (100, 0));
        assert_eq!(pointer.kind(), Some(DynptrKind::Ringbuf));
        assert!(pointer.is_read_only() && !pointer.is_null());
        let part = pointer.between(10, 30);
        assert_eq!((part.size, part.offset), (0xa000_0014, 10));
        assert_eq!(part.between(5, 5).offset, 15);
        assert!(Dynptr::NULL.is_null() && Dynptr::NULL.kind().is_none());
    }

    #[test]
    fn bounds_do_not_wrap() {
        let pointer = Dynptr::new(DynptrKind::Local, 1, 8);
        for (offset, len) in [(0, 8), (8, 0), (3, 5)] {
            assert_eq!(pointer.check(offset, len), Ok(()));
        }
        for (offset, len) in [(0, 9), (9, 0), (4, 5), (u32::MAX, 2), (2, u32::MAX)] {
            assert_eq!(pointer.check(offset, len), Err(Errno::E2BIG));
        }
    }
}
