// The kernel's types that tracing programs commonly name, with the members that they commonly
// read. Order, offsets and sizes are not those of a kernel, except in records of tracepoints,
// contexts, and types of the system call interface.
//
// `KEEP` puts a type into the BTF with its members; types behind pointers only are named.
#pragma once

#define KEEP(kind, name) kind name *keep_##name;
#define STRUCT(name, ...) struct name { __VA_ARGS__ }; KEEP(struct, name)

typedef _Bool bool;
typedef signed char s8;
typedef unsigned char u8, __u8;
typedef short s16, __s16;
typedef unsigned short u16, __u16, umode_t, __be16, sa_family_t;
typedef int s32, __s32, pid_t, clockid_t;
typedef unsigned int u32, __u32, __be32, gfp_t, fmode_t, dev_t, uid_t, gid_t, vm_fault_t,
	blk_opf_t, __wsum;
typedef long long s64, __s64, loff_t, ktime_t, time64_t;
typedef unsigned long long u64, __u64, sector_t;
typedef u8 blk_status_t;
typedef long ssize_t;
typedef unsigned long size_t, vm_flags_t, pgoff_t;
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t, atomic_long_t;
typedef struct { atomic_t refs; } refcount_t;
typedef struct { uid_t val; } kuid_t;
typedef struct { gid_t val; } kgid_t;
typedef struct { u64 val; } kernel_cap_t;

// Named by kfuncs only.
s32 *keep_s32;

STRUCT(list_head, struct list_head *next, *prev;)
STRUCT(hlist_node, struct hlist_node *next, **pprev;)
STRUCT(hlist_head, struct hlist_node *first;)
STRUCT(rb_node, unsigned long __rb_parent_color; struct rb_node *rb_right, *rb_left;)
STRUCT(rb_root, struct rb_node *rb_node;)
STRUCT(callback_head, struct callback_head *next; void (*func)(struct callback_head *head);)
STRUCT(kref, refcount_t refcount;)
STRUCT(timespec64, time64_t tv_sec; long tv_nsec;)
STRUCT(mutex, atomic_long_t owner;)
STRUCT(rw_semaphore, atomic_long_t count; atomic_long_t owner;)

// Processes.

STRUCT(ns_common, struct dentry *stashed; unsigned int inum;)
STRUCT(user_namespace, struct user_namespace *parent; int level; kuid_t owner; kgid_t group;
	struct ns_common ns;)
STRUCT(pid_namespace, struct task_struct *child_reaper; unsigned int level;
	struct pid_namespace *parent; struct user_namespace *user_ns; struct ns_common ns;)
STRUCT(new_utsname, char sysname[65]; char nodename[65]; char release[65]; char version[65];
	char machine[65]; char domainname[65];)
STRUCT(uts_namespace, struct new_utsname name; struct user_namespace *user_ns; struct ns_common ns;)
STRUCT(ipc_namespace, struct user_namespace *user_ns; struct ns_common ns;)
STRUCT(time_namespace, struct user_namespace *user_ns; struct ns_common ns;)
STRUCT(cgroup_namespace, struct ns_common ns; struct user_namespace *user_ns;
	struct css_set *root_cset;)
STRUCT(mnt_namespace, struct ns_common ns; struct mount *root; struct user_namespace *user_ns;)
STRUCT(nsproxy, struct uts_namespace *uts_ns; struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns; struct pid_namespace *pid_ns_for_children; struct net *net_ns;
	struct time_namespace *time_ns; struct cgroup_namespace *cgroup_ns;)
STRUCT(cred, kuid_t uid; kgid_t gid; kuid_t suid; kgid_t sgid; kuid_t euid; kgid_t egid;
	kuid_t fsuid; kgid_t fsgid; kernel_cap_t cap_inheritable; kernel_cap_t cap_permitted;
	kernel_cap_t cap_effective; kernel_cap_t cap_bset; kernel_cap_t cap_ambient;
	struct user_namespace *user_ns;)
