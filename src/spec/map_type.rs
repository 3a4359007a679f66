//! Map types (`enum bpf_map_type`, `include/uapi/linux/bpf.h`): valid sizes and flags of
//! each type, and its properties.

use super::flags::MapFlags;
use super::limits::{
    HASH_ELEMENT_HEADER, KMALLOC_MAX, LOCAL_STORAGE_MAX_VALUE, LPM_MAX_PREFIX_BYTES, LPM_MAX_VALUE,
    LPM_MIN_PREFIX_BYTES, PER_CPU_MAX, STACK_SIZE,
};
use super::numbered::numbered;

/// Valid values of `key_size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyRule {
    /// No key: 0.
    None,
    /// An index or a number of four bytes.
    U32,
    /// One byte or more.
    Any,
    /// A `u32` prefix length and 1 to 256 bytes of prefix.
    Lpm,
    /// A cgroup's id, alone (8 bytes) or with an attach type (16 bytes).
    CgroupId,
}

impl KeyRule {
    /// Whether the kernel creates a map with keys of `size` bytes.
    #[must_use]
    pub const fn allows(self, size: u32) -> bool {
        match self {
            Self::None => size == 0,
            Self::U32 => size == 4,
            Self::Any => size > 0,
            Self::Lpm => size >= 4 + LPM_MIN_PREFIX_BYTES && size <= 4 + LPM_MAX_PREFIX_BYTES,
            Self::CgroupId => size == 8 || size == 16,
        }
    }
}

/// Valid values of `value_size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueRule {
    /// No value: 0.
    None,
    /// A file descriptor or an id: 4.
    U32,
    /// 4 or 8.
    U32OrU64,
    /// One byte or more.
    Any,
    /// A positive multiple of eight.
    Words,
    /// One byte or more, up to this many.
    UpTo(u32),
}

impl ValueRule {
    /// Whether the kernel creates a map with values of `size` bytes.
    #[must_use]
    pub const fn allows(self, size: u32) -> bool {
        match self {
            Self::None => size == 0,
            Self::U32 => size == 4,
            Self::U32OrU64 => size == 4 || size == 8,
            Self::Any => size > 0,
            Self::Words => size > 0 && size.is_multiple_of(8),
            Self::UpTo(most) => size > 0 && size <= most,
        }
    }
}

/// Valid values of `max_entries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntriesRule {
    /// One or more.
    Some,
    /// Exactly this many.
    Exactly(u32),
    /// A power of two of whole pages, in bytes.
    Pages,
}

impl EntriesRule {
    /// Whether the kernel creates a map with this many entries, on a machine with
    /// pages of `page_size` bytes.
    #[must_use]
    pub const fn allows(self, entries: u32, page_size: u32) -> bool {
        match self {
            Self::Some => entries > 0,
            Self::Exactly(count) => entries == count,
            Self::Pages => entries.is_power_of_two() && entries.is_multiple_of(page_size),
        }
    }
}

/// Valid sizes, entries and flags of a map type, and the operations that programs may use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MapTypeInfo {
    /// Valid key sizes.
    pub key: KeyRule,
    /// Valid value sizes.
    pub value: ValueRule,
    /// Valid numbers of entries.
    pub entries: EntriesRule,
    /// Allowed creation flags.
    pub flags: MapFlags,
    /// Required creation flags.
    pub flags_needed: MapFlags,
    /// Flags that every map of this type has.
    pub flags_given: MapFlags,
    /// Every CPU has a value of its own; user space reads and writes them all,
    /// each rounded up to eight bytes.
    pub per_cpu: bool,
    /// A program may hold the address of a value (`BPF_PSEUDO_MAP_VALUE`).
    pub direct_value: bool,
    /// Kind of the values.
    pub holds: Holds,
}

