//! Contexts: the fields of the structure that `r1` points to when a program starts, and the
//! accesses that each kind of program may make (`is_valid_access` of the kernel's `struct
//! bpf_verifier_ops`).

mod access;
mod kept;
mod other;
mod packet;
mod socket;
mod table;

use super::attach_type::AttachType as At;
use super::capabilities::Capabilities;
use super::limits::{MAX_FUNC_ARGS, MAX_SYSCALL_CONTEXT, MAX_TRACE_SIZE};
use super::prog_type::{ContextKind, ProgType};
use crate::btf::{Btf, Kind};
pub use access::{Access, Mode, Parts, Yield};
pub use kept::{is_stored_apart, loaded_as, stored_as};
pub use packet::FLOW_KEYS;
pub use table::{Field, FieldType, Layout};

/// An architecture, where contexts differ between architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arch {
    /// `x86_64`.
    X86_64,
    /// `aarch64`.
    Arm64,
}

impl Arch {
    /// The architecture that this code was built for; x86-64 for all others.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") {
        Self::Arm64
    } else {
        Self::X86_64
    };

    /// The architecture of this BTF, determined by its register structure (`struct
    /// pt_regs`, `struct user_pt_regs`).
    #[must_use]
    pub fn of(btf: &Btf) -> Option<Self> {
        if btf.find("user_pt_regs", Kind::Struct).is_some() {
            return Some(Self::Arm64);
        }
        let registers = btf.find("pt_regs", Kind::Struct)?;
        let has = |name: &str| registers.members().any(|member| member.name == name);
        if has("di") || has("rdi") {
            Some(Self::X86_64)
        } else {
            has("regs").then_some(Self::Arm64)
        }
    }
}

/// The structure of a context, if it has one with fixed fields.
#[must_use]
pub const fn layout(kind: ContextKind, machine: Arch) -> Option<&'static Layout> {
    Some(match (kind, machine) {
        (ContextKind::SkBuff | ContextKind::FlowDissector, _) => &packet::SK_BUFF,
        (ContextKind::XdpMd, _) => &packet::XDP_MD,
        (ContextKind::SkMsg, _) => &packet::SK_MSG_MD,
        (ContextKind::SkReuseport, _) => &packet::SK_REUSEPORT_MD,
        (ContextKind::Sock, _) => &socket::SOCK,
        (ContextKind::SockOps, _) => &socket::SOCK_OPS,
        (ContextKind::SockAddr, _) => &socket::SOCK_ADDR,
        (ContextKind::SkLookup, _) => &socket::SK_LOOKUP,
        (ContextKind::CgroupSockopt, _) => &socket::SOCKOPT,
        (ContextKind::CgroupDevice, _) => &other::CGROUP_DEV,
        (ContextKind::CgroupSysctl, _) => &other::SYSCTL,
        (ContextKind::Netfilter, _) => &other::NETFILTER,
        (ContextKind::LircMode2, _) => &other::LIRC_MODE2,
        (ContextKind::RawTracepoint, _) => &other::RAW_TRACEPOINT,
        (ContextKind::PtRegs, Arch::X86_64) => &other::PT_REGS_X86_64,
        (ContextKind::PtRegs, Arch::Arm64) => &other::PT_REGS_ARM64,
        (ContextKind::PerfEvent, Arch::X86_64) => &other::PERF_EVENT_X86_64,
        (ContextKind::PerfEvent, Arch::Arm64) => &other::PERF_EVENT_ARM64,
        (
            ContextKind::Tracepoint
            | ContextKind::BtfArgs
            | ContextKind::Syscall
            | ContextKind::Target,
            _,
        ) => {
            return None;
        }
    })
}

