//! Maps whose values are maps (`kernel/bpf/map_in_map.c`).

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::{Kind, Map, index_of, next_index};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;
use crate::vm::handle::MapHandle;

/// `BPF_MAP_TYPE_ARRAY_OF_MAPS` and `BPF_MAP_TYPE_HASH_OF_MAPS`. User space puts
/// maps in and reads their ids; programs look them up.
#[derive(Debug)]
pub struct MapOfMaps {
    def: MapDef,
    slots: RwLock<BTreeMap<Vec<u8>, MapHandle>>,
}

impl MapOfMaps {
    pub(super) fn new(def: MapDef) -> Self {
        Self {
            def,
            slots: RwLock::default(),
        }
    }

    /// The map under a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<MapHandle> {
        self.slots
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .copied()
    }

    /// Puts a map under a key. Its shape is the caller's to check with
    /// [`accepts`](Self::accepts).
    ///
    /// # Errors
    /// `E2BIG` past the end of an array or when a hash is full.
    pub fn set(&self, key: &[u8], inner: MapHandle) -> Result<(), Errno> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let max = self.def.max_entries;
        let full = match self.def.map_type {
            MapType::ArrayOfMaps => index_of(key)? >= max,
            _ => !slots.contains_key(key) && slots.len() >= max as usize,
        };
        if full {
            return Err(Errno::E2BIG);
        }
        slots.insert(key.to_vec(), inner);
        Ok(())
    }

    /// Whether a map has the shape that this map's inner maps were declared with
    /// (`bpf_map_meta_equal`, `array_map_meta_equal`): what a program was verified
    /// against must stay true.
    #[must_use]
    pub fn accepts(&self, given: &MapDef) -> bool {
        let Some(wanted) = &self.def.inner else {
            return true;
        };
        let same_size = wanted.max_entries == given.max_entries
            || wanted.map_type != MapType::Array
            || wanted.flags.contains(MapFlags::INNER_MAP);
        wanted.map_type == given.map_type
            && wanted.key_size == given.key_size
            && wanted.value_size == given.value_size
            && wanted.flags == given.flags
            && same_size
    }
}

impl Map for MapOfMaps {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn kind(&self) -> Kind<'_> {
        Kind::MapOfMaps(self)
    }

    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        // A program finds a map, not a value: see `get`.
        Err(Errno::EOPNOTSUPP)
    }

    fn update(
        &self,
        _cpu: u32,
        _key: &[u8],
        _value: &[u8],
        _flags: UpdateFlags,
    ) -> Result<(), Errno> {
        // A value is a file descriptor for the kernel: see `set`.
        Err(Errno::EBADF)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.remove(key).map(|_| ()).ok_or(Errno::ENOENT)
    }

    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        if self.def.map_type == MapType::ArrayOfMaps {
            return next_index(key, self.def.max_entries);
        }
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let next = match key.filter(|key| slots.contains_key(*key)) {
            Some(key) => {
                let later = (std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded);
                slots.range::<[u8], _>(later).next()
            }
            None => slots.first_key_value(),
        };
        next.map(|(key, _)| key.clone()).ok_or(Errno::ENOENT)
    }

    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let inner = self.get(key).ok_or(Errno::ENOENT)?;
        Ok(inner.0.to_le_bytes().to_vec())
    }

    fn len(&self) -> usize {
        self.slots
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_maps_must_have_the_declared_shape() {
        let inner = MapDef::new("inner", MapType::Array, 4, 8, 2);
        let mut outer = MapDef::new("outer", MapType::ArrayOfMaps, 4, 4, 1);
        outer.inner = Some(Box::new(inner.clone()));
        let map = MapOfMaps::new(outer);
        assert!(map.accepts(&MapDef::new("other", MapType::Array, 4, 8, 2)));
        assert!(!map.accepts(&MapDef::new("longer", MapType::Array, 4, 8, 3)));
        assert!(!map.accepts(&MapDef::new("hash", MapType::Hash, 4, 8, 2)));
        assert_eq!(map.set(&0u32.to_le_bytes(), MapHandle(3)), Ok(()));
        assert_eq!(
            map.set(&1u32.to_le_bytes(), MapHandle(3)),
            Err(Errno::E2BIG)
        );
        assert_eq!(map.get(&0u32.to_le_bytes()), Some(MapHandle(3)));
    }

    #[test]
    fn a_hash_of_maps_is_walked_and_emptied() {
        let map = MapOfMaps::new(MapDef::new("outer", MapType::HashOfMaps, 1, 4, 2));
        map.set(b"a", MapHandle(1)).unwrap();
        map.set(b"b", MapHandle(2)).unwrap();
        assert_eq!(map.set(b"c", MapHandle(3)), Err(Errno::E2BIG));
        assert_eq!(map.next_key(None), Ok(b"a".to_vec()));
        assert_eq!(map.next_key(Some(b"a")), Ok(b"b".to_vec()));
        assert_eq!(map.next_key(Some(b"b")), Err(Errno::ENOENT));
        assert_eq!(map.delete(b"a"), Ok(()));
        assert_eq!(map.read(b"a"), Err(Errno::ENOENT));
    }
}
