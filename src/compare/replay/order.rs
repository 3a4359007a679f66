//! Puts firings in the order in which they began on their CPU, and counts the lost ones.
//!
//! The recorder's ring has firings in the order in which they ended. A firing that
//! interrupted another ends first, so it waits until the interrupted one has come. A firing
//! that interrupted none doesn't wait. A sequence number that never comes is a lost firing.

use std::collections::BTreeMap;

use crate::instrument::Firing;

/// If more firings of a CPU than this wait, the one that they wait for is lost.
const MAX_WAITING: usize = 4096;

/// What to do with a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Replay it now: it is the next one.
    Now,
    /// Nothing yet: it was copied and waits for earlier ones.
    Waits,
    /// Nothing: its number came already or was given up. The recording is damaged.
    Duplicate,
}

/// A firing that waits for earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingFiring {
    /// Its record.
    pub bytes: Vec<u8>,
    /// Where the record ends in the ring.
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
    /// The firings that wait, by number.
    waiting: BTreeMap<u64, WaitingFiring>,
    /// How many were lost.
    lost: u64,
}

impl Order {
    /// No firings yet, on `cpus` CPUs.
    pub fn new(cpus: u32) -> Self {
        let mut order = Self::default();
        order.cpus.resize_with(cpus as usize, Cpu::default);
        order
    }

    /// Adds a firing whose record ends at `ended` in the ring; one that has to wait is
    /// copied. None for a CPU that does not exist.
    #[inline]
    pub fn offer(&mut self, firing: &Firing<'_>, bytes: &[u8], ended: u64) -> Option<Turn> {
        let cpu = self.cpus.get_mut(firing.cpu as usize)?;
        if firing.sequence == cpu.next {
            cpu.next += 1;
            return Some(Turn::Now);
        }
        Some(cpu.insert(firing.sequence, bytes, ended))
    }

    /// The next waiting firing to replay before `firing`, which interrupted none: so all
    /// earlier ones that have not come are lost.
    #[inline]
    pub fn overdue(&mut self, firing: &Firing<'_>) -> Option<WaitingFiring> {
        let cpu = self.cpus.get_mut(firing.cpu as usize)?;
        if firing.depth > 0 || firing.sequence <= cpu.next {
            return None;
        }
        cpu.overdue(firing.sequence)
    }

    /// The waiting firing of a CPU whose turn it is, now that another one was replayed.
    #[inline]
    pub fn ready(&mut self, cpu: u32) -> Option<WaitingFiring> {
        let cpu = self.cpus.get_mut(cpu as usize)?;
        if cpu.waiting.is_empty() {
            return None;
        }
        cpu.ready()
    }

    /// At the end of the recording: the next firing that still waits; what it waited for is
    /// lost.
    pub fn rest(&mut self) -> Option<WaitingFiring> {
        self.cpus.iter_mut().find_map(Cpu::give_up)
    }

    /// Sets the number of firings that began on a CPU by the end: those that did not come
    /// are lost.
    pub fn end(&mut self, cpu: u32, sequence: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.lost += sequence.saturating_sub(cpu.next);
            cpu.next = cpu.next.max(sequence);
        }
    }

    /// The CPUs that lost firings, and how many each lost.
    pub fn lost(&self) -> impl Iterator<Item = (u32, u64)> {
        let cpus = (0..).zip(&self.cpus);
        cpus.filter(|(_, cpu)| cpu.lost > 0)
            .map(|(number, cpu)| (number, cpu.lost))
    }
}

