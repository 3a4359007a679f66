//! Injections.

use std::ops::RangeInclusive;

use super::cause::Cause;
use super::error::InjectError;
use super::fails::Fails;
use super::schedule::Schedule;
use crate::spec::call::CallSpec;
use crate::spec::helpers::helper_by_name;
use crate::spec::kfuncs::{self, KfuncId};
use crate::util::Errno;

/// Makes calls of helpers or kfuncs fail.
///
/// ```
/// use bpflab::util::Errno;
/// use bpflab::vm::Injection;
///
/// // The third update of the map `hist` fails with ENOMEM.
/// let third = Injection::map_update().on_map("hist").error(Errno::ENOMEM).nth(3);
/// // One in ten of all calls of a helper fails.
/// let some = Injection::call("bpf_get_current_comm").with_chance(0.1, 42);
/// assert_eq!(third, "map-update(hist)=ENOMEM@3".parse()?);
/// assert_eq!(some, "bpf_get_current_comm@10%:42".parse()?);
/// # Ok::<(), bpflab::vm::InjectError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Injection {
    /// Which functions it affects.
    #[doc(hidden)]
    pub target: Target,
    /// The map that calls must be about; any map if `None`.
    pub map: Option<String>,
    /// The error to return; if `None`, the one that the kernel's function usually returns.
    pub errno: Option<Errno>,
    /// Which of the matching calls fail.
    pub schedule: Schedule,
}

/// The functions that an injection affects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// One helper or kfunc, by its name without `bpf_`.
    Function(String),
    /// All functions that a cause affects.
    Cause(Cause),
}

impl Injection {
    fn new(target: Target) -> Self {
        Self {
            target,
            map: None,
            errno: None,
            schedule: Schedule::Always,
        }
    }

    /// Makes calls of a helper or kfunc fail, by its name with or without `bpf_`.
    #[must_use]
    pub fn call(name: &str) -> Self {
        let plain = name.strip_prefix("bpf_").unwrap_or(name);
        Self::new(Target::Function(plain.to_owned()))
    }

    /// Makes all functions that a cause affects fail.
    #[must_use]
    pub fn of(cause: Cause) -> Self {
        Self::new(Target::Cause(cause))
    }

    /// Makes map updates fail, as if the map was full.
    #[must_use]
    pub fn map_update() -> Self {
        Self::of(Cause::MapUpdate)
    }

    /// Makes output to ring buffers and perf buffers fail, as if they were full.
    #[must_use]
    pub fn buffer_full() -> Self {
        Self::of(Cause::BufferFull)
    }

    /// Makes memory allocations fail.
    #[must_use]
    pub fn allocation() -> Self {
        Self::of(Cause::Allocation)
    }

    /// Makes `bpf_probe_read` and its siblings fail, as if the address was unmapped.
    #[must_use]
    pub fn probe_read() -> Self {
        Self::of(Cause::ProbeRead)
    }

    /// Restricts the injection to calls with this map.
    #[must_use]
    pub fn on_map(mut self, name: &str) -> Self {
        self.map = Some(name.to_owned());
        self
    }

    /// Sets the error to return; functions that return pointers return null.
    #[must_use]
    pub const fn error(mut self, errno: Errno) -> Self {
        self.errno = Some(errno);
        self
    }

    /// Only the nth matching call fails, counted from 1.
    #[must_use]
    pub const fn nth(self, n: u64) -> Self {
        self.on(Schedule::Calls(n, Some(n)))
    }

    /// Only the calls with these numbers fail, counted from 1.
    #[must_use]
    pub const fn calls(self, numbers: RangeInclusive<u64>) -> Self {
        self.on(Schedule::Calls(*numbers.start(), Some(*numbers.end())))
    }

    /// Every nth call fails.
    #[must_use]
    pub const fn every(self, n: u64) -> Self {
        self.on(Schedule::Every(n))
    }

    /// Each call fails with a probability from 0 to 1; the same seed selects the same calls.
    #[must_use]
    pub const fn with_chance(self, chance: f64, seed: u64) -> Self {
        self.on(Schedule::Chance(chance, seed))
    }

    /// Sets the schedule.
    #[must_use]
    pub const fn on(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Checks that the functions exist and can fail.
    ///
    /// # Errors
    /// [`InjectError::Unknown`] and [`InjectError::CannotFail`].
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), InjectError> {
        let Target::Function(name) = &self.target else {
            return Ok(());
        };
        let can_fail = |call: &CallSpec| Fails::of(call) != Fails::Never;
        let can_fail = match (helper_by_name(name), kfunc(name)) {
            (Some(helper), _) => {
                let mut prototypes = helper.prototypes.iter();
                prototypes.any(|prototype| can_fail(&helper.call(prototype)))
            }
            (None, Some(kfunc)) => can_fail(&kfunc.row().call()),
            (None, None) => return Err(InjectError::Unknown(name.clone())),
        };
        can_fail
            .then_some(())
            .ok_or_else(|| InjectError::CannotFail(name.clone()))
    }
}

/// A kfunc by its name without `bpf_`; some have no such prefix.
fn kfunc(name: &str) -> Option<KfuncId> {
    kfuncs::by_name(&format!("bpf_{name}")).or_else(|| kfuncs::by_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_fail_is_refused() {
        let check = |name| Injection::call(name).check();
        assert_eq!(check("bpf_map_update_elem"), Ok(()));
        assert_eq!(check("map_lookup_elem"), Ok(()));
        assert_eq!(check("bpf_obj_new_impl"), Ok(()));
        let void = check("bpf_spin_lock").unwrap_err();
        assert_eq!(void, InjectError::CannotFail("spin_lock".into()));
        let unknown = check("bpf_map_updat_elem").unwrap_err();
        assert_eq!(unknown, InjectError::Unknown("map_updat_elem".into()));
        assert!(check("bpf_get_current_task_btf").is_err());
        assert_eq!(check("bpf_iter_bits_new"), Ok(()));
        assert_eq!(
            check("bpf_task_release").unwrap_err().to_string(),
            "'task_release' can't fail: its result can't report an error; \
             mock it to return another value"
        );
        assert_eq!(Injection::allocation().check(), Ok(()));
    }
}