/// Kind of a map's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holds {
    /// The program's own bytes.
    Bytes,
    /// Another map.
    Map,
    /// A program.
    Program,
    /// A perf event.
    PerfEvent,
    /// A cgroup.
    Cgroup,
    /// A socket.
    Socket,
    /// A network device.
    Device,
    /// A CPU to which packets are sent.
    Cpu,
    /// Addresses or build ids of a stack.
    Stack,
    /// A stream of records.
    Records,
    /// Functions of a kernel structure.
    Functions,
    /// The program's own memory, by page.
    Pages,
}

const NONE: MapFlags = MapFlags::empty();
const NUMA: MapFlags = MapFlags::NUMA_NODE;
const ACCESS: MapFlags = NUMA.union(MapFlags::ACCESS);
const USER_ACCESS: MapFlags = NUMA.union(MapFlags::RDONLY).union(MapFlags::WRONLY);
const HASH: MapFlags = ACCESS
    .union(MapFlags::NO_PREALLOC)
    .union(MapFlags::ZERO_SEED);
const LRU: MapFlags = ACCESS
    .union(MapFlags::NO_COMMON_LRU)
    .union(MapFlags::ZERO_SEED);
const STORAGE: MapFlags = MapFlags::NO_PREALLOC.union(MapFlags::CLONE);
const ARENA: MapFlags = MapFlags::MMAPABLE
    .union(MapFlags::SEGV_ON_FAULT)
    .union(MapFlags::NO_USER_CONV);

/// A row for plain bytes in one or more entries.
const fn row(key: KeyRule, value: ValueRule, flags: MapFlags) -> MapTypeInfo {
    MapTypeInfo {
        key,
        value,
        entries: EntriesRule::Some,
        flags,
        flags_needed: NONE,
        flags_given: NONE,
        per_cpu: false,
        direct_value: false,
        holds: Holds::Bytes,
    }
}

impl MapTypeInfo {
    const fn entries(mut self, entries: EntriesRule) -> Self {
        self.entries = entries;
        self
    }

    const fn needs(mut self, flags: MapFlags) -> Self {
        self.flags_needed = flags;
        self
    }

    const fn gives(mut self, flags: MapFlags) -> Self {
        self.flags_given = flags;
        self
    }

    const fn per_cpu(mut self) -> Self {
        self.per_cpu = true;
        self
    }

    const fn direct_value(mut self) -> Self {
        self.direct_value = true;
        self
    }

    const fn holds(mut self, holds: Holds) -> Self {
        self.holds = holds;
        self
    }
}

use EntriesRule::{Exactly, Pages};
use {KeyRule as K, MapFlags as F, ValueRule as V};

