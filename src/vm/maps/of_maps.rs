//! Arrays and hashes of maps (`kernel/bpf/map_in_map.c`).

use super::base::{Base, Mode};
use super::handle::MapHandle;
use super::handles::Handles;
use super::keyed::Keyed;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_ARRAY_OF_MAPS` and `BPF_MAP_TYPE_HASH_OF_MAPS`. There are no file descriptors:
/// user space reads a map's handle as its id, and a test inserts maps with [`set`](Self::set).
#[derive(Debug)]
pub struct MapOfMaps {
    base: Base,
    inner: Inner,
}

/// The inner maps.
#[derive(Debug)]
enum Inner {
    /// By index.
    Array(Handles),
    /// By key.
    Hash(Keyed<MapHandle>),
}

/// Whether a map has the shape of the inner maps (`bpf_map_meta_equal`,
/// `kernel/bpf/map_in_map.c`; for arrays `array_map_meta_equal`).
fn same_shape(shape: &MapDef, inner: &MapDef) -> bool {
    let alike = shape.map_type == inner.map_type
        && shape.key_size == inner.key_size
        && shape.value_size == inner.value_size
        && shape.flags == inner.flags
        && shape.special == inner.special;
    let any_length = shape.map_type != MapType::Array || shape.flags.contains(MapFlags::INNER_MAP);
    alike && (any_length || shape.max_entries == inner.max_entries)
}

impl MapOfMaps {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let inner = if def.map_type == MapType::ArrayOfMaps {
            Inner::Array(Handles::new(def.max_entries))
        } else {
            Inner::Hash(Keyed::new(def.max_entries))
        };
        Self {
            base: Base::new(def, cpus),
            inner,
        }
    }

    /// The map of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<MapHandle> {
        match &self.inner {
            Inner::Array(slots) => slots.get(Base::index(key).ok()?).map(MapHandle),
            Inner::Hash(keyed) => keyed.get(key),
        }
    }

    /// Sets the map of a key; `def` is the map's definition.
    ///
    /// # Errors
    /// `EINVAL` if its shape differs from that of the inner maps, and for flags; `E2BIG` past
    /// the end or if full; `EEXIST` and `ENOENT` by flag; `EPERM` if user space may not write.
    pub fn set(
        &self,
        key: &[u8],
        inner: MapHandle,
        def: &MapDef,
        flags: UpdateFlags,
    ) -> Result<(), Errno> {
        self.base.user_writes()?;
        self.check_update(key, flags)?;
        let shape = self.base.def().inner.as_deref();
        if !shape.is_some_and(|shape| same_shape(shape, def)) {
            return Err(Errno::EINVAL);
        }
        match &self.inner {
            Inner::Array(slots) => slots.set(Base::index(key)?, inner.0),
            Inner::Hash(keyed) => keyed.set(key, inner, Mode::of(flags)?),
        }
    }

    fn check_update(&self, key: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        match self.inner {
            Inner::Array(_) => self.base.slot_for_update(key, flags).map(drop),
            Inner::Hash(_) => {
                Mode::of(flags)?;
                self.base.check_key(key)
            }
        }
    }
}

impl Map for MapOfMaps {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::MapOfMaps(self)
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let map = self.get(key).ok_or(Errno::ENOENT)?;
        Ok(map.0.to_le_bytes().to_vec())
    }

    /// Always fails: there are no file descriptors of maps.
    fn sys_update(&self, key: &[u8], _value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.check_update(key, flags)?;
        Err(Errno::EBADF)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        match &self.inner {
            Inner::Array(slots) => slots.remove(Base::index(key)?),
            Inner::Hash(keyed) => keyed.remove(key),
        }
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        match &self.inner {
            Inner::Array(_) => self.base.next_index(key),
            Inner::Hash(keyed) => keyed.next_key(key),
        }
    }
}
