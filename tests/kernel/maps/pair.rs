//! A map of bpflab and a map with the same definition in the kernel.

use std::sync::Arc;

use bpflab::btf::Btf;
use bpflab::kernel::{KernelMap, LoadedMaps, possible_cpus};
use bpflab::program::MapDef;
use bpflab::util::{Errno, MapId};
use bpflab::vm::maps::{self, Map};

use super::here;
use super::side::Side;

/// The pair of maps.
pub struct Pair {
    pub ours: Arc<dyn Map>,
    maps: LoadedMaps,
    /// The kernel programs that use the map.
    pub side: Side,
}

/// The number of CPUs, if the kernel is of the release that bpflab reproduces.
pub fn cpus() -> Option<u32> {
    here::judge().map(|_| possible_cpus())
}

impl Pair {
    /// Creates both; `None` if there is no kernel.
    pub fn new(def: &MapDef, types: Option<&Btf>) -> Option<Self> {
        let cpus = cpus()?;
        let typed = match types {
            Some(types) => def.clone().with_special_fields(types),
            None => def.clone(),
        };
        let defs = [def.clone(), Side::results()];
        let maps = LoadedMaps::create(&defs, types).unwrap();
        assert!(maps.btf_refused().is_none(), "{:?}", maps.btf_refused());
        Some(Self {
            ours: maps::create(&typed, cpus).unwrap(),
            maps,
            side: Side::new(&defs, types),
        })
    }

    pub fn kernel(&self) -> KernelMap<'_> {
        self.maps.map(MapId(0)).unwrap()
    }

    /// The kernel's maps: the map, and one for the programs' results.
    pub const fn loaded(&self) -> &LoadedMaps {
        &self.maps
    }
}

/// The keys of an iteration, one after the other.
pub fn walk(
    mut next: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, Errno>,
) -> Result<Vec<Vec<u8>>, Errno> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    loop {
        match next(keys.last().map(Vec::as_slice)) {
            Ok(key) => keys.push(key),
            Err(Errno::ENOENT) => return Ok(keys),
            Err(errno) => return Err(errno),
        }
    }
}