numbered! {
    /// The type of a map.
    #[non_exhaustive]
    pub enum MapType: MapTypeInfo {
        Hash = 1, "hash" => row(K::Any, V::Any, HASH);
        Array = 2, "array" => row(K::U32, V::Any, ACCESS.union(F::MMAPABLE).union(F::INNER_MAP)).direct_value();
        ProgArray = 3, "prog_array" => row(K::U32, V::U32, USER_ACCESS).holds(Holds::Program);
        PerfEventArray = 4, "perf_event_array" => row(K::U32, V::U32, USER_ACCESS.union(F::PRESERVE_ELEMS)).holds(Holds::PerfEvent);
        PercpuHash = 5, "percpu_hash" => row(K::Any, V::Any, HASH.difference(NUMA)).per_cpu();
        PercpuArray = 6, "percpu_array" => row(K::U32, V::Any, MapFlags::ACCESS).per_cpu();
        StackTrace = 7, "stack_trace" => row(K::U32, V::Words, USER_ACCESS.union(F::STACK_BUILD_ID)).holds(Holds::Stack);
        CgroupArray = 8, "cgroup_array" => row(K::U32, V::U32, USER_ACCESS).holds(Holds::Cgroup);
        LruHash = 9, "lru_hash" => row(K::Any, V::Any, LRU);
        LruPercpuHash = 10, "lru_percpu_hash" => row(K::Any, V::Any, LRU.difference(NUMA)).per_cpu();
        LpmTrie = 11, "lpm_trie" => row(K::Lpm, V::UpTo(LPM_MAX_VALUE), ACCESS.union(F::NO_PREALLOC)).needs(F::NO_PREALLOC);
        ArrayOfMaps = 12, "array_of_maps" => row(K::U32, V::U32, USER_ACCESS).holds(Holds::Map);
        HashOfMaps = 13, "hash_of_maps" => row(K::Any, V::U32, HASH).holds(Holds::Map);
        Devmap = 14, "devmap" => row(K::U32, V::U32OrU64, USER_ACCESS).gives(F::RDONLY_PROG).holds(Holds::Device);
        Sockmap = 15, "sockmap" => row(K::U32, V::U32OrU64, USER_ACCESS).holds(Holds::Socket);
        Cpumap = 16, "cpumap" => row(K::U32, V::U32OrU64, NUMA).holds(Holds::Cpu);
        Xskmap = 17, "xskmap" => row(K::U32, V::U32, USER_ACCESS).holds(Holds::Socket);
        Sockhash = 18, "sockhash" => row(K::Any, V::U32OrU64, USER_ACCESS).holds(Holds::Socket);
        CgroupStorage = 19, "cgroup_storage" => row(K::CgroupId, V::Any, ACCESS).entries(Exactly(0));
        ReuseportSockarray = 20, "reuseport_sockarray" => row(K::U32, V::U32OrU64, ACCESS).holds(Holds::Socket);
        PercpuCgroupStorage = 21, "percpu_cgroup_storage" => row(K::CgroupId, V::Any, ACCESS).entries(Exactly(0)).per_cpu();
        Queue = 22, "queue" => row(K::None, V::Any, ACCESS);
        Stack = 23, "stack" => row(K::None, V::Any, ACCESS);
        SkStorage = 24, "sk_storage" => row(K::U32, V::Any, STORAGE).needs(F::NO_PREALLOC).entries(Exactly(0));
        DevmapHash = 25, "devmap_hash" => row(K::U32, V::U32OrU64, USER_ACCESS).gives(F::RDONLY_PROG).holds(Holds::Device);
        StructOps = 26, "struct_ops" => row(K::U32, V::Any, F::LINK.union(F::VTYPE_BTF_OBJ_FD)).entries(Exactly(1)).holds(Holds::Functions);
        Ringbuf = 27, "ringbuf" => row(K::None, V::None, NUMA).entries(Pages).holds(Holds::Records);
        InodeStorage = 28, "inode_storage" => row(K::U32, V::Any, STORAGE).needs(F::NO_PREALLOC).entries(Exactly(0));
        TaskStorage = 29, "task_storage" => row(K::U32, V::Any, STORAGE).needs(F::NO_PREALLOC).entries(Exactly(0));
        BloomFilter = 30, "bloom_filter" => row(K::None, V::Any, ACCESS.union(F::ZERO_SEED));
        UserRingbuf = 31, "user_ringbuf" => row(K::None, V::None, NUMA).entries(Pages).holds(Holds::Records);
        CgrpStorage = 32, "cgrp_storage" => row(K::U32, V::Any, STORAGE).needs(F::NO_PREALLOC).entries(Exactly(0));
        Arena = 33, "arena" => row(K::None, V::None, ARENA).needs(F::MMAPABLE).direct_value().holds(Holds::Pages);
    }
}

impl MapType {
    /// The name in the kernel's header: `BPF_MAP_TYPE_LRU_HASH`.
    #[must_use]
    pub fn uapi_name(self) -> String {
        format!("BPF_MAP_TYPE_{}", self.name().to_ascii_uppercase())
    }

    /// Whether a value is a map.
    #[must_use]
    pub const fn holds_maps(self) -> bool {
        matches!(self.info().holds, Holds::Map)
    }

