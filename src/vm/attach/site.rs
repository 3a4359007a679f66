//! What helpers know of the place where the program that runs now is attached.

use std::sync::Arc;

use crate::spec::AttachType;

/// What is true of one run besides its context.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// What was given when the program was attached (`bpf_get_attach_cookie`).
    pub cookie: u64,
    /// The address of the traced function or place (`bpf_get_func_ip`); 0 where it is
    /// not known.
    pub ip: u64,
    /// How many slots of 8 bytes hold arguments (`bpf_get_func_arg_cnt`).
    pub arguments: u32,
    /// How the program attaches, where that changes what helpers do.
    pub attach_type: Option<AttachType>,
    /// What a session keeps from a function's entry to its return.
    pub session: Option<Session>,
    /// The counter of the perf event that overflowed (`bpf_perf_prog_read_value`); none
    /// for a program that no perf event runs.
    pub counter: Option<Counter>,
    /// The branches that were taken before (`bpf_read_branch_records`,
    /// `bpf_get_branch_snapshot`); none where the CPU records none.
    pub branches: Option<Arc<[BranchEntry]>>,
    /// What `bpf_set_retval` set, and `bpf_get_retval` gets.
    pub retval: i32,
    /// What `bpf_override_return` said that the function is to return.
    pub overridden: Option<u64>,
}

/// What a session program sees of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Whether the function returns (`bpf_session_is_return`).
    pub is_return: bool,
    /// Where its 8 bytes are (`bpf_session_cookie`).
    pub cookie: u64,
}

/// A perf counter (`struct bpf_perf_event_value`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// How often what it counts has happened.
    pub counter: u64,
    /// For how many nanoseconds it was enabled.
    pub enabled: u64,
    /// For how many of them it counted: less where counters take turns.
    pub running: u64,
}

impl Counter {
    /// Bytes of a `struct bpf_perf_event_value`.
    pub const SIZE: usize = 24;

    /// Its bytes there.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let words = [self.counter, self.enabled, self.running];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

impl From<u64> for Counter {
    /// One that has counted without a pause.
    fn from(counter: u64) -> Self {
        Self {
            counter,
            ..Self::default()
        }
    }
}

/// A branch that was taken (`struct perf_branch_entry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchEntry {
    /// Where from.
    pub from: u64,
    /// Where to.
    pub to: u64,
    /// The bits of the third word: whether it was predicted, how many cycles, …
    pub flags: u64,
}

impl BranchEntry {
    /// Bytes of a `struct perf_branch_entry`.
    pub const SIZE: usize = 24;

    /// The bytes of several.
    #[must_use]
    pub fn bytes(entries: &[Self]) -> Vec<u8> {
        let words = entries.iter().flat_map(|e| [e.from, e.to, e.flags]);
        words.flat_map(u64::to_le_bytes).collect()
    }
}
