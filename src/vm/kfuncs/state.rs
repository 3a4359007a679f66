//! The state of kfuncs in a machine.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::super::helpers::Mock;
use super::acquired::AcquiredResources;
use super::objects::Objects;

/// The state of kfuncs in a machine.
#[derive(Default)]
pub(in crate::vm) struct State {
    /// Kfuncs mocked by a test, by name.
    pub(super) mocks: FxHashMap<Arc<str>, Arc<Mutex<Mock>>>,
    /// Resources acquired by the running program.
    pub(super) acquired: AcquiredResources,
    /// Resources of the interrupted programs, if any.
    outer: Vec<Option<Box<AcquiredResources>>>,
    /// Objects allocated by programs on all CPUs.
    pub(super) objects: Objects,
    /// The last result of `bpf_cpumask_any_distribute`.
    pub(super) distributed: u32,
}

impl State {
    /// The state for another CPU of the machine.
    pub(in crate::vm) fn fork(&self) -> Self {
        Self {
            mocks: self.mocks.clone(),
            objects: self.objects.clone(),
            ..Self::default()
        }
    }

    /// Mocks a kfunc.
    pub(in crate::vm) fn mock(&mut self, name: &str, body: Mock) {
        self.mocks.insert(name.into(), Arc::new(Mutex::new(body)));
    }

    /// Whether a test mocked any kfunc.
    pub(in crate::vm) fn has_mocks(&self) -> bool {
        !self.mocks.is_empty()
    }

    /// Whether the running program has released everything.
    pub(in crate::vm) fn holds_nothing(&self) -> bool {
        self.acquired.is_empty()
    }

    /// Starts a program, which may interrupt another one.
    pub(in crate::vm) fn begin(&mut self) {
        let outer = (!self.holds_nothing()).then(|| Box::new(std::mem::take(&mut self.acquired)));
        self.outer.push(outer);
    }

    /// Ends the running program; returns the resources that it has not released, if any.
    pub(in crate::vm) fn end(&mut self) -> Option<AcquiredResources> {
        let outer = self.outer.pop().flatten();
        if outer.is_none() && self.holds_nothing() {
            return None;
        }
        let outer = outer.map_or_else(AcquiredResources::default, |outer| *outer);
        Some(std::mem::replace(&mut self.acquired, outer))
    }
}
