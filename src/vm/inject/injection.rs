//! What a test asks to fail.

use std::ops::RangeInclusive;

use super::cause::Cause;
use super::error::InjectError;
use super::fails::Fails;
use super::schedule::Schedule;
use crate::spec::helpers::helper_by_name;
use crate::spec::kfuncs::{self, KfuncId};
use crate::util::Errno;

/// Calls that are to fail, and how.
///
/// ```
/// use bpflab::util::Errno;
/// use bpflab::vm::Injection;
///
/// // The third update of the map `hist` finds no memory.
/// let third = Injection::map_update().on_map("hist").error(Errno::ENOMEM).nth(3);
/// // One in ten of all calls of a helper fails.
/// let some = Injection::call("bpf_get_current_comm").with_chance(0.1, 42);
/// assert_eq!(third, "map-update(hist)=ENOMEM@3".parse()?);
/// assert_eq!(some, "bpf_get_current_comm@10%:42".parse()?);
/// # Ok::<(), bpflab::vm::InjectError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Injection {
    /// The calls that it is about.
    pub target: Target,
    /// The map that they are about; any for `None`.
    pub map: Option<String>,
    /// What they say; for `None` what the kernel's function usually says.
    pub errno: Option<Errno>,
    /// Which of them fail.
    pub schedule: Schedule,
}

/// The calls that an injection is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// Those of one helper or kernel function, by its name without `bpf_`.
    Function(String),
    /// Those of all functions that suffer from something.
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

    /// Calls of a helper or kernel function, by its name with or without `bpf_`.
    #[must_use]
    pub fn call(name: &str) -> Self {
        let plain = name.strip_prefix("bpf_").unwrap_or(name);
        Self::new(Target::Function(plain.to_owned()))
    }

    /// Calls that suffer from something.
    #[must_use]
    pub fn of(cause: Cause) -> Self {
        Self::new(Target::Cause(cause))
    }

    /// Updates of maps: they are full.
    #[must_use]
    pub fn map_update() -> Self {
        Self::of(Cause::MapUpdate)
    }

    /// Records for ring buffers and perf buffers: there is no room.
    #[must_use]
    pub fn buffer_full() -> Self {
        Self::of(Cause::BufferFull)
    }

    /// Whatever allocates: there is no memory.
    #[must_use]
    pub fn allocation() -> Self {
        Self::of(Cause::Allocation)
    }

    /// `bpf_probe_read` and its siblings: nothing is at the address.
    #[must_use]
    pub fn probe_read() -> Self {
        Self::of(Cause::ProbeRead)
    }

    /// Only calls about the map of this name.
    #[must_use]
    pub fn on_map(mut self, name: &str) -> Self {
        self.map = Some(name.to_owned());
        self
    }

    /// What the program is told; functions that return pointers tell it null.
    #[must_use]
    pub const fn error(mut self, errno: Errno) -> Self {
        self.errno = Some(errno);
        self
    }

    /// Only the nth call, counted from 1.
    #[must_use]
    pub const fn nth(self, n: u64) -> Self {
        self.on(Schedule::Calls(n, Some(n)))
    }

    /// Only the calls of these numbers, counted from 1.
    #[must_use]
    pub const fn calls(self, numbers: RangeInclusive<u64>) -> Self {
        self.on(Schedule::Calls(*numbers.start(), Some(*numbers.end())))
    }

    /// One call in `n`: the nth, the 2nth, …
    #[must_use]
    pub const fn every(self, n: u64) -> Self {
        self.on(Schedule::Every(n))
    }

    /// Each call with a chance of 0 to 1; the same seed chooses the same calls.
    #[must_use]
    pub const fn with_chance(self, chance: f64, seed: u64) -> Self {
        self.on(Schedule::Chance(chance, seed))
    }

    /// The calls that a schedule chooses.
    #[must_use]
    pub const fn on(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Whether there are calls that can fail like this.
    ///
    /// # Errors
    /// [`InjectError::Unknown`] and [`InjectError::CannotFail`].
    pub fn check(&self) -> Result<(), InjectError> {
        let Target::Function(name) = &self.target else {
            return Ok(());
        };
        let can_fail = match (helper_by_name(name), kfunc(name)) {
            (Some(helper), _) => {
                let mut returned = helper.prototypes.iter().map(|prototype| prototype.ret);
                returned.any(|ret| Fails::of_helper(ret) != Fails::Never)
            }
            (None, Some(kfunc)) => Fails::of_kfunc(kfunc.row()) != Fails::Never,
            (None, None) => return Err(InjectError::Unknown(name.clone())),
        };
        can_fail
            .then_some(())
            .ok_or_else(|| InjectError::CannotFail(name.clone()))
    }
}

/// A kernel function by its name without `bpf_`; some have none.
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
            "'task_release' can't fail: it has no result that says so; mock it to return another one"
        );
        assert_eq!(Injection::allocation().check(), Ok(()));
    }
}
