//! Rules about maps: the map types that helpers accept, the maps that programs may use at
//! all, and the special fields that values may have (`check_map_func_compatibility` and
//! `check_map_prog_compatibility`, `kernel/bpf/verifier.c`; `map_check_btf`,
//! `kernel/bpf/syscall.c`).

use MapType::{
    Arena, Array, ArrayOfMaps, BloomFilter, CgroupArray, CgroupStorage, CgrpStorage, Cpumap,
    Devmap, DevmapHash, Hash, HashOfMaps, InodeStorage, LpmTrie, LruHash, LruPercpuHash,
    PercpuArray, PercpuCgroupStorage, PercpuHash, PerfEventArray, ProgArray, Queue,
    ReuseportSockarray, Ringbuf, SkStorage, Sockhash, Sockmap, Stack, StackTrace, StructOps,
    TaskStorage, UserRingbuf, Xskmap,
};

use super::attach_type::AttachType;
use super::helpers::{Caller, id};
use super::map_type::MapType;
use super::prog_type::ProgType;
use crate::btf::FieldKind;
use crate::util::HelperId;

/// Helpers with a map argument, and the map types specific to them.
struct Link {
    helpers: &'static [HelperId],
    maps: &'static [MapType],
    /// Whether the helpers accept no other type. If not, they accept every [plain](PLAIN)
    /// map as well.
    only: bool,
}

const fn only(helpers: &'static [HelperId], maps: &'static [MapType]) -> Link {
    Link {
        helpers,
        maps,
        only: true,
    }
}

const fn also(helpers: &'static [HelperId], maps: &'static [MapType]) -> Link {
    Link {
        helpers,
        maps,
        only: false,
    }
}

/// Maps that every helper accepts, unless it is specific to other types. All other maps are
/// accepted only by helpers specific to them.
const PLAIN: &[MapType] = &[
    Hash,
    Array,
    PercpuHash,
    PercpuArray,
    LruHash,
    LruPercpuHash,
    LpmTrie,
    StructOps,
    Arena,
];

/// Updates of a sockmap by the common helpers ([`updates_sockmap`]).
const SOCKMAP_UPDATES: &[HelperId] = &[id::map_update_elem, id::map_delete_elem];

const LINKS: &[Link] = &[
    only(&[id::tail_call], &[ProgArray]),
    only(
        &[
            id::perf_event_read,
            id::perf_event_output,
            id::perf_event_read_value,
            id::skb_output,
            id::xdp_output,
        ],
        &[PerfEventArray],
    ),
    only(
        &[
            id::ringbuf_output,
            id::ringbuf_reserve,
            id::ringbuf_query,
            id::ringbuf_reserve_dynptr,
            id::ringbuf_submit_dynptr,
            id::ringbuf_discard_dynptr,
        ],
        &[Ringbuf],
    ),
    only(&[id::user_ringbuf_drain], &[UserRingbuf]),
    only(&[id::get_stackid], &[StackTrace]),
    only(
        &[id::skb_under_cgroup, id::current_task_under_cgroup],
        &[CgroupArray],
    ),
    only(
        &[id::get_local_storage],
        &[CgroupStorage, PercpuCgroupStorage],
    ),
    only(&[id::redirect_map], &[Devmap, DevmapHash, Cpumap, Xskmap]),
    only(
        &[
            id::sk_redirect_map,
            id::sock_map_update,
            id::msg_redirect_map,
        ],
        &[Sockmap],
    ),
    only(
        &[
            id::sk_redirect_hash,
            id::sock_hash_update,
            id::msg_redirect_hash,
        ],
        &[Sockhash],
    ),
    only(
        &[id::sk_select_reuseport],
        &[ReuseportSockarray, Sockmap, Sockhash],
    ),
    only(&[id::map_pop_elem], &[Queue, Stack]),
    only(
        &[id::map_peek_elem, id::map_push_elem],
        &[Queue, Stack, BloomFilter],
    ),
    only(
        &[id::map_lookup_percpu_elem],
        &[PercpuArray, PercpuHash, LruPercpuHash],
    ),
    only(&[id::sk_storage_get, id::sk_storage_delete], &[SkStorage]),
    only(
        &[id::inode_storage_get, id::inode_storage_delete],
        &[InodeStorage],
    ),
    only(
        &[id::task_storage_get, id::task_storage_delete],
        &[TaskStorage],
    ),
    only(
        &[id::cgrp_storage_get, id::cgrp_storage_delete],
        &[CgrpStorage],
    ),
    also(
        &[id::map_lookup_elem],
        &[
            Devmap,
            DevmapHash,
            Xskmap,
            ArrayOfMaps,
            HashOfMaps,
            Sockmap,
            Sockhash,
        ],
    ),
    also(SOCKMAP_UPDATES, &[Sockmap, Sockhash]),
    also(
        &[id::kptr_xchg],
        &[SkStorage, InodeStorage, TaskStorage, CgrpStorage],
    ),
];