STRUCT(upid, int nr; struct pid_namespace *ns;)
STRUCT(pid, refcount_t count; unsigned int level; struct upid numbers[1];)
STRUCT(tty_struct, int index; char name[64];)
STRUCT(task_cputime, u64 stime; u64 utime; unsigned long long sum_exec_runtime;)
STRUCT(signal_struct, atomic_t live; int nr_threads; struct pid *pids[4]; int group_exit_code;
	struct tty_struct *tty; short oom_score_adj; struct mm_struct *oom_mm;)
STRUCT(kernel_siginfo, int si_signo; int si_errno; int si_code;)
STRUCT(k_sigaction, struct { void *sa_handler; unsigned long sa_flags; } sa;)
STRUCT(fdtable, unsigned int max_fds; struct file **fd;)
STRUCT(files_struct, atomic_t count; struct fdtable *fdt; struct fdtable fdtab;)
STRUCT(sched_entity, u64 exec_start; u64 sum_exec_runtime; u64 vruntime; u64 nr_migrations;
	struct cfs_rq *cfs_rq; unsigned char on_rq;)
STRUCT(sched_info, unsigned long pcount; unsigned long long run_delay;
	unsigned long long last_arrival; unsigned long long last_queued;)
STRUCT(cfs_rq, unsigned int nr_queued; struct rq *rq;)
STRUCT(rq, unsigned int nr_running; u64 clock; struct task_struct *curr; struct task_struct *idle;
	struct cfs_rq cfs; int cpu;)
STRUCT(cpumask, unsigned long bits[128];)
typedef struct cpumask cpumask_t;
STRUCT(thread_struct, unsigned long sp;)
STRUCT(task_io_accounting, u64 rchar; u64 wchar; u64 syscr; u64 syscw; u64 read_bytes;
	u64 write_bytes; u64 cancelled_write_bytes;)
STRUCT(bpf_local_storage, void *owner;)
STRUCT(task_struct, unsigned int __state; void *stack; refcount_t usage; unsigned int flags;
	unsigned int ptrace; int on_cpu; int recent_used_cpu; int wake_cpu; int on_rq; int prio;
	int static_prio; int normal_prio; unsigned int rt_priority; struct sched_entity se;
	unsigned int policy; int nr_cpus_allowed; const cpumask_t *cpus_ptr; cpumask_t cpus_mask;
	struct sched_info sched_info; struct list_head tasks; struct mm_struct *mm;
	struct mm_struct *active_mm; int exit_state; int exit_code; int exit_signal;
	unsigned int in_execve : 1; unsigned int in_iowait : 1; pid_t pid; pid_t tgid;
	struct task_struct *real_parent; struct task_struct *parent; struct list_head children;
	struct list_head sibling; struct task_struct *group_leader; struct pid *thread_pid;
	struct list_head thread_node; int *set_child_tid; u64 utime; u64 stime; u64 gtime;
	unsigned long nvcsw; unsigned long nivcsw; u64 start_time; u64 start_boottime;
	unsigned long min_flt; unsigned long maj_flt; const struct cred *real_cred;
	const struct cred *cred; char comm[16]; struct fs_struct *fs; struct files_struct *files;
	struct nsproxy *nsproxy; struct signal_struct *signal; kuid_t loginuid;
	unsigned int sessionid; u64 parent_exec_id; u64 self_exec_id; struct io_context *io_context;
	unsigned long ptrace_message; struct kernel_siginfo *last_siginfo;
	struct task_io_accounting ioac; struct css_set *cgroups; struct list_head cg_list;
	struct bpf_local_storage *bpf_storage; struct callback_head rcu; refcount_t rcu_users;
	struct thread_struct thread;)
STRUCT(pt_regs, unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;)
STRUCT(user_pt_regs, __u64 regs[31]; __u64 sp; __u64 pc; __u64 pstate;)

// Control groups.

STRUCT(kernfs_node, struct kernfs_node *__parent; const char *name; u64 id; umode_t mode;)
STRUCT(cgroup_subsys_state, struct cgroup *cgroup; struct cgroup_subsys *ss;
	struct list_head sibling; struct list_head children; int id; u64 serial_nr;
	struct cgroup_subsys_state *parent;)
