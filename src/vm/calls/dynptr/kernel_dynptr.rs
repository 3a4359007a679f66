//! Dynptrs that the kernel creates for a callback.

use std::sync::Arc;

use super::kern::{Dynptr, DynptrKind};
use crate::vm::memory::{Address, Region, SharedBytes, Space, SpaceFull};

/// A dynptr of the kernel, such as the one that the callback of `bpf_user_ringbuf_drain` gets
/// for each sample (`CONST_PTR_TO_DYNPTR` in the verifier).
///
/// Programs can only pass its address on; a load or store there is a fault.
#[derive(Debug)]
#[must_use = "it occupies the address space until it is removed"]
pub struct KernelDynptr(Address);

impl KernelDynptr {
    /// A dynptr to `size` bytes of memory at `data`.
    ///
    /// # Errors
    /// [`SpaceFull`] if the address space is full.
    pub fn local(space: &mut Space, data: u64, size: u32) -> Result<Self, SpaceFull> {
        let bytes = Arc::new(SharedBytes::zeroed(Dynptr::BYTES));
        let hidden = u32::try_from(Dynptr::BYTES).unwrap_or_default();
        let dynptr = space.insert(Region::bytes("dynptr", bytes).with_hidden(hidden))?;
        // Can't fail: the region was inserted just above.
        let _ = Dynptr::new(DynptrKind::Local, data, size).store(space, dynptr.register());
        Ok(Self(dynptr))
    }

    /// The address to pass to the callback.
    #[must_use]
    pub const fn register(&self) -> u64 {
        self.0.register()
    }

    /// Removes the dynptr; the memory that it points to stays.
    pub fn remove(self, space: &mut Space) {
        space.remove(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_reach_what_programs_do_not() {
        let mut space = Space::new();
        let sample = Region::bytes("sample", Arc::new(SharedBytes::zeroed(8)));
        let sample = space.insert(sample).unwrap().register();
        let dynptr = KernelDynptr::local(&mut space, sample, 8).unwrap();
        let at = dynptr.register();
        assert_eq!(
            space.load(at, 8).unwrap_err().to_string(),
            "reads 8 bytes at dynptr, whose first 16 bytes are not for programs"
        );
        let pointer = Dynptr::load(&space, at).unwrap();
        assert_eq!(pointer, Dynptr::new(DynptrKind::Local, sample, 8));
        pointer.between(2, 6).store(&space, at).unwrap();
        assert_eq!(Dynptr::load(&space, at).unwrap().offset, 2);
        assert!(Dynptr::load(&space, at + 1).is_err());
        dynptr.remove(&mut space);
        assert!(Dynptr::load(&space, at).is_err());
        assert_eq!(space.load(sample, 8), Ok(0));
    }
}
