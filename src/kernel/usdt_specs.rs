//! Where an object's programs read how to find the arguments of a marker: the map that
//! libbpf's header `usdt.bpf.h` brings along, and who uses which of its elements.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::sys::MapFd;
use crate::util::Errno;

/// Name in objects of the map that says how to find the arguments of markers (USDT):
/// attaching to one fills it.
pub const MAP: &str = "__bpf_usdt_specs";

/// The elements of an object's map.
#[derive(Debug)]
pub(super) struct UsdtSpecs {
    map: MapFd,
    used: Mutex<BTreeSet<u32>>,
}

/// An element that is filled, and free again when this is dropped.
#[derive(Debug)]
pub(super) struct UsdtSpec {
    specs: Arc<UsdtSpecs>,
    /// The key: the cookie of the attachment that uses it.
    pub id: u32,
}

impl UsdtSpecs {
    pub fn new(map: MapFd) -> Arc<Self> {
        Arc::new(Self {
            map,
            used: Mutex::default(),
        })
    }

    /// Bytes of an element.
    pub const fn size(&self) -> usize {
        self.map.value_size()
    }

    /// Fills a free element.
    ///
    /// # Errors
    /// `ENOSPC` where none is free, and what the kernel says.
    pub fn put(self: &Arc<Self>, value: &[u8]) -> Result<UsdtSpec, Errno> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = 0..self.map.max_entries();
        let id = ids.find(|id| !used.contains(id)).ok_or(Errno::ENOSPC)?;
        self.map.update(&id.to_ne_bytes(), value, 0)?;
        used.insert(id);
        Ok(UsdtSpec {
            specs: self.clone(),
            id,
        })
    }
}

impl Drop for UsdtSpec {
    fn drop(&mut self) {
        let used = self.specs.used.lock();
        used.unwrap_or_else(PoisonError::into_inner)
            .remove(&self.id);
    }
}