STRUCT(cgroup_bpf, struct list_head progs[1];)
STRUCT(cgroup, struct cgroup_subsys_state self; unsigned long flags; int level; int max_depth;
	struct kernfs_node *kn; struct cgroup_subsys_state *subsys[14]; struct cgroup_root *root;
	struct cgroup_bpf bpf; struct cgroup *ancestors[1];)
STRUCT(cgroup_root, unsigned int subsys_mask; int hierarchy_id; struct cgroup cgrp; char name[64];)
STRUCT(css_set, struct cgroup_subsys_state *subsys[14]; refcount_t refcount;
	struct cgroup *dfl_cgrp; int nr_tasks;)

// Memory.

STRUCT(vm_area_struct, unsigned long vm_start; unsigned long vm_end; struct mm_struct *vm_mm;
	vm_flags_t vm_flags; unsigned long vm_pgoff; struct file *vm_file;)
STRUCT(percpu_counter, s64 count;)
STRUCT(mm_struct, unsigned long task_size; int map_count; unsigned long total_vm;
	unsigned long locked_vm; unsigned long hiwater_rss; unsigned long hiwater_vm;
	unsigned long start_code; unsigned long end_code; unsigned long start_data;
	unsigned long end_data; unsigned long start_brk; unsigned long brk;
	unsigned long start_stack; unsigned long arg_start; unsigned long arg_end;
	unsigned long env_start; unsigned long env_end; struct percpu_counter rss_stat[4];
	struct task_struct *owner; struct user_namespace *user_ns; struct file *exe_file;
	struct rw_semaphore mmap_lock; atomic_t mm_users; atomic_t mm_count;)
typedef struct { unsigned long f; } memdesc_flags_t;
STRUCT(page, memdesc_flags_t flags; struct address_space *mapping; atomic_t _refcount;)
STRUCT(folio, memdesc_flags_t flags; struct address_space *mapping; pgoff_t index;
	atomic_t _refcount;)
STRUCT(kmem_cache, unsigned int size; unsigned int object_size; const char *name;
	struct list_head list;)
STRUCT(oom_control, int order; struct task_struct *chosen; unsigned long totalpages;)
enum fault_flag { FAULT_FLAG_WRITE = 1 };
STRUCT(vm_fault, struct vm_area_struct *vma; unsigned long address; enum fault_flag flags;)

// Files.

STRUCT(qstr, union { struct { u32 hash; u32 len; }; u64 hash_len; }; const unsigned char *name;)
STRUCT(dentry, unsigned int d_flags; struct dentry *d_parent; struct qstr d_name;
	struct inode *d_inode; struct super_block *d_sb; struct hlist_node d_sib;
	struct hlist_head d_children;)
STRUCT(path, struct vfsmount *mnt; struct dentry *dentry;)
STRUCT(vfsmount, struct dentry *mnt_root; struct super_block *mnt_sb; int mnt_flags;)
STRUCT(mount, struct mount *mnt_parent; struct dentry *mnt_mountpoint; struct vfsmount mnt;
	struct mnt_namespace *mnt_ns; const char *mnt_devname; int mnt_id;)
STRUCT(fs_struct, int users; int umask; struct path root; struct path pwd;)
STRUCT(file_system_type, const char *name; int fs_flags;)
STRUCT(super_block, dev_t s_dev; unsigned long s_flags; unsigned long s_magic;
	struct dentry *s_root; struct file_system_type *s_type; struct block_device *s_bdev;
	void *s_fs_info; char s_id[32]; struct user_namespace *s_user_ns; unsigned long s_blocksize;)
STRUCT(inode, umode_t i_mode; unsigned int i_flags; kuid_t i_uid; kgid_t i_gid;
	struct super_block *i_sb; struct address_space *i_mapping; unsigned long i_ino;
	unsigned int i_nlink; dev_t i_rdev; loff_t i_size; time64_t i_atime_sec; time64_t i_mtime_sec;
	time64_t i_ctime_sec; atomic64_t i_version; atomic_t i_count; struct pipe_inode_info *i_pipe;
	void *i_private; u32 i_generation;)
