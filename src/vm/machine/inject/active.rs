//! Active injections: counting calls and failures.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::injection::Injection;
use crate::util::Errno;

/// The injections of a machine, in the order in which they were added. All CPUs of a machine
/// share the counters.
#[derive(Debug, Clone, Default)]
pub struct Injections {
    active: Vec<InjectionHandle>,
    /// Calls that failed on this CPU and were not taken yet.
    log: Vec<Injected>,
}

/// An injection that was added to a machine, with its counters.
#[derive(Debug, Clone)]
pub struct InjectionHandle(Arc<Active>);

#[derive(Debug)]
struct Active {
    injection: Injection,
    calls: AtomicU64,
    count: AtomicU64,
}

/// A call that an injection made fail.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// The function's name in C.
    pub function: String,
    /// The map argument of the call.
    pub map: Option<String>,
    /// The call's number among the calls that match the injection, from 1.
    pub call: u64,
    /// The returned error; `None` if the function returned null.
    pub errno: Option<Errno>,
}

/// `bpf_map_update_elem(hist), call 3: ENOMEM (Cannot allocate memory)`.
impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        if let Some(map) = &self.map {
            write!(f, "({map})")?;
        }
        write!(f, ", call {}: ", self.call)?;
        match self.errno {
            Some(errno) => errno.fmt(f),
            None => f.write_str("null"),
        }
    }
}

impl Injections {
    /// Adds an injection.
    pub fn add(&mut self, injection: Injection) -> InjectionHandle {
        let handle = InjectionHandle(Arc::new(Active {
            injection,
            calls: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }));
        self.active.push(handle.clone());
        handle
    }

    /// Whether there are no injections.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// All injections.
    pub fn iter(&self) -> impl Iterator<Item = &InjectionHandle> {
        self.active.iter()
    }

    /// Records a failed call.
    pub(in crate::vm) fn note(&mut self, injected: Injected) {
        self.log.push(injected);
    }

    /// Takes the calls that failed on this CPU since the last call.
    pub fn take(&mut self) -> Vec<Injected> {
        std::mem::take(&mut self.log)
    }

    /// The injections for another CPU, with an empty log.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            active: self.active.clone(),
            log: Vec::new(),
        }
    }
}

impl InjectionHandle {
    /// The injection.
    #[must_use]
    pub fn injection(&self) -> &Injection {
        &self.0.injection
    }

    /// How many calls matched the injection.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// How many calls it made fail.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Counts a matching call; returns its number and whether the schedule selects it.
    pub(in crate::vm) fn count_call(&self) -> (u64, bool) {
        let call = self.0.calls.fetch_add(1, Ordering::Relaxed) + 1;
        (call, self.0.injection.schedule.hits(call))
    }

    /// Counts a call that failed.
    pub(in crate::vm) fn count_failure(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }
}
