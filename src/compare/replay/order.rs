//! Firings in the order in which they began on their CPU, and what is missing between them.
//!
//! A recorder's ring has them in the order in which they ended, so one that interrupted
//! another comes before it: it is held until the other is there. One that interrupted none
//! waits for nobody. A number that does not come is a firing that was lost.

use std::collections::BTreeMap;

use crate::instrument::Firing;

/// So many firings may have interrupted one, until it is taken for lost.
const HELD: usize = 4096;

/// What is to be done with a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the next one.
    Now,
    /// It was kept until its turn.
    Held,
    /// It was there already, or comes much too late: a damaged recording.
    Again,
}

/// A firing that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// Its record.
    pub bytes: Vec<u8>,
    /// Where that ends in the ring.
    pub ended: u64,
}

/// The order of the firings on all CPUs.
#[derive(Debug, Default)]
pub(super) struct Order {
    cpus: Vec<Cpu>,
}

#[derive(Debug, Default)]
struct Cpu {
    /// The number of the next firing.
    next: u64,
    /// Those that wait.
    held: BTreeMap<u64, Held>,
    /// How many never came.
    lost: u64,
}

impl Order {
    /// For so many CPUs.
    pub fn new(cpus: u32) -> Self {
        let mut order = Self::default();
        order.cpus.resize_with(cpus as usize, Cpu::default);
        order
    }

    /// A firing has come whose record ends there in the ring; one that has to wait is
    /// copied. None for a CPU that is not there.
    #[inline]
    pub fn offer(&mut self, firing: &Firing<'_>, bytes: &[u8], ended: u64) -> Option<Turn> {
        let cpu = self.cpus.get_mut(firing.cpu as usize)?;
        if firing.sequence == cpu.next {
            cpu.next += 1;
            return Some(Turn::Now);
        }
        Some(cpu.keep(firing.sequence, bytes, ended))
    }

    /// A firing that was held for others that are lost, as `firing` shows, which waits for
    /// nobody: it comes before that.
    #[inline]
    pub fn overdue(&mut self, firing: &Firing<'_>) -> Option<Held> {
        let cpu = self.cpus.get_mut(firing.cpu as usize)?;
        if firing.depth > 0 || firing.sequence <= cpu.next {
            return None;
        }
        cpu.overdue(firing.sequence)
    }

    /// A firing that was held, and whose turn it is now that another on its CPU has run.
    #[inline]
    pub fn ready(&mut self, cpu: u32) -> Option<Held> {
        let cpu = self.cpus.get_mut(cpu as usize)?;
        if cpu.held.is_empty() {
            return None;
        }
        cpu.ready()
    }

    /// The recording is over: those that are still held, in their order, one at a time;
    /// what they waited for is lost.
    pub fn rest(&mut self) -> Option<Held> {
        self.cpus.iter_mut().find_map(Cpu::give_up)
    }

    /// How many firings should have begun on a CPU by the end: those that did not come are
    /// lost, too.
    pub fn end(&mut self, cpu: u32, sequence: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.lost += sequence.saturating_sub(cpu.next);
            cpu.next = cpu.next.max(sequence);
        }
    }

    /// On which CPUs firings were lost, and how many.
    pub fn lost(&self) -> impl Iterator<Item = (u32, u64)> {
        let cpus = (0..).zip(&self.cpus);
        cpus.filter(|(_, cpu)| cpu.lost > 0)
            .map(|(number, cpu)| (number, cpu.lost))
    }
}

impl Cpu {
    #[cold]
    fn overdue(&mut self, before: u64) -> Option<Held> {
        match self.held.first_key_value() {
            Some((first, _)) if *first < before => {
                self.skip();
                self.ready()
            }
            _ => {
                self.lost += before - self.next;
                self.next = before;
                None
            }
        }
    }

    #[cold]
    fn keep(&mut self, sequence: u64, bytes: &[u8], ended: u64) -> Turn {
        if sequence < self.next || self.held.contains_key(&sequence) {
            return Turn::Again;
        }
        let bytes = bytes.to_vec();
        self.held.insert(sequence, Held { bytes, ended });
        if self.held.len() > HELD {
            self.skip();
        }
        Turn::Held
    }

