//! Causes of failure: which functions each cause affects, and the error that they return.

use crate::spec::{MapFlags, MapType, StorageFlags};
use crate::util::Errno;

/// A cause of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A map is full.
    MapUpdate,
    /// A ring buffer or perf buffer is full.
    BufferFull,
    /// Memory allocation fails.
    Allocation,
    /// Memory that a program reads by address is unmapped.
    ProbeRead,
}

/// The condition, besides the function's name, under which a cause applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum If {
    Always,
    /// The map argument allocates elements on update.
    MapAllocates,
    /// The flags in argument 4 request creation of storage.
    Creates,
}

/// A function that a cause affects, and the error that the kernel returns; functions that
/// return a pointer return null.
struct Failure {
    cause: Cause,
    /// Without `bpf_`.
    name: &'static str,
    errno: Errno,
    only: If,
}

const fn row(cause: Cause, name: &'static str, errno: Errno) -> Failure {
    Failure {
        cause,
        name,
        errno,
        only: If::Always,
    }
}

impl Failure {
    const fn only(mut self, only: If) -> Self {
        self.only = only;
        self
    }
}

use Cause::{Allocation, BufferFull, MapUpdate, ProbeRead};

const FAILURES: &[Failure] = &[
    row(MapUpdate, "map_update_elem", Errno::E2BIG),
    row(MapUpdate, "map_push_elem", Errno::E2BIG),
    row(MapUpdate, "sock_map_update", Errno::E2BIG),
    row(MapUpdate, "sock_hash_update", Errno::E2BIG),
    row(BufferFull, "ringbuf_output", Errno::EAGAIN),
    row(BufferFull, "ringbuf_reserve", Errno::EAGAIN),
    row(BufferFull, "ringbuf_reserve_dynptr", Errno::EINVAL),
    row(BufferFull, "perf_event_output", Errno::ENOSPC),
    row(BufferFull, "skb_output", Errno::ENOSPC),
    row(BufferFull, "xdp_output", Errno::ENOSPC),
    row(Allocation, "map_update_elem", Errno::ENOMEM).only(If::MapAllocates),
    row(Allocation, "task_storage_get", Errno::ENOMEM).only(If::Creates),
    row(Allocation, "inode_storage_get", Errno::ENOMEM).only(If::Creates),
    row(Allocation, "cgrp_storage_get", Errno::ENOMEM).only(If::Creates),
    row(Allocation, "sk_storage_get", Errno::ENOMEM).only(If::Creates),
    row(Allocation, "timer_init", Errno::ENOMEM),
    row(Allocation, "clone_redirect", Errno::ENOMEM),
    row(Allocation, "skb_vlan_push", Errno::ENOMEM),
    row(Allocation, "skb_vlan_pop", Errno::ENOMEM),
    row(Allocation, "skb_change_head", Errno::ENOMEM),
    row(Allocation, "skb_change_tail", Errno::ENOMEM),
    row(Allocation, "skb_adjust_room", Errno::ENOMEM),
    row(Allocation, "skb_pull_data", Errno::ENOMEM),
    row(Allocation, "obj_new_impl", Errno::ENOMEM),
    row(Allocation, "percpu_obj_new_impl", Errno::ENOMEM),
    row(Allocation, "cpumask_create", Errno::ENOMEM),
    row(Allocation, "crypto_ctx_create", Errno::ENOMEM),
    row(Allocation, "arena_alloc_pages", Errno::ENOMEM),
    row(Allocation, "wq_init", Errno::ENOMEM),
    row(ProbeRead, "probe_read", Errno::EFAULT),
    row(ProbeRead, "probe_read_str", Errno::EFAULT),
    row(ProbeRead, "probe_read_user", Errno::EFAULT),
    row(ProbeRead, "probe_read_user_str", Errno::EFAULT),
    row(ProbeRead, "probe_read_kernel", Errno::EFAULT),
    row(ProbeRead, "probe_read_kernel_str", Errno::EFAULT),
    row(ProbeRead, "copy_from_user", Errno::EFAULT),
    row(ProbeRead, "copy_from_user_task", Errno::EFAULT),
    row(ProbeRead, "copy_from_user_str", Errno::EFAULT),
    row(ProbeRead, "copy_from_user_task_str", Errno::EFAULT),
];