impl Cpu {
    #[cold]
    fn overdue(&mut self, before: u64) -> Option<WaitingFiring> {
        match self.waiting.first_key_value() {
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
    fn insert(&mut self, sequence: u64, bytes: &[u8], ended: u64) -> Turn {
        if sequence < self.next || self.waiting.contains_key(&sequence) {
            return Turn::Duplicate;
        }
        let bytes = bytes.to_vec();
        self.waiting
            .insert(sequence, WaitingFiring { bytes, ended });
        if self.waiting.len() > MAX_WAITING {
            self.skip();
        }
        Turn::Waits
    }

    fn ready(&mut self) -> Option<WaitingFiring> {
        let waiting = self.waiting.remove(&self.next)?;
        self.next += 1;
        Some(waiting)
    }

    /// Counts the firings before the first waiting one as lost.
    fn skip(&mut self) {
        if let Some((first, _)) = self.waiting.first_key_value() {
            self.lost += first.saturating_sub(self.next);
            self.next = *first;
        }
    }

    fn give_up(&mut self) -> Option<WaitingFiring> {
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

    /// The numbers in the order of replay, and how many are lost; the input is numbers and
    /// depths.
    fn replayed(numbers: &[(u64, u16)]) -> (Vec<u64>, u64) {
        let mut order = Order::new(2);
        let mut replayed = Vec::new();
        let number = |firing: WaitingFiring| u64::from_le_bytes(firing.bytes.try_into().unwrap());
        for (sequence, depth) in numbers {
            let firing = firing(*sequence, *depth);
            while let Some(waiting) = order.overdue(&firing) {
                replayed.push(number(waiting));
            }
            let bytes = sequence.to_le_bytes();
            if order.offer(&firing, &bytes, 0) == Some(Turn::Now) {
                replayed.push(*sequence);
            }
            while let Some(waiting) = order.ready(1) {
                replayed.push(number(waiting));
            }
        }
        while let Some(waiting) = order.rest() {
            replayed.push(number(waiting));
        }
        (replayed, order.lost().map(|(_, lost)| lost).sum())
    }

    #[test]
    fn who_interrupted_comes_after_whom_it_interrupted() {
        assert_eq!(replayed(&[(0, 0), (1, 0), (2, 0)]), (vec![0, 1, 2], 0));
        let nested = [(2, 2), (1, 1), (0, 0), (3, 0)];
        assert_eq!(replayed(&nested), (vec![0, 1, 2, 3], 0));
        let twice = [(0, 0), (3, 2), (4, 2), (2, 1), (1, 0)];
        assert_eq!(replayed(&twice), (vec![0, 1, 2, 3, 4], 0));
    }

    #[test]
    fn what_never_comes_is_lost() {
        assert_eq!(replayed(&[(0, 0), (2, 0), (3, 0)]), (vec![0, 2, 3], 1));
        assert_eq!(replayed(&[(3, 0)]), (vec![3], 3));
        // The firing that it interrupted did not come.
        assert_eq!(replayed(&[(1, 1), (2, 0)]), (vec![1, 2], 1));
        assert_eq!(replayed(&[(1, 1), (4, 1), (6, 0)]), (vec![1, 4, 6], 4));
        let many: Vec<_> = (1..10_000).map(|number| (number, 1)).collect();
        let numbers: Vec<_> = (1..10_000).collect();
        assert_eq!(replayed(&many), (numbers, 1));
        let mut order = Order::new(2);
        assert_eq!(order.offer(&firing(0, 0), &[], 0), Some(Turn::Now));
        order.end(1, 4);
        assert_eq!(order.lost().collect::<Vec<_>>(), [(1, 3)]);
    }

    #[test]
    fn nothing_comes_twice_or_late() {
        let mut order = Order::new(2);
        assert_eq!(order.offer(&firing(0, 0), &[], 0), Some(Turn::Now));
        assert_eq!(order.offer(&firing(0, 0), &[], 0), Some(Turn::Duplicate));
        assert_eq!(order.offer(&firing(7, 1), &[], 0), Some(Turn::Waits));
        assert_eq!(order.offer(&firing(7, 1), &[], 0), Some(Turn::Duplicate));
        let nowhere = Firing {
            cpu: 2,
            ..firing(0, 0)
        };
        assert_eq!(order.offer(&nowhere, &[], 0), None);
        // Two that were swapped.
        assert_eq!(
            replayed(&[(0, 0), (2, 0), (1, 0), (3, 0)]),
            (vec![0, 2, 3], 1)
        );
    }
}