    fn ready(&mut self) -> Option<Held> {
        let held = self.held.remove(&self.next)?;
        self.next += 1;
        Some(held)
    }

    /// What is waited for is lost.
    fn skip(&mut self) {
        if let Some((first, _)) = self.held.first_key_value() {
            self.lost += first.saturating_sub(self.next);
            self.next = *first;
        }
    }

    fn give_up(&mut self) -> Option<Held> {
        self.skip();
        self.ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::FiringFlags;

    fn firing(sequence: u64, depth: u16) -> Firing<'static> {
        Firing {
            program: 0,
            cpu: 1,
            depth,
            flags: FiringFlags::empty(),
            sequence,
            time: 0,
            produced: 0,
            pid_tgid: 0,
            returned: 0,
            context: &[],
            log: &[],
        }
    }

    /// The numbers in the order in which they are replayed, and how many are lost; of each
    /// number the depth is given, too.
    fn played(numbers: &[(u64, u16)]) -> (Vec<u64>, u64) {
        let mut order = Order::new(2);
        let mut played = Vec::new();
        let number = |held: Held| u64::from_le_bytes(held.bytes.try_into().unwrap());
        for (sequence, depth) in numbers {
            let firing = firing(*sequence, *depth);
            while let Some(held) = order.overdue(&firing) {
                played.push(number(held));
            }
            let bytes = sequence.to_le_bytes();
            if order.offer(&firing, &bytes, 0) == Some(Turn::Now) {
                played.push(*sequence);
            }
            while let Some(held) = order.ready(1) {
                played.push(number(held));
            }
        }
        while let Some(held) = order.rest() {
            played.push(number(held));
        }
        (played, order.lost().map(|(_, lost)| lost).sum())
    }

    #[test]
    fn who_interrupted_comes_after_whom_it_interrupted() {
        assert_eq!(played(&[(0, 0), (1, 0), (2, 0)]), (vec![0, 1, 2], 0));
        let nested = [(2, 2), (1, 1), (0, 0), (3, 0)];
        assert_eq!(played(&nested), (vec![0, 1, 2, 3], 0));
        let twice = [(0, 0), (3, 2), (4, 2), (2, 1), (1, 0)];
        assert_eq!(played(&twice), (vec![0, 1, 2, 3, 4], 0));
    }

    #[test]
    fn what_never_comes_is_lost() {
        assert_eq!(played(&[(0, 0), (2, 0), (3, 0)]), (vec![0, 2, 3], 1));
        assert_eq!(played(&[(3, 0)]), (vec![3], 3));
        // What it interrupted did not come.
        assert_eq!(played(&[(1, 1), (2, 0)]), (vec![1, 2], 1));
        assert_eq!(played(&[(1, 1), (4, 1), (6, 0)]), (vec![1, 4, 6], 4));
        let many: Vec<_> = (1..10_000).map(|number| (number, 1)).collect();
        let numbers: Vec<_> = (1..10_000).collect();
        assert_eq!(played(&many), (numbers, 1));
        let mut order = Order::new(2);
        assert_eq!(order.offer(&firing(0, 0), &[], 0), Some(Turn::Now));
        order.end(1, 4);
        assert_eq!(order.lost().collect::<Vec<_>>(), [(1, 3)]);
    }

    #[test]
    fn nothing_comes_twice_or_late() {
        let mut order = Order::new(2);
        assert_eq!(order.offer(&firing(0, 0), &[], 0), Some(Turn::Now));
        assert_eq!(order.offer(&firing(0, 0), &[], 0), Some(Turn::Again));
        assert_eq!(order.offer(&firing(7, 1), &[], 0), Some(Turn::Held));
        assert_eq!(order.offer(&firing(7, 1), &[], 0), Some(Turn::Again));
        let nowhere = Firing {
            cpu: 2,
            ..firing(0, 0)
        };
        assert_eq!(order.offer(&nowhere, &[], 0), None);
        // Two that were swapped.
        assert_eq!(
            played(&[(0, 0), (2, 0), (1, 0), (3, 0)]),
            (vec![0, 2, 3], 1)
        );
    }
}
