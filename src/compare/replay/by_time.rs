//! Samples in the order in which they happened. The recorder empties one ring after the
//! other, so in the file those of one event and CPU stand together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::compare::recording::Sample;

/// How far a sample may stand behind a later one, in nanoseconds. The recorder empties its
/// rings many times a second; those of one that is kept from it for so long have run over.
const HORIZON: u64 = 2_000_000_000;

/// Samples that wait for others, which may have happened before.
#[derive(Debug, Default)]
pub(super) struct ByTime {
    /// By time, and where that is the same by their place in the file.
    waiting: BinaryHeap<Reverse<(u64, u64, Held)>>,
    seen: u64,
    newest: u64,
}

/// A sample with its bytes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    event: u32,
    cpu: u32,
    pid: u32,
    tid: u32,
    time: u64,
    raw: Vec<u8>,
}

impl Held {
    pub fn sample(&self) -> Sample<'_> {
        Sample {
            event: self.event,
            cpu: self.cpu,
            pid: self.pid,
            tid: self.tid,
            time: self.time,
            raw: &self.raw,
        }
    }
}

impl ByTime {
    /// Takes the next one of the file.
    pub fn add(&mut self, sample: &Sample<'_>) {
        let held = Held {
            event: sample.event,
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time,
            raw: sample.raw.to_vec(),
        };
        self.waiting.push(Reverse((held.time, self.seen, held)));
        self.seen += 1;
        self.newest = self.newest.max(sample.time);
    }

    /// Gives the oldest one, if none before it can come any more.
    pub fn next(&mut self) -> Option<Held> {
        let Reverse((oldest, ..)) = self.waiting.peek()?;
        (*oldest < self.newest.saturating_sub(HORIZON)).then(|| self.last())?
    }

    /// Gives the oldest one, when no other comes.
    pub fn last(&mut self) -> Option<Held> {
        let Reverse((_, _, held)) = self.waiting.pop()?;
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(event: u32, time: u64) -> Sample<'static> {
        Sample {
            event,
            cpu: 0,
            pid: 0,
            tid: 0,
            time,
            raw: &[],
        }
    }

    #[test]
    fn rings_are_merged() {
        let mut order = ByTime::default();
        for (event, time) in [(0, 10), (0, 30), (1, 5), (1, 20), (2, 30)] {
            order.add(&sample(event, time));
            assert_eq!(order.next(), None);
        }
        let all = std::iter::from_fn(|| order.last());
        let all: Vec<_> = all.map(|held| (held.event, held.time)).collect();
        assert_eq!(all, [(1, 5), (0, 10), (1, 20), (0, 30), (2, 30)]);
    }

    #[test]
    fn what_is_old_enough_need_not_wait() {
        let mut order = ByTime::default();
        order.add(&sample(0, 1));
        order.add(&sample(1, 2));
        order.add(&sample(0, HORIZON + 2));
        assert_eq!(order.next().map(|held| held.time), Some(1));
        assert_eq!(order.next(), None);
        // A clock at its end is no reason to fail.
        order.add(&sample(0, u64::MAX));
        assert_eq!(order.next().map(|held| held.time), Some(2));
    }
}
