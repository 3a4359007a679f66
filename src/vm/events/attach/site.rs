//! What helpers know about the attachment of the running program.

use std::sync::Arc;

use crate::spec::AttachType;
use crate::vm::maps::Counter;

/// Properties of one run besides its context.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Site {
    /// The attach cookie (`bpf_get_attach_cookie`).
    pub cookie: u64,
    /// The address of the traced function or instruction (`bpf_get_func_ip`); 0 if unknown.
    pub ip: u64,
    /// How many slots of 8 bytes hold arguments (`bpf_get_func_arg_cnt`).
    pub arguments: u32,
    /// How the program is attached, if that affects helpers.
    pub attach_type: Option<AttachType>,
    /// The session of a session program.
    pub session: Option<Session>,
    /// The counter of the perf event that overflowed (`bpf_perf_prog_read_value`); `None` if
    /// the program was not run by a perf event.
    pub counter: Option<Counter>,
    /// The last taken branches (`bpf_read_branch_records`, `bpf_get_branch_snapshot`); `None`
    /// if the CPU does not record them.
    pub branches: Option<Arc<[BranchEntry]>>,
    /// The value of `bpf_set_retval` and `bpf_get_retval`.
    pub retval: i32,
    /// The return value set by `bpf_override_return`.
    pub overridden: Option<u64>,
}

/// A session as its program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Whether the program runs at the function's return (`bpf_session_is_return`).
    pub is_return: bool,
    /// Address of the 8-byte cookie (`bpf_session_cookie`).
    pub cookie: u64,
}

/// A taken branch (`struct perf_branch_entry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchEntry {
    /// Source address.
    pub from: u64,
    /// Target address.
    pub to: u64,
    /// The third word: misprediction, cycles and other bits.
    pub flags: u64,
}

impl BranchEntry {
    /// Size of a `struct perf_branch_entry`.
    pub const SIZE: usize = 24;

    /// The bytes of several entries.
    #[must_use]
    pub fn bytes(entries: &[Self]) -> Vec<u8> {
        let words = entries.iter().flat_map(|e| [e.from, e.to, e.flags]);
        words.flat_map(u64::to_le_bytes).collect()
    }
}
