//! Creating maps, with the kernel's checks (`map_create`, `kernel/bpf/syscall.c`, and
//! the `map_alloc_check` and `map_alloc` of each kind).

use std::sync::Arc;

use thiserror::Error;

use super::Map;
use super::arena::Arena;
use super::array::Array;
use super::bloom::{self, Bloom};
use super::cgroup_storage::{self, CgroupStorage};
use super::cgroups::CgroupArray;
use super::cpumap::CpuMap;
use super::devices::{self, Devices};
use super::hash::{self, Hash};
use super::lpm::{self, Lpm};
use super::of_maps::MapOfMaps;
use super::perf_events::PerfEventArray;
use super::programs::ProgArray;
use super::queue::Queue;
use super::ringbuf::RingBuf;
use super::sockets::Sockets;
use super::stack_traces::StackTraces;
use super::storage::{self, LocalStorage};
use super::struct_ops::StructOps;
use super::user_ringbuf::UserRingBuf;
use crate::program::MapDef;
use crate::spec::{EntriesRule, KeyRule, MapFlags, MapType, ValueField, ValueRule, limits};
use crate::util::Errno;

/// Why a map can't be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("map {map} ({map_type}): {problem}: {errno}")]
#[non_exhaustive]
pub struct MapError {
    /// The map's name.
    pub map: String,
    /// Its type.
    pub map_type: MapType,
    /// The invalid attribute, and what is allowed.
    pub problem: String,
    /// The error of `bpf(BPF_MAP_CREATE)`.
    pub errno: Errno,
}

/// The maximum memory of a map in bytes.
const MEMORY_LIMIT: u128 = 4 << 30;

/// Creates a map for a machine with `cpus` CPUs. Memory is allocated on use. Maps that could
/// use more than 4 GiB are refused.
///
/// A perf event array with 0 entries gets one for each CPU, as in libbpf.
///
/// # Errors
/// [`MapError`] with the kernel's errno.
pub fn create(def: &MapDef, cpus: u32) -> Result<Arc<dyn Map>, MapError> {
    let mut def = def.clone();
    if def.map_type == MapType::PerfEventArray && def.max_entries == 0 {
        def.max_entries = cpus;
    }
    forget_fields(&mut def);
    let def = &def;
    check(def, cpus).map_err(|(errno, problem)| MapError {
        map: def.name.clone(),
        map_type: def.map_type,
        problem,
        errno,
    })?;
    Ok(match def.map_type {
        MapType::Array | MapType::PercpuArray => Arc::new(Array::new(def, cpus)),
        MapType::Hash | MapType::PercpuHash | MapType::LruHash | MapType::LruPercpuHash => {
            Arc::new(Hash::new(def, cpus))
        }
        MapType::LpmTrie => Arc::new(Lpm::new(def, cpus)),
        MapType::ProgArray => Arc::new(ProgArray::new(def, cpus)),
        MapType::PerfEventArray => Arc::new(PerfEventArray::new(def, cpus)),
        MapType::Ringbuf => Arc::new(RingBuf::new(def, cpus)),
        MapType::Queue | MapType::Stack => Arc::new(Queue::new(def, cpus)),
        MapType::BloomFilter => Arc::new(Bloom::new(def, cpus)),
        MapType::ArrayOfMaps | MapType::HashOfMaps => Arc::new(MapOfMaps::new(def, cpus)),
        MapType::StackTrace => Arc::new(StackTraces::new(def, cpus)),
        MapType::CgroupArray => Arc::new(CgroupArray::new(def, cpus)),
        MapType::Devmap | MapType::DevmapHash => Arc::new(Devices::new(def, cpus)),
        MapType::Cpumap => Arc::new(CpuMap::new(def, cpus)),
        MapType::Sockmap | MapType::Sockhash | MapType::Xskmap | MapType::ReuseportSockarray => {
            Arc::new(Sockets::new(def, cpus))
        }
        MapType::CgroupStorage | MapType::PercpuCgroupStorage => {
            Arc::new(CgroupStorage::new(def, cpus))
        }
        MapType::TaskStorage
        | MapType::InodeStorage
        | MapType::SkStorage
        | MapType::CgrpStorage => Arc::new(LocalStorage::new(def, cpus)),
        MapType::UserRingbuf => Arc::new(UserRingBuf::new(def, cpus)),
        MapType::Arena => Arc::new(Arena::new(def, cpus)),
        MapType::StructOps => Arc::new(StructOps::new(def, cpus)),
    })
}

