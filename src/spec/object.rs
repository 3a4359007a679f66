//! Objects of the kernel's types: which pointers in them programs may trust, and which types
//! back maps (`BTF_TYPE_SAFE_RCU` and its siblings, `kernel/bpf/verifier.c`; `map_btf_id` of
//! each map type).

use super::MapType;

/// How far a pointer member of an object can be trusted, if the object itself can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberTrust {
    /// Not null and alive in an RCU read section (`__safe_rcu`).
    Rcu,
    /// Null, or alive in an RCU read section (`__safe_rcu_or_null`).
    RcuOrNull,
    /// Not null and alive (`__safe_trusted`).
    Trusted,
    /// Null or alive (`__safe_trusted_or_null`).
    TrustedOrNull,
}

/// A structure, its member, the structure that the member points to, and its trust.
type Row = (&'static str, &'static str, &'static str, MemberTrust);

const MEMBERS: [Row; 17] = {
    use MemberTrust::{Rcu, RcuOrNull, Trusted, TrustedOrNull};
    [
        ("task_struct", "cpus_ptr", "cpumask", Rcu),
        ("task_struct", "cgroups", "css_set", Rcu),
        ("task_struct", "real_parent", "task_struct", Rcu),
        ("task_struct", "group_leader", "task_struct", Rcu),
        ("cgroup", "kn", "kernfs_node", Rcu),
        ("css_set", "dfl_cgrp", "cgroup", Rcu),
        ("cgroup_subsys_state", "cgroup", "cgroup", Rcu),
        ("mm_struct", "exe_file", "file", RcuOrNull),
        ("sk_buff", "sk", "sock", RcuOrNull),
        ("request_sock", "sk", "sock", RcuOrNull),
        ("bpf_iter_meta", "seq", "seq_file", Trusted),
        ("linux_binprm", "file", "file", Trusted),
        ("file", "f_inode", "inode", Trusted),
        ("bpf_iter__task", "meta", "bpf_iter_meta", Trusted),
        ("bpf_iter__task", "task", "task_struct", Trusted),
        ("dentry", "d_inode", "inode", TrustedOrNull),
        ("socket", "sk", "sock", TrustedOrNull),
    ]
};

/// The trust of the pointer that a member of a structure holds; `target` is the structure
/// that it points to.
#[must_use]
pub fn member_trust(structure: &str, member: &str, target: &str) -> Option<MemberTrust> {
    let is_it = |row: &&Row| (row.0, row.1, row.2) == (structure, member, target);
    MEMBERS.iter().find(is_it).map(|row| row.3)
}

/// Structures of which a referenced kptr stays valid in an RCU read section
/// (`rcu_protected_types`).
const RCU_PROTECTED: [&str; 5] = [
    "prog_test_ref_kfunc",
    "cgroup",
    "bpf_cpumask",
    "task_struct",
    "bpf_crypto_ctx",
];

/// Whether objects of this kernel structure are freed only after an RCU grace period, as far
/// as kptrs rely on it.
#[must_use]
pub fn is_rcu_protected(structure: &str) -> bool {
    RCU_PROTECTED.contains(&structure)
}

/// The kernel structure of a map of this type, which programs may read.
#[must_use]
pub const fn map_structure(map_type: MapType) -> &'static str {
    match map_type {
        MapType::Array
        | MapType::PercpuArray
        | MapType::ProgArray
        | MapType::PerfEventArray
        | MapType::CgroupArray
        | MapType::ArrayOfMaps => "bpf_array",
        MapType::Hash
        | MapType::PercpuHash
        | MapType::LruHash
        | MapType::LruPercpuHash
        | MapType::HashOfMaps => "bpf_htab",
        MapType::LpmTrie => "lpm_trie",
        MapType::Queue | MapType::Stack => "bpf_queue_stack",
        MapType::ReuseportSockarray => "reuseport_array",
        MapType::Ringbuf | MapType::UserRingbuf => "bpf_ringbuf_map",
        MapType::StackTrace => "bpf_stack_map",
        MapType::CgroupStorage | MapType::PercpuCgroupStorage => "bpf_cgroup_storage_map",
        MapType::SkStorage
        | MapType::InodeStorage
        | MapType::TaskStorage
        | MapType::CgrpStorage => "bpf_local_storage_map",
        MapType::BloomFilter => "bpf_bloom_filter",
        MapType::StructOps => "bpf_struct_ops_map",
        MapType::Cpumap => "bpf_cpu_map",
        MapType::Devmap | MapType::DevmapHash => "bpf_dtab",
        MapType::Sockmap => "bpf_stab",
        MapType::Sockhash => "bpf_shtab",
        MapType::Xskmap => "xsk_map",
        MapType::Arena => "bpf_arena",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_trusted_by_name_and_target() {
        let of = member_trust;
        assert_eq!(
            of("task_struct", "cgroups", "css_set"),
            Some(MemberTrust::Rcu)
        );
        assert_eq!(of("socket", "sk", "sock"), Some(MemberTrust::TrustedOrNull));
        assert_eq!(of("task_struct", "cgroups", "cgroup"), None);
        assert_eq!(of("task_struct", "parent", "task_struct"), None);
    }
}