STRUCT(address_space, struct inode *host; unsigned long nrpages;)
STRUCT(fown_struct, struct pid *pid; int signum;)
STRUCT(file, fmode_t f_mode; const struct file_operations *f_op; struct address_space *f_mapping;
	void *private_data; struct inode *f_inode; unsigned int f_flags; const struct cred *f_cred;
	struct path f_path; loff_t f_pos; struct fown_struct *f_owner;)
STRUCT(filename, const char *name; const char *uptr; atomic_t refcnt;)
STRUCT(open_how, __u64 flags; __u64 mode; __u64 resolve;)
STRUCT(kstat, u32 result_mask; umode_t mode; u64 ino; loff_t size;)
STRUCT(mnt_idmap, refcount_t count;)
STRUCT(renamedata, struct mnt_idmap *mnt_idmap; struct dentry *old_parent;
	struct dentry *old_dentry; struct dentry *new_parent; struct dentry *new_dentry;
	unsigned int flags;)
STRUCT(iattr, unsigned int ia_valid; umode_t ia_mode; loff_t ia_size;)
STRUCT(kiocb, struct file *ki_filp; loff_t ki_pos; int ki_flags;)
STRUCT(iovec, void *iov_base; size_t iov_len;)
STRUCT(iov_iter, u8 iter_type; bool data_source; size_t iov_offset; const struct iovec *__iov;
	size_t count; unsigned long nr_segs;)
STRUCT(linux_binprm, struct vm_area_struct *vma; struct mm_struct *mm; unsigned long p;
	struct file *executable; struct file *interpreter; struct file *file; struct cred *cred;
	int argc; int envc; const char *filename; const char *interp; const char *fdpath;
	char buf[256];)
STRUCT(seq_file, char *buf; size_t size; size_t count; struct file *file; void *private;)

// Block devices.

STRUCT(device, struct device *parent; const char *init_name; dev_t devt;)
STRUCT(gendisk, int major; int first_minor; int minors; char disk_name[32];
	struct block_device *part0; struct request_queue *queue; int flags;)
STRUCT(block_device, sector_t bd_start_sect; sector_t bd_nr_sectors; struct gendisk *bd_disk;
	struct request_queue *bd_queue; dev_t bd_dev; struct device bd_device;)
STRUCT(request_queue, struct gendisk *disk; unsigned long queue_flags; unsigned int nr_requests;
	int id;)
STRUCT(bvec_iter, sector_t bi_sector; unsigned int bi_size; unsigned int bi_idx;)
STRUCT(bio, struct bio *bi_next; struct block_device *bi_bdev; blk_opf_t bi_opf;
	unsigned short bi_flags; blk_status_t bi_status; struct bvec_iter bi_iter; void *bi_private;)
STRUCT(request, struct request_queue *q; blk_opf_t cmd_flags; unsigned int rq_flags; int tag;
	unsigned int __data_len; sector_t __sector; struct bio *bio; struct bio *biotail;
	struct block_device *part; u64 start_time_ns; u64 io_start_time_ns;
	unsigned short nr_phys_segments;)

// Networks.

STRUCT(net, struct ns_common ns; u64 net_cookie; unsigned int ifindex;
	struct user_namespace *user_ns;)
typedef struct { struct net *net; } possible_net_t;
STRUCT(in6_addr, union { __u8 u6_addr8[16]; __be16 u6_addr16[8]; __be32 u6_addr32[4]; } in6_u;)
STRUCT(sockaddr, sa_family_t sa_family; char sa_data[14];)
STRUCT(in_addr, __be32 s_addr;)
STRUCT(sockaddr_in, sa_family_t sin_family; __be16 sin_port; struct in_addr sin_addr;
	unsigned char __pad[8];)
STRUCT(sockaddr_in6, unsigned short sin6_family; __be16 sin6_port; __be32 sin6_flowinfo;
	struct in6_addr sin6_addr; __u32 sin6_scope_id;)
STRUCT(sockaddr_un, sa_family_t sun_family; char sun_path[108];)
STRUCT(proto, char name[32];)
STRUCT(sock_common,
	union { struct { __be32 skc_daddr; __be32 skc_rcv_saddr; }; u64 skc_addrpair; };
	union { unsigned int skc_hash; u16 skc_u16hashes[2]; };
	union { struct { __be16 skc_dport; __u16 skc_num; }; u32 skc_portpair; };
	unsigned short skc_family; volatile unsigned char skc_state; unsigned char skc_reuse : 4;
	unsigned char skc_reuseport : 1; unsigned char skc_ipv6only : 1; int skc_bound_dev_if;
	struct proto *skc_prot; possible_net_t skc_net; struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr; unsigned long skc_flags; atomic64_t skc_cookie; refcount_t skc_refcnt;)
