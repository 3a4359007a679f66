//! LSM hooks that programs attach to (`kernel/bpf/bpf_lsm.c`). They are named by their
//! function, such as `bpf_lsm_file_open`.

/// Prefix of the functions' names.
pub const PREFIX: &str = "bpf_lsm_";

/// Hooks that return a boolean.
const BOOLEAN: &[&str] = &[
    "xfrm_state_pol_flow_match",
    "audit_rule_known",
    "inode_xattr_skipcap",
];

/// Hooks that no program may attach to.
const DISABLED: &[&str] = &[
    "vm_enough_memory",
    "inode_need_killpriv",
    "inode_getsecurity",
    "inode_listsecurity",
    "inode_copy_up_xattr",
    "getselfattr",
    "getprocattr",
    "setprocattr",
    "key_getsecurity",
    "audit_rule_match",
    "xfrm_decode_session",
    "ismaclabel",
];

/// Functions that are named like hooks and are none.
const NO_HOOKS: &[&str] = &[
    "find_cgroup_shim",
    "func_proto",
    "get_retval_range",
    "has_d_inode_locked",
    "init",
    "is_sleepable_hook",
    "is_trusted",
    "verify_prog",
];

/// Hooks whose arguments are not trusted.
const UNTRUSTED: &[&str] = &[
    "bpf_map_free",
    "bpf_prog_free",
    "file_alloc_security",
    "file_free_security",
    "sk_alloc_security",
    "sk_free_security",
    "task_free",
];

/// Hooks whose programs may sleep.
const SLEEPABLE: &[&str] = &[
    "bpf",
    "bpf_map",
    "bpf_map_create",
    "bpf_map_free",
    "bpf_prog",
    "bpf_prog_load",
    "bpf_token_create",
    "bpf_token_free",
    "bpf_token_cmd",
    "bpf_token_capable",
    "bprm_check_security",
    "bprm_committed_creds",
    "bprm_committing_creds",
    "bprm_creds_for_exec",
    "bprm_creds_from_file",
    "capget",
    "capset",
    "cred_prepare",
    "file_ioctl",
    "file_lock",
    "file_open",
    "file_post_open",
    "file_receive",
    "inode_create",
    "inode_free_security",
    "inode_getattr",
    "inode_getxattr",
    "inode_mknod",
    "inode_need_killpriv",
    "inode_post_removexattr",
    "inode_post_setxattr",
    "inode_readlink",
    "inode_removexattr",
    "inode_rename",
    "inode_rmdir",
    "inode_setattr",
    "inode_setxattr",
    "inode_symlink",
    "inode_unlink",
    "kernel_module_request",
    "kernel_read_file",
    "kernfs_init_security",
    "path_unlink",
    "path_mkdir",
    "path_rmdir",
    "path_truncate",
    "path_symlink",
    "path_link",
    "path_rename",
    "path_chmod",
    "path_chown",
    "mmap_file",
    "netlink_send",
    "path_notify",
    "release_secctx",
    "sb_alloc_security",
    "sb_eat_lsm_opts",
    "sb_kern_mount",
    "sb_mount",
    "sb_remount",
    "sb_set_mnt_opts",
    "sb_show_options",
    "sb_statfs",
    "sb_umount",
    "settime",
    "socket_accept",
    "socket_bind",
    "socket_connect",
    "socket_create",
    "socket_getpeername",
    "socket_getpeersec_dgram",
    "socket_getsockname",
    "socket_getsockopt",
    "socket_listen",
    "socket_post_create",
    "socket_recvmsg",
    "socket_sendmsg",
    "socket_shutdown",
    "socket_socketpair",
    "syslog",
    "task_alloc",
    "current_getsecid_subj",
    "task_getsecid_obj",
    "task_prctl",
    "task_setscheduler",
    "userns_create",
];

fn is_in(list: &[&str], function: &str) -> bool {
    function
        .strip_prefix(PREFIX)
        .is_some_and(|hook| list.contains(&hook))
}

/// The values that a hook with an integer result may return: 0 or an error, or a boolean
/// (`bpf_lsm_get_retval_range`).
#[must_use]
pub fn return_range(function: &str) -> (i32, i32) {
    /// The highest error number (`MAX_ERRNO`).
    const MAX_ERRNO: i32 = 4095;
    if is_in(BOOLEAN, function) {
        (0, 1)
    } else {
        (-MAX_ERRNO, 0)
    }
}

/// Whether the function is a hook.
#[must_use]
pub fn is_hook(function: &str) -> bool {
    function.starts_with(PREFIX) && !is_in(NO_HOOKS, function)
}

/// Whether programs may not attach to the hook.
#[must_use]
pub fn is_disabled(function: &str) -> bool {
    is_in(DISABLED, function)
}

/// Whether the hook's arguments are trusted (`bpf_lsm_is_trusted`).
#[must_use]
pub fn is_trusted(function: &str) -> bool {
    !is_in(UNTRUSTED, function)
}

/// Whether the hook's programs may sleep (`bpf_lsm_is_sleepable_hook`).
#[must_use]
pub fn is_sleepable(function: &str) -> bool {
    is_in(SLEEPABLE, function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_known_by_their_functions() {
        assert_eq!(return_range("bpf_lsm_audit_rule_known"), (0, 1));
        assert_eq!(return_range("bpf_lsm_file_open"), (-4095, 0));
        assert!(is_disabled("bpf_lsm_getprocattr") && !is_disabled("getprocattr"));
        assert!(is_hook("bpf_lsm_file_open") && !is_hook("bpf_lsm_verify_prog"));
        assert!(!is_hook("file_open"));
        assert!(is_trusted("bpf_lsm_file_open") && !is_trusted("bpf_lsm_task_free"));
        assert!(is_sleepable("bpf_lsm_bpf") && !is_sleepable("bpf_lsm_task_free"));
    }
}