/// Why a map can't be passed to a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapMismatch {
    /// The helper does not accept this map type ("cannot pass map_type … into func …").
    Kind,
    /// The program may hold a lock of the socket that the map would release ("cannot update
    /// sockmap in this context", before the message of [`Kind`](Self::Kind)).
    SockmapUpdate,
}

impl MapType {
    /// Checks that `helper`, called by `caller`, accepts a map of this type.
    ///
    /// # Errors
    /// [`MapMismatch`] if it does not.
    #[doc(hidden)]
    pub fn passes_to(self, helper: HelperId, caller: &Caller<'_>) -> Result<(), MapMismatch> {
        let mut made_for_it = LINKS.iter().filter(|link| link.helpers.contains(&helper));
        let taken = match made_for_it.clone().find(|link| link.only) {
            Some(link) => link.maps.contains(&self),
            None => PLAIN.contains(&self) || made_for_it.any(|link| link.maps.contains(&self)),
        };
        if !taken {
            Err(MapMismatch::Kind)
        } else if matches!(self, Sockmap | Sockhash)
            && SOCKMAP_UPDATES.contains(&helper)
            && !updates_sockmap(helper, caller)
        {
            Err(MapMismatch::SockmapUpdate)
        } else {
            Ok(())
        }
    }

    /// Whether sleepable programs can use it.
    #[doc(hidden)]
    #[must_use]
    pub const fn in_sleepable(self) -> bool {
        matches!(
            self,
            Hash | LruHash
                | Array
                | PercpuHash
                | PercpuArray
                | LruPercpuHash
                | ArrayOfMaps
                | HashOfMaps
                | Ringbuf
                | UserRingbuf
                | InodeStorage
                | SkStorage
                | TaskStorage
                | CgrpStorage
                | Queue
                | Stack
                | Arena
        )
    }

    /// Whether it can be the value of a map of maps (`bpf_map_meta_alloc`,
    /// `kernel/bpf/map_in_map.c`).
    #[doc(hidden)]
    #[must_use]
    pub const fn can_be_inner(self) -> bool {
        !matches!(
            self,
            ProgArray | ArrayOfMaps | HashOfMaps | CgroupStorage | PercpuCgroupStorage | StructOps
        )
    }

    /// Whether its values may have such a field.
    #[doc(hidden)]
    #[must_use]
    pub const fn may_hold(self, field: ValueField) -> bool {
        let plain = matches!(self, Hash | LruHash | Array);
        let storage = matches!(self, SkStorage | InodeStorage | TaskStorage | CgrpStorage);
        match field {
            ValueField::SpinLock => matches!(self, Hash | Array | CgroupStorage) || storage,
            ValueField::Timer | ValueField::Workqueue | ValueField::Graph => plain,
            ValueField::KernelPointer => {
                plain || storage || matches!(self, PercpuHash | LruPercpuHash | PercpuArray)
            }
            ValueField::UserPointer => matches!(self, TaskStorage),
        }
    }
}

/// A special field of a map's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueField {
    /// `struct bpf_spin_lock` or `struct bpf_res_spin_lock`.
    SpinLock,
    /// `struct bpf_timer`.
    Timer,
    /// `struct bpf_wq`.
    Workqueue,
    /// A pointer marked `__kptr`, `__kptr_untrusted` or `__percpu_kptr`, or a
    /// `struct bpf_refcount`.
    KernelPointer,
    /// A pointer marked `__uptr`.
    UserPointer,
    /// `struct bpf_list_head` or `struct bpf_rb_root`.
    Graph,
}

