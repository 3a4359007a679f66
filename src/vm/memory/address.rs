//! Addresses: the numbers that registers hold for pointers.
//!
//! ```text
//!  63  62       56 55          40 39                                   0
//! ┌───┬───────────┬──────────────┬──────────────────────────────────────┐
//! │ 1 │ generation│ region       │ offset + 4 GiB                       │
//! └───┴───────────┴──────────────┴──────────────────────────────────────┘
//! ```
//!
//! Bit 63 is set as in every kernel address, so `addr < 0` and `IS_ERR(addr)` mean what they
//! do in the kernel. User addresses have bit 63 clear and belong to the mocked task. A region
//! begins 4 GiB into its share of the address space and ends before the share does. So an
//! out-of-bounds pointer, off by up to 32 bits, still shows which region it came from. When a
//! slot is reused, its generation changes: accesses through stale pointers are detected.
//!
//! The highest addresses, from 0xffff_0000_0000_0000, belong to no region. They are kernel
//! memory, where the mocked kernel's own objects have addresses as in Linux
//! ([`KernelBlocks`](super::KernelBlocks)). In the figure they are the regions from 0xff00 in
//! the last generation; no region gets such a number.

use std::fmt;

/// A virtual address in some region's share, whether the region is live or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(u64);

const KERNEL: u64 = 1 << 63;
const GENERATION_SHIFT: u32 = 56;
const REGION_SHIFT: u32 = 40;
const OFFSET_MASK: u64 = (1 << REGION_SHIFT) - 1;
const BASE: u64 = 1 << 32;

impl Address {
    /// How many regions can live at once.
    pub const MAX_REGIONS: usize = 0xff00;
    /// How many region numbers an address can encode.
    pub const NUMBERS: usize = 1 << 16;
    /// The first address of kernel memory, above all regions.
    pub const KERNEL_MEMORY: u64 = 0xffff << 48;
    /// The maximum size of a region in bytes.
    pub const MAX_LEN: u64 = (1 << 39) - BASE;
    /// How far out of bounds a pointer can be that was computed from one in bounds.
    pub(super) const STRAY: i64 = BASE.cast_signed();
    /// The number of generations; they wrap around.
    pub const GENERATIONS: u8 = 1 << 7;

    /// The address of a region's first byte.
    #[must_use]
    pub const fn new(region: u16, generation: u8) -> Self {
        let generation = (generation % Self::GENERATIONS) as u64;
        Self(KERNEL | generation << GENERATION_SHIFT | (region as u64) << REGION_SHIFT | BASE)
    }

    /// The address in a register; `None` for user addresses and small numbers (bit 63 clear)
    /// and for the `IS_ERR` range.
    #[must_use]
    pub const fn from_register(value: u64) -> Option<Self> {
        if value & KERNEL == 0 || value >= (4096u64).wrapping_neg() {
            return None;
        }
        Some(Self(value))
    }

    /// Whether a value is an address in kernel memory, mapped or not. The `IS_ERR` range is
    /// excluded.
    #[must_use]
    pub const fn is_kernel_memory(value: u64) -> bool {
        Self::KERNEL_MEMORY <= value && value < (4096u64).wrapping_neg()
    }

    /// The register value.
    #[must_use]
    pub const fn register(self) -> u64 {
        self.0
    }

    /// The number of the region's slot.
    #[must_use]
    pub const fn region(self) -> u16 {
        ((self.0 >> REGION_SHIFT) & 0xffff) as u16
    }

    /// The generation of the region that the pointer was made for.
    #[must_use]
    pub const fn generation(self) -> u8 {
        ((self.0 >> GENERATION_SHIFT) & 0x7f) as u8
    }

    /// Bytes from the region's start; negative before it.
    #[must_use]
    pub const fn offset(self) -> i64 {
        (self.0 & OFFSET_MASK).cast_signed() - BASE.cast_signed()
    }

    /// The address `offset` bytes further.
    #[must_use]
    pub const fn plus(self, offset: u64) -> u64 {
        self.0.wrapping_add(offset)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "region {}.{}{:+}",
            self.region(),
            self.generation(),
            self.offset()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        for (region, generation, offset) in [(0, 0, 0i64), (65_535, 127, -8), (7, 3, 1 << 33)] {
            let address = Address::new(region, generation).plus(offset.cast_unsigned());
            let address = Address::from_register(address).unwrap();
            assert_eq!(
                (address.region(), address.generation(), address.offset()),
                (region, generation, offset)
            );
        }
    }

    #[test]
    fn null_user_and_error_pointers_are_no_addresses() {
        for value in [
            0,
            4096,
            0x7fff_ffff_f000,
            u64::MAX,
            (-4095i64).cast_unsigned(),
        ] {
            assert_eq!(Address::from_register(value), None);
        }
        assert!(Address::new(0xffff, 127).register() < (-4096i64).cast_unsigned());
    }

    #[test]
    fn no_region_is_in_kernel_memory() {
        let last = u16::try_from(Address::MAX_REGIONS - 1).unwrap();
        let end = Address::new(last, 127).plus(Address::MAX_LEN);
        assert!(end < Address::KERNEL_MEMORY);
        assert!(!Address::is_kernel_memory(end));
        assert!(Address::is_kernel_memory(0xffff_8881_0000_0000));
        assert!(!Address::is_kernel_memory(u64::MAX - 4094));
    }
}