STRUCT(sk_buff_head, struct sk_buff *next; struct sk_buff *prev; __u32 qlen;)
STRUCT(sock, struct sock_common __sk_common; struct sk_buff_head sk_receive_queue;
	struct sk_buff_head sk_write_queue; int sk_rcvbuf; int sk_sndbuf; int sk_wmem_queued;
	u32 sk_mark; u32 sk_priority; u16 sk_type;
	u16 sk_protocol; int sk_err; u32 sk_ack_backlog; u32 sk_max_ack_backlog;
	struct socket *sk_socket; unsigned long sk_pacing_rate; kuid_t sk_uid;
	struct pid *sk_peer_pid; const struct cred *sk_peer_cred; void *sk_user_data;
	struct bpf_local_storage *sk_bpf_storage;)
typedef enum { SS_FREE } socket_state;
STRUCT(socket, socket_state state; short type; unsigned long flags; struct file *file; struct sock *sk;)
STRUCT(inet_sock, struct sock sk; struct ipv6_pinfo *pinet6; __be32 inet_saddr;
	__be16 inet_sport; __u8 tos; __u8 min_ttl;)
STRUCT(ipv6_pinfo, struct in6_addr saddr; __be32 flow_label;)
STRUCT(request_sock, struct sock_common __req_common;)
STRUCT(request_sock_queue, atomic_t qlen; atomic_t young;)
STRUCT(inet_connection_sock, struct inet_sock icsk_inet; struct request_sock_queue icsk_accept_queue;
	__u32 icsk_rto; __u8 icsk_ca_state; __u8 icsk_retransmits;
	__u8 icsk_pending;)
STRUCT(tcp_sock, struct inet_connection_sock inet_conn; u16 tcp_header_len; u32 rcv_nxt;
	u32 copied_seq; u32 snd_nxt; u32 snd_una; u32 snd_wnd; u32 mss_cache; u32 srtt_us;
	u32 mdev_us; u32 rttvar_us; u32 packets_out; u32 retrans_out; u32 total_retrans; u32 lost_out;
	u32 sacked_out; u32 snd_cwnd; u32 snd_ssthresh; u32 rcv_wnd; u32 write_seq; u32 lost;
	u32 delivered; u32 segs_in; u32 segs_out; u32 data_segs_in; u32 data_segs_out;
	u64 bytes_received; u64 bytes_sent; u64 bytes_acked; u64 bytes_retrans;)
STRUCT(tcp6_sock, struct tcp_sock tcp; struct ipv6_pinfo inet6;)
STRUCT(udp_sock, struct inet_sock inet; int pending; __u16 len;)
STRUCT(udp6_sock, struct udp_sock udp; struct ipv6_pinfo inet6;)
STRUCT(inet_request_sock, struct request_sock req;)
STRUCT(tcp_request_sock, struct inet_request_sock req; u32 rcv_isn; u32 snt_isn;)
STRUCT(inet_timewait_sock, struct sock_common __tw_common;)
STRUCT(tcp_timewait_sock, struct inet_timewait_sock tw_sk; u32 tw_rcv_wnd;)
STRUCT(unix_address, int len; struct sockaddr_un name[1];)
STRUCT(unix_sock, struct sock sk; struct unix_address *addr; struct path path; struct sock *peer;)
STRUCT(netlink_sock, struct sock sk; u32 portid; u32 dst_portid;)
STRUCT(msghdr, void *msg_name; int msg_namelen; struct iov_iter msg_iter; unsigned int msg_flags;)
STRUCT(net_device, unsigned int flags; unsigned int mtu; int ifindex; unsigned short type;
	char name[16]; unsigned char addr_len; possible_net_t nd_net; unsigned int num_rx_queues;
	unsigned int num_tx_queues; unsigned int real_num_rx_queues; u8 operstate;)
