//! What a machine keeps for kernel functions from call to call.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::super::helpers::Mock;
use super::held::Held;
use super::objects::Objects;

/// What a machine keeps for kernel functions.
#[derive(Default)]
pub(in crate::vm) struct State {
    /// Functions that a test replaced, by name.
    pub(super) mocks: FxHashMap<Arc<str>, Arc<Mutex<Mock>>>,
    /// What the program that runs now holds.
    pub(super) held: Held,
    /// What those hold in whose middle it runs, if anything.
    outer: Vec<Option<Box<Held>>>,
    /// What programs on all CPUs allocated.
    pub(super) objects: Objects,
    /// The CPU that `bpf_cpumask_any_distribute` gave last.
    pub(super) distributed: u32,
}

impl State {
    /// The same for another CPU.
    pub(in crate::vm) fn fork(&self) -> Self {
        Self {
            mocks: self.mocks.clone(),
            objects: self.objects.clone(),
            ..Self::default()
        }
    }

    /// Puts a function of the test in place of a kernel function's body.
    pub(in crate::vm) fn mock(&mut self, name: &str, body: Mock) {
        self.mocks.insert(name.into(), Arc::new(Mutex::new(body)));
    }

    /// Whether a test put a function in place of some body.
    pub(in crate::vm) fn has_mocks(&self) -> bool {
        !self.mocks.is_empty()
    }

    /// Whether the program that runs now has to give nothing back.
    pub(in crate::vm) fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// A program begins to run, in the middle of another one perhaps.
    pub(in crate::vm) fn begin(&mut self) {
        let outer = (!self.holds_nothing()).then(|| Box::new(std::mem::take(&mut self.held)));
        self.outer.push(outer);
    }

    /// It has ended; what it held, if anything.
    pub(in crate::vm) fn end(&mut self) -> Option<Held> {
        let outer = self.outer.pop().flatten();
        if outer.is_none() && self.holds_nothing() {
            return None;
        }
        let outer = outer.map_or_else(Held::default, |outer| *outer);
        Some(std::mem::replace(&mut self.held, outer))
    }
}