/// The column of a context's table that applies to these programs.
const fn column(prog_type: ProgType, attach: Option<At>) -> usize {
    match (prog_type, attach) {
        (ProgType::SchedCls | ProgType::SchedAct, _)
        | (ProgType::Xdp, Some(At::XdpDevmap))
        | (ProgType::CgroupSock, Some(At::CgroupInet4PostBind))
        | (ProgType::CgroupSockopt, Some(At::CgroupSetsockopt)) => 1,
        (
            ProgType::CgroupSockAddr,
            Some(
                At::CgroupInet6Bind
                | At::CgroupInet6Connect
                | At::CgroupUdp6Recvmsg
                | At::CgroupInet6Getpeername
                | At::CgroupInet6Getsockname,
            ),
        ) => 1,
        (ProgType::CgroupSkb, _)
        | (ProgType::CgroupSock, Some(At::CgroupInet6PostBind))
        | (ProgType::CgroupSockAddr, Some(At::CgroupUdp4Sendmsg)) => 2,
        (ProgType::LwtIn | ProgType::LwtOut | ProgType::LwtXmit | ProgType::LwtSeg6local, _)
        | (ProgType::CgroupSockAddr, Some(At::CgroupUdp6Sendmsg)) => 3,
        (ProgType::SkSkb, _)
        | (
            ProgType::CgroupSockAddr,
            Some(
                At::CgroupUnixConnect
                | At::CgroupUnixSendmsg
                | At::CgroupUnixRecvmsg
                | At::CgroupUnixGetpeername
                | At::CgroupUnixGetsockname,
            ),
        ) => 4,
        (ProgType::FlowDissector, _) => 5,
        _ => 0,
    }
}

/// The result of an access to the context, or `None` if the kernel rejects it ("invalid
/// bpf_context access").
///
/// `offset` is relative to the context's start; `size` is 1, 2, 4 or 8. For the arguments
/// of a function in BTF only the offset is checked; the caller checks their types. For an
/// extension, pass the type of the program it replaces.
#[must_use]
pub fn check(
    prog_type: ProgType,
    attach: Option<At>,
    machine: Arch,
    offset: u32,
    size: u32,
    mode: Mode,
) -> Option<Yield> {
    let kind = prog_type.info().context;
    if !matches!(size, 1 | 2 | 4 | 8) || !offset.is_multiple_of(size) {
        return None;
    }
    let reads = mode != Mode::Write;
    let place = usize::try_from(offset).ok()?;
    match kind {
        ContextKind::Tracepoint => {
            (reads && (8..MAX_TRACE_SIZE).contains(&place)).then_some(Yield::Scalar)
        }
        ContextKind::Syscall => (place < MAX_SYSCALL_CONTEXT).then_some(Yield::Scalar),
        ContextKind::BtfArgs => (reads && offset.is_multiple_of(8) && place < 8 * MAX_FUNC_ARGS)
            .then_some(Yield::Argument(offset / 8)),
        ContextKind::RawTracepoint
            if prog_type == ProgType::RawTracepointWritable && offset == 0 =>
        {
            (mode == Mode::Read && size == 8).then_some(Yield::TracepointBuffer)
        }
        _ => layout(kind, machine)?.check(column(prog_type, attach), offset, size, mode),
    }
}

/// The capabilities of the loader that an access requires (`cg_skb_is_valid_access`,
/// `net/core/filter.c`).
#[must_use]
pub fn needed(prog_type: ProgType, offset: u32, mode: Mode) -> Capabilities {
    let field = packet::SK_BUFF.at(offset).map_or("", |field| field.name);
    match (prog_type, field) {
        (ProgType::CgroupSkb, "data" | "data_end") => Capabilities::BPF,
        (ProgType::CgroupSkb, "tstamp") if mode == Mode::Write => Capabilities::BPF,
        _ => Capabilities::empty(),
    }
}

/// An object that programs can point to without its type in BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Object {
    /// A socket of any kind.
    SockCommon,
    /// A full socket.
    Socket,
    /// A TCP socket.
    TcpSock,
    /// An AF_XDP socket.
    XdpSock,
}

impl Object {
    /// Its layout.
    #[must_use]
    pub const fn layout(self) -> &'static Layout {
        match self {
            Self::SockCommon | Self::Socket => &socket::SOCK,
            Self::TcpSock => &socket::TCP_SOCK,
            Self::XdpSock => &socket::XDP_SOCK,
        }
    }

    /// Whether programs may load these bytes; stores are never allowed.
    #[must_use]
    pub fn check(self, offset: u32, size: u32) -> bool {
        let column = match self {
            Self::SockCommon => 3,
            Self::Socket => 4,
            Self::TcpSock | Self::XdpSock => 0,
        };
        self.layout()
            .check(column, offset, size, Mode::Read)
            .is_some()
    }
}

#[cfg(test)]
mod tests;