STRUCT(sk_buff, struct sk_buff *next; struct sk_buff *prev; struct net_device *dev;
	struct sock *sk; ktime_t tstamp; char cb[48]; unsigned int len; unsigned int data_len;
	__u16 mac_len; __u16 queue_mapping; __u8 pkt_type : 3; __u8 cloned : 1; __u32 priority;
	int skb_iif; __u32 hash; __be16 vlan_proto; __u16 vlan_tci; __u32 mark; __be16 protocol;
	__u16 transport_header; __u16 network_header; __u16 mac_header; unsigned int tail;
	unsigned int end; unsigned char *head; unsigned char *data; unsigned int truesize;
	refcount_t users;)
STRUCT(ethhdr, unsigned char h_dest[6]; unsigned char h_source[6]; __be16 h_proto;)
STRUCT(iphdr, __u8 ihl : 4; __u8 version : 4; __u8 tos; __be16 tot_len; __be16 id;
	__be16 frag_off; __u8 ttl; __u8 protocol; __u16 check; __be32 saddr; __be32 daddr;)
STRUCT(ipv6hdr, __u8 priority : 4; __u8 version : 4; __u8 flow_lbl[3]; __be16 payload_len;
	__u8 nexthdr; __u8 hop_limit; struct in6_addr saddr; struct in6_addr daddr;)
STRUCT(tcphdr, __be16 source; __be16 dest; __be32 seq; __be32 ack_seq; __u16 res1 : 4;
	__u16 doff : 4; __u16 fin : 1; __u16 syn : 1; __u16 rst : 1; __u16 psh : 1; __u16 ack : 1;
	__u16 urg : 1; __u16 ece : 1; __u16 cwr : 1; __be16 window; __u16 check; __be16 urg_ptr;)
STRUCT(udphdr, __be16 source; __be16 dest; __be16 len; __u16 check;)
STRUCT(napi_struct, unsigned long state; int weight; struct net_device *dev;)
STRUCT(nf_hook_state, u8 hook; u8 pf; struct net_device *in; struct net_device *out;
	struct sock *sk; struct net *net;)
STRUCT(bpf_nf_ctx, const struct nf_hook_state *state; struct sk_buff *skb;)

// Interrupts, timers, work queues.

STRUCT(irqaction, const char *name; unsigned int irq; unsigned int flags;)
STRUCT(work_struct, atomic_long_t data; struct list_head entry;
	void (*func)(struct work_struct *work);)
STRUCT(timer_list, unsigned long expires; void (*function)(struct timer_list *timer); u32 flags;)
STRUCT(hrtimer, ktime_t _softexpires; u8 state;)

// BPF.

enum bpf_map_type { BPF_MAP_TYPE_UNSPEC };
enum bpf_prog_type { BPF_PROG_TYPE_UNSPEC };
enum bpf_attach_type { BPF_CGROUP_INET_INGRESS };
enum bpf_link_type { BPF_LINK_TYPE_UNSPEC };
STRUCT(bpf_map, enum bpf_map_type map_type; u32 key_size; u32 value_size; u32 max_entries; u64 map_extra;
	u32 map_flags; u32 id; char name[16]; atomic64_t refcnt; atomic64_t usercnt;)
STRUCT(bpf_array, struct bpf_map map; u32 elem_size; u32 index_mask;)
STRUCT(bpf_htab, struct bpf_map map; u32 n_buckets; u32 elem_size;)
STRUCT(bpf_prog_aux, u32 id; u32 func_cnt; char name[16]; struct bpf_prog *dst_prog;
	const char *attach_func_name;)
STRUCT(bpf_prog, u16 pages; enum bpf_prog_type type;
	enum bpf_attach_type expected_attach_type; u32 len; u32 jited_len;
	struct bpf_prog_aux *aux;)