/// Removes the special fields of values if the map can't have them: the kernel refuses to
/// create a map with such a type (`map_check_btf`, `kernel/bpf/syscall.c`), and libbpf retries
/// without BTF.
fn forget_fields(def: &mut MapDef) {
    let (taken, size) = (def.takes_fields(&def.special), def.value_size as usize);
    def.special
        .retain(|field| taken && ValueField::of(field.kind).is_some() && field.range().end <= size);
    if let Some(inner) = &mut def.inner {
        forget_fields(inner);
    }
}

/// An errno, and the problem as text.
type Refusal = (Errno, String);

/// Checks in the kernel's order, so that the same one of several problems is reported.
fn check(def: &MapDef, cpus: u32) -> Result<(), Refusal> {
    check_early(def)?;
    check_flags(def)?;
    check_sizes(def)?;
    check_limits(def)?;
    check_inner(def)?;
    check_memory(def, cpus)
}

fn refuse(errno: Errno, problem: impl Into<String>) -> Result<(), Refusal> {
    Err((errno, problem.into()))
}

fn check_flags(def: &MapDef) -> Result<(), Refusal> {
    let (flags, info) = (def.flags, def.map_type.info());
    let extra = match def.map_type {
        MapType::BloomFilter => 0xf,
        MapType::Arena => u64::MAX,
        _ => 0,
    };
    if def.extra & !extra != 0 {
        let problem = format!("map_extra is {:#x}, at most {extra:#x} allowed", def.extra);
        return refuse(Errno::EINVAL, problem);
    }
    let lru = matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash);
    let unallocated = lru && flags.contains(MapFlags::NO_PREALLOC);
    // BPF_F_NO_PREALLOC has its own check below, which comes before the one of NUMA nodes.
    let later = MapFlags::NO_PREALLOC.union(MapFlags::NUMA_NODE);
    let unknown = match unallocated {
        true => flags.difference(info.flags.union(later)),
        false => flags.difference(info.flags),
    };
    if !unknown.is_empty() {
        let problem = format!("unknown map_flags bits {:#x}", unknown.bits());
        return refuse(Errno::EINVAL, problem);
    }
    let missing = info.flags_needed.difference(flags);
    if !missing.is_empty() {
        let problem = format!("map_flags needs {:#x}", missing.bits());
        return refuse(Errno::EINVAL, problem);
    }
    for both in [
        MapFlags::RDONLY_PROG.union(MapFlags::WRONLY_PROG),
        MapFlags::RDONLY.union(MapFlags::WRONLY),
    ] {
        if flags.contains(both) {
            return refuse(
                Errno::EINVAL,
                "map_flags has both the read-only and the write-only flag",
            );
        }
    }
    if unallocated {
        return refuse(Errno::ENOTSUPP, "an LRU map can't have BPF_F_NO_PREALLOC");
    }
    if flags.contains(MapFlags::NO_COMMON_LRU.union(MapFlags::NUMA_NODE)) {
        return refuse(
            Errno::EINVAL,
            "a map with per-CPU LRU lists can't have BPF_F_NUMA_NODE",
        );
    }
    Ok(())
}

fn check_sizes(def: &MapDef) -> Result<(), Refusal> {
    let info = def.map_type.info();
    if !info.key.allows(def.key_size) {
        let wanted = key_words(info.key);
        let problem = format!("key_size is {}, expected {wanted}", def.key_size);
        return refuse(Errno::EINVAL, problem);
    }
    if !info.value.allows(def.value_size) {
        let wanted = value_words(info.value);
        let problem = format!("value_size is {}, expected {wanted}", def.value_size);
        return refuse(Errno::EINVAL, problem);
    }
    if !info.entries.allows(def.max_entries, limits::PAGE_SIZE) {
        let wanted = entries_words(info.entries);
        let problem = format!("max_entries is {}, expected {wanted}", def.max_entries);
        return refuse(Errno::EINVAL, problem);
    }
    Ok(())
}

fn key_words(rule: KeyRule) -> &'static str {
    match rule {
        KeyRule::None => "0 (no key)",
        KeyRule::U32 => "4",
        KeyRule::Any => "at least 1",
        KeyRule::Lpm => "5 to 260 (a u32 and 1 to 256 bytes of prefix)",
        KeyRule::CgroupId => "8 or 16",
    }
}

fn value_words(rule: ValueRule) -> String {
    match rule {
        ValueRule::None => "0 (no value)".into(),
        ValueRule::U32 => "4".into(),
        ValueRule::U32OrU64 => "4 or 8".into(),
        ValueRule::Any => "at least 1".into(),
        ValueRule::Words => "a positive multiple of 8".into(),
        ValueRule::UpTo(most) => format!("1 to {most}"),
    }
}

