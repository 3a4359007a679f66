//! Look-ups of keys by their host addresses.

#![allow(unsafe_code)] // keys that the verifier proved to be in bounds

use smallvec::SmallVec;

use crate::isa::{Size, low32};
use crate::lower::{BoundMap, Keys};
use crate::vm::memory::raw;

/// The result of a look-up on `cpu` of the key at a host address: the address of the value,
/// or 0.
///
/// # Safety
/// A live [`SharedBytes`](crate::vm::memory::SharedBytes) has the map's key size in bytes
/// at `key`.
#[inline]
pub(crate) unsafe fn look_up_at(map: &BoundMap, cpu: u64, key: u64) -> u64 {
    // SAFETY: guaranteed by the caller; an index has 4 bytes.
    unsafe {
        match map.keys {
            Keys::Index { .. } | Keys::PerCpuIndex { .. } => {
                map.at_index(cpu, low32(raw::load(key, Size::W)))
            }
            // Common key sizes take one load.
            Keys::Other { size: 4 } => {
                map.at_key(cpu, &low32(raw::load(key, Size::W)).to_le_bytes())
            }
            Keys::Other { size: 8 } => map.at_key(cpu, &raw::load(key, Size::Dw).to_le_bytes()),
            Keys::Other { size } => {
                let mut bytes = SmallVec::<[u8; 64]>::from_elem(0, size as usize);
                raw::read(key, &mut bytes);
                map.at_key(cpu, &bytes)
            }
        }
    }
}
