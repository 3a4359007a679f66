//! Tracepoint arguments that may be null or an error pointer, which the prototypes do not
//! show (`raw_tp_null_args`, `kernel/bpf/btf.c`).

/// For each argument number, the tracepoints whose argument may be null.
const NULLABLE: [&[&str]; 5] = [
    &[
        "afs_protocol_error",
        "amdgpu_vm_bo_map",
        "amdgpu_vm_bo_unmap",
        "cachefiles_io_error",
        "cachefiles_lookup",
        "cachefiles_mark_active",
        "cachefiles_mark_failed",
        "cachefiles_mark_inactive",
        "cachefiles_ondemand_close",
        "cachefiles_ondemand_copen",
        "cachefiles_ondemand_cread",
        "cachefiles_ondemand_fd_release",
        "cachefiles_ondemand_fd_write",
        "cachefiles_ondemand_open",
        "cachefiles_ondemand_read",
        "cachefiles_prep_read",
        "cachefiles_rename",
        "cachefiles_unlink",
        "cachefiles_vfs_error",
        "cfg80211_scan_done",
        "mm_collapse_huge_page_isolate",
        "mm_page_alloc",
        "mm_page_alloc_zone_locked",
        "mm_page_pcpu_drain",
        "netfs_folioq",
        "nfs4_setup_sequence",
        "nfsd_dirent",
        "nfsd_file_acquire",
        "nfsd_file_cons_err",
        "nfsd_file_insert_err",
        "rxrpc_client",
        "rxrpc_recvdata",
        "tcp_send_reset",
        "tmigr_update_events",
        "xfs_blockgc_flush_all",
        "xfs_blockgc_start",
        "xfs_blockgc_stop",
        "xfs_blockgc_worker",
        "xfs_defer_add_item",
        "xfs_defer_cancel_item",
        "xfs_defer_cancel_list",
        "xfs_defer_create_intent",
        "xfs_defer_finish_item",
        "xfs_defer_isolate_paused",
        "xfs_defer_item_pause",
        "xfs_defer_item_unpause",
        "xfs_defer_pending_abort",
        "xfs_defer_pending_finish",
        "xfs_defer_relog_intent",
        "xfs_fs_sync_fs",
        "xfs_inodegc_flush",
        "xfs_inodegc_push",
        "xfs_inodegc_queue",
        "xfs_inodegc_start",
        "xfs_inodegc_stop",
        "xfs_inodegc_throttle",
        "xs_stream_read_data",
    ],
    &[
        "afs_flock_ev",
        "afs_make_fs_call",
        "afs_make_fs_call1",
        "afs_make_fs_call2",
        "afs_make_fs_calli",
        "break_lease_block",
        "break_lease_noblock",
        "break_lease_unblock",
        "cfg80211_scan_done",
        "coda_dec_pic_done",
        "coda_dec_pic_run",
        "device_pm_callback_start",
        "ext4_mballoc_discard",
        "ext4_mballoc_free",
        "fcntl_setlk",
        "flock_lock_inode",
        "folio_wait_writeback",
        "generic_delete_lease",
        "hugetlbfs_alloc_inode",
        "locks_remove_posix",
        "mm_khugepaged_collapse_file",
        "mm_khugepaged_scan_file",
        "mm_khugepaged_scan_pmd",
        "neigh_update",
        "netfs_failure",
        "posix_lock_inode",
        "rdev_set_coalesce",
        "rxrpc_resend",
        "rxrpc_tq",
        "sched_pi_setprio",
        "spufs_context",
        "tcp_send_reset",
        "time_out_leases",
        "wiphy_work_cancel",
        "wiphy_work_flush",
        "wiphy_work_queue",
        "wiphy_work_run",
        "writeback_dirty_folio",
        "xchk_nlinks_live_update",
        "xfs_blockgc_free_space",
        "xfs_ioc_free_eofblocks",
        "xprt_get_cong",
        "xprt_put_cong",
        "xprt_release_cong",
        "xprt_reserve_cong",
    ],
    &[
        "amdtp_packet",
        "binder_transaction",
        "btree_path_free",
        "cfg80211_inform_bss_frame",
        "cfg80211_report_wowlan_wakeup",
        "dpu_crtc_setup_mixer",
        "fib_table_lookup",
        "kvm_page_fault_enter",
        "sched_stick_numa",
        "sched_swap_numa",
        "tcp_sendmsg_locked",
        "tegra_dma_tx_status",
        "xchk_metapath_lookup",
        "xfs_btree_overlapped_query_range",
        "xfs_btree_updkeys",
    ],
    &[
        "hfi1_sdma_progress",
        "iptfs_ingress_postq_event",
        "kfree_skb",
        "nfsd_file_acquire",
        "qdisc_dequeue",
        "xfs_iomap_alloc",
        "xfs_iomap_found",
    ],
    &[
        "cfg80211_michael_mic_failure",
        "host1x_cdma_push_gather",
        "pnfs_mds_fallback_pg_get_mirror_count",
        "pnfs_mds_fallback_pg_init_read",
        "pnfs_mds_fallback_pg_init_write",
        "pnfs_mds_fallback_read_done",
        "pnfs_mds_fallback_read_pagelist",
        "pnfs_mds_fallback_write_done",
        "pnfs_mds_fallback_write_pagelist",
        "pnfs_update_layout",
        "xfs_map_blocks_alloc",
        "xfs_map_blocks_found",
    ],
];

/// Tracepoints, each with the argument that may be an error pointer.
const ERRORS: &[(&str, u32)] = &[
    ("cachefiles_lookup", 2),
    ("mr_integ_alloc", 3),
    ("nfs4_inode_callback_event", 2),
    ("nfs4_inode_stateid_callback_event", 2),
];

/// Whether this argument of the tracepoint may be null.
#[must_use]
pub fn may_be_null(tracepoint: &str, argument: u32) -> bool {
    let names = usize::try_from(argument)
        .ok()
        .and_then(|at| NULLABLE.get(at));
    names.is_some_and(|names| names.binary_search(&tracepoint).is_ok())
}

/// Whether this argument of the tracepoint may be an error pointer.
#[must_use]
pub fn may_be_error(tracepoint: &str, argument: u32) -> bool {
    ERRORS.contains(&(tracepoint, argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order() {
        for names in NULLABLE {
            assert!(names.is_sorted());
        }
        assert!(ERRORS.is_sorted());
    }

    #[test]
    fn arguments_are_looked_up_by_number() {
        assert!(may_be_null("kfree_skb", 3) && !may_be_null("kfree_skb", 0));
        assert!(may_be_null("sched_pi_setprio", 1) && !may_be_null("sched_switch", 1));
        assert!(may_be_error("cachefiles_lookup", 2) && !may_be_null("kfree_skb", 9));
    }
}