fn entries_words(rule: EntriesRule) -> String {
    match rule {
        EntriesRule::Some => "at least 1".into(),
        EntriesRule::Exactly(count) => count.to_string(),
        EntriesRule::Pages => {
            format!(
                "a power of two that is a multiple of {} bytes",
                limits::PAGE_SIZE
            )
        }
    }
}

/// Size of `struct htab_elem` before the key (`kernel/bpf/hashtab.c`).
const HTAB_ELEM: u64 = 48;

/// Limits that the kernel checks before flags and numbers of entries: the value size of bloom
/// filters and, if the key is valid, of cgroup storages (`cgroup_storage_map_alloc`,
/// `kernel/bpf/local_storage.c`).
fn check_early(def: &MapDef) -> Result<(), Refusal> {
    let key_is_valid = def.extra == 0 && def.map_type.info().key.allows(def.key_size);
    let most = match def.map_type {
        MapType::BloomFilter => limits::KMALLOC_MAX,
        MapType::CgroupStorage if key_is_valid => limits::LOCAL_STORAGE_MAX_VALUE,
        MapType::PercpuCgroupStorage if key_is_valid => limits::PER_CPU_MAX,
        _ => return Ok(()),
    };
    if def.value_size > most {
        let problem = format!("value_size is {}, at most {most} allowed", def.value_size);
        return refuse(Errno::E2BIG, problem);
    }
    Ok(())
}

/// Limits of the kernel's allocators.
fn check_limits(def: &MapDef) -> Result<(), Refusal> {
    let (key, value) = (u64::from(def.key_size), u64::from(def.value_size));
    let per_cpu = u64::from(limits::PER_CPU_MAX);
    if def.map_type.info().per_cpu && value.next_multiple_of(8) > per_cpu {
        let problem = format!("value_size is {value}, at most {per_cpu} per CPU allowed");
        return refuse(Errno::E2BIG, problem);
    }
    let kmalloc = u64::from(limits::KMALLOC_MAX);
    match def.map_type {
        MapType::Array if value > u64::from(u32::MAX / 2) => refuse(
            Errno::E2BIG,
            format!("value_size is {value}, below 2 GiB allowed"),
        ),
        MapType::Hash
        | MapType::PercpuHash
        | MapType::LruHash
        | MapType::LruPercpuHash
        | MapType::HashOfMaps => {
            if key + value >= kmalloc - HTAB_ELEM {
                let problem = format!(
                    "key and value have {} bytes, less than 4 MiB allowed",
                    key + value
                );
                return refuse(Errno::E2BIG, problem);
            }
            if def.max_entries > 1 << 31 {
                return refuse(Errno::E2BIG, "max_entries is above 2147483648");
            }
            Ok(())
        }
        MapType::Queue | MapType::Stack if value > kmalloc => refuse(
            Errno::E2BIG,
            format!("value_size is {value}, at most 4 MiB allowed"),
        ),
        MapType::StackTrace => check_stacks(def),
        MapType::Arena => check_arena(def),
        MapType::Sockhash if key > limits::STACK_SIZE as u64 => refuse(
            Errno::E2BIG,
            format!("key_size is {key}, at most {} allowed", limits::STACK_SIZE),
        ),
        MapType::DevmapHash if def.max_entries > 1 << 31 => {
            refuse(Errno::EINVAL, "max_entries is above 2147483648")
        }
        MapType::Cpumap if def.max_entries > limits::MAX_CPUS => {
            let problem = format!("max_entries is above {} CPUs", limits::MAX_CPUS);
            refuse(Errno::E2BIG, problem)
        }
        map_type if map_type.too_large(def.key_size, def.value_size) => {
            refuse(Errno::E2BIG, format!("value_size is {value}, too large"))
        }
        _ => Ok(()),
    }
}

/// `stack_map_alloc`, `kernel/bpf/stackmap.c`.
fn check_stacks(def: &MapDef) -> Result<(), Refusal> {
    let (frame, what) = match def.flags.contains(MapFlags::STACK_BUILD_ID) {
        true => (limits::STACK_BUILD_ID_SIZE, "build ids"),
        false => (8, "addresses"),
    };
    let (value, most) = (def.value_size as usize, frame * limits::MAX_STACK_DEPTH);
    if !value.is_multiple_of(frame) || value > most {
        let problem = format!(
            "value_size is {value}, expected a multiple of {frame} up to {most} for {what}"
        );
        return refuse(Errno::EINVAL, problem);
    }
    if def.max_entries > 1 << 31 {
        return refuse(Errno::E2BIG, "max_entries is above 2147483648");
    }
    Ok(())
}