STRUCT(bpf_link, atomic64_t refcnt; u32 id; enum bpf_link_type type; struct bpf_prog *prog;)
STRUCT(bpf_cpumask, cpumask_t cpumask; refcount_t usage;)
STRUCT(bpf_dynptr, __u64 __opaque[2];)
STRUCT(bpf_wq, __u64 __opaque[2];)
STRUCT(bpf_task_work, __u64 __opaque;)
STRUCT(bpf_rb_root, __u64 __opaque[2];)
STRUCT(bpf_rb_node, __u64 __opaque[4];)
STRUCT(bpf_list_head, __u64 __opaque[2];)
STRUCT(bpf_list_node, __u64 __opaque[3];)
STRUCT(bpf_res_spin_lock, u32 val;)
STRUCT(bpf_iter_num, __u64 __opaque[1];)
STRUCT(bpf_iter_bits, __u64 __opaque[2];)
STRUCT(bpf_iter_task, __u64 __opaque[3];)
STRUCT(bpf_iter_task_vma, __u64 __opaque[1];)
STRUCT(bpf_iter_css, __u64 __opaque[3];)
STRUCT(bpf_iter_css_task, __u64 __opaque[1];)
STRUCT(bpf_iter_kmem_cache, __u64 __opaque[1];)
STRUCT(bpf_iter_dmabuf, __u64 __opaque[1];)

// Contexts of iterators: each member takes 8 bytes.

#define MEMBER(type, name) union { type name; __u64 : 64; }
STRUCT(bpf_iter_meta, MEMBER(struct seq_file *, seq); u64 session_id; u64 seq_num;)
#define ITERATOR(name, ...) STRUCT(bpf_iter__##name, MEMBER(struct bpf_iter_meta *, meta); __VA_ARGS__)
ITERATOR(task, MEMBER(struct task_struct *, task);)
ITERATOR(task_file, MEMBER(struct task_struct *, task); u32 fd; MEMBER(struct file *, file);)
ITERATOR(task_vma, MEMBER(struct task_struct *, task); MEMBER(struct vm_area_struct *, vma);)
ITERATOR(bpf_map, MEMBER(struct bpf_map *, map);)
ITERATOR(bpf_map_elem, MEMBER(struct bpf_map *, map); MEMBER(void *, key); MEMBER(void *, value);)
ITERATOR(bpf_sk_storage_map, MEMBER(struct bpf_map *, map); MEMBER(struct sock *, sk);
	MEMBER(void *, value);)
ITERATOR(bpf_prog, MEMBER(struct bpf_prog *, prog);)
ITERATOR(bpf_link, MEMBER(struct bpf_link *, link);)
ITERATOR(cgroup, MEMBER(struct cgroup *, cgroup);)
ITERATOR(kmem_cache, MEMBER(struct kmem_cache *, s);)
ITERATOR(tcp, MEMBER(struct sock_common *, sk_common); uid_t uid;)
ITERATOR(udp, MEMBER(struct udp_sock *, udp_sk); uid_t uid;
	int bucket __attribute__((aligned(8)));)
ITERATOR(unix, MEMBER(struct unix_sock *, unix_sk); uid_t uid;)
ITERATOR(netlink, MEMBER(struct netlink_sock *, sk);)
ITERATOR(sockmap, MEMBER(struct bpf_map *, map); MEMBER(void *, key); MEMBER(struct sock *, sk);)

// Records of tracepoints, as their `format` files in tracefs say.

STRUCT(trace_entry, unsigned short type; unsigned char flags; unsigned char preempt_count; int pid;)
#define RECORD(name, ...) STRUCT(trace_event_raw_##name, struct trace_entry ent; __VA_ARGS__ char __data[0];)
RECORD(sys_enter, long id; unsigned long args[6];)
RECORD(sys_exit, long id; long ret;)
RECORD(sched_switch, char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state;
	char next_comm[16]; pid_t next_pid; int next_prio;)
RECORD(sched_wakeup_template, char comm[16]; pid_t pid; int prio; int target_cpu;)
RECORD(sched_migrate_task, u32 __data_loc_comm; pid_t pid; int prio; int orig_cpu; int dest_cpu;)
RECORD(sched_process_exec, u32 __data_loc_filename; pid_t pid; pid_t old_pid;)
RECORD(sched_process_exit, char comm[16]; pid_t pid; int prio; bool group_dead;)
RECORD(sched_process_fork, u32 __data_loc_parent_comm; pid_t parent_pid;
	u32 __data_loc_child_comm; pid_t child_pid;)
