//! The map of `usdt.bpf.h` with which an object's programs find the arguments of USDT probes,
//! and which of its elements are in use.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::sys::MapFd;
use crate::util::Errno;

/// Name of the map with the locations of USDT arguments; attaching a USDT program fills it.
pub const MAP: &str = "__bpf_usdt_specs";

/// The elements of an object's USDT map.
#[derive(Debug)]
pub(super) struct UsdtSpecs {
    map: MapFd,
    used: Mutex<BTreeSet<u32>>,
}

/// An element in use; dropping it frees the element.
#[derive(Debug)]
pub(super) struct UsdtSpec {
    specs: Arc<UsdtSpecs>,
    /// The key, which is also the cookie of the attachment that uses it.
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
    /// `ENOSPC` if none is free, and the kernel's error.
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