impl ValueField {
    /// The special field for this kind; `None` for kinds that are only valid in other
    /// memory.
    #[must_use]
    pub const fn of(kind: FieldKind) -> Option<Self> {
        Some(match kind {
            FieldKind::SpinLock | FieldKind::ResSpinLock => Self::SpinLock,
            FieldKind::Timer => Self::Timer,
            FieldKind::Workqueue | FieldKind::TaskWork => Self::Workqueue,
            FieldKind::KptrUnref
            | FieldKind::KptrRef
            | FieldKind::KptrPercpu
            | FieldKind::Refcount => Self::KernelPointer,
            FieldKind::Uptr => Self::UserPointer,
            FieldKind::ListHead | FieldKind::RbRoot => Self::Graph,
            FieldKind::ListNode | FieldKind::RbNode => return None,
        })
    }
}

/// Whether the program certainly holds no lock of a socket (`may_update_sockmap`).
fn updates_sockmap(helper: HelperId, caller: &Caller<'_>) -> bool {
    match caller.prog_type {
        ProgType::Tracing => caller.attach_type == Some(AttachType::TraceIter),
        ProgType::SockOps => helper == id::map_delete_elem,
        ProgType::SocketFilter
        | ProgType::SchedCls
        | ProgType::SchedAct
        | ProgType::Xdp
        | ProgType::SkReuseport
        | ProgType::FlowDissector
        | ProgType::SkLookup => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::{ArgKind, helper};

    fn passes(map: MapType, helper: HelperId) -> Result<(), MapMismatch> {
        map.passes_to(helper, &Caller::of(ProgType::SchedCls))
    }

    #[test]
    fn helpers_take_the_maps_they_are_made_for() {
        assert_eq!(passes(Hash, id::map_lookup_elem), Ok(()));
        assert_eq!(passes(Devmap, id::map_lookup_elem), Ok(()));
        assert_eq!(passes(Cpumap, id::map_lookup_elem), Err(MapMismatch::Kind));
        assert_eq!(
            passes(ProgArray, id::map_lookup_elem),
            Err(MapMismatch::Kind)
        );
        assert_eq!(passes(Array, id::tail_call), Err(MapMismatch::Kind));
        assert_eq!(passes(ProgArray, id::tail_call), Ok(()));
        assert_eq!(passes(PercpuArray, id::map_lookup_percpu_elem), Ok(()));
        assert_eq!(
            passes(Array, id::map_lookup_percpu_elem),
            Err(MapMismatch::Kind)
        );
        assert_eq!(passes(Array, id::for_each_map_elem), Ok(()));
        assert_eq!(
            passes(Ringbuf, id::for_each_map_elem),
            Err(MapMismatch::Kind)
        );
    }

    #[test]
    fn sockets_leave_a_map_only_where_none_is_locked() {
        let update = |prog_type, helper| Sockmap.passes_to(helper, &Caller::of(prog_type));
        assert_eq!(update(ProgType::Xdp, id::map_update_elem), Ok(()));
        assert_eq!(update(ProgType::SockOps, id::map_delete_elem), Ok(()));
        assert_eq!(
            update(ProgType::SockOps, id::map_update_elem),
            Err(MapMismatch::SockmapUpdate)
        );
        assert_eq!(
            update(ProgType::Kprobe, id::map_delete_elem),
            Err(MapMismatch::SockmapUpdate)
        );
    }

    #[test]
    fn every_map_but_those_of_no_program_has_a_helper() {
        for map in MapType::ALL {
            assert!(
                PLAIN.contains(map) || LINKS.iter().any(|link| link.maps.contains(map)),
                "{map} is of use to no program"
            );
        }
    }

    #[test]
    fn linked_helpers_exist_once_per_rule() {
        for link in LINKS {
            for number in link.helpers {
                let row = helper(*number).unwrap();
                let exclusive = LINKS
                    .iter()
                    .filter(|other| other.only && other.helpers.contains(number));
                assert!(exclusive.count() <= 1, "{}", row.name);
                let map = |kind| {
                    matches!(
                        kind,
                        ArgKind::ConstMapPtr | ArgKind::PtrToDynptr | ArgKind::KptrXchgDest
                    )
                };
                assert!(
                    row.prototypes
                        .iter()
                        .any(|prototype| prototype.args.iter().any(|arg| map(arg.kind))),
                    "{} takes a map",
                    row.name
                );
            }
        }
    }
}