RECORD(sched_process_template, u32 __data_loc_comm; pid_t pid; int prio;)
RECORD(sched_stat_runtime, u32 __data_loc_comm; pid_t pid; u64 runtime;)
RECORD(task_newtask, pid_t pid; char comm[16]; u64 clone_flags; short oom_score_adj;)
RECORD(task_rename, pid_t pid; char oldcomm[16]; char newcomm[16]; short oom_score_adj;)
RECORD(signal_generate, int sig; int errno; int code; char comm[16]; pid_t pid; int group;
	int result;)
RECORD(signal_deliver, int sig; int errno; int code; unsigned long sa_handler;
	unsigned long sa_flags;)
RECORD(block_rq, dev_t dev; sector_t sector; unsigned int nr_sector; unsigned int bytes;
	unsigned short ioprio; char rwbs[10]; char comm[16]; u32 __data_loc_cmd;)
RECORD(block_rq_completion, dev_t dev; sector_t sector; unsigned int nr_sector; int error;
	unsigned short ioprio; char rwbs[10]; u32 __data_loc_cmd;)
RECORD(block_rq_requeue, dev_t dev; sector_t sector; unsigned int nr_sector;
	unsigned short ioprio; char rwbs[10]; u32 __data_loc_cmd;)
RECORD(block_bio, dev_t dev; sector_t sector; unsigned int nr_sector; char rwbs[10];
	char comm[16];)
RECORD(softirq, unsigned int vec;)
RECORD(irq_handler_entry, int irq; u32 __data_loc_name;)
RECORD(irq_handler_exit, int irq; int ret;)
RECORD(workqueue_execute_start, void *work; void *function;)
RECORD(timer_start, void *timer; void *function; unsigned long expires;
	unsigned long bucket_expiry; unsigned long now; unsigned int flags;)
RECORD(cpu, u32 state; u32 cpu_id;)
RECORD(exceptions, unsigned long address; unsigned long ip; unsigned long error_code;)
RECORD(kmalloc, unsigned long call_site; const void *ptr; size_t bytes_req; size_t bytes_alloc;
	unsigned long gfp_flags; int node;)
RECORD(kmem_cache_alloc, unsigned long call_site; const void *ptr; u32 __data_loc_name;
	size_t bytes_req; size_t bytes_alloc; unsigned long gfp_flags; int node; bool accounted;)
RECORD(kfree, unsigned long call_site; const void *ptr;)
RECORD(mm_page_alloc, unsigned long pfn; unsigned int order; unsigned long gfp_flags;
	int migratetype;)
RECORD(mm_page_free, unsigned long pfn; unsigned int order;)
RECORD(mm_vmscan_direct_reclaim_begin_template, int order; unsigned long gfp_flags;)
RECORD(mm_vmscan_direct_reclaim_end_template, unsigned long nr_reclaimed;)
enum skb_drop_reason { SKB_NOT_DROPPED_YET, SKB_CONSUMED, SKB_DROP_REASON_NOT_SPECIFIED };
RECORD(kfree_skb, void *skbaddr; void *location; void *rx_sk; unsigned short protocol;
	enum skb_drop_reason reason;)
RECORD(consume_skb, void *skbaddr; void *location;)
RECORD(net_dev_template, void *skbaddr; unsigned int len; u32 __data_loc_name;)
RECORD(net_dev_xmit, void *skbaddr; unsigned int len; int rc; u32 __data_loc_name;)
RECORD(napi_poll, struct napi_struct *napi; u32 __data_loc_dev_name; int work; int budget;)
RECORD(inet_sock_set_state, const void *skaddr; int oldstate; int newstate; __u16 sport;
	__u16 dport; __u16 family; __u16 protocol; __u8 saddr[4]; __u8 daddr[4]; __u8 saddr_v6[16];
	__u8 daddr_v6[16];)
RECORD(tcp_event_sk, const void *skaddr; __u16 sport; __u16 dport; __u16 family; __u8 saddr[4];
	__u8 daddr[4]; __u8 saddr_v6[16]; __u8 daddr_v6[16]; __u64 sock_cookie;)
