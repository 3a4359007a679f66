//! Making maps: the kernel's checks, with our words, then the kind's own file.

use std::sync::Arc;

use thiserror::Error;

use super::Map;
use super::array::Array;
use super::hash::Hash;
use super::lpm::LpmTrie;
use super::map_of_maps::MapOfMaps;
use super::perf_event_array::PerfEventArray;
use super::placeholder::Placeholder;
use super::prog_array::ProgArray;
use super::queue::{Discipline, Queue};
use super::ringbuf::RingBuf;
use crate::program::MapDef;
use crate::spec::{MapType, limits};
use crate::util::Errno;

/// A map that can't be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("map '{map}' ({map_type}): {problem}; the kernel answers {errno}")]
pub struct MapError {
    /// The map.
    pub map: String,
    /// Its type.
    pub map_type: MapType,
    /// Which attribute is wrong, and what is allowed.
    pub problem: String,
    /// What `bpf(BPF_MAP_CREATE)` answers.
    pub errno: Errno,
}

/// The most bytes of values and keys that a map may take here.
const MAX_BYTES: u64 = 4 << 30;
/// Bytes of a page, of which ring buffers are made.
const PAGE_SIZE: u32 = 4096;

/// Makes a map on a machine of `cpus` CPUs. A kind that has no implementation is
/// made all the same; what is tried with it then fails by name.
///
/// # Errors
/// [`MapError`] where the kernel refuses the definition (`…_map_alloc_check` and
/// `…_map_alloc` of each kind in `kernel/bpf`), or the map would take more than
/// 4 GiB.
pub fn create(def: &MapDef, cpus: u32) -> Result<Arc<dyn Map>, MapError> {
    let mut def = def.clone();
    if def.map_type == MapType::PerfEventArray && def.max_entries == 0 {
        // As libbpf: a buffer for each CPU.
        def.max_entries = cpus;
    }
    check(&def, cpus)?;
    Ok(match def.map_type {
        MapType::Array | MapType::PercpuArray => Arc::new(Array::new(def, cpus)),
        MapType::Hash | MapType::PercpuHash | MapType::LruHash | MapType::LruPercpuHash => {
            Arc::new(Hash::new(def, cpus))
        }
        MapType::LpmTrie => Arc::new(LpmTrie::new(def)),
        MapType::ProgArray => Arc::new(ProgArray::new(def)),
        MapType::PerfEventArray => Arc::new(PerfEventArray::new(def, cpus)),
        MapType::Ringbuf => Arc::new(RingBuf::new(def)),
        MapType::ArrayOfMaps | MapType::HashOfMaps => Arc::new(MapOfMaps::new(def)),
        MapType::Queue => Arc::new(Queue::new(def, Discipline::FirstOut)),
        MapType::Stack => Arc::new(Queue::new(def, Discipline::LastOut)),
        MapType::BloomFilter => Arc::new(Queue::new(def, Discipline::Set)),
        _ => Arc::new(Placeholder::new(def)),
    })
}

fn check(def: &MapDef, cpus: u32) -> Result<(), MapError> {
    let fail = |errno, problem: String| {
        Err(MapError {
            map: def.name.clone(),
            map_type: def.map_type,
            problem,
            errno,
        })
    };
    let info = def.map_type.info();
    if !info.key.allows(def.key_size) {
        return fail(Errno::EINVAL, format!("a key of {} bytes", def.key_size));
    }
    if !info.value.allows(def.value_size) {
        return fail(
            Errno::EINVAL,
            format!("a value of {} bytes", def.value_size),
        );
    }
    if !info.entries.allows(def.max_entries, PAGE_SIZE) {
        return fail(
            Errno::EINVAL,
            format!(
                "max_entries of {}, {:?} wanted",
                def.max_entries, info.entries
            ),
        );
    }
    let unknown = def.flags.difference(info.flags);
    if !unknown.is_empty() {
        return fail(
            Errno::EINVAL,
            format!("flags {unknown:?} are not for this type"),
        );
    }
    let missing = info.flags_needed.difference(def.flags);
    if !missing.is_empty() {
        return fail(Errno::EINVAL, format!("flags {missing:?} are needed"));
    }
    if info.per_cpu && def.value_size > limits::PER_CPU_MAX {
        return fail(
            Errno::E2BIG,
            format!("a per-CPU value of more than {} bytes", limits::PER_CPU_MAX),
        );
    }
    let element = u64::from(def.key_size)
        + u64::from(def.value_size).next_multiple_of(8)
            * u64::from(if info.per_cpu { cpus } else { 1 });
    if element.saturating_mul(u64::from(def.max_entries)) > MAX_BYTES {
        return fail(
            Errno::ENOMEM,
            format!("{} entries take more than 4 GiB", def.max_entries),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapFlags;

    fn refused(map_type: MapType, key: u32, value: u32, entries: u32) -> Errno {
        create(&MapDef::new("m", map_type, key, value, entries), 2)
            .unwrap_err()
            .errno
    }

    #[test]
    fn what_the_kernel_refuses_is_refused_with_its_errno() {
        assert_eq!(refused(MapType::Array, 8, 8, 1), Errno::EINVAL);
        assert_eq!(refused(MapType::Array, 4, 8, 0), Errno::EINVAL);
        assert_eq!(refused(MapType::Hash, 0, 8, 1), Errno::EINVAL);
        assert_eq!(refused(MapType::Ringbuf, 0, 0, 1000), Errno::EINVAL);
        assert_eq!(refused(MapType::PercpuArray, 4, 40_000, 1), Errno::E2BIG);
        assert_eq!(
            refused(MapType::Array, 4, u32::MAX, u32::MAX),
            Errno::ENOMEM
        );
        let mut def = MapDef::new("m", MapType::LruHash, 4, 4, 4);
        def.flags = MapFlags::NO_PREALLOC;
        let error = create(&def, 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "map 'm' (lru_hash): flags MapFlags(NO_PREALLOC) are not for this type; \
             the kernel answers EINVAL (Invalid argument)"
        );
    }

    #[test]
    fn every_type_can_be_made() {
        for map_type in MapType::ALL {
            let info = map_type.info();
            let size = |allows: &dyn Fn(u32) -> bool| [0, 4, 8].into_iter().find(|n| allows(*n));
            let key = size(&|n| info.key.allows(n)).unwrap();
            let value = size(&|n| info.value.allows(n)).unwrap();
            let mut entries = [4096, 1, 0].into_iter();
            let entries = entries
                .find(|n| info.entries.allows(*n, PAGE_SIZE))
                .unwrap();
            let mut def = MapDef::new("m", *map_type, key, value, entries);
            def.flags = info.flags_needed;
            assert!(create(&def, 2).is_ok(), "{map_type}");
        }
    }
}