/// `arena_map_alloc`, `kernel/bpf/arena.c`.
fn check_arena(def: &MapDef) -> Result<(), Refusal> {
    let (page, start) = (u64::from(limits::PAGE_SIZE), def.extra);
    let size = u64::from(def.max_entries) * page;
    if !start.is_multiple_of(page) {
        let problem = format!("map_extra is {start:#x}, expected a page-aligned address");
        return refuse(Errno::EINVAL, problem);
    }
    if size > 1 << 32 {
        let problem = format!("max_entries is {}, at most 4 GiB allowed", def.max_entries);
        return refuse(Errno::E2BIG, problem);
    }
    if start >> 32 != start.wrapping_add(size - 1) >> 32 {
        let problem = format!("the arena at map_extra {start:#x} crosses a 4 GiB boundary");
        return refuse(Errno::ERANGE, problem);
    }
    Ok(())
}

/// The inner map's definition (`bpf_map_meta_alloc`, `kernel/bpf/map_in_map.c`).
fn check_inner(def: &MapDef) -> Result<(), Refusal> {
    if !def.map_type.holds_maps() {
        return Ok(());
    }
    let Some(inner) = def.inner.as_deref() else {
        return refuse(
            Errno::EBADF,
            "the type of the inner maps is missing (`values` in C)",
        );
    };
    match inner.map_type {
        MapType::ArrayOfMaps | MapType::HashOfMaps => {
            refuse(Errno::EINVAL, "inner maps can't be maps of maps")
        }
        MapType::ProgArray
        | MapType::CgroupStorage
        | MapType::PercpuCgroupStorage
        | MapType::StructOps => {
            let problem = format!("inner maps can't have type {}", inner.map_type);
            refuse(Errno::ENOTSUPP, problem)
        }
        _ => check_flags(inner)
            .and_then(|()| check_sizes(inner))
            .and_then(|()| check_limits(inner))
            .map_err(|(errno, problem)| (errno, format!("inner map: {problem}"))),
    }
}

/// Maximum memory of a map in bytes.
fn memory(def: &MapDef, cpu_count: u32) -> u128 {
    let (entries, cpus) = (u128::from(def.max_entries), u128::from(cpu_count));
    let value = u128::from(def.value_size.next_multiple_of(8));
    let key = u128::from(def.key_size.next_multiple_of(8));
    let values = if def.map_type.info().per_cpu {
        value * cpus
    } else {
        value
    };
    match def.map_type {
        MapType::Array | MapType::PercpuArray => entries * values,
        MapType::ProgArray
        | MapType::PerfEventArray
        | MapType::ArrayOfMaps
        | MapType::CgroupArray
        | MapType::Devmap
        | MapType::Cpumap
        | MapType::Sockmap
        | MapType::Xskmap
        | MapType::ReuseportSockarray => entries * 8,
        MapType::Hash | MapType::PercpuHash | MapType::LruHash | MapType::LruPercpuHash => {
            // Besides key and value, a slot has links and its share of the buckets.
            hash::slots(def, cpu_count) as u128 * (key + values + 48)
        }
        MapType::LpmTrie => lpm::slots(def) as u128 * (key + value + 1),
        MapType::Ringbuf | MapType::UserRingbuf => 2 * entries,
        MapType::Arena => entries * u128::from(limits::PAGE_SIZE),
        MapType::DevmapHash => memory(&devices::by_key(def), cpu_count),
        MapType::TaskStorage
        | MapType::InodeStorage
        | MapType::SkStorage
        | MapType::CgrpStorage => memory(&storage::by_owner(def), cpu_count),
        MapType::CgroupStorage | MapType::PercpuCgroupStorage => {
            memory(&cgroup_storage::by_cgroup(def), cpu_count)
        }
        MapType::Queue | MapType::Stack => entries * u128::from(def.value_size),
        MapType::BloomFilter => u128::from(bloom::mask(def)) / 8,
        // The others allocate memory per entry.
        _ => 0,
    }
}

fn check_memory(def: &MapDef, cpus: u32) -> Result<(), Refusal> {
    let bytes = memory(def, cpus);
    let problem = || format!("it would take {} MiB of memory", bytes >> 20);
    if bytes > MEMORY_LIMIT {
        return refuse(
            Errno::ENOMEM,
            format!("{}, at most 4096 allowed", problem()),
        );
    }
    // Try the allocation, so that a machine without enough memory fails here.
    let there = usize::try_from(bytes).ok();
    let there = there.is_some_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if there {
        Ok(())
    } else {
        refuse(Errno::ENOMEM, problem())
    }
}
