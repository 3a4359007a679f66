//! User memory that programs access directly, through `__uptr` fields of a task's storage. The
//! kernel pins the page when user space stores the pointer (`bpf_obj_pin_uptrs`,
//! `kernel/bpf/syscall.c`).

use std::sync::Arc;

use super::error::Result;
use super::vm::Vm;
use crate::vm::memory::{Region, SharedBytes};

/// Memory that a program and a test share, as a kernel and a process share a pinned page.
#[derive(Debug, Clone)]
pub struct PinnedMemory {
    address: u64,
    bytes: Arc<SharedBytes>,
}

impl PinnedMemory {
    /// The address for the `__uptr` field.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// A copy of the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }

    /// Overwrites bytes from an offset on; `None`, with nothing changed, if they do not fit.
    pub fn write(&self, at: usize, bytes: &[u8]) -> Option<()> {
        self.bytes.write(at, bytes)
    }
}

impl Vm {
    /// Adds memory for a `__uptr` field: store its [address](PinnedMemory::address) in the value of
    /// a task with [`MapView::set_for`](super::MapView::set_for). An access through a pointer to
    /// anything else ends the run with a fault.
    ///
    /// # Errors
    /// [`Error::Space`](super::Error::Space) if the machine has no address left.
    pub fn pin(&mut self, bytes: &[u8]) -> Result<PinnedMemory> {
        let bytes = Arc::new(SharedBytes::from_bytes(bytes));
        let region = Region::bytes("user memory", Arc::clone(&bytes));
        let address = self.machine.space.insert(region)?.register();
        Ok(PinnedMemory { address, bytes })
    }
}
