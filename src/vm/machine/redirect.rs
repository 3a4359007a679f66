//! Where programs redirect packets and connections to.

use std::fmt;

use crate::vm::maps::ProgramHandle;

/// A call of one of the redirect helpers (`bpf_redirect…`). The kernel carries out the last
/// one of a program, and only if the program returns the action that the helper returned
/// (`XDP_REDIRECT`, `TC_ACT_REDIRECT`, `SK_PASS`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The map with the target; `None` for `bpf_redirect` and other helpers without a map.
    pub map: Option<String>,
    /// The target.
    pub target: RedirectTarget,
    /// The helper's flags.
    pub flags: u64,
}

/// The target of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectTarget {
    /// Out of a device.
    Device {
        /// The device's index.
        index: u32,
        /// The program in the devmap's value, which runs on the packet first.
        program: Option<ProgramHandle>,
    },
    /// Out of every device of a map (`BPF_F_BROADCAST`).
    Devices {
        /// The devices' indices.
        indices: Vec<u32>,
        /// Whether the device that received the packet is left out (`BPF_F_EXCLUDE_INGRESS`).
        exclude_ingress: bool,
    },
    /// Into the namespace of a device's peer (`bpf_redirect_peer`).
    Peer(u32),
    /// Out of a device, with the neighbour's link-layer header (`bpf_redirect_neigh`).
    Neighbour(u32),
    /// To the stack on another CPU.
    Cpu {
        /// The CPU's number.
        cpu: u32,
        /// The program in the cpumap's value, which runs on that CPU first.
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
