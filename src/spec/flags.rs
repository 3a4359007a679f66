//! Flags of the system call and of helpers (`include/uapi/linux/bpf.h`).

use bitflags::bitflags;

bitflags! {
    /// `map_flags` of `BPF_MAP_CREATE`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MapFlags: u32 {
        /// Hash elements are allocated when they are inserted.
        const NO_PREALLOC = 1 << 0;
        /// An LRU list per CPU in place of a common one.
        const NO_COMMON_LRU = 1 << 1;
        /// `numa_node` says where to allocate.
        const NUMA_NODE = 1 << 2;
        /// The system call may only read.
        const RDONLY = 1 << 3;
        /// The system call may only write.
        const WRONLY = 1 << 4;
        /// Stack traces are build ids and offsets.
        const STACK_BUILD_ID = 1 << 5;
        /// The hash's seed is 0, for tests.
        const ZERO_SEED = 1 << 6;
        /// Programs may only read.
        const RDONLY_PROG = 1 << 7;
        /// Programs may only write.
        const WRONLY_PROG = 1 << 8;
        /// Storage follows a cloned socket.
        const CLONE = 1 << 9;
        /// User space may `mmap` the values.
        const MMAPABLE = 1 << 10;
        /// Perf events are kept when the map's file closes.
        const PRESERVE_ELEMS = 1 << 11;
        /// An inner map whose size may differ from the template's.
        const INNER_MAP = 1 << 12;
        /// A struct_ops map attached through a link.
        const LINK = 1 << 13;
        /// Paths are relative to `path_fd`.
        const PATH_FD = 1 << 14;
        /// `value_type_btf_obj_fd` names a module's BTF.
        const VTYPE_BTF_OBJ_FD = 1 << 15;
        /// `map_token_fd` holds a BPF token.
        const TOKEN_FD = 1 << 16;
        /// A fault in an arena raises SIGSEGV.
        const SEGV_ON_FAULT = 1 << 17;
        /// Arena pointers are not translated.
        const NO_USER_CONV = 1 << 18;
    }
}

impl MapFlags {
    /// The access bits (`BPF_F_ACCESS_MASK`).
    pub const ACCESS: Self = Self::RDONLY
        .union(Self::WRONLY)
        .union(Self::RDONLY_PROG)
        .union(Self::WRONLY_PROG);

    /// Whether a program may read the values (`bpf_map_flags_to_cap`).
    #[must_use]
    pub const fn programs_read(self) -> bool {
        !self.contains(Self::WRONLY_PROG)
    }

    /// Whether a program may write the values (`bpf_map_flags_to_cap`).
    #[must_use]
    pub const fn programs_write(self) -> bool {
        !self.contains(Self::RDONLY_PROG)
    }
}

bitflags! {
    /// Flags of `map_update_elem` and of the system call's update. The two lowest
    /// bits are one number: 0 (`BPF_ANY`), [`NOEXIST`](Self::NOEXIST) or
    /// [`EXIST`](Self::EXIST).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct UpdateFlags: u64 {
        /// Only create.
        const NOEXIST = 1;
        /// Only replace.
        const EXIST = 2;
        /// Copy under the value's `bpf_spin_lock`.
        const LOCK = 4;
    }
}

bitflags! {
    /// `prog_flags` of `BPF_PROG_LOAD`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ProgFlags: u32 {
        /// Unaligned accesses are rejected on every machine.
        const STRICT_ALIGNMENT = 1 << 0;
        /// Alignment is not checked.
        const ANY_ALIGNMENT = 1 << 1;
        /// Upper halves are filled with random bits, for tests of zero extension.
        const TEST_RND_HI32 = 1 << 2;
        /// Checkpoints are created more often, for tests of pruning.
        const TEST_STATE_FREQ = 1 << 3;
        /// The program may sleep.
        const SLEEPABLE = 1 << 4;
        /// The program understands packets in several fragments.
        const XDP_HAS_FRAGS = 1 << 5;
        /// The program may only run on `prog_ifindex`.
        const XDP_DEV_BOUND_ONLY = 1 << 6;
        /// Violated register bounds are an error, for tests of the verifier.
        const TEST_REG_INVARIANTS = 1 << 7;
        /// `prog_token_fd` holds a BPF token.
        const TOKEN_FD = 1 << 16;
    }
}

bitflags! {
    /// Flags of `BPF_PROG_TEST_RUN`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct TestRunFlags: u32 {
        /// Run on the CPU that `cpu` names.
        const ON_CPU = 1 << 0;
        /// XDP verdicts are carried out.
        const XDP_LIVE_FRAMES = 1 << 1;
        /// The packet claims a complete checksum.
        const SKB_CHECKSUM_COMPLETE = 1 << 2;
    }
}

bitflags! {
    /// Flags of `ringbuf_output`, `ringbuf_submit` and `ringbuf_discard`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct RingbufFlags: u64 {
        /// The reader is not woken.
        const NO_WAKEUP = 1;
        /// The reader is woken even if it has not caught up.
        const FORCE_WAKEUP = 2;
    }
}

