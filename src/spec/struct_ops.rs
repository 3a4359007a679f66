//! The structures of operations that struct_ops programs implement, and their rules
//! (`struct bpf_struct_ops`, `include/linux/bpf.h`).

/// A structure of operations.
#[derive(Debug)]
pub struct Operations {
    /// The structure, in the kernel's BTF.
    pub name: &'static str,
    /// The members that programs may implement (those with a stub, `cfi_stubs`).
    pub members: &'static [&'static str],
    /// The members in which programs may sleep; `None` for all.
    pub sleepable: Option<&'static [&'static str]>,
    /// A structure in whose place the programs get another, which begins with it: both names.
    pub promoted: Option<(&'static str, &'static str)>,
    /// What programs may write (`btf_struct_access`).
    pub writable: Writable,
}

/// The kernel objects that programs may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writable {
    /// Any byte of this structure.
    Whole(&'static str),
    /// These members of this structure, each a path from a structure that begins it.
    Members {
        /// The structure.
        structure: &'static str,
        /// Structures and paths in them; an array member may be written anywhere.
        members: &'static [(&'static str, &'static str)],
    },
}

/// The prefix of the structure that a kernel has for each structure of operations that
/// programs may implement (`VALUE_PREFIX`, `kernel/bpf/bpf_struct_ops.c`).
pub const VALUE_PREFIX: &str = "bpf_struct_ops_";

/// Structures of operations whose rules are known.
const OPERATIONS: &[Operations] = &[
    // net/bpf/bpf_dummy_struct_ops.c
    Operations {
        name: "bpf_dummy_ops",
        members: &["test_1", "test_2", "test_sleepable"],
        sleepable: Some(&["test_sleepable"]),
        promoted: None,
        writable: Writable::Whole("bpf_dummy_ops_state"),
    },
    // net/ipv4/bpf_tcp_ca.c
    Operations {
        name: "tcp_congestion_ops",
        members: &[
            "ssthresh",
            "cong_avoid",
            "set_state",
            "cwnd_event",
            "in_ack_event",
            "pkts_acked",
            "min_tso_segs",
            "cong_control",
            "undo_cwnd",
            "sndbuf_expand",
            "init",
            "release",
        ],
        sleepable: None,
        promoted: Some(("sock", "tcp_sock")),
        writable: Writable::Members {
            structure: "tcp_sock",
            members: &[
                ("sock", "sk_pacing_rate"),
                ("sock", "sk_pacing_status"),
                ("inet_connection_sock", "icsk_ca_priv"),
                ("inet_connection_sock", "icsk_ack.pending"),
                ("tcp_sock", "snd_cwnd"),
                ("tcp_sock", "snd_cwnd_cnt"),
                ("tcp_sock", "snd_cwnd_stamp"),
                ("tcp_sock", "snd_ssthresh"),
                ("tcp_sock", "ecn_flags"),
                ("tcp_sock", "app_limited"),
            ],
        },
    },
];

/// The structure of operations with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Operations> {
    OPERATIONS.iter().find(|operations| operations.name == name)
}
