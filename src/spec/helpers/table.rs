//! The table of helpers, as a macro that passes all rows to another macro.

/// Calls `$macro` with a row for every helper of Linux 6.18, by ascending number.
///
/// The form of a row:
///
/// ```text
/// number name = body, "C return type" "C parameters" [effects] as REPLAY {
///     (arguments) -> result, [attributes] for [scopes];
/// }
/// ```
///
/// - The name is the kernel's without `bpf_`.
/// - `body` is the path of the implementation below `crate::vm::helpers`, or `none`; only
///   the virtual machine uses it.
/// - *effects* are constants of [`Effects`](super::Effects): effects of a call for all
///   callers.
/// - `as REPLAY` is how a recording treats a call, a constant of
///   [`replay::column`](super::super::replay). Without it a call that gets a map is
///   `OVERRIDE`, any other `SKIP`.
/// - The lines in braces are prototypes (`struct bpf_func_proto`): argument and
///   result kinds with flags after `|` and, in parentheses, a size in bytes or a
///   structure's name; then [`Attributes`](super::Attributes); then the
///   [`Scope`](super::Scope)s of the programs that may call it so. The first
///   prototype whose scopes cover the program is the one that counts.
///
/// An expansion that needs only numbers, names and bodies matches
/// `$($number:literal $name:ident = $($body:ident)::+, $ret:literal $args:literal
/// [$($effect:ident)*] $(as $replay:ident)? { $($prototypes:tt)* })*`.
///
/// The C text is that of `include/uapi/linux/bpf.h`; kinds, flags, attributes and
/// scopes agree with the `bpf_func_proto` structures and `get_func_proto`
/// functions of a running 6.18 (see the tests of [`super`] for what that kernel
/// was built without).
macro_rules! for_each_helper {
    ($macro:ident) => {
        $macro! {
            1 map_lookup_elem = maps::lookup_elem, "void *" "struct bpf_map *map, const void *key" [] {
                (ConstMapPtr, PtrToMapKey) -> PtrToMapValue|PTR_MAYBE_NULL, [PKT_ACCESS] for [ALL LIRC_MODE2]; }
            2 map_update_elem = maps::update_elem,
                "long " "struct bpf_map *map, const void *key, const void *value, u64 flags" [] {
                (ConstMapPtr, PtrToMapKey, PtrToMapValue, Anything) -> Integer, [PKT_ACCESS] for [ALL LIRC_MODE2]; }
            3 map_delete_elem = maps::delete_elem, "long " "struct bpf_map *map, const void *key" [] {
                (ConstMapPtr, PtrToMapKey) -> Integer, [PKT_ACCESS] for [ALL LIRC_MODE2]; }
            4 probe_read = probe::probe_read, "long " "void *dst, u32 size, const void *unsafe_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY] for [TRACING]; }
            5 ktime_get_ns = environment::ktime_get_ns, "u64 " "void" [] {
                () -> Integer, [] for [ALL LIRC_MODE2]; }
            6 trace_printk = print::trace_printk, "long " "const char *fmt, u32 fmt_size, ..." [] as OVERRIDE {
                (PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL LIRC_MODE2]; }
            7 get_prandom_u32 = environment::get_prandom_u32, "u32 " "void" [] {
                () -> Integer, [] for [ALL LIRC_MODE2]; }
            8 get_smp_processor_id = environment::get_smp_processor_id, "u32 " "void" [] {
                () -> Integer, [FASTCALL] for [TRACING LWT TC XDP];
                () -> Integer, [] for [ALL]; }
            9 skb_store_bytes = skb::store_bytes,
                "long " "struct sk_buff *skb, u32 offset, const void *from, u32 len, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, PtrToMem|MEM_RDONLY, ConstSize, Anything) -> Integer, [] for [TC LWT_XMIT SK_SKB]; }
            10 l3_csum_replace = skb::l3_csum_replace,
                "long " "struct sk_buff *skb, u32 offset, u64 from, u64 to, u64 size" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything, Anything, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            11 l4_csum_replace = skb::l4_csum_replace,
                "long " "struct sk_buff *skb, u32 offset, u64 from, u64 to, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything, Anything, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            12 tail_call = control::tail_call,
                "long " "void *ctx, struct bpf_map *prog_array_map, u32 index" [CHANGES_PACKET] {
                (PtrToCtx, ConstMapPtr, Anything) -> Void, [] for [ALL LIRC_MODE2]; }
            13 clone_redirect = net::forward::clone_redirect, "long " "struct sk_buff *skb, u32 ifindex, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            14 get_current_pid_tgid = task::get_current_pid_tgid, "u64 " "void" [] {
                () -> Integer, [] for [ALL]; }
            15 get_current_uid_gid = task::get_current_uid_gid, "u64 " "void" [] {
                () -> Integer, [] for [ALL]; }
            16 get_current_comm = task::get_current_comm, "long " "void *buf, u32 size_of_buf" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            17 get_cgroup_classid = net::socket::get_cgroup_classid, "u32 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [LWT TC];
                () -> Integer, [NEEDS_BPF] for [ALL]; }
            18 skb_vlan_push = net::vlan::push, "long " "struct sk_buff *skb, __be16 vlan_proto, u16 vlan_tci" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [TC]; }
            19 skb_vlan_pop = net::vlan::pop, "long " "struct sk_buff *skb" [CHANGES_PACKET] {
                (PtrToCtx) -> Integer, [] for [TC]; }
            20 skb_get_tunnel_key = net::tunnel::get_key, "long " "struct sk_buff *skb, struct bpf_tunnel_key *key, u32 size, u64 flags" [] {
                (PtrToCtx, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            21 skb_set_tunnel_key = net::tunnel::set_key, "long " "struct sk_buff *skb, struct bpf_tunnel_key *key, u32 size, u64 flags" [] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSize, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            22 perf_event_read = perf::perf_event_read, "u64 " "struct bpf_map *map, u64 flags" [] as SKIP {
                (ConstMapPtr, Anything) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            23 redirect = redirect::redirect, "long " "u32 ifindex, u64 flags" [] {
                (Anything, Anything) -> Integer, [] for [TC XDP LWT_XMIT]; }
            24 get_route_realm = net::state::get_route_realm, "u32 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [LWT TC]; }
            25 perf_event_output = output::perf_event_output,
                "long " "void *ctx, struct bpf_map *map, u64 flags, void *data, u64 size" [] {
                (PtrToCtx, ConstMapPtr, Anything, PtrToMem|MEM_RDONLY, ConstSizeOrZero) -> Integer,
                    [GPL_ONLY] for [TRACING LWT TC SOCKET_FILTER XDP CGROUP_SKB CGROUP_SOCK SOCK_OPS SK_SKB
                        CGROUP_DEVICE SK_MSG CGROUP_SOCK_ADDR CGROUP_SYSCTL CGROUP_SOCKOPT SK_LOOKUP]; }
            26 skb_load_bytes = skb::load_bytes, "long " "const void *skb, u32 offset, void *to, u32 len" [] {
                (PtrToCtx, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer,
                    [] for [LWT TC SOCKET_FILTER CGROUP_SKB SK_SKB SK_REUSEPORT FLOW_DISSECTOR]; }
            27 get_stackid = stack::get_stackid, "long " "void *ctx, struct bpf_map *map, u64 flags" [] as SKIP {
                (PtrToCtx, ConstMapPtr, Anything) -> Integer,
                    [GPL_ONLY] for [RAW_TP KPROBE TRACEPOINT BTF_TRACING LSM SYSCALL];
                (PtrToCtx, ConstMapPtr, Anything) -> Integer, [] for [PERF_EVENT]; }
            28 csum_diff = checksum::csum_diff, "s64 " "__be32 *from, u32 from_size, __be32 *to, u32 to_size, __wsum seed" [] as OVERRIDE {
                (PtrToMem|PTR_MAYBE_NULL|MEM_RDONLY, ConstSizeOrZero, PtrToMem|PTR_MAYBE_NULL|MEM_RDONLY,
                    ConstSizeOrZero, Anything) -> Integer,
                    [PKT_ACCESS] for [LWT TC XDP]; }
            29 skb_get_tunnel_opt = net::tunnel::get_options, "long " "struct sk_buff *skb, void *opt, u32 size" [] {
                (PtrToCtx, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [] for [TC LWT_XMIT]; }
            30 skb_set_tunnel_opt = net::tunnel::set_options, "long " "struct sk_buff *skb, void *opt, u32 size" [] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [TC LWT_XMIT]; }
            31 skb_change_proto = net::shape::change_proto, "long " "struct sk_buff *skb, __be16 proto, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [TC]; }
            32 skb_change_type = net::shape::change_type, "long " "struct sk_buff *skb, u32 type" [] {
                (PtrToCtx, Anything) -> Integer, [] for [TC]; }
            33 skb_under_cgroup = cgroup::skb_under_cgroup, "long " "struct sk_buff *skb, struct bpf_map *map, u32 index" [] as SKIP {
                (PtrToCtx, ConstMapPtr, Anything) -> Integer, [] for [LWT TC]; }
            34 get_hash_recalc = skb::get_hash_recalc, "u32 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [LWT TC]; }
            35 get_current_task = task::get_current_task, "u64 " "void" [] {
                () -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            36 probe_write_user = probe::probe_write_user, "long " "void *dst, const void *src, u32 len" [] as EFFECT {
                (Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [GPL_ONLY] for [TRACING]; }
            37 current_task_under_cgroup = cgroup::current_task_under_cgroup, "long " "struct bpf_map *map, u32 index" [] as SKIP {
                (ConstMapPtr, Anything) -> Integer, [NEEDS_BPF] for [ALL]; }
            38 skb_change_tail = net::shape::change_tail, "long " "struct sk_buff *skb, u32 len, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [TC LWT_XMIT SK_SKB]; }
            39 skb_pull_data = skb::pull_data, "long " "struct sk_buff *skb, u32 len" [CHANGES_PACKET] {
                (PtrToCtx, Anything) -> Integer, [] for [LWT TC SK_SKB]; }
            40 csum_update = net::state::csum_update, "s64 " "struct sk_buff *skb, __wsum csum" [] {
                (PtrToCtx, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            41 set_hash_invalid = skb::set_hash_invalid, "void " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [TC LWT_XMIT]; }
            42 get_numa_node_id = environment::get_numa_node_id, "long " "void" [] {
                () -> Integer, [] for [ALL]; }
            43 skb_change_head = net::shape::change_head, "long " "struct sk_buff *skb, u32 len, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [TC LWT_XMIT SK_SKB]; }
            44 xdp_adjust_head = xdp::adjust_head, "long " "struct xdp_buff *xdp_md, int delta" [CHANGES_PACKET] {
                (PtrToCtx, Anything) -> Integer, [] for [XDP]; }
            45 probe_read_str = probe::probe_read_str, "long " "void *dst, u32 size, const void *unsafe_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY] for [TRACING]; }
            46 get_socket_cookie = net::socket::get_socket_cookie, "u64 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [TC SOCKET_FILTER CGROUP_SKB CGROUP_SOCK SOCK_OPS SK_SKB CGROUP_SOCK_ADDR];
                (PtrToBtfIdSockCommon|PTR_MAYBE_NULL) -> Integer, [] for [SK_REUSEPORT BTF_TRACING LSM SYSCALL]; }
            47 get_socket_uid = net::socket::get_socket_uid, "u32 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [TC SOCKET_FILTER CGROUP_SKB SK_SKB]; }
            48 set_hash = skb::set_hash, "long " "struct sk_buff *skb, u32 hash" [] {
                (PtrToCtx, Anything) -> Integer, [] for [TC]; }
            49 setsockopt = net::sockopt::set, "long " "void *bpf_socket, int level, int optname, void *optval, int optlen" [] {
                (PtrToCtx, Anything, Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer,
                    [] for [SOCK_OPS CGROUP_SOCK_ADDR];
                (PtrToBtfIdSockCommon, Anything, Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer,
                    [] for [SETSOCKOPT TCP_CA ITER_SOCKET LSM_SOCKOPT]; }
            50 skb_adjust_room = net::shape::adjust_room, "long " "struct sk_buff *skb, s32 len_diff, u32 mode, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything, Anything) -> Integer, [] for [TC SK_SKB]; }
            51 redirect_map = redirect::redirect_map, "long " "struct bpf_map *map, u64 key, u64 flags" [] {
                (ConstMapPtr, Anything, Anything) -> Integer, [] for [XDP]; }
            52 sk_redirect_map = sockmap::sk_redirect_map, "long " "struct sk_buff *skb, struct bpf_map *map, u32 key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, Anything, Anything) -> Integer, [] for [SK_SKB]; }
            53 sock_map_update = sockmap::sock_map_update, "long " "struct bpf_sock_ops *skops, struct bpf_map *map, void *key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, PtrToMapKey, Anything) -> Integer, [PKT_ACCESS] for [SOCK_OPS]; }
            54 xdp_adjust_meta = xdp::adjust_meta, "long " "struct xdp_buff *xdp_md, int delta" [CHANGES_PACKET] {
                (PtrToCtx, Anything) -> Integer, [] for [XDP]; }
            55 perf_event_read_value = perf::perf_event_read_value,
                "long " "struct bpf_map *map, u64 flags, struct bpf_perf_event_value *buf, u32 buf_size" [] as SKIP {
                (ConstMapPtr, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer,
                    [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            56 perf_prog_read_value = perf::perf_prog_read_value,
                "long " "struct bpf_perf_event_data *ctx, struct bpf_perf_event_value *buf, u32 buf_size" [] {
                (PtrToCtx, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [GPL_ONLY] for [PERF_EVENT]; }
            57 getsockopt = net::sockopt::get, "long " "void *bpf_socket, int level, int optname, void *optval, int optlen" [] {
                (PtrToCtx, Anything, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer,
                    [] for [SOCK_OPS CGROUP_SOCK_ADDR];
                (PtrToBtfIdSockCommon, Anything, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer,
                    [] for [SETSOCKOPT TCP_CA ITER_SOCKET LSM_SOCKOPT]; }
            58 override_return = tracing::override_return, "long " "struct pt_regs *regs, u64 rc" [] as EFFECT {
                (PtrToCtx, Anything) -> Integer, [GPL_ONLY] for [KPROBE]; }
            59 sock_ops_cb_flags_set = net::sock_ops::cb_flags_set, "long " "struct bpf_sock_ops *bpf_sock, int argval" [] {
                (PtrToCtx, Anything) -> Integer, [] for [SOCK_OPS]; }
            60 msg_redirect_map = sockmap::msg_redirect_map, "long " "struct sk_msg_buff *msg, struct bpf_map *map, u32 key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, Anything, Anything) -> Integer, [] for [SK_MSG]; }
            61 msg_apply_bytes = net::sk_msg::apply_bytes, "long " "struct sk_msg_buff *msg, u32 bytes" [] {
                (PtrToCtx, Anything) -> Integer, [] for [SK_MSG]; }
            62 msg_cork_bytes = net::sk_msg::cork_bytes, "long " "struct sk_msg_buff *msg, u32 bytes" [] {
                (PtrToCtx, Anything) -> Integer, [] for [SK_MSG]; }
            63 msg_pull_data = net::sk_msg::pull_data, "long " "struct sk_msg_buff *msg, u32 start, u32 end, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything, Anything) -> Integer, [] for [SK_MSG]; }
            64 bind = net::cgroup::bind, "long " "struct bpf_sock_addr *ctx, struct sockaddr *addr, int addr_len" [] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [CONNECT]; }
            65 xdp_adjust_tail = xdp::adjust_tail, "long " "struct xdp_buff *xdp_md, int delta" [CHANGES_PACKET] {
                (PtrToCtx, Anything) -> Integer, [] for [XDP]; }
            66 skb_get_xfrm_state = net::tunnel::get_xfrm_state,
                "long " "struct sk_buff *skb, u32 index, struct bpf_xfrm_state *xfrm_state, u32 size, u64 flags" [] {
                (PtrToCtx, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize, Anything) -> Integer, [] for [TC]; }
            67 get_stack = stack::get_stack, "long " "void *ctx, void *buf, u32 size, u64 flags" [] {
                (PtrToCtx, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY] for [TRACING]; }
            68 skb_load_bytes_relative = skb::load_bytes_relative, "long " "const void *skb, u32 offset, void *to, u32 len, u32 start_header" [] {
                (PtrToCtx, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize, Anything) -> Integer,
                    [] for [TC SOCKET_FILTER CGROUP_SKB SK_REUSEPORT]; }
            69 fib_lookup = net::fib::fib_lookup, "long " "void *ctx, struct bpf_fib_lookup *params, int plen, u32 flags" [] {
                (PtrToCtx, PtrToMem|MEM_WRITE, ConstSize, Anything) -> Integer, [GPL_ONLY] for [TC XDP]; }
            70 sock_hash_update = sockmap::sock_hash_update, "long " "struct bpf_sock_ops *skops, struct bpf_map *map, void *key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, PtrToMapKey, Anything) -> Integer, [PKT_ACCESS] for [SOCK_OPS]; }
            71 msg_redirect_hash = sockmap::msg_redirect_hash, "long " "struct sk_msg_buff *msg, struct bpf_map *map, void *key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, PtrToMapKey, Anything) -> Integer, [] for [SK_MSG]; }
            72 sk_redirect_hash = sockmap::sk_redirect_hash, "long " "struct sk_buff *skb, struct bpf_map *map, void *key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, PtrToMapKey, Anything) -> Integer, [] for [SK_SKB]; }
            73 lwt_push_encap = net::lwt::push_encap, "long " "struct sk_buff *skb, u32 type, void *hdr, u32 len" [CHANGES_PACKET] {
                (PtrToCtx, Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [LWT_IN LWT_XMIT]; }
            74 lwt_seg6_store_bytes = net::seg6::store_bytes,
                "long " "struct sk_buff *skb, u32 offset, const void *from, u32 len" [CHANGES_PACKET] {
                (PtrToCtx, Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [LWT_SEG6LOCAL]; }
            75 lwt_seg6_adjust_srh = net::seg6::adjust, "long " "struct sk_buff *skb, u32 offset, s32 delta" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [LWT_SEG6LOCAL]; }
            76 lwt_seg6_action = net::seg6::action,
                "long " "struct sk_buff *skb, u32 action, void *param, u32 param_len" [CHANGES_PACKET] {
                (PtrToCtx, Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [LWT_SEG6LOCAL]; }
            77 rc_repeat = none, "long " "void *ctx" [] {
                (PtrToCtx) -> Integer, [GPL_ONLY] for [LIRC_MODE2]; }
            78 rc_keydown = none, "long " "void *ctx, u32 protocol, u64 scancode, u32 toggle" [] {
                (PtrToCtx, Anything, Anything, Anything) -> Integer, [GPL_ONLY] for [LIRC_MODE2]; }
            79 skb_cgroup_id = net::socket::skb_cgroup_id, "u64 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [TC CGROUP_SKB]; }
            80 get_current_cgroup_id = task::get_current_cgroup_id, "u64 " "void" [] {
                () -> Integer, [NEEDS_BPF] for [ALL]; }
            81 get_local_storage = storage::get_local_storage, "void *" "void *map, u64 flags" [] as STORAGE {
                (ConstMapPtr, Anything) -> PtrToMapValue,
                    [] for [CGROUP_SKB CGROUP_SOCK SOCK_OPS CGROUP_DEVICE CGROUP_SOCK_ADDR CGROUP_SYSCTL CGROUP_SOCKOPT
                        LSM_CGROUP]; }
            82 sk_select_reuseport = sockmap::sk_select_reuseport,
                "long " "struct sk_reuseport_md *reuse, struct bpf_map *map, void *key, u64 flags" [] {
                (PtrToCtx, ConstMapPtr, PtrToMapKey, Anything) -> Integer, [] for [SK_REUSEPORT]; }
            83 skb_ancestor_cgroup_id = net::socket::skb_ancestor_cgroup_id, "u64 " "struct sk_buff *skb, int ancestor_level" [] {
                (PtrToCtx, Anything) -> Integer, [] for [TC CGROUP_SKB]; }
            84 sk_lookup_tcp = net::socket::sk_lookup_tcp,
                "struct bpf_sock *" "void *ctx, struct bpf_sock_tuple *tuple, u32 tuple_size, u64 netns, u64 flags" [ACQUIRES] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything, Anything) -> PtrToSocket|PTR_MAYBE_NULL,
                    [PKT_ACCESS] for [TC XDP CGROUP_SKB SK_SKB];
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything, Anything) -> PtrToSocket|PTR_MAYBE_NULL,
                    [] for [CGROUP_SOCK_ADDR]; }
            85 sk_lookup_udp = net::socket::sk_lookup_udp,
                "struct bpf_sock *" "void *ctx, struct bpf_sock_tuple *tuple, u32 tuple_size, u64 netns, u64 flags" [ACQUIRES] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything, Anything) -> PtrToSocket|PTR_MAYBE_NULL,
                    [PKT_ACCESS] for [TC XDP CGROUP_SKB SK_SKB];
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything, Anything) -> PtrToSocket|PTR_MAYBE_NULL,
                    [] for [CGROUP_SOCK_ADDR]; }
            86 sk_release = net::socket::sk_release, "long " "void *sock" [] {
                (PtrToBtfIdSockCommon|OBJ_RELEASE) -> Integer,
                    [] for [TC XDP CGROUP_SKB SK_SKB CGROUP_SOCK_ADDR SK_LOOKUP]; }
            87 map_push_elem = maps::push_elem, "long " "struct bpf_map *map, const void *value, u64 flags" [] {
                (ConstMapPtr, PtrToMapValue, Anything) -> Integer, [PKT_ACCESS] for [ALL LIRC_MODE2]; }
            88 map_pop_elem = maps::pop_elem, "long " "struct bpf_map *map, void *value" [] {
                (ConstMapPtr, PtrToMapValue|MEM_UNINIT|MEM_WRITE) -> Integer, [] for [ALL LIRC_MODE2]; }
            89 map_peek_elem = maps::peek_elem, "long " "struct bpf_map *map, void *value" [] {
                (ConstMapPtr, PtrToMapValue|MEM_UNINIT|MEM_WRITE) -> Integer, [] for [ALL LIRC_MODE2]; }
            90 msg_push_data = net::sk_msg::push_data, "long " "struct sk_msg_buff *msg, u32 start, u32 len, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything, Anything) -> Integer, [] for [SK_MSG]; }
            91 msg_pop_data = net::sk_msg::pop_data, "long " "struct sk_msg_buff *msg, u32 start, u32 len, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, Anything, Anything, Anything) -> Integer, [] for [SK_MSG]; }
            92 rc_pointer_rel = none, "long " "void *ctx, s32 rel_x, s32 rel_y" [] {
                (PtrToCtx, Anything, Anything) -> Integer, [GPL_ONLY] for [LIRC_MODE2]; }
            93 spin_lock = control::spin_lock, "long " "struct bpf_spin_lock *lock" [] as REPEAT {
                (PtrToSpinLock) -> Void, [NEEDS_BPF] for [ALL]; }
            94 spin_unlock = control::spin_unlock, "long " "struct bpf_spin_lock *lock" [] as REPEAT {
                (PtrToSpinLock) -> Void, [NEEDS_BPF] for [ALL]; }
            95 sk_fullsock = net::socket::sk_fullsock, "struct bpf_sock *" "struct bpf_sock *sk" [CASTS] {
                (PtrToSockCommon) -> PtrToSocket|PTR_MAYBE_NULL, [] for [TC CGROUP_SKB]; }
            96 tcp_sock = net::socket::tcp_sock, "struct bpf_tcp_sock *" "struct bpf_sock *sk" [CASTS] {
                (PtrToSockCommon) -> PtrToTcpSock|PTR_MAYBE_NULL, [] for [TC CGROUP_SKB SOCK_OPS CGROUP_SOCKOPT]; }
            97 skb_ecn_set_ce = net::state::ecn_set_ce, "long " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [TC CGROUP_SKB]; }
            98 get_listener_sock = net::socket::get_listener_sock, "struct bpf_sock *" "struct bpf_sock *sk" [] {
                (PtrToSockCommon) -> PtrToSocket|PTR_MAYBE_NULL, [] for [TC CGROUP_SKB]; }
            99 skc_lookup_tcp = net::socket::skc_lookup_tcp,
                "struct bpf_sock *" "void *ctx, struct bpf_sock_tuple *tuple, u32 tuple_size, u64 netns, u64 flags" [ACQUIRES] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything, Anything) -> PtrToSockCommon|PTR_MAYBE_NULL,
                    [PKT_ACCESS] for [TC XDP CGROUP_SKB SK_SKB];
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything, Anything) -> PtrToSockCommon|PTR_MAYBE_NULL,
                    [] for [CGROUP_SOCK_ADDR]; }
            100 tcp_check_syncookie = net::syncookie::check, "long " "void *sk, void *iph, u32 iph_len, struct tcphdr *th, u32 th_len" [] {
                (PtrToBtfIdSockCommon, PtrToMem|MEM_RDONLY, ConstSize, PtrToMem|MEM_RDONLY, ConstSize) -> Integer,
                    [GPL_ONLY PKT_ACCESS] for [TC XDP]; }
            101 sysctl_get_name = net::cgroup::sysctl_get_name, "long " "struct bpf_sysctl *ctx, char *buf, size_t buf_len, u64 flags" [] {
                (PtrToCtx, PtrToMem|MEM_WRITE, ConstSize, Anything) -> Integer, [] for [CGROUP_SYSCTL]; }
            102 sysctl_get_current_value = net::cgroup::sysctl_get_current_value, "long " "struct bpf_sysctl *ctx, char *buf, size_t buf_len" [] {
                (PtrToCtx, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [] for [CGROUP_SYSCTL]; }
            103 sysctl_get_new_value = net::cgroup::sysctl_get_new_value, "long " "struct bpf_sysctl *ctx, char *buf, size_t buf_len" [] {
                (PtrToCtx, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [] for [CGROUP_SYSCTL]; }
            104 sysctl_set_new_value = net::cgroup::sysctl_set_new_value, "long " "struct bpf_sysctl *ctx, const char *buf, size_t buf_len" [] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [CGROUP_SYSCTL]; }
            105 strtol = string::strtol, "long " "const char *buf, size_t buf_len, u64 flags, long *res" [] as OVERRIDE {
                (PtrToMem|MEM_RDONLY, ConstSize, Anything, PtrToMem(8)|MEM_UNINIT|MEM_FIXED_SIZE|MEM_ALIGNED|MEM_WRITE)
                    -> Integer,
                    [] for [ALL]; }
            106 strtoul = string::strtoul, "long " "const char *buf, size_t buf_len, u64 flags, unsigned long *res" [] as OVERRIDE {
                (PtrToMem|MEM_RDONLY, ConstSize, Anything, PtrToMem(8)|MEM_UNINIT|MEM_FIXED_SIZE|MEM_ALIGNED|MEM_WRITE)
                    -> Integer,
                    [] for [ALL]; }
            107 sk_storage_get = storage::sk_storage_get, "void *" "struct bpf_map *map, void *sk, void *value, u64 flags" [] as STORAGE {
                (ConstMapPtr, PtrToBtfIdSockCommon, PtrToMapValue|PTR_MAYBE_NULL, Anything) -> PtrToMapValue|PTR_MAYBE_NULL,
                    [] for [TC CGROUP_SKB SOCK_OPS SK_MSG CGROUP_SOCK_ADDR CGROUP_SOCKOPT LSM TCP_CA];
                (ConstMapPtr, PtrToCtx, PtrToMapValue|PTR_MAYBE_NULL, Anything) -> PtrToMapValue|PTR_MAYBE_NULL,
                    [] for [CGROUP_SOCK];
                (ConstMapPtr, PtrToBtfId(sock_common)|PTR_MAYBE_NULL, PtrToMapValue|PTR_MAYBE_NULL, Anything) ->
                    PtrToMapValue|PTR_MAYBE_NULL,
                    [ALLOW_LIST] for [BTF_TRACING SYSCALL]; }
            108 sk_storage_delete = storage::sk_storage_delete, "long " "struct bpf_map *map, void *sk" [] as STORAGE {
                (ConstMapPtr, PtrToBtfIdSockCommon) -> Integer,
                    [] for [TC CGROUP_SKB SOCK_OPS SK_MSG CGROUP_SOCK_ADDR CGROUP_SOCKOPT LSM TCP_CA];
                (ConstMapPtr, PtrToBtfId(sock_common)|PTR_MAYBE_NULL) -> Integer, [ALLOW_LIST] for [BTF_TRACING SYSCALL]; }
            109 send_signal = task::send_signal, "long " "u32 sig" [] as EFFECT {
                (Anything) -> Integer, [NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            110 tcp_gen_syncookie = net::syncookie::generate, "s64 " "void *sk, void *iph, u32 iph_len, struct tcphdr *th, u32 th_len" [] {
                (PtrToBtfIdSockCommon, PtrToMem|MEM_RDONLY, ConstSize, PtrToMem|MEM_RDONLY, ConstSize) -> Integer,
                    [GPL_ONLY PKT_ACCESS] for [TC XDP]; }
            111 skb_output = output::skb_output, "long " "void *ctx, struct bpf_map *map, u64 flags, void *data, u64 size" [] {
                (PtrToBtfId(sk_buff), ConstMapPtr, Anything, PtrToMem|MEM_RDONLY, ConstSizeOrZero) -> Integer,
                    [GPL_ONLY] for [BTF_TRACING LSM SYSCALL]; }
            112 probe_read_user = probe::probe_read_user, "long " "void *dst, u32 size, const void *unsafe_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            113 probe_read_kernel = probe::probe_read_kernel, "long " "void *dst, u32 size, const void *unsafe_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            114 probe_read_user_str = probe::probe_read_user_str, "long " "void *dst, u32 size, const void *unsafe_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            115 probe_read_kernel_str = probe::probe_read_kernel_str,
                "long " "void *dst, u32 size, const void *unsafe_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            116 tcp_send_ack = net::sock_ops::tcp_send_ack, "long " "void *tp, u32 rcv_nxt" [] {
                (PtrToBtfId(tcp_sock), Anything) -> Integer, [] for [TCP_CA]; }
            117 send_signal_thread = task::send_signal, "long " "u32 sig" [] as EFFECT {
                (Anything) -> Integer, [NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            118 jiffies64 = environment::jiffies64, "u64 " "void" [] {
                () -> Integer, [NEEDS_BPF] for [ALL]; }
            119 read_branch_records = perf::read_branch_records, "long " "struct bpf_perf_event_data *ctx, void *buf, u32 size, u64 flags" [] {
                (PtrToCtx, PtrToMem|PTR_MAYBE_NULL|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer,
                    [GPL_ONLY] for [PERF_EVENT]; }
            120 get_ns_current_pid_tgid = task::get_ns_current_pid_tgid,
                "long " "u64 dev, u64 ino, struct bpf_pidns_info *nsdata, u32 size" [] {
                (Anything, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [] for [ALL]; }
            121 xdp_output = output::xdp_output, "long " "void *ctx, struct bpf_map *map, u64 flags, void *data, u64 size" [] {
                (PtrToBtfId(xdp_buff), ConstMapPtr, Anything, PtrToMem|MEM_RDONLY, ConstSizeOrZero) -> Integer,
                    [GPL_ONLY] for [BTF_TRACING LSM SYSCALL]; }
            122 get_netns_cookie = net::socket::get_netns_cookie, "u64 " "void *ctx" [] {
                (PtrToCtx|PTR_MAYBE_NULL) -> Integer,
                    [] for [TC SOCKET_FILTER CGROUP_SKB CGROUP_SOCK SOCK_OPS SK_MSG CGROUP_SOCK_ADDR CGROUP_SOCKOPT]; }
            123 get_current_ancestor_cgroup_id = task::get_current_ancestor_cgroup_id, "u64 " "int ancestor_level" [] {
                (Anything) -> Integer, [NEEDS_BPF] for [ALL]; }
            124 sk_assign = net::socket::sk_assign, "long " "struct sk_buff *skb, void *sk, u64 flags" [] {
                (PtrToCtx, PtrToBtfIdSockCommon, Anything) -> Integer, [] for [TC];
                (PtrToCtx, PtrToSocket|PTR_MAYBE_NULL, Anything) -> Integer, [] for [SK_LOOKUP]; }
            125 ktime_get_boot_ns = environment::ktime_get_boot_ns, "u64 " "void" [] {
                () -> Integer, [] for [ALL LIRC_MODE2]; }
            126 seq_printf = sequence::seq_printf,
                "long " "struct seq_file *m, const char *fmt, u32 fmt_size, const void *data, u32 data_len" [] as EFFECT {
                (PtrToBtfId(seq_file), PtrToMem|MEM_RDONLY, ConstSize, PtrToMem|PTR_MAYBE_NULL|MEM_RDONLY,
                    ConstSizeOrZero) -> Integer,
                    [GPL_ONLY] for [ITER]; }
            127 seq_write = sequence::seq_write, "long " "struct seq_file *m, const void *data, u32 len" [] as EFFECT {
                (PtrToBtfId(seq_file), PtrToMem|MEM_RDONLY, ConstSizeOrZero) -> Integer, [GPL_ONLY] for [ITER]; }
            128 sk_cgroup_id = net::socket::sk_cgroup_id, "u64 " "void *sk" [] {
                (PtrToBtfIdSockCommon) -> Integer, [] for [CGROUP_SKB]; }
            129 sk_ancestor_cgroup_id = net::socket::sk_ancestor_cgroup_id, "u64 " "void *sk, int ancestor_level" [] {
                (PtrToBtfIdSockCommon, Anything) -> Integer, [] for [CGROUP_SKB]; }
            130 ringbuf_output = output::ringbuf_output, "long " "void *ringbuf, void *data, u64 size, u64 flags" [] {
                (ConstMapPtr, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything) -> Integer, [] for [ALL]; }
            131 ringbuf_reserve = output::ringbuf_reserve, "void *" "void *ringbuf, u64 size, u64 flags" [ACQUIRES] {
                (ConstMapPtr, ConstAllocSizeOrZero, Anything) -> PtrToMem|PTR_MAYBE_NULL|MEM_RINGBUF, [] for [ALL]; }
            132 ringbuf_submit = output::ringbuf_submit, "void " "void *data, u64 flags" [] as REPEAT {
                (PtrToRingbufMem|OBJ_RELEASE, Anything) -> Void, [] for [ALL]; }
            133 ringbuf_discard = output::ringbuf_discard, "void " "void *data, u64 flags" [] as REPEAT {
                (PtrToRingbufMem|OBJ_RELEASE, Anything) -> Void, [] for [ALL]; }
            134 ringbuf_query = output::ringbuf_query, "u64 " "void *ringbuf, u64 flags" [] as SKIP {
                (ConstMapPtr, Anything) -> Integer, [] for [ALL]; }
            135 csum_level = net::state::csum_level, "long " "struct sk_buff *skb, u64 level" [] {
                (PtrToCtx, Anything) -> Integer, [] for [TC LWT_XMIT]; }
            136 skc_to_tcp6_sock = net::cast::to_tcp6_sock, "struct tcp6_sock *" "void *sk" [CASTS] {
                (PtrToBtfIdSockCommon) -> PtrToBtfId(tcp6_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            137 skc_to_tcp_sock = net::cast::to_tcp_sock, "struct tcp_sock *" "void *sk" [CASTS] {
                (PtrToBtfIdSockCommon) -> PtrToBtfId(tcp_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            138 skc_to_tcp_timewait_sock = net::cast::to_tcp_timewait_sock, "struct tcp_timewait_sock *" "void *sk" [CASTS] {
                (PtrToBtfIdSockCommon) -> PtrToBtfId(tcp_timewait_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            139 skc_to_tcp_request_sock = net::cast::to_tcp_request_sock, "struct tcp_request_sock *" "void *sk" [CASTS] {
                (PtrToBtfIdSockCommon) -> PtrToBtfId(tcp_request_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            140 skc_to_udp6_sock = net::cast::to_udp6_sock, "struct udp6_sock *" "void *sk" [CASTS] {
                (PtrToBtfIdSockCommon) -> PtrToBtfId(udp6_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            141 get_task_stack = stack::get_task_stack, "long " "struct task_struct *task, void *buf, u32 size, u64 flags" [] {
                (PtrToBtfId(task_struct), PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer,
                    [NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            142 load_hdr_opt = net::sock_ops::load_hdr_opt, "long " "struct bpf_sock_ops *skops, void *searchby_res, u32 len, u64 flags" [] {
                (PtrToCtx, PtrToMem|MEM_WRITE, ConstSize, Anything) -> Integer, [] for [SOCK_OPS]; }
            143 store_hdr_opt = net::sock_ops::store_hdr_opt,
                "long " "struct bpf_sock_ops *skops, const void *from, u32 len, u64 flags" [CHANGES_PACKET] {
                (PtrToCtx, PtrToMem|MEM_RDONLY, ConstSize, Anything) -> Integer, [] for [SOCK_OPS]; }
            144 reserve_hdr_opt = net::sock_ops::reserve_hdr_opt, "long " "struct bpf_sock_ops *skops, u32 len, u64 flags" [] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [SOCK_OPS]; }
            145 inode_storage_get = storage::inode_storage_get, "void *" "struct bpf_map *map, void *inode, void *value, u64 flags" [] as STORAGE {
                (ConstMapPtr, PtrToBtfId(inode)|PTR_MAYBE_NULL, PtrToMapValue|PTR_MAYBE_NULL, Anything) ->
                    PtrToMapValue|PTR_MAYBE_NULL,
                    [] for [LSM]; }
            146 inode_storage_delete = storage::inode_storage_delete, "int " "struct bpf_map *map, void *inode" [] as STORAGE {
                (ConstMapPtr, PtrToBtfId(inode)|PTR_MAYBE_NULL) -> Integer, [] for [LSM]; }
            147 d_path = kernel::d_path, "long " "const struct path *path, char *buf, u32 sz" [] {
                (PtrToBtfId(path), PtrToMem|MEM_WRITE, ConstSizeOrZero) -> Integer,
                    [ALLOW_LIST] for [BTF_TRACING LSM SYSCALL]; }
            148 copy_from_user = probe::copy_from_user, "long " "void *dst, u32 size, const void *user_ptr" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything) -> Integer,
                    [MIGHT_SLEEP NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            149 snprintf_btf = print::snprintf_btf, "long " "char *str, u32 str_size, struct btf_ptr *ptr, u32 btf_ptr_size, u64 flags" [] {
                (PtrToMem|MEM_WRITE, ConstSize, PtrToMem|MEM_RDONLY, ConstSize, Anything) -> Integer,
                    [NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            150 seq_printf_btf = sequence::seq_printf_btf, "long " "struct seq_file *m, struct btf_ptr *ptr, u32 ptr_size, u64 flags" [] as EFFECT {
                (PtrToBtfId(seq_file), PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything) -> Integer, [GPL_ONLY] for [ITER]; }
            151 skb_cgroup_classid = net::socket::skb_cgroup_classid, "u64 " "struct sk_buff *skb" [] {
                (PtrToCtx) -> Integer, [] for [TC]; }
            152 redirect_neigh = redirect::redirect_neigh, "long " "u32 ifindex, struct bpf_redir_neigh *params, int plen, u64 flags" [] {
                (Anything, PtrToMem|PTR_MAYBE_NULL|MEM_RDONLY, ConstSizeOrZero, Anything) -> Integer, [] for [TC]; }
            153 per_cpu_ptr = per_cpu::per_cpu_ptr, "void *" "const void *percpu_ptr, u32 cpu" [] {
                (PtrToPercpuBtfId, Anything) -> PtrToMemOrBtfId|PTR_MAYBE_NULL|MEM_RDONLY, [NEEDS_BPF] for [ALL]; }
            154 this_cpu_ptr = per_cpu::this_cpu_ptr, "void *" "const void *percpu_ptr" [] {
                (PtrToPercpuBtfId) -> PtrToMemOrBtfId|MEM_RDONLY, [NEEDS_BPF] for [ALL]; }
            155 redirect_peer = redirect::redirect_peer, "long " "u32 ifindex, u64 flags" [] {
                (Anything, Anything) -> Integer, [] for [TC]; }
            156 task_storage_get = storage::task_storage_get, "void *" "struct bpf_map *map, struct task_struct *task, void *value, u64 flags" [] as STORAGE {
                (ConstMapPtr, PtrToBtfId(task_struct)|PTR_MAYBE_NULL, PtrToMapValue|PTR_MAYBE_NULL, Anything) ->
                    PtrToMapValue|PTR_MAYBE_NULL,
                    [NEEDS_BPF] for [ALL]; }
            157 task_storage_delete = storage::task_storage_delete, "long " "struct bpf_map *map, struct task_struct *task" [] as STORAGE {
                (ConstMapPtr, PtrToBtfId(task_struct)|PTR_MAYBE_NULL) -> Integer, [NEEDS_BPF] for [ALL]; }
            158 get_current_task_btf = task::get_current_task_btf, "struct task_struct *" "void" [] {
                () -> PtrToBtfId(task_struct)|PTR_TRUSTED, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            159 bprm_opts_set = kernel::bprm_opts_set, "long " "struct linux_binprm *bprm, u64 flags" [] {
                (PtrToBtfId(linux_binprm), Anything) -> Integer, [] for [LSM]; }
            160 ktime_get_coarse_ns = environment::ktime_get_coarse_ns, "u64 " "void" [] {
                () -> Integer,
                    [] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB CGROUP_SOCK SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        SK_REUSEPORT FLOW_DISSECTOR CGROUP_SYSCTL SK_LOOKUP TCP_CA]; }
            161 ima_inode_hash = none, "long " "struct inode *inode, void *dst, u32 size" [] {
                (PtrToBtfId(inode), PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer,
                    [MIGHT_SLEEP ALLOW_LIST] for [LSM]; }
            162 sock_from_file = net::cast::sock_from_file, "struct socket *" "struct file *file" [] {
                (PtrToBtfId(file)) -> PtrToBtfId(socket)|PTR_MAYBE_NULL, [] for [BTF_TRACING LSM SYSCALL]; }
            163 check_mtu = net::fib::check_mtu, "long " "void *ctx, u32 ifindex, u32 *mtu_len, s32 len_diff, u64 flags" [] {
                (PtrToCtx, Anything, PtrToMem(4)|MEM_FIXED_SIZE|MEM_ALIGNED|MEM_WRITE, Anything, Anything) -> Integer,
                    [GPL_ONLY] for [TC XDP]; }
            164 for_each_map_elem = maps::for_each_elem,
                "long " "struct bpf_map *map, void *callback_fn, void *callback_ctx, u64 flags" [CALLS_BACK] as REPEAT {
                (ConstMapPtr, PtrToFunc, PtrToStack|PTR_MAYBE_NULL, Anything) -> Integer, [NEEDS_BPF] for [ALL]; }
            165 snprintf = print::snprintf, "long " "char *str, u32 str_size, const char *fmt, u64 *data, u32 data_len" [] {
                (PtrToMem|PTR_MAYBE_NULL|MEM_WRITE, ConstSizeOrZero, PtrToConstStr, PtrToMem|PTR_MAYBE_NULL|MEM_RDONLY,
                    ConstSizeOrZero) -> Integer,
                    [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            166 sys_bpf = none, "long " "u32 cmd, void *attr, u32 attr_size" [] as COMMAND {
                (Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [SYSCALL]; }
            167 btf_find_by_name_kind = per_cpu::btf_find_by_name_kind, "long " "char *name, int name_sz, u32 kind, int flags" [] {
                (PtrToMem|MEM_RDONLY, ConstSize, Anything, Anything) -> Integer, [] for [SYSCALL]; }
            168 sys_close = none, "long " "u32 fd" [] as COMMAND {
                (Anything) -> Integer, [] for [SYSCALL]; }
            169 timer_init = timer::init_timer, "long " "struct bpf_timer *timer, struct bpf_map *map, u64 flags" [] as TIMER {
                (PtrToTimer, ConstMapPtr, Anything) -> Integer, [GPL_ONLY NEEDS_BPF] for [ALL]; }
            170 timer_set_callback = timer::set_callback, "long " "struct bpf_timer *timer, void *callback_fn" [CALLS_BACK_LATER] as TIMER {
                (PtrToTimer, PtrToFunc) -> Integer, [GPL_ONLY NEEDS_BPF] for [ALL]; }
            171 timer_start = timer::start, "long " "struct bpf_timer *timer, u64 nsecs, u64 flags" [] as TIMER {
                (PtrToTimer, Anything, Anything) -> Integer, [GPL_ONLY NEEDS_BPF] for [ALL]; }
            172 timer_cancel = timer::cancel, "long " "struct bpf_timer *timer" [] as TIMER {
                (PtrToTimer) -> Integer, [GPL_ONLY NEEDS_BPF] for [ALL]; }
            173 get_func_ip = tracing::get_func_ip, "u64 " "void *ctx" [] {
                (PtrToCtx) -> Integer,
                    [GPL_ONLY] for [RAW_TP TRACEPOINT PERF_EVENT BTF_TRACING LSM SYSCALL KPROBE_SINGLE];
                (PtrToCtx) -> Integer, [] for [KPROBE_MULTI]; }
            174 get_attach_cookie = tracing::get_attach_cookie, "u64 " "void *ctx" [] {
                (PtrToCtx) -> Integer, [] for [RAW_TP KPROBE TRACEPOINT PERF_EVENT TP_BTF TRAMPOLINE]; }
            175 task_pt_regs = task::task_pt_regs, "long " "struct task_struct *task" [] {
                (PtrToBtfId(task_struct)) -> PtrToBtfId(pt_regs), [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            176 get_branch_snapshot = perf::get_branch_snapshot, "long " "void *entries, u32 size, u64 flags" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero) -> Integer, [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            177 trace_vprintk = print::trace_vprintk,
                "long " "const char *fmt, u32 fmt_size, const void *data, u32 data_len" [] as OVERRIDE {
                (PtrToMem|MEM_RDONLY, ConstSize, PtrToMem|PTR_MAYBE_NULL|MEM_RDONLY, ConstSizeOrZero) -> Integer,
                    [GPL_ONLY NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            178 skc_to_unix_sock = net::cast::to_unix_sock, "struct unix_sock *" "void *sk" [] {
                (PtrToBtfIdSockCommon) -> PtrToBtfId(unix_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            179 kallsyms_lookup_name = per_cpu::kallsyms_lookup_name, "long " "const char *name, int name_sz, int flags, u64 *res" [] {
                (PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything,
                    PtrToMem(8)|MEM_UNINIT|MEM_FIXED_SIZE|MEM_ALIGNED|MEM_WRITE) -> Integer,
                    [] for [SYSCALL]; }
            180 find_vma = kernel::find_vma,
                "long " "struct task_struct *task, u64 addr, void *callback_fn, void *callback_ctx, u64 flags" [CALLS_BACK] as VMA {
                (PtrToBtfId(task_struct), Anything, PtrToFunc, PtrToStack|PTR_MAYBE_NULL, Anything) -> Integer,
                    [NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            181 r#loop = control::loop_, "long " "u32 nr_loops, void *callback_fn, void *callback_ctx, u64 flags" [CALLS_BACK] as REPEAT {
                (Anything, PtrToFunc, PtrToStack|PTR_MAYBE_NULL, Anything) -> Integer, [NEEDS_BPF] for [ALL]; }
            182 strncmp = string::strncmp, "long " "const char *s1, u32 s1_sz, const char *s2" [] as OVERRIDE {
                (PtrToMem|MEM_RDONLY, ConstSize, PtrToConstStr) -> Integer, [] for [ALL]; }
            183 get_func_arg = tracing::get_func_arg, "long " "void *ctx, u32 n, u64 *value" [] {
                (PtrToCtx, Anything, PtrToMem(8)|MEM_UNINIT|MEM_FIXED_SIZE|MEM_ALIGNED|MEM_WRITE) -> Integer,
                    [] for [TRAMPOLINE]; }
            184 get_func_ret = tracing::get_func_ret, "long " "void *ctx, u64 *value" [] {
                (PtrToCtx, PtrToMem(8)|MEM_UNINIT|MEM_FIXED_SIZE|MEM_ALIGNED|MEM_WRITE) -> Integer, [] for [TRAMPOLINE]; }
            185 get_func_arg_cnt = tracing::get_func_arg_cnt, "long " "void *ctx" [] {
                (PtrToCtx) -> Integer, [] for [TRAMPOLINE]; }
            186 get_retval = net::cgroup::get_retval, "int " "void" [] {
                () -> Integer, [] for [RETVAL LSM_CGROUP]; }
            187 set_retval = net::cgroup::set_retval, "int " "int retval" [] as EFFECT {
                (Anything) -> Integer, [] for [RETVAL LSM_CGROUP]; }
            188 xdp_get_buff_len = xdp::get_buff_len, "u64 " "struct xdp_buff *xdp_md" [] {
                (PtrToCtx) -> Integer, [] for [XDP];
                (PtrToBtfId(xdp_buff)) -> Integer, [] for [BTF_TRACING LSM SYSCALL]; }
            189 xdp_load_bytes = xdp::load_bytes, "long " "struct xdp_buff *xdp_md, u32 offset, void *buf, u32 len" [] {
                (PtrToCtx, Anything, PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer, [] for [XDP]; }
            190 xdp_store_bytes = xdp::store_bytes, "long " "struct xdp_buff *xdp_md, u32 offset, void *buf, u32 len" [] {
                (PtrToCtx, Anything, PtrToMem|MEM_RDONLY, ConstSize) -> Integer, [] for [XDP]; }
            191 copy_from_user_task = probe::copy_from_user_task,
                "long " "void *dst, u32 size, const void *user_ptr, struct task_struct *tsk, u64 flags" [] {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything, PtrToBtfId(task_struct), Anything) -> Integer,
                    [GPL_ONLY MIGHT_SLEEP NEEDS_BPF NEEDS_PERFMON] for [ALL]; }
            192 skb_set_tstamp = net::state::set_tstamp, "long " "struct sk_buff *skb, u64 tstamp, u32 tstamp_type" [] {
                (PtrToCtx, Anything, Anything) -> Integer, [] for [TC]; }
            193 ima_file_hash = none, "long " "struct file *file, void *dst, u32 size" [] {
                (PtrToBtfId(file), PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSize) -> Integer,
                    [MIGHT_SLEEP ALLOW_LIST] for [LSM]; }
            194 kptr_xchg = kptr::kptr_xchg, "void *" "void *dst, void *ptr" [ACQUIRES] as KERNEL_POINTER {
                (KptrXchgDest, PtrToBtfId|PTR_MAYBE_NULL|OBJ_RELEASE) -> PtrToBtfId|PTR_MAYBE_NULL, [NEEDS_BPF] for [ALL]; }
            195 map_lookup_percpu_elem = maps::lookup_percpu_elem,
                "void *" "struct bpf_map *map, const void *key, u32 cpu" [] {
                (ConstMapPtr, PtrToMapKey, Anything) -> PtrToMapValue|PTR_MAYBE_NULL, [PKT_ACCESS] for [ALL]; }
            196 skc_to_mptcp_sock = net::cast::to_mptcp_sock, "struct mptcp_sock *" "void *sk" [CASTS] {
                (PtrToSockCommon) -> PtrToBtfId(mptcp_sock)|PTR_MAYBE_NULL,
                    [NEEDS_PERFMON] for [LWT TC SOCKET_FILTER XDP CGROUP_SKB SOCK_OPS SK_SKB SK_MSG CGROUP_SOCK_ADDR
                        FLOW_DISSECTOR BTF_TRACING LSM SK_LOOKUP SYSCALL]; }
            197 dynptr_from_mem = dynptr::from_mem, "long " "void *data, u64 size, u64 flags, struct bpf_dynptr *ptr" [] as OVERRIDE {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, Anything,
                    PtrToDynptr|MEM_UNINIT|DYNPTR_TYPE_LOCAL|MEM_WRITE) -> Integer,
                    [NEEDS_BPF] for [ALL]; }
            198 ringbuf_reserve_dynptr = dynptr::reserve, "long " "void *ringbuf, u32 size, u64 flags, struct bpf_dynptr *ptr" [] {
                (ConstMapPtr, Anything, Anything, PtrToDynptr|MEM_UNINIT|DYNPTR_TYPE_RINGBUF|MEM_WRITE) -> Integer,
                    [NEEDS_BPF] for [ALL]; }
            199 ringbuf_submit_dynptr = dynptr::submit, "void " "struct bpf_dynptr *ptr, u64 flags" [] as REPEAT {
                (PtrToDynptr|OBJ_RELEASE|DYNPTR_TYPE_RINGBUF, Anything) -> Void, [NEEDS_BPF] for [ALL]; }
            200 ringbuf_discard_dynptr = dynptr::discard, "void " "struct bpf_dynptr *ptr, u64 flags" [] as REPEAT {
                (PtrToDynptr|OBJ_RELEASE|DYNPTR_TYPE_RINGBUF, Anything) -> Void, [NEEDS_BPF] for [ALL]; }
            201 dynptr_read = dynptr::read, "long " "void *dst, u64 len, const struct bpf_dynptr *src, u64 offset, u64 flags" [] as OVERRIDE {
                (PtrToMem|MEM_UNINIT|MEM_WRITE, ConstSizeOrZero, PtrToDynptr|MEM_RDONLY, Anything, Anything) -> Integer,
                    [NEEDS_BPF] for [ALL]; }
            202 dynptr_write = dynptr::write, "long " "const struct bpf_dynptr *dst, u64 offset, void *src, u64 len, u64 flags" [] as OVERRIDE {
                (PtrToDynptr|MEM_RDONLY, Anything, PtrToMem|MEM_RDONLY, ConstSizeOrZero, Anything) -> Integer,
                    [NEEDS_BPF] for [ALL]; }
            203 dynptr_data = dynptr::data, "void *" "const struct bpf_dynptr *ptr, u64 offset, u64 len" [] as OVERRIDE {
                (PtrToDynptr|MEM_RDONLY, Anything, ConstAllocSizeOrZero) -> PtrToMem|PTR_MAYBE_NULL,
                    [NEEDS_BPF] for [ALL]; }
            204 tcp_raw_gen_syncookie_ipv4 = net::syncookie::raw_generate_v4, "s64 " "struct iphdr *iph, struct tcphdr *th, u32 th_len" [] {
                (PtrToMem(20)|MEM_RDONLY|MEM_FIXED_SIZE, PtrToMem|MEM_RDONLY, ConstSizeOrZero) -> Integer,
                    [GPL_ONLY PKT_ACCESS] for [TC XDP]; }
            205 tcp_raw_gen_syncookie_ipv6 = net::syncookie::raw_generate_v6, "s64 " "struct ipv6hdr *iph, struct tcphdr *th, u32 th_len" [] {
                (PtrToMem(40)|MEM_RDONLY|MEM_FIXED_SIZE, PtrToMem|MEM_RDONLY, ConstSizeOrZero) -> Integer,
                    [GPL_ONLY PKT_ACCESS] for [TC XDP]; }
            206 tcp_raw_check_syncookie_ipv4 = net::syncookie::raw_check_v4, "long " "struct iphdr *iph, struct tcphdr *th" [] {
                (PtrToMem(20)|MEM_RDONLY|MEM_FIXED_SIZE, PtrToMem(20)|MEM_RDONLY|MEM_FIXED_SIZE) -> Integer,
                    [GPL_ONLY PKT_ACCESS] for [TC XDP]; }
            207 tcp_raw_check_syncookie_ipv6 = net::syncookie::raw_check_v6, "long " "struct ipv6hdr *iph, struct tcphdr *th" [] {
                (PtrToMem(40)|MEM_RDONLY|MEM_FIXED_SIZE, PtrToMem(20)|MEM_RDONLY|MEM_FIXED_SIZE) -> Integer,
                    [GPL_ONLY PKT_ACCESS] for [TC XDP]; }
            208 ktime_get_tai_ns = environment::ktime_get_tai_ns, "u64 " "void" [] {
                () -> Integer, [] for [ALL]; }
            209 user_ringbuf_drain = user_ringbuf::drain,
                "long " "struct bpf_map *map, void *callback_fn, void *ctx, u64 flags" [CALLS_BACK] as USER_RING {
                (ConstMapPtr, PtrToFunc, PtrToStack|PTR_MAYBE_NULL, Anything) -> Integer, [NEEDS_BPF] for [ALL]; }
            210 cgrp_storage_get = storage::cgrp_storage_get, "void *" "struct bpf_map *map, struct cgroup *cgroup, void *value, u64 flags" [] as STORAGE {
                (ConstMapPtr, PtrToBtfId(cgroup)|PTR_MAYBE_NULL, PtrToMapValue|PTR_MAYBE_NULL, Anything) ->
                    PtrToMapValue|PTR_MAYBE_NULL,
                    [NEEDS_BPF] for [ALL]; }
            211 cgrp_storage_delete = storage::cgrp_storage_delete, "long " "struct bpf_map *map, struct cgroup *cgroup" [] as STORAGE {
                (ConstMapPtr, PtrToBtfId(cgroup)|PTR_MAYBE_NULL) -> Integer, [NEEDS_BPF] for [ALL]; }
        }
    };
}

pub(crate) use for_each_helper;
