//! Dynptrs that the kernel holds and lends to a callback.

use std::sync::Arc;

use super::super::memory::{Address, Region, SharedBytes, Space, SpaceFull};
use super::kern::{Dynptr, DynptrKind};

/// A dynptr of the kernel's own, as the callback of `bpf_user_ringbuf_drain` is given
/// one for each sample (`CONST_PTR_TO_DYNPTR` to the verifier).
///
/// Programs pass its address on; a load or store at it is a fault.
#[derive(Debug)]
#[must_use = "it takes a place in the address space until it is removed"]
pub struct Held(Address);

impl Held {
    /// One that leads to `size` bytes of memory at `data`.
    ///
    /// # Errors
    /// [`SpaceFull`] where the machine has no address left.
    pub fn local(space: &mut Space, data: u64, size: u32) -> Result<Self, SpaceFull> {
        let bytes = Arc::new(SharedBytes::zeroed(Dynptr::BYTES));
        let hidden = u32::try_from(Dynptr::BYTES).unwrap_or_default();
        let held = space.insert(Region::bytes("dynptr", bytes).with_hidden(hidden))?;
        // Its place was made one line above.
        let _ = Dynptr::new(DynptrKind::Local, data, size).store(space, held.register());
        Ok(Self(held))
    }

    /// What the callback is given.
    #[must_use]
    pub const fn register(&self) -> u64 {
        self.0.register()
    }

    /// Ends its life; the memory that it leads to stays.
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
        let held = Held::local(&mut space, sample, 8).unwrap();
        let at = held.register();
        assert_eq!(
            space.load(at, 8).unwrap_err().to_string(),
            "reads 8 bytes at dynptr, whose first 16 bytes are not for programs"
        );
        let pointer = Dynptr::load(&space, at).unwrap();
        assert_eq!(pointer, Dynptr::new(DynptrKind::Local, sample, 8));
        pointer.between(2, 6).store(&space, at).unwrap();
        assert_eq!(Dynptr::load(&space, at).unwrap().offset, 2);
        assert!(Dynptr::load(&space, at + 1).is_err());
        held.remove(&mut space);
        assert!(Dynptr::load(&space, at).is_err());
        assert_eq!(space.load(sample, 8), Ok(0));
    }
}