/// Property that `ringbuf_query` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
#[non_exhaustive]
pub enum RingbufQuery {
    /// Bytes that wait for the reader.
    AvailData = 0,
    /// Size of the ring in bytes.
    RingSize = 1,
    /// The reader's position.
    ConsPos = 2,
    /// The writers' position.
    ProdPos = 3,
}

impl RingbufQuery {
    /// The query with this number.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::AvailData),
            1 => Some(Self::RingSize),
            2 => Some(Self::ConsPos),
            3 => Some(Self::ProdPos),
            _ => None,
        }
    }
}

bitflags! {
    /// Flags of `get_stackid`, `get_stack` and `get_task_stack`; the lowest eight
    /// bits are the number of frames to skip.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct StackFlags: u64 {
        /// The user's stack in place of the kernel's.
        const USER_STACK = 1 << 8;
        /// Equal hashes count as equal stacks.
        const FAST_STACK_CMP = 1 << 9;
        /// A stack with another hash is replaced, and its id reused.
        const REUSE_STACKID = 1 << 10;
        /// Build ids and offsets in place of addresses.
        const USER_BUILD_ID = 1 << 11;
    }
}

impl StackFlags {
    /// The bits that hold the number of frames to skip.
    pub const SKIP_FIELD_MASK: u64 = 0xff;
}

/// The bits of `perf_event_output`'s flags that name the CPU's slot.
pub const INDEX_MASK: u64 = 0xffff_ffff;
/// The slot of the CPU that runs the program.
pub const CURRENT_CPU: u64 = INDEX_MASK;
/// The bits of `perf_event_output`'s flags that contain the number of packet bytes to
/// append, for programs with a packet.
pub const CTXLEN_MASK: u64 = 0xf_ffff << 32;
/// The network namespace of the program's own context (`BPF_F_CURRENT_NETNS`).
pub const CURRENT_NETNS: i32 = -1;

bitflags! {
    /// Flags of `timer_start`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct TimerFlags: u64 {
        /// The time is absolute.
        const ABS = 1;
        /// The callback runs on the CPU that starts the timer.
        const CPU_PIN = 2;
    }
}

bitflags! {
    /// Flags of `sk_storage_get` and its siblings.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct StorageFlags: u64 {
        /// Missing storage is created.
        const CREATE = 1;
    }
}

bitflags! {
    /// Flags of `copy_from_user_str`-like reads (`BPF_F_PAD_ZEROS`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CopyFlags: u64 {
        /// The rest of the buffer is zeroed.
        const PAD_ZEROS = 1;
    }
}

bitflags! {
    /// Flags of `redirect`, `clone_redirect`, `redirect_map` and the message
    /// redirects.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct RedirectFlags: u64 {
        /// To the receive path.
        const INGRESS = 1 << 0;
        /// To every entry of the map.
        const BROADCAST = 1 << 3;
        /// Excluding the device that the packet came from.
        const EXCLUDE_INGRESS = 1 << 4;
    }
}

bitflags! {
    /// Flags of `l3_csum_replace` and `l4_csum_replace`; the lowest four bits are
    /// the size of the field.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CsumFlags: u64 {
        /// The pseudo header changed too.
        const PSEUDO_HDR = 1 << 4;
        /// A checksum of 0 stays 0.
        const MARK_MANGLED_0 = 1 << 5;
        /// Updates even a missing checksum.
        const MARK_ENFORCE = 1 << 6;
        /// The pseudo header is IPv6's.
        const IPV6 = 1 << 7;
    }
}

impl CsumFlags {
    /// The bits that hold the size of the changed field.
    pub const FIELD_SIZE_MASK: u64 = 0xf;
}

bitflags! {
    /// Flags of `skb_store_bytes`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct StoreFlags: u64 {
        /// The packet's checksum is computed again.
        const RECOMPUTE_CSUM = 1;
        /// The packet's flow hash is cleared.
        const INVALIDATE_HASH = 2;
    }
}

bitflags! {
    /// Flags of the BTF printers (`snprintf_btf`, `seq_printf_btf`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct BtfPrintFlags: u64 {
        /// No white space.
        const COMPACT = 1;
        /// No names of types and members.
        const NONAME = 2;
        /// Pointers as they are.
        const PTR_RAW = 4;
        /// Members that are zero, too.
        const ZERO = 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_the_headers_numbers() {
        assert_eq!(MapFlags::NO_USER_CONV.bits(), 262_144);
        assert_eq!(MapFlags::ACCESS.bits(), 0x198);
        assert_eq!(StackFlags::USER_STACK.bits(), 256);
        assert_eq!(CTXLEN_MASK, 4_503_595_332_403_200);
        assert_eq!(ProgFlags::TEST_REG_INVARIANTS.bits(), 128);
        assert_eq!(RingbufQuery::from_number(3), Some(RingbufQuery::ProdPos));
        assert_eq!(RingbufQuery::from_number(4), None);
    }

    #[test]
    fn access_flags_are_seen_from_the_programs_side() {
        assert!(!MapFlags::RDONLY_PROG.programs_write());
        assert!(MapFlags::RDONLY_PROG.programs_read());
        assert!(MapFlags::RDONLY.programs_write());
    }
}
