//! Injections at work: what came by, and what failed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::injection::Injection;
use crate::util::Errno;

/// The injections of a machine, in the order in which they were added. CPUs of one
/// machine count together.
#[derive(Debug, Clone, Default)]
pub struct Injections {
    active: Vec<InjectionHandle>,
    /// What failed on this CPU since it was last asked.
    log: Vec<Injected>,
}

/// An injection that was added to a machine: how often it was used.
#[derive(Debug, Clone)]
pub struct InjectionHandle(Arc<Active>);

#[derive(Debug)]
struct Active {
    injection: Injection,
    calls: AtomicU64,
    count: AtomicU64,
}

/// A call that failed because a test wanted it to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    /// The function, as in C.
    pub function: String,
    /// The map that the call was about.
    pub map: Option<String>,
    /// Which of the calls that the injection is about it was, counted from 1.
    pub call: u64,
    /// What the program was told; `None`: null, by a function that returns pointers.
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
    /// Adds one.
    pub fn add(&mut self, injection: Injection) -> InjectionHandle {
        let handle = InjectionHandle(Arc::new(Active {
            injection,
            calls: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }));
        self.active.push(handle.clone());
        handle
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &InjectionHandle> {
        self.active.iter()
    }

    /// Notes that a call failed.
    pub(super) fn note(&mut self, injected: Injected) {
        self.log.push(injected);
    }

    /// Takes what failed on this CPU since the last time.
    pub fn take(&mut self) -> Vec<Injected> {
        std::mem::take(&mut self.log)
    }

    /// The same for another CPU, where nothing has failed yet.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            active: self.active.clone(),
            log: Vec::new(),
        }
    }
}

impl InjectionHandle {
    /// What was asked for.
    #[must_use]
    pub fn injection(&self) -> &Injection {
        &self.0.injection
    }

    /// How many calls came by that it is about.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// How many of them it made fail.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Another call came by: its number, and whether it is chosen.
    pub(super) fn see(&self) -> (u64, bool) {
        let call = self.0.calls.fetch_add(1, Ordering::Relaxed) + 1;
        (call, self.0.injection.schedule.hits(call))
    }

    /// It made a call fail.
    pub(super) fn strike(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }
}
