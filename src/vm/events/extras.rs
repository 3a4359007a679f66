//! Data that only some events have: system-call registers, counters, the position of an
//! iterator.

use std::sync::Arc;

use super::attach::BranchEntry;
use super::error::EventError;
use super::layout::Layout;
use super::record::Values;
use crate::spec::context::Arch;
use crate::util::with;
use crate::vm::fields::FieldValue;
use crate::vm::maps::Counter;

/// Event data besides the fields of the context.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Extras {
    /// The architecture of the registers; `None` for contexts without registers.
    pub arch: Option<Arch>,
    /// The address of the traced function or instruction.
    pub ip: u64,
    /// The registers that a system call's function gets a pointer to.
    pub inner: Option<Inner>,
    /// Bytes at the stack pointer: arguments beyond the registers.
    pub stack: Vec<u8>,
    /// The counter of the perf event that overflowed.
    pub counter: Option<Counter>,
    /// The branch records.
    pub branches: Option<Arc<[BranchEntry]>>,
    /// The arguments of a USDT probe.
    pub usdt_args: Vec<i64>,
    /// The position of an iterator.
    pub iteration: Option<Iteration>,
    /// What fields that are pointers point to.
    pub pointed: Vec<Pointed>,
}

/// Text or bytes that a field points to, and the address that the field has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointed {
    /// The address of the first byte.
    pub at: u64,
    /// The bytes; of a text with its NUL.
    pub bytes: Vec<u8>,
    /// Whether it is kernel memory; user memory of the current task otherwise.
    pub in_kernel: bool,
}

/// The position of an iterator (`struct bpf_iter_meta`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Iteration {
    /// The address that stands for the `struct seq_file`; programs write to it.
    pub seq: u64,
    /// The session ID: the same for all runs for one open file.
    pub session_id: u64,
    /// Number of objects shown before.
    pub seq_num: u64,
}

impl Iteration {
    with! {
        with_seq(seq: u64);
        with_session_id(session_id: u64);
        with_seq_num(seq_num: u64);
    }

    /// The bytes of a `struct bpf_iter_meta`.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let words = [self.seq, self.session_id, self.seq_num];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }
}

/// A struct that the context points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inner {
    /// The offset of the pointer in the context.
    pub at: u32,
    /// Its fields.
    pub layout: Arc<Layout>,
    /// The values of its fields.
    pub values: Values,
}

impl Inner {
    /// Sets a field.
    pub fn set(&mut self, field: &str, value: &FieldValue) -> Result<(), EventError> {
        self.values.set(&self.layout, field, value)
    }
}

/// The struct that the context points to, if it has this field.
pub(super) fn inner<'a>(extras: &'a mut Option<Box<Extras>>, field: &str) -> Option<&'a mut Inner> {
    let inner = extras.as_mut()?.inner.as_mut()?;
    inner.layout.part(field).is_ok().then_some(inner)
}
