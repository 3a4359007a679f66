//! What only some events have: memory behind registers, counters, the session of an
//! iterator.

use std::sync::Arc;

use super::error::EventError;
use super::layout::Layout;
use super::record::Values;
use super::value::FieldValue;
use crate::spec::context::Arch;
use crate::vm::attach::{BranchEntry, Counter};

/// What an event has besides the fields of its context.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Extras {
    /// Whose registers they are; none for contexts without.
    pub arch: Option<Arch>,
    /// The address of the traced function or place.
    pub ip: u64,
    /// The registers that a system call's function gets a pointer to.
    pub inner: Option<Inner>,
    /// What the stack pointer points to: arguments that have no register.
    pub stack: Vec<u8>,
    /// The counter of the perf event that overflowed.
    pub counter: Option<Counter>,
    /// The branches that were taken before.
    pub branches: Option<Arc<[BranchEntry]>>,
    /// The arguments of a marker.
    pub marker: Vec<i64>,
    /// Where an iterator stands.
    pub iteration: Option<Iteration>,
}

/// Where an iterator stands (`struct bpf_iter_meta`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Iteration {
    /// What stands for the `struct seq_file`: the address that programs write to.
    pub seq: u64,
    /// The number of the session: of all programs that read one file.
    pub session_id: u64,
    /// How many objects were shown before.
    pub seq_num: u64,
}

impl Iteration {
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
    /// What they hold.
    pub values: Values,
}

impl Inner {
    /// Sets a field.
    pub fn set(&mut self, field: &str, value: &FieldValue) -> Result<(), EventError> {
        self.values.set(&self.layout, field, value)
    }
}

/// The struct behind the context, if that is what has the field.
pub(super) fn inner<'a>(extras: &'a mut Option<Box<Extras>>, field: &str) -> Option<&'a mut Inner> {
    let inner = extras.as_mut()?.inner.as_mut()?;
    inner.layout.part(field).is_ok().then_some(inner)
}
