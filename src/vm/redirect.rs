//! Where programs send packets and connections.

use std::fmt;

use super::handle::ProgramHandle;

/// A decision of one of the `bpf_redirect…` helpers and their like. The kernel carries out
/// the last one of a program, and only if the program returns the action that the helper
/// returned (`XDP_REDIRECT`, `TC_ACT_REDIRECT`, `SK_PASS`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The map that led there; `None` for `bpf_redirect` and its siblings.
    pub map: Option<String>,
    /// Where to.
    pub target: RedirectTarget,
    /// The helper's flags.
    pub flags: u64,
}

/// Where a packet or a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectTarget {
    /// Out of a device.
    Device {
        /// Its number.
        index: u32,
        /// The program of the devmap's value, which sees the packet first.
        program: Option<ProgramHandle>,
    },
    /// Out of every device of a map (`BPF_F_BROADCAST`).
    Devices {
        /// Their numbers.
        indices: Vec<u32>,
        /// Whether that which the packet came from is left out.
        exclude_ingress: bool,
    },
    /// Into the namespace of a device's peer (`bpf_redirect_peer`).
    Peer(u32),
    /// Out of a device, the link header made from the neighbour's (`bpf_redirect_neigh`).
    Neighbour(u32),
    /// To the stack on another CPU.
    Cpu {
        /// Its number.
        cpu: u32,
        /// The program of the cpumap's value, which sees the packet there.
        program: Option<ProgramHandle>,
    },
    /// To a socket, by its address: one of a sockmap, sockhash, XSK map or reuseport
    /// array.
    Socket(u64),
}

impl fmt::Display for RedirectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { index, .. } => write!(f, "device {index}"),
            Self::Devices { indices, .. } => write!(f, "devices {indices:?}"),
            Self::Peer(index) => write!(f, "peer of device {index}"),
            Self::Neighbour(index) => write!(f, "neighbour on device {index}"),
            Self::Cpu { cpu, .. } => write!(f, "cpu {cpu}"),
            Self::Socket(socket) => write!(f, "socket {socket:#x}"),
        }
    }
}
