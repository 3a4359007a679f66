//! The table of kfuncs, as a macro that passes all rows to another macro.

/// Calls `$macro` with the kfunc sets of Linux 6.18 and their kfuncs.
///
/// The form of the table:
///
/// ```text
/// for SET {
///     name = body, "C return type" "C parameters" [flags] does EFFECT as REPLAY;
/// }
/// ```
///
/// - `SET` is a constant of `sets`: the programs that may call the kfuncs, and the build
///   option that the kfuncs require.
/// - `body` is the path of the implementation below `crate::vm::kfuncs`, or `none`; only
///   the virtual machine uses it.
/// - The C text is that of the kernel's BTF and sources; name suffixes have a meaning
///   ([`ParameterKind`](super::ParameterKind)).
/// - *flags* are constants of [`KfuncFlags`](super::KfuncFlags).
/// - `does EFFECT` is an effect that no flag states, a constant of
///   [`Effects`](super::super::call::Effects).
/// - `as REPLAY` is how a recording treats a call, a constant of
///   [`replay::column`](super::super::replay); `SKIP` without it.
///
/// Sets, hooks and flags agree with the registered ones of a running 6.18
/// (`btf->kfunc_set_tab`), declarations with its BTF. Kfuncs that this kernel was built
/// without are taken from the sources: `drivers/hid/bpf`, `kernel/sched/ext.c`,
/// `net/sched/bpf_qdisc.c` and others.
macro_rules! for_each_kfunc {
    ($macro:ident) => {
        $macro! {
            for COMMON {
                __bpf_trap = exception::trap, "void " "void" [];
                bpf_arena_alloc_pages = arena::alloc_pages,
                    "void *" "void *p__map, void *addr__ign, u32 page_cnt, int node_id, u64 flags"
                    [TRUSTED_ARGS SLEEPABLE ARENA_RET ARENA_ARG2];
                bpf_arena_free_pages = arena::free_pages,
                    "void " "void *p__map, void *ptr__ign, u32 page_cnt" [TRUSTED_ARGS SLEEPABLE ARENA_ARG2];
                bpf_arena_reserve_pages = arena::reserve_pages,
                    "int " "void *p__map, void *ptr__ign, u32 page_cnt" [TRUSTED_ARGS SLEEPABLE ARENA_ARG2];
                bpf_cast_to_kern_ctx = context::cast_to_kern_ctx, "void *" "void *obj" [FASTCALL];
                bpf_copy_from_user_str = user::copy_from_user_str,
                    "int " "void *dst, u32 dst__sz, const void *unsafe_ptr__ign, u64 flags" [SLEEPABLE];
                bpf_copy_from_user_task_str = user::copy_from_user_task_str,
                    "int " "void *dst, u32 dst__sz, const void *unsafe_ptr__ign, struct task_struct *tsk, u64 flags"
                    [SLEEPABLE];
                bpf_dynptr_adjust = dynptr::adjust, "int " "const struct bpf_dynptr *p, u32 start, u32 end" [] as OVERRIDE;
                bpf_dynptr_clone = dynptr::clone, "int " "const struct bpf_dynptr *p, struct bpf_dynptr *clone__uninit" [] as OVERRIDE;
                bpf_dynptr_copy = dynptr::copy,
                    "int " "struct bpf_dynptr *dst_ptr, u32 dst_off, struct bpf_dynptr *src_ptr, u32 src_off, u32 size"
                    [] as OVERRIDE;
                bpf_dynptr_is_null = dynptr::is_null, "bool " "const struct bpf_dynptr *p" [] as OVERRIDE;
                bpf_dynptr_is_rdonly = dynptr::is_rdonly, "bool " "const struct bpf_dynptr *p" [] as OVERRIDE;
                bpf_dynptr_memset = dynptr::memset, "int " "struct bpf_dynptr *p, u32 offset, u32 size, u8 val" [] as OVERRIDE;
                bpf_dynptr_size = dynptr::size, "__u32 " "const struct bpf_dynptr *p" [] as OVERRIDE;
                bpf_dynptr_slice = dynptr::slice,
                    "void *" "const struct bpf_dynptr *p, u32 offset, void *buffer__opt, u32 buffer__szk"
                    [RET_NULL] as OVERRIDE;
                bpf_dynptr_slice_rdwr = dynptr::slice_rdwr,
                    "void *" "const struct bpf_dynptr *p, u32 offset, void *buffer__opt, u32 buffer__szk"
                    [RET_NULL] as OVERRIDE;
                bpf_get_kmem_cache = kernel_iterator::kmem_cache_of, "struct kmem_cache *" "u64 addr" [];
                bpf_iter_bits_destroy = iterator::bits_destroy, "void " "struct bpf_iter_bits *it" [ITER_DESTROY];
                bpf_iter_bits_new = iterator::bits_new,
                    "int " "struct bpf_iter_bits *it, const u64 *unsafe_ptr__ign, u32 nr_words" [ITER_NEW];
                bpf_iter_bits_next = iterator::bits_next, "int *" "struct bpf_iter_bits *it" [RET_NULL ITER_NEXT];
                bpf_iter_css_destroy = kernel_iterator::css_destroy, "void " "struct bpf_iter_css *it" [ITER_DESTROY];
                bpf_iter_css_new = kernel_iterator::css_new,
                    "int " "struct bpf_iter_css *it, struct cgroup_subsys_state *start, unsigned int flags"
                    [TRUSTED_ARGS ITER_NEW RCU_PROTECTED];
                bpf_iter_css_next = kernel_iterator::css_next,
                    "struct cgroup_subsys_state *" "struct bpf_iter_css *it" [RET_NULL ITER_NEXT];
                bpf_iter_css_task_destroy = kernel_iterator::css_task_destroy,
                    "void " "struct bpf_iter_css_task *it" [ITER_DESTROY];
                bpf_iter_css_task_new = kernel_iterator::css_task_new,
                    "int " "struct bpf_iter_css_task *it, struct cgroup_subsys_state *css, unsigned int flags"
                    [TRUSTED_ARGS ITER_NEW];
                bpf_iter_css_task_next = kernel_iterator::css_task_next,
                    "struct task_struct *" "struct bpf_iter_css_task *it" [RET_NULL ITER_NEXT];
                bpf_iter_kmem_cache_destroy = kernel_iterator::kmem_cache_destroy,
                    "void " "struct bpf_iter_kmem_cache *it" [SLEEPABLE ITER_DESTROY];
                bpf_iter_kmem_cache_new = kernel_iterator::kmem_cache_new,
                    "int " "struct bpf_iter_kmem_cache *it" [SLEEPABLE ITER_NEW];
                bpf_iter_kmem_cache_next = kernel_iterator::kmem_cache_next,
                    "struct kmem_cache *" "struct bpf_iter_kmem_cache *it" [RET_NULL SLEEPABLE ITER_NEXT];
                bpf_iter_num_destroy = iterator::num_destroy, "void " "struct bpf_iter_num *it" [ITER_DESTROY] as REPEAT;
                bpf_iter_num_new = iterator::num_new,
                    "int " "struct bpf_iter_num *it, int start, int end" [ITER_NEW] as REPEAT;
                bpf_iter_num_next = iterator::num_next, "int *" "struct bpf_iter_num *it" [RET_NULL ITER_NEXT] as REPEAT;
                bpf_iter_task_destroy = kernel_iterator::task_destroy,
                    "void " "struct bpf_iter_task *it" [ITER_DESTROY];
                bpf_iter_task_new = kernel_iterator::task_new,
                    "int " "struct bpf_iter_task *it, struct task_struct *task__nullable, unsigned int flags"
                    [TRUSTED_ARGS ITER_NEW RCU_PROTECTED];
                bpf_iter_task_next = kernel_iterator::task_next,
                    "struct task_struct *" "struct bpf_iter_task *it" [RET_NULL ITER_NEXT];
                bpf_iter_task_vma_destroy = kernel_iterator::task_vma_destroy,
                    "void " "struct bpf_iter_task_vma *it" [ITER_DESTROY];
                bpf_iter_task_vma_new = kernel_iterator::task_vma_new,
                    "int " "struct bpf_iter_task_vma *it, struct task_struct *task, u64 addr" [RCU ITER_NEW];
                bpf_iter_task_vma_next = kernel_iterator::task_vma_next,
                    "struct vm_area_struct *" "struct bpf_iter_task_vma *it" [RET_NULL ITER_NEXT];
                bpf_local_irq_restore = critical::local_irq_restore,
                    "void " "long unsigned int *flags__irq_flag" [] as REPEAT;
                bpf_local_irq_save = critical::local_irq_save, "void " "long unsigned int *flags__irq_flag" [] as REPEAT;
                bpf_map_sum_elem_count = map::sum_elem_count, "s64 " "const struct bpf_map *map" [TRUSTED_ARGS];
                bpf_preempt_disable = critical::preempt_disable, "void " "void" [] as REPEAT;
                bpf_preempt_enable = critical::preempt_enable, "void " "void" [] as REPEAT;
                bpf_rcu_read_lock = critical::rcu_read_lock, "void " "void" [] as REPEAT;
                bpf_rcu_read_unlock = critical::rcu_read_unlock, "void " "void" [] as REPEAT;
                bpf_rdonly_cast = map::rdonly_cast, "void *" "const void *obj__ign, u32 btf_id__k" [FASTCALL];
                bpf_res_spin_lock = lock::res_spin_lock, "int " "struct bpf_res_spin_lock *lock" [RET_NULL];
                bpf_res_spin_lock_irqsave = lock::res_spin_lock_irqsave,
                    "int " "struct bpf_res_spin_lock *lock, long unsigned int *flags__irq_flag" [RET_NULL];
                bpf_res_spin_unlock = lock::res_spin_unlock, "void " "struct bpf_res_spin_lock *lock" [];
                bpf_res_spin_unlock_irqrestore = lock::res_spin_unlock_irqrestore,
                    "void " "struct bpf_res_spin_lock *lock, long unsigned int *flags__irq_flag" [];
                bpf_strcasecmp = string::strcasecmp, "int " "const char *s1__ign, const char *s2__ign" [];
                bpf_strchr = string::strchr, "int " "const char *s__ign, char c" [];
                bpf_strchrnul = string::strchrnul, "int " "const char *s__ign, char c" [];
                bpf_strcmp = string::strcmp, "int " "const char *s1__ign, const char *s2__ign" [];
                bpf_strcspn = string::strcspn, "int " "const char *s__ign, const char *reject__ign" [];
                bpf_stream_vprintk_impl = none,
                    "int " "int stream_id, const char *fmt__str, const void *args, u32 len__sz, void *aux__prog"
                    [TRUSTED_ARGS];
                bpf_strlen = string::strlen, "int " "const char *s__ign" [];
                bpf_strnchr = string::strnchr, "int " "const char *s__ign, size_t count, char c" [];
                bpf_strnlen = string::strnlen, "int " "const char *s__ign, size_t count" [];
                bpf_strnstr = string::strnstr, "int " "const char *s1__ign, const char *s2__ign, size_t len" [];
                bpf_strrchr = string::strrchr, "int " "const char *s__ign, int c" [];
                bpf_strspn = string::strspn, "int " "const char *s__ign, const char *accept__ign" [];
                bpf_strstr = string::strstr, "int " "const char *s1__ign, const char *s2__ign" [];
                bpf_task_work_schedule_resume_impl = work::task_work_schedule,
                    "int " "struct task_struct *task, struct bpf_task_work *tw, void *map__map, bpf_task_work_callback_t callback, void *aux__prog"
                    [TRUSTED_ARGS] does CALLS_BACK_LATER;
                bpf_task_work_schedule_signal_impl = work::task_work_schedule,
                    "int " "struct task_struct *task, struct bpf_task_work *tw, void *map__map, bpf_task_work_callback_t callback, void *aux__prog"
                    [TRUSTED_ARGS] does CALLS_BACK_LATER;
                bpf_wq_init = work::wq_init, "int " "struct bpf_wq *wq, void *p__map, unsigned int flags" [];
                bpf_wq_set_callback_impl = work::wq_set_callback,
                    "int " "struct bpf_wq *wq, int (*callback_fn)(void *, int *, void *), unsigned int flags, void *aux__prog"
                    [] does CALLS_BACK_LATER;
                bpf_wq_start = work::wq_start, "int " "struct bpf_wq *wq, unsigned int flags" [];
            }
            for COMMON_EVENTS {
                bpf_copy_from_user_dynptr = dynptr_probe::copy_from_user,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign" [SLEEPABLE];
                bpf_copy_from_user_str_dynptr = dynptr_probe::copy_from_user_str,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign" [SLEEPABLE];
                bpf_copy_from_user_task_dynptr = dynptr_probe::copy_from_user_task,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign, struct task_struct *tsk"
                    [TRUSTED_ARGS SLEEPABLE];
                bpf_copy_from_user_task_str_dynptr = dynptr_probe::copy_from_user_task_str,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign, struct task_struct *tsk"
                    [TRUSTED_ARGS SLEEPABLE];
                bpf_probe_read_kernel_dynptr = dynptr_probe::probe_read_kernel,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign" [];
                bpf_probe_read_kernel_str_dynptr = dynptr_probe::probe_read_kernel_str,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign" [];
                bpf_probe_read_user_dynptr = dynptr_probe::probe_read_user,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign" [];
                bpf_probe_read_user_str_dynptr = dynptr_probe::probe_read_user_str,
                    "int " "struct bpf_dynptr *dptr, u32 off, u32 size, const void *unsafe_ptr__ign" [];
            }
            for COMMON_DMABUF {
                bpf_iter_dmabuf_destroy = kernel_iterator::dmabuf_destroy,
                    "void " "struct bpf_iter_dmabuf *it" [SLEEPABLE ITER_DESTROY];
                bpf_iter_dmabuf_new = kernel_iterator::dmabuf_new,
                    "int " "struct bpf_iter_dmabuf *it" [SLEEPABLE ITER_NEW];
                bpf_iter_dmabuf_next = kernel_iterator::dmabuf_next,
                    "struct dma_buf *" "struct bpf_iter_dmabuf *it" [RET_NULL SLEEPABLE ITER_NEXT];
            }
            for COMMON_LSM {
                bpf_cgroup_read_xattr = none,
                    "int " "struct cgroup *cgroup, const char *name__str, struct bpf_dynptr *value_p" [RCU];
            }
            for GENERIC {
                bpf_cgroup_acquire = cgroup::acquire_cgroup,
                    "struct cgroup *" "struct cgroup *cgrp" [ACQUIRE RET_NULL RCU];
                bpf_cgroup_ancestor = cgroup::ancestor,
                    "struct cgroup *" "struct cgroup *cgrp, int level" [ACQUIRE RET_NULL RCU];
                bpf_cgroup_from_id = cgroup::from_id, "struct cgroup *" "u64 cgid" [ACQUIRE RET_NULL];
                bpf_cgroup_release = kernel::release, "void " "struct cgroup *cgrp" [RELEASE];
                bpf_list_back = list::back, "struct bpf_list_node *" "struct bpf_list_head *head" [RET_NULL];
                bpf_list_front = list::front, "struct bpf_list_node *" "struct bpf_list_head *head" [RET_NULL];
                bpf_list_pop_back = list::pop_back,
                    "struct bpf_list_node *" "struct bpf_list_head *head" [ACQUIRE RET_NULL];
                bpf_list_pop_front = list::pop_front,
                    "struct bpf_list_node *" "struct bpf_list_head *head" [ACQUIRE RET_NULL];
                bpf_list_push_back_impl = list::push_back,
                    "int " "struct bpf_list_head *head, struct bpf_list_node *node, void *meta__ign, u64 off" [];
                bpf_list_push_front_impl = list::push_front,
                    "int " "struct bpf_list_head *head, struct bpf_list_node *node, void *meta__ign, u64 off" [];
                bpf_obj_drop_impl = object::obj_drop, "void " "void *p__alloc, void *meta__ign" [RELEASE];
                bpf_obj_new_impl = object::obj_new,
                    "void *" "u64 local_type_id__k, void *meta__ign" [ACQUIRE RET_NULL];
                bpf_percpu_obj_drop_impl = object::percpu_obj_drop,
                    "void " "void *p__alloc, void *meta__ign" [RELEASE];
                bpf_percpu_obj_new_impl = object::percpu_obj_new,
                    "void *" "u64 local_type_id__k, void *meta__ign" [ACQUIRE RET_NULL];
                bpf_rbtree_add_impl = rbtree::add,
                    "int " "struct bpf_rb_root *root, struct bpf_rb_node *node, bool (*less)(struct bpf_rb_node *, const struct bpf_rb_node *), void *meta__ign, u64 off"
                    [] does CALLS_BACK;
                bpf_rbtree_first = rbtree::first, "struct bpf_rb_node *" "struct bpf_rb_root *root" [RET_NULL];
                bpf_rbtree_left = rbtree::left,
                    "struct bpf_rb_node *" "struct bpf_rb_root *root, struct bpf_rb_node *node" [RET_NULL];
                bpf_rbtree_remove = rbtree::remove,
                    "struct bpf_rb_node *" "struct bpf_rb_root *root, struct bpf_rb_node *node" [ACQUIRE RET_NULL];
                bpf_rbtree_right = rbtree::right,
                    "struct bpf_rb_node *" "struct bpf_rb_root *root, struct bpf_rb_node *node" [RET_NULL];
                bpf_rbtree_root = rbtree::top, "struct bpf_rb_node *" "struct bpf_rb_root *root" [RET_NULL];
                bpf_refcount_acquire_impl = object::refcount_acquire,
                    "void *" "void *p__refcounted_kptr, void *meta__ign" [ACQUIRE RET_NULL RCU];
                bpf_send_signal_task = task::send_signal,
                    "int " "struct task_struct *task, int sig, enum pid_type type, u64 value" [TRUSTED_ARGS] as EFFECT;
                bpf_task_acquire = task::acquire_task,
                    "struct task_struct *" "struct task_struct *p" [ACQUIRE RET_NULL RCU];
                bpf_task_from_pid = task::from_pid, "struct task_struct *" "s32 pid" [ACQUIRE RET_NULL];
                bpf_task_from_vpid = task::from_pid, "struct task_struct *" "s32 vpid" [ACQUIRE RET_NULL];
                bpf_task_get_cgroup1 = none,
                    "struct cgroup *" "struct task_struct *task, int hierarchy_id" [ACQUIRE RET_NULL RCU];
                bpf_task_release = kernel::release, "void " "struct task_struct *p" [RELEASE];
                bpf_task_under_cgroup = cgroup::task_under,
                    "long int " "struct task_struct *task, struct cgroup *ancestor" [RCU];
                bpf_throw = exception::throw, "void " "u64 cookie" [] as EXCEPTION;
            }
            for GENERIC_CRASH {
                crash_kexec = none, "void " "struct pt_regs *regs" [DESTRUCTIVE];
            }
            for GENERIC_KEYS {
                bpf_key_put = none, "void " "struct bpf_key *bkey" [RELEASE];
                bpf_lookup_system_key = none, "struct bpf_key *" "u64 id" [ACQUIRE RET_NULL];
                bpf_lookup_user_key = none, "struct bpf_key *" "s32 serial, u64 flags" [ACQUIRE RET_NULL SLEEPABLE];
            }
            for GENERIC_PKCS7 {
                bpf_verify_pkcs7_signature = none,
                    "int " "struct bpf_dynptr *data_p, struct bpf_dynptr *sig_p, struct bpf_key *trusted_keyring"
                    [SLEEPABLE];
            }
            for CPUMASK {
                bpf_cpumask_acquire = cpumask::acquire,
                    "struct bpf_cpumask *" "struct bpf_cpumask *cpumask" [ACQUIRE TRUSTED_ARGS];
                bpf_cpumask_and = cpumask::and,
                    "bool " "struct bpf_cpumask *dst, const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_any_and_distribute = cpumask::any_and_distribute,
                    "u32 " "const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_any_distribute = cpumask::any_distribute, "u32 " "const struct cpumask *cpumask" [RCU];
                bpf_cpumask_clear = cpumask::clear, "void " "struct bpf_cpumask *cpumask" [RCU];
                bpf_cpumask_clear_cpu = cpumask::clear_cpu, "void " "u32 cpu, struct bpf_cpumask *cpumask" [RCU];
                bpf_cpumask_copy = cpumask::copy,
                    "void " "struct bpf_cpumask *dst, const struct cpumask *src" [RCU];
                bpf_cpumask_create = cpumask::create, "struct bpf_cpumask *" "void" [ACQUIRE RET_NULL];
                bpf_cpumask_empty = cpumask::empty, "bool " "const struct cpumask *cpumask" [RCU];
                bpf_cpumask_equal = cpumask::equal,
                    "bool " "const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_first = cpumask::first, "u32 " "const struct cpumask *cpumask" [RCU];
                bpf_cpumask_first_and = cpumask::first_and,
                    "u32 " "const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_first_zero = cpumask::first_zero, "u32 " "const struct cpumask *cpumask" [RCU];
                bpf_cpumask_full = cpumask::is_full, "bool " "const struct cpumask *cpumask" [RCU];
                bpf_cpumask_intersects = cpumask::intersects,
                    "bool " "const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_or = cpumask::or,
                    "void " "struct bpf_cpumask *dst, const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_populate = cpumask::populate,
                    "int " "struct cpumask *cpumask, void *src, size_t src__sz" [RCU];
                bpf_cpumask_release = cpumask::release, "void " "struct bpf_cpumask *cpumask" [RELEASE];
                bpf_cpumask_set_cpu = cpumask::set_cpu, "void " "u32 cpu, struct bpf_cpumask *cpumask" [RCU];
                bpf_cpumask_setall = cpumask::setall, "void " "struct bpf_cpumask *cpumask" [RCU];
                bpf_cpumask_subset = cpumask::subset,
                    "bool " "const struct cpumask *src1, const struct cpumask *src2" [RCU];
                bpf_cpumask_test_and_clear_cpu = cpumask::clear_cpu,
                    "bool " "u32 cpu, struct bpf_cpumask *cpumask" [RCU];
                bpf_cpumask_test_and_set_cpu = cpumask::set_cpu,
                    "bool " "u32 cpu, struct bpf_cpumask *cpumask" [RCU];
                bpf_cpumask_test_cpu = cpumask::test_cpu, "bool " "u32 cpu, const struct cpumask *cpumask" [RCU];
                bpf_cpumask_weight = cpumask::weight, "u32 " "const struct cpumask *cpumask" [RCU];
                bpf_cpumask_xor = cpumask::xor,
                    "void " "struct bpf_cpumask *dst, const struct cpumask *src1, const struct cpumask *src2" [RCU];
            }
            for CRYPTO_CONTEXT {
                bpf_crypto_ctx_acquire = none,
                    "struct bpf_crypto_ctx *" "struct bpf_crypto_ctx *ctx" [ACQUIRE RET_NULL RCU];
                bpf_crypto_ctx_create = none,
                    "struct bpf_crypto_ctx *" "const struct bpf_crypto_params *params, u32 params__sz, int *err"
                    [ACQUIRE RET_NULL SLEEPABLE];
                bpf_crypto_ctx_release = none, "void " "struct bpf_crypto_ctx *ctx" [RELEASE];
            }
            for CRYPTO {
                bpf_crypto_decrypt = none,
                    "int " "struct bpf_crypto_ctx *ctx, const struct bpf_dynptr *src, const struct bpf_dynptr *dst, const struct bpf_dynptr *siv__nullable"
                    [RCU];
                bpf_crypto_encrypt = none,
                    "int " "struct bpf_crypto_ctx *ctx, const struct bpf_dynptr *src, const struct bpf_dynptr *dst, const struct bpf_dynptr *siv__nullable"
                    [RCU];
            }
            for TRACING {
                css_rstat_flush = none, "void " "struct cgroup_subsys_state *css" [SLEEPABLE];
                css_rstat_updated = none, "void " "struct cgroup_subsys_state *css, int cpu" [];
            }
            for SESSION {
                bpf_session_cookie = session::cookie, "__u64 *" "void" [];
                bpf_session_is_return = session::is_return, "bool " "void" [];
            }
            for FILES {
                bpf_get_dentry_xattr = none,
                    "int " "struct dentry *dentry, const char *name__str, struct bpf_dynptr *value_p"
                    [TRUSTED_ARGS SLEEPABLE];
                bpf_get_file_xattr = none,
                    "int " "struct file *file, const char *name__str, struct bpf_dynptr *value_p"
                    [TRUSTED_ARGS SLEEPABLE];
                bpf_get_task_exe_file = file::exe_file,
                    "struct file *" "struct task_struct *task" [ACQUIRE RET_NULL TRUSTED_ARGS];
                bpf_path_d_path = file::path_d_path, "int " "const struct path *path, char *buf, size_t buf__sz" [TRUSTED_ARGS];
                bpf_put_file = kernel::release, "void " "struct file *file" [RELEASE];
                bpf_remove_dentry_xattr = none,
                    "int " "struct dentry *dentry, const char *name__str" [TRUSTED_ARGS SLEEPABLE];
                bpf_set_dentry_xattr = none,
                    "int " "struct dentry *dentry, const char *name__str, const struct bpf_dynptr *value_p, int flags"
                    [TRUSTED_ARGS SLEEPABLE];
            }
            for FSVERITY {
                bpf_get_fsverity_digest = none,
                    "int " "struct file *file, struct bpf_dynptr *digest_p" [TRUSTED_ARGS];
            }
            for SKB_OR_QDISC {
                bpf_dynptr_from_skb = dynptr::from_skb,
                    "int " "struct __sk_buff *s, u64 flags, struct bpf_dynptr *ptr__uninit" [TRUSTED_ARGS] as OVERRIDE;
            }
            for SKB_META {
                bpf_dynptr_from_skb_meta = dynptr::from_skb_meta,
                    "int " "struct __sk_buff *skb_, u64 flags, struct bpf_dynptr *ptr__uninit" [TRUSTED_ARGS] as OVERRIDE;
            }
            for XDP {
                bpf_dynptr_from_xdp = dynptr::from_xdp, "int " "struct xdp_md *x, u64 flags, struct bpf_dynptr *ptr__uninit" [] as OVERRIDE;
                bpf_xdp_pull_data = xdp::pull_data, "int " "struct xdp_md *x, u32 len" [] does CHANGES_PACKET;
            }
            for XDP_METADATA {
                bpf_xdp_metadata_rx_hash = xdp::metadata,
                    "int " "const struct xdp_md *ctx, u32 *hash, enum xdp_rss_hash_type *rss_type" [TRUSTED_ARGS];
                bpf_xdp_metadata_rx_timestamp = xdp::metadata,
                    "int " "const struct xdp_md *ctx, u64 *timestamp" [TRUSTED_ARGS];
                bpf_xdp_metadata_rx_vlan_tag = xdp::metadata,
                    "int " "const struct xdp_md *ctx, __be16 *vlan_proto, u16 *vlan_tci" [TRUSTED_ARGS];
            }
            for XFRM_STATE {
                bpf_xdp_get_xfrm_state = none,
                    "struct xfrm_state *" "struct xdp_md *ctx, struct bpf_xfrm_state_opts *opts, u32 opts__sz"
                    [ACQUIRE RET_NULL];
                bpf_xdp_xfrm_state_release = none, "void " "struct xfrm_state *x" [RELEASE];
            }
            for FLOW_TABLE {
                bpf_xdp_flow_lookup = none,
                    "struct flow_offload_tuple_rhash *" "struct xdp_md *ctx, struct bpf_fib_lookup *fib_tuple, struct bpf_flowtable_opts *opts, u32 opts_len"
                    [RET_NULL TRUSTED_ARGS];
            }
            for CONNTRACK {
                bpf_ct_change_status = none, "int " "struct nf_conn *nfct, u32 status" [TRUSTED_ARGS];
                bpf_ct_change_timeout = none, "int " "struct nf_conn *nfct, u32 timeout" [TRUSTED_ARGS];
                bpf_ct_insert_entry = none,
                    "struct nf_conn *" "struct nf_conn___init *nfct_i" [ACQUIRE RELEASE RET_NULL];
                bpf_ct_release = none, "void " "struct nf_conn *nfct" [RELEASE];
                bpf_ct_set_nat_info = none,
                    "int " "struct nf_conn___init *nfct, union nf_inet_addr *addr, int port, enum nf_nat_manip_type manip"
                    [TRUSTED_ARGS];
                bpf_ct_set_status = none, "int " "const struct nf_conn___init *nfct, u32 status" [TRUSTED_ARGS];
                bpf_ct_set_timeout = none, "void " "struct nf_conn___init *nfct, u32 timeout" [TRUSTED_ARGS];
                bpf_skb_ct_alloc = none,
                    "struct nf_conn___init *" "struct __sk_buff *skb_ctx, struct bpf_sock_tuple *bpf_tuple, u32 tuple__sz, struct bpf_ct_opts *opts, u32 opts__sz"
                    [ACQUIRE RET_NULL];
                bpf_skb_ct_lookup = none,
                    "struct nf_conn *" "struct __sk_buff *skb_ctx, struct bpf_sock_tuple *bpf_tuple, u32 tuple__sz, struct bpf_ct_opts *opts, u32 opts__sz"
                    [ACQUIRE RET_NULL];
                bpf_xdp_ct_alloc = none,
                    "struct nf_conn___init *" "struct xdp_md *xdp_ctx, struct bpf_sock_tuple *bpf_tuple, u32 tuple__sz, struct bpf_ct_opts *opts, u32 opts__sz"
                    [ACQUIRE RET_NULL];
                bpf_xdp_ct_lookup = none,
                    "struct nf_conn *" "struct xdp_md *xdp_ctx, struct bpf_sock_tuple *bpf_tuple, u32 tuple__sz, struct bpf_ct_opts *opts, u32 opts__sz"
                    [ACQUIRE RET_NULL];
            }
            for TCP_REQUEST {
                bpf_sk_assign_tcp_reqsk = none,
                    "int " "struct __sk_buff *s, struct sock *sk, struct bpf_tcp_req_attrs *attrs, int attrs__sz"
                    [TRUSTED_ARGS];
            }
            for FOU {
                bpf_skb_get_fou_encap = none, "int " "struct __sk_buff *skb_ctx, struct bpf_fou_encap *encap" [];
                bpf_skb_set_fou_encap = none,
                    "int " "struct __sk_buff *skb_ctx, struct bpf_fou_encap *encap, int type" [];
            }
            for XFRM_INTERFACE {
                bpf_skb_get_xfrm_info = none, "int " "struct __sk_buff *skb_ctx, struct bpf_xfrm_info *to" [];
                bpf_skb_set_xfrm_info = none,
                    "int " "struct __sk_buff *skb_ctx, const struct bpf_xfrm_info *from" [];
            }
            for CGROUP {
                bpf_sock_addr_set_sun_path = none,
                    "int " "struct bpf_sock_addr_kern *sa_kern, const u8 *sun_path, u32 sun_path__sz" [];
                bpf_sock_ops_enable_tx_tstamp = none,
                    "int " "struct bpf_sock_ops_kern *skops, u64 flags" [TRUSTED_ARGS];
            }
            for SOCKET_ITERATOR {
                bpf_sock_destroy = none, "int " "struct sock_common *sock" [TRUSTED_ARGS];
            }
            for TCP {
                tcp_cong_avoid_ai = none, "void " "struct tcp_sock *tp, u32 w, u32 acked" [];
                tcp_reno_cong_avoid = none, "void " "struct sock *sk, u32 ack, u32 acked" [];
                tcp_reno_ssthresh = none, "u32 " "struct sock *sk" [];
                tcp_reno_undo_cwnd = none, "u32 " "struct sock *sk" [];
                tcp_slow_start = none, "u32 " "struct tcp_sock *tp, u32 acked" [];
            }
            for TCP_CUBIC {
                cubictcp_acked = none, "void " "struct sock *sk, const struct ack_sample *sample" [];
                cubictcp_cong_avoid = none, "void " "struct sock *sk, u32 ack, u32 acked" [];
                cubictcp_cwnd_event = none, "void " "struct sock *sk, enum tcp_ca_event event" [];
                cubictcp_init = none, "void " "struct sock *sk" [];
                cubictcp_recalc_ssthresh = none, "u32 " "struct sock *sk" [];
                cubictcp_state = none, "void " "struct sock *sk, u8 new_state" [];
            }
            for TCP_BBR {
                bbr_cwnd_event = none, "void " "struct sock *sk, enum tcp_ca_event event" [];
                bbr_init = none, "void " "struct sock *sk" [];
                bbr_main = none, "void " "struct sock *sk, u32 ack, int flag, const struct rate_sample *rs" [];
                bbr_min_tso_segs = none, "u32 " "struct sock *sk" [];
                bbr_set_state = none, "void " "struct sock *sk, u8 new_state" [];
                bbr_sndbuf_expand = none, "u32 " "struct sock *sk" [];
                bbr_ssthresh = none, "u32 " "struct sock *sk" [];
                bbr_undo_cwnd = none, "u32 " "struct sock *sk" [];
            }
            for TCP_DCTCP {
                dctcp_cwnd_event = none, "void " "struct sock *sk, enum tcp_ca_event ev" [];
                dctcp_cwnd_undo = none, "u32 " "struct sock *sk" [];
                dctcp_init = none, "void " "struct sock *sk" [];
                dctcp_ssthresh = none, "u32 " "struct sock *sk" [];
                dctcp_state = none, "void " "struct sock *sk, u8 new_state" [];
                dctcp_update_alpha = none, "void " "struct sock *sk, u32 flags" [];
            }
            for QDISC {
                bpf_skb_get_hash = qdisc::hash, "u32 " "struct sk_buff *skb" [TRUSTED_ARGS];
                bpf_kfree_skb = qdisc::free, "void " "struct sk_buff *skb" [RELEASE];
            }
            for QDISC_ENQUEUE {
                bpf_qdisc_skb_drop = qdisc::drop,
                    "void " "struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free_list" [RELEASE];
            }
            for QDISC_QUEUE {
                bpf_qdisc_watchdog_schedule = qdisc::schedule,
                    "void " "struct Qdisc *sch, u64 expire, u64 delta_ns" [TRUSTED_ARGS];
            }
            for QDISC_DEQUEUE {
                bpf_qdisc_bstats_update = qdisc::count,
                    "void " "struct Qdisc *sch, const struct sk_buff *skb" [TRUSTED_ARGS];
            }
            for QDISC_HIDDEN {
                bpf_qdisc_init_prologue = none,
                    "int " "struct Qdisc *sch, struct netlink_ext_ack *extack" [TRUSTED_ARGS];
                bpf_qdisc_reset_destroy_epilogue = none, "void " "struct Qdisc *sch" [TRUSTED_ARGS];
            }
            for HID {
                hid_bpf_get_data = none,
                    "__u8 *" "struct hid_bpf_ctx *ctx, unsigned int offset, const size_t rdwr_buf_size" [RET_NULL];
                hid_bpf_try_input_report = none,
                    "int " "struct hid_bpf_ctx *ctx, enum hid_report_type type, u8 *buf, const size_t buf__sz" [];
            }
            for HID_SYSCALL {
                hid_bpf_allocate_context = none,
                    "struct hid_bpf_ctx *" "unsigned int hid_id" [ACQUIRE RET_NULL SLEEPABLE];
                hid_bpf_release_context = none, "void " "struct hid_bpf_ctx *ctx" [RELEASE SLEEPABLE];
                hid_bpf_hw_request = none,
                    "int " "struct hid_bpf_ctx *ctx, __u8 *buf, size_t buf__sz, enum hid_report_type rtype, enum hid_class_request reqtype"
                    [SLEEPABLE];
                hid_bpf_hw_output_report = none,
                    "int " "struct hid_bpf_ctx *ctx, __u8 *buf, size_t buf__sz" [SLEEPABLE];
                hid_bpf_input_report = none,
                    "int " "struct hid_bpf_ctx *ctx, enum hid_report_type type, u8 *buf, const size_t buf__sz"
                    [SLEEPABLE];
            }
            for SCHED_EXT {
                scx_bpf_dsq_insert = scx::dispatch::dsq_insert,
                    "void " "struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags" [RCU];
                scx_bpf_dsq_insert_vtime = scx::dispatch::dsq_insert_vtime,
                    "void " "struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags" [RCU];
                scx_bpf_dispatch_nr_slots = scx::dispatch::dispatch_nr_slots, "u32 " "void" [];
                scx_bpf_dispatch_cancel = scx::dispatch::dispatch_cancel, "void " "void" [];
                scx_bpf_dsq_move_to_local = scx::dispatch::dsq_move_to_local, "bool " "u64 dsq_id" [];
                scx_bpf_reenqueue_local = scx::dispatch::reenqueue_local, "u32 " "void" [];
            }
            for SCHED_EXT_UNLOCKED {
                scx_bpf_dsq_move_set_slice = scx::dispatch::dsq_move_set_slice,
                    "void " "struct bpf_iter_scx_dsq *it__iter, u64 slice" [RCU];
                scx_bpf_dsq_move_set_vtime = scx::dispatch::dsq_move_set_vtime,
                    "void " "struct bpf_iter_scx_dsq *it__iter, u64 vtime" [RCU];
                scx_bpf_dsq_move = scx::dispatch::dsq_move,
                    "bool " "struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id, u64 enq_flags"
                    [RCU];
                scx_bpf_dsq_move_vtime = scx::dispatch::dsq_move_vtime,
                    "bool " "struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id, u64 enq_flags"
                    [RCU];
                scx_bpf_create_dsq = scx::dispatch::create_dsq, "s32 " "u64 dsq_id, s32 node" [SLEEPABLE];
            }
            for SCHED_EXT_ANY {
                scx_bpf_select_cpu_dfl = scx::idle::select_cpu_dfl,
                    "s32 " "struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle" [RCU];
                scx_bpf_select_cpu_and = scx::idle::select_cpu_and,
                    "s32 " "struct task_struct *p, s32 prev_cpu, u64 wake_flags, const struct cpumask *cpus_allowed, u64 flags"
                    [RCU];
                scx_bpf_kick_cpu = scx::state::kick_cpu, "void " "s32 cpu, u64 flags" [];
                scx_bpf_dsq_nr_queued = scx::dispatch::dsq_nr_queued, "s32 " "u64 dsq_id" [];
                scx_bpf_destroy_dsq = scx::dispatch::destroy_dsq, "void " "u64 dsq_id" [];
                bpf_iter_scx_dsq_new = scx::dispatch::dsq_new,
                    "int " "struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags" [ITER_NEW RCU_PROTECTED];
                bpf_iter_scx_dsq_next = scx::dispatch::dsq_next,
                    "struct task_struct *" "struct bpf_iter_scx_dsq *it" [RET_NULL ITER_NEXT];
                bpf_iter_scx_dsq_destroy = scx::dispatch::dsq_destroy, "void " "struct bpf_iter_scx_dsq *it" [ITER_DESTROY];
                scx_bpf_exit_bstr = scx::state::exit_bstr,
                    "void " "s64 exit_code, char *fmt, unsigned long long *data, u32 data__sz" [TRUSTED_ARGS];
                scx_bpf_error_bstr = scx::state::error_bstr,
                    "void " "char *fmt, unsigned long long *data, u32 data__sz" [TRUSTED_ARGS];
                scx_bpf_dump_bstr = scx::state::dump_bstr,
                    "void " "char *fmt, unsigned long long *data, u32 data__sz" [TRUSTED_ARGS];
                scx_bpf_cpuperf_cap = scx::state::cpuperf_cap, "u32 " "s32 cpu" [];
                scx_bpf_cpuperf_cur = scx::state::cpuperf_cur, "u32 " "s32 cpu" [];
                scx_bpf_cpuperf_set = scx::state::cpuperf_set, "void " "s32 cpu, u32 perf" [];
                scx_bpf_nr_node_ids = scx::state::nr_node_ids, "u32 " "void" [];
                scx_bpf_nr_cpu_ids = scx::state::nr_cpu_ids, "u32 " "void" [];
                scx_bpf_get_possible_cpumask = scx::idle::get_all_cpumask, "const struct cpumask *" "void" [ACQUIRE];
                scx_bpf_get_online_cpumask = scx::idle::get_all_cpumask, "const struct cpumask *" "void" [ACQUIRE];
                scx_bpf_put_cpumask = scx::idle::put_cpumask, "void " "const struct cpumask *cpumask" [RELEASE];
                scx_bpf_get_idle_cpumask = scx::idle::get_idle_cpumask, "const struct cpumask *" "void" [ACQUIRE];
                scx_bpf_get_idle_cpumask_node = scx::idle::get_idle_cpumask_node,
                    "const struct cpumask *" "int node" [ACQUIRE];
                scx_bpf_get_idle_smtmask = scx::idle::get_idle_cpumask, "const struct cpumask *" "void" [ACQUIRE];
                scx_bpf_get_idle_smtmask_node = scx::idle::get_idle_cpumask_node,
                    "const struct cpumask *" "int node" [ACQUIRE];
                scx_bpf_put_idle_cpumask = scx::idle::put_cpumask, "void " "const struct cpumask *idle_mask" [RELEASE];
                scx_bpf_test_and_clear_cpu_idle = scx::idle::test_and_clear_cpu_idle, "bool " "s32 cpu" [];
                scx_bpf_pick_idle_cpu = scx::idle::pick_idle_cpu, "s32 " "const struct cpumask *cpus_allowed, u64 flags" [RCU];
                scx_bpf_pick_idle_cpu_node = scx::idle::pick_idle_cpu_node,
                    "s32 " "const struct cpumask *cpus_allowed, int node, u64 flags" [RCU];
                scx_bpf_pick_any_cpu = scx::idle::pick_any_cpu, "s32 " "const struct cpumask *cpus_allowed, u64 flags" [RCU];
                scx_bpf_pick_any_cpu_node = scx::idle::pick_any_cpu_node,
                    "s32 " "const struct cpumask *cpus_allowed, int node, u64 flags" [RCU];
                scx_bpf_cpu_node = scx::state::cpu_node, "int " "s32 cpu" [];
                scx_bpf_task_running = scx::state::task_running, "bool " "const struct task_struct *p" [RCU];
                scx_bpf_task_cpu = scx::state::task_cpu, "s32 " "const struct task_struct *p" [RCU];
                scx_bpf_cpu_rq = scx::state::cpu_rq, "struct rq *" "s32 cpu" [];
                scx_bpf_locked_rq = scx::state::locked_rq, "struct rq *" "void" [RET_NULL];
                scx_bpf_cpu_curr = scx::state::cpu_curr, "struct task_struct *" "s32 cpu" [RET_NULL RCU_PROTECTED];
                scx_bpf_task_cgroup = scx::state::task_cgroup, "struct cgroup *" "struct task_struct *p" [ACQUIRE RCU];
                scx_bpf_now = scx::state::now, "u64 " "void" [];
                scx_bpf_events = scx::state::events,
                    "void " "struct scx_event_stats *events, size_t events__sz" [TRUSTED_ARGS];
            }
            for TEST {
                bpf_kfunc_call_memb_release = none, "void " "struct prog_test_member *p" [RELEASE];
                bpf_kfunc_call_test_release = none, "void " "struct prog_test_ref_kfunc *p" [RELEASE];
            }
            for MODIFY_RETURN {
                bpf_fentry_test1 = none, "int " "int a" [SLEEPABLE];
                bpf_modify_return_test = none, "int " "int a, int *b" [];
                bpf_modify_return_test2 = none,
                    "int " "int a, int *b, short int c, int d, void *e, char f, int g" [];
            }
            for MODIFY_RETURN_CALLED {
                bpf_modify_return_test_tp = none, "int " "int nonce" [];
            }
        }
    };
}
pub(crate) use for_each_kfunc;
