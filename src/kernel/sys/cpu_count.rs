//! The number of possible CPUs, found with a per-CPU map.

use std::os::fd::AsRawFd;

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, Result, bpf, open, read_address, write_address};

/// The largest `NR_CPUS` (`arch/x86/Kconfig`, `MAXSMP`).
const MOST: usize = 8192;
/// The content of a word before the kernel writes to it; a new map's values are zeros.
const UNTOUCHED: [u8; 8] = [0xa5; 8];

/// The first fields of `BPF_MAP_CREATE`; the rest is zero.
#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct Create {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct Lookup {
    map_fd: i32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Looks up an element of a per-CPU array, and counts the words that the kernel wrote: one for
/// each possible CPU.
pub fn possible_cpus() -> Result<u32> {
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`.
    const PERCPU_ARRAY: u32 = 6;
    let mut create = Create {
        map_type: PERCPU_ARRAY,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
    };
    // SAFETY: no addresses.
    let map = unsafe { open(Cmd::MapCreate, &mut create) }?;
    let mut words = UNTOUCHED.repeat(MOST);
    let mut lookup = Lookup {
        map_fd: map.as_raw_fd(),
        zero: 0,
        key: read_address(&[0; 4]),
        value: write_address(&mut words),
        flags: 0,
    };
    // SAFETY: the key has the map's four bytes; the kernel writes a word for each CPU, and the
    // buffer is large enough for any machine.
    unsafe { bpf(Cmd::MapLookupElem, &mut lookup) }?;
    let (words, _) = words.as_chunks::<8>();
    let written = words.iter().take_while(|word| **word != UNTOUCHED).count();
    Ok(u32::try_from(written).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cpus;
    use crate::shared::{Need, skip};

    #[test]
    fn the_kernel_counts_its_cpus() {
        match possible_cpus() {
            Ok(count) => assert_eq!(count, cpus::possible()),
            Err(errno) => skip(Need::Kernel, errno),
        }
    }
}