    /// Whether elements of these sizes, which the rules of the type allow, are too large to
    /// allocate; the kernel then returns `E2BIG`.
    #[doc(hidden)]
    #[must_use]
    pub const fn too_large(self, key_size: u32, value_size: u32) -> bool {
        let per_cpu = self.info().per_cpu && value_size as u64 > PER_CPU_MAX as u64;
        per_cpu
            || match self {
                Self::Array => value_size > i32::MAX.cast_unsigned(),
                Self::Hash
                | Self::PercpuHash
                | Self::LruHash
                | Self::LruPercpuHash
                | Self::HashOfMaps => {
                    key_size as u64 + value_size as u64
                        >= (KMALLOC_MAX - HASH_ELEMENT_HEADER) as u64
                }
                Self::Sockhash => key_size as u64 > STACK_SIZE as u64,
                Self::Queue | Self::Stack | Self::BloomFilter => value_size > KMALLOC_MAX,
                Self::CgroupStorage
                | Self::PercpuCgroupStorage
                | Self::SkStorage
                | Self::InodeStorage
                | Self::TaskStorage
                | Self::CgrpStorage => value_size > LOCAL_STORAGE_MAX_VALUE,
                _ => false,
            }
    }

    /// Number of bytes that user space reads and writes for one value of `value_size` bytes
    /// (`bpf_map_value_size`, `kernel/bpf/syscall.c`). A per-CPU map transfers every
    /// possible CPU's value, each rounded up to eight bytes; a map of file descriptors
    /// transfers four bytes.
    #[doc(hidden)]
    #[must_use]
    pub const fn user_value_size(self, value_size: u32, cpus: u32) -> u64 {
        if self.info().per_cpu {
            (value_size as u64).next_multiple_of(8) * cpus as u64
        } else if matches!(
            self,
            Self::PerfEventArray
                | Self::ProgArray
                | Self::CgroupArray
                | Self::ArrayOfMaps
                | Self::HashOfMaps
        ) {
            4
        } else {
            value_size as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_held_to_the_kernels_rules() {
        assert!(MapType::LpmTrie.info().key.allows(5));
        assert!(!MapType::LpmTrie.info().key.allows(4));
        assert!(!MapType::LpmTrie.info().key.allows(261));
        assert!(!MapType::Array.info().key.allows(8));
        assert!(!MapType::StackTrace.info().value.allows(12));
        let ring = MapType::Ringbuf.info();
        assert!(ring.entries.allows(4096, 4096) && !ring.entries.allows(4096, 16384));
        assert!(!ring.entries.allows(12288, 4096) && !ring.entries.allows(0, 4096));
        assert!(MapType::SkStorage.info().entries.allows(0, 4096));
    }

    #[test]
    fn elements_have_a_largest_size() {
        assert!(!MapType::Hash.too_large(8, 4_194_247) && MapType::Hash.too_large(8, 4_194_248));
        assert!(MapType::Hash.too_large(u32::MAX, u32::MAX));
        assert!(
            !MapType::PercpuArray.too_large(4, 32768) && MapType::PercpuArray.too_large(4, 32769)
        );
        assert!(
            !MapType::Array.too_large(4, 0x7fff_ffff) && MapType::Array.too_large(4, 0x8000_0000)
        );
        assert!(
            !MapType::CgrpStorage.too_large(4, 65_407) && MapType::CgrpStorage.too_large(4, 65_408)
        );
        assert!(!MapType::LpmTrie.info().value.allows(4_194_025));
    }

    #[test]
    fn flags_needed_are_flags_allowed() {
        for map_type in MapType::ALL {
            let info = map_type.info();
            assert!(info.flags.contains(info.flags_needed), "{map_type}");
            assert!(!info.per_cpu || info.holds == Holds::Bytes, "{map_type}");
        }
    }

    #[test]
    fn user_space_sees_every_cpu() {
        assert_eq!(MapType::PercpuArray.user_value_size(5, 4), 32);
        assert_eq!(MapType::Array.user_value_size(5, 4), 5);
        assert_eq!(MapType::HashOfMaps.user_value_size(4, 4), 4);
        assert_eq!(
            MapType::LruPercpuHash.uapi_name(),
            "BPF_MAP_TYPE_LRU_PERCPU_HASH"
        );
    }
}
