//! The CPUs of a machine. Each CPU in use runs programs for one thread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

/// Why a CPU can't be used, or why something can't be added for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The machine does not have this CPU.
    #[error(
        "the machine has no CPU {cpu}: it has {cpus}, from 0 on \
         (World::with_cpus makes a world with more)"
    )]
    Missing {
        /// The requested CPU number.
        cpu: u32,
        /// How many CPUs the machine has.
        cpus: u32,
    },
    /// The CPU is in use; it runs one program at a time.
    #[error(
        "CPU {0} is in use: it runs one program at a time; use another number, or drop \
         the `Vm` that uses this CPU"
    )]
    Taken(u32),
    /// Maps and programs can't be added while several CPUs are in use.
    #[error(
        "{0} can't be added while other CPUs of the machine are in use: \
         add everything before the first call of `cpu`"
    )]
    Shared(&'static str),
}

/// A CPU in use. Dropping it makes the CPU available again.
#[derive(Debug)]
pub(super) struct CpuClaim {
    /// The CPUs in use on the machine.
    taken: Arc<Mutex<BTreeSet<u32>>>,
    number: u32,
    /// How many CPUs the machine has. All CPU numbers are below it, whatever world is set.
    cpus: u32,
}

impl CpuClaim {
    /// The first CPU in use on a machine with `cpus` CPUs.
    pub(super) fn first(number: u32, cpus: u32) -> Self {
        Self {
            taken: Arc::new(Mutex::new(BTreeSet::from([number]))),
            number,
            cpus,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The CPU number.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Claims another CPU of the machine.
    pub(super) fn claim(&self, number: u32) -> Result<Self, CpuError> {
        let cpus = self.cpus;
        if number >= cpus {
            return Err(CpuError::Missing { cpu: number, cpus });
        }
        if !self.lock().insert(number) {
            return Err(CpuError::Taken(number));
        }
        Ok(Self {
            taken: self.taken.clone(),
            number,
            cpus,
        })
    }

    /// Checks that no other CPU is in use, so that `what` can be added.
    pub(super) fn check_alone(&self, what: &'static str) -> Result<(), CpuError> {
        match self.lock().len() {
            0 | 1 => Ok(()),
            _ => Err(CpuError::Shared(what)),
        }
    }
}

impl Drop for CpuClaim {
    fn drop(&mut self) {
        self.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_taken_once_and_given_back() {
        let first = CpuClaim::first(0, 3);
        assert_eq!(first.check_alone("maps"), Ok(()));
        let second = first.claim(2).unwrap();
        assert_eq!(second.number(), 2);
        assert_eq!(second.claim(0).unwrap_err(), CpuError::Taken(0));
        let missing = CpuError::Missing { cpu: 3, cpus: 3 };
        assert_eq!(first.claim(3).unwrap_err(), missing);
        assert_eq!(first.claim(2).unwrap_err(), CpuError::Taken(2));
        let error = second.check_alone("maps").unwrap_err().to_string();
        assert!(error.starts_with("maps can't be added"), "{error}");
        drop(first);
        assert_eq!(second.check_alone("maps"), Ok(()));
        assert_eq!(second.claim(0).unwrap().number(), 0);
    }
}