/// Whether an update allocates the element: in tries, storages, and hashes with
/// `BPF_F_NO_PREALLOC`.
fn allocates(map_type: MapType, flags: MapFlags) -> bool {
    match map_type {
        MapType::Hash | MapType::PercpuHash | MapType::HashOfMaps => {
            flags.contains(MapFlags::NO_PREALLOC)
        }
        MapType::LpmTrie
        | MapType::TaskStorage
        | MapType::InodeStorage
        | MapType::SkStorage
        | MapType::CgrpStorage
        | MapType::Sockhash
        | MapType::DevmapHash
        | MapType::Devmap
        | MapType::Cpumap => true,
        _ => false,
    }
}

impl Cause {
    /// All causes, with their names in an injection's text.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("map-update", MapUpdate),
        ("buffer-full", BufferFull),
        ("allocation", Allocation),
        ("probe-read", ProbeRead),
    ];

    /// The name in an injection's text.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, cause)| *cause == self)
            .map_or("", |(name, _)| name)
    }

    /// The error of a function (name without `bpf_`) if it fails for this cause; `None` if the
    /// cause does not affect it, or not with this map or these arguments.
    pub(in crate::vm) fn errno_of(
        self,
        name: &str,
        map: Option<(MapType, MapFlags)>,
        args: &[u64; 5],
    ) -> Option<Errno> {
        let mut rows = FAILURES.iter();
        let row = rows.find(|row| row.cause == self && row.name == name)?;
        let fails = match row.only {
            If::Always => true,
            If::MapAllocates => map.is_some_and(|(kind, flags)| allocates(kind, flags)),
            If::Creates => StorageFlags::from_bits_retain(args[3]).contains(StorageFlags::CREATE),
        };
        fails.then_some(row.errno)
    }
}

/// The first error that the table has for a function; `EINVAL` for other functions.
pub(in crate::vm) fn usual_errno(name: &str) -> Errno {
    let mut rows = FAILURES.iter();
    rows.find(|row| row.name == name)
        .map_or(Errno::EINVAL, |row| row.errno)
}

/// Whether a function sends records to user space.
pub(in crate::vm) fn writes_records(name: &str) -> bool {
    FAILURES
        .iter()
        .any(|row| row.cause == BufferFull && row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::helper_by_name;
    use crate::spec::kfuncs;

    #[test]
    fn the_table_names_helpers_and_kernel_functions() {
        for row in FAILURES {
            let helper = helper_by_name(row.name).is_some();
            let kfunc = kfuncs::by_name(&format!("bpf_{}", row.name)).is_some();
            assert!(helper || kfunc, "{}", row.name);
        }
    }

    #[test]
    fn memory_is_missed_where_it_is_asked_for() {
        let update =
            |kind, flags| Allocation.errno_of("map_update_elem", Some((kind, flags)), &[0; 5]);
        assert_eq!(update(MapType::Hash, MapFlags::empty()), None);
        assert_eq!(
            update(MapType::Hash, MapFlags::NO_PREALLOC),
            Some(Errno::ENOMEM)
        );
        assert_eq!(
            update(MapType::LpmTrie, MapFlags::NO_PREALLOC),
            Some(Errno::ENOMEM)
        );
        assert_eq!(update(MapType::Array, MapFlags::empty()), None);
        let get = |flags| Allocation.errno_of("task_storage_get", None, &[0, 0, 0, flags, 0]);
        assert_eq!((get(0), get(1)), (None, Some(Errno::ENOMEM)));
        assert_eq!(usual_errno("probe_read"), Errno::EFAULT);
        assert_eq!(usual_errno("redirect"), Errno::EINVAL);
    }
}
