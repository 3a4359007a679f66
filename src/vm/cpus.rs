//! The CPUs of a machine: which of them run programs, each for one thread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

/// What a CPU can't be used for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpuError {
    /// The machine has not so many.
    #[error(
        "the machine has no CPU {cpu}: it has {cpus}, from 0 on \
         (World::with_cpus makes a world with more)"
    )]
    Missing {
        /// The number that was asked for.
        cpu: u32,
        /// How many there are.
        cpus: u32,
    },
    /// Programs run on it already, and it runs one at a time.
    #[error(
        "CPU {0} is taken: it runs one program at a time; take another number, or drop \
         what runs there first"
    )]
    Taken(u32),
    /// Maps and programs can't be added for one CPU only.
    #[error(
        "{0} can't be added while other CPUs of the machine are in use, which would not \
         have them: add everything before the first call of `cpu`"
    )]
    Shared(&'static str),
}

/// A CPU in use. Dropping it leaves the CPU to the next.
#[derive(Debug)]
pub(super) struct Seat {
    /// The numbers in use on the machine.
    taken: Arc<Mutex<BTreeSet<u32>>>,
    number: u32,
    /// How many CPUs the machine has: no number reaches it, whatever world it is given.
    cpus: u32,
}

impl Seat {
    /// The first CPU in use on a machine that has so many.
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

    /// Which CPU it is.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Takes another CPU of the machine.
    pub(super) fn take(&self, number: u32) -> Result<Self, CpuError> {
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

    /// `Err` where `what` can't be added, since other CPUs would not have it.
    pub(super) fn adds(&self, what: &'static str) -> Result<(), CpuError> {
        match self.lock().len() {
            0 | 1 => Ok(()),
            _ => Err(CpuError::Shared(what)),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_taken_once_and_given_back() {
        let first = Seat::first(0, 3);
        assert_eq!(first.adds("maps"), Ok(()));
        let second = first.take(2).unwrap();
        assert_eq!(second.number(), 2);
        assert_eq!(second.take(0).unwrap_err(), CpuError::Taken(0));
        let missing = CpuError::Missing { cpu: 3, cpus: 3 };
        assert_eq!(first.take(3).unwrap_err(), missing);
        assert_eq!(first.take(2).unwrap_err(), CpuError::Taken(2));
        let error = second.adds("maps").unwrap_err().to_string();
        assert!(error.starts_with("maps can't be added"), "{error}");
        drop(first);
        assert_eq!(second.adds("maps"), Ok(()));
        assert_eq!(second.take(0).unwrap().number(), 0);
    }
}
