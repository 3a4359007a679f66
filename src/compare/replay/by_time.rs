//! Sorts samples by time. The recorder drains one ring after the other, so in the file the
//! samples of one event and CPU stand together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::compare::recording::Sample;

/// How much older than an earlier sample of the file a sample may be, in nanoseconds. The
/// recorder drains its rings many times a second; a ring not drained for this long has
/// overflowed.
const HORIZON: u64 = 2_000_000_000;

/// Samples that wait, since an older one may still come.
#[derive(Debug, Default)]
pub(super) struct ByTime {
    /// By time; samples of the same time by their order in the file.
    waiting: BinaryHeap<Reverse<(u64, u64, OwnedSample)>>,
    seen: u64,
    newest: u64,
}

/// A sample that owns its bytes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnedSample {
    event: u32,
    cpu: u32,
    pid: u32,
    tid: u32,
    time: u64,
    raw: Vec<u8>,
}

impl OwnedSample {
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
    /// Adds the next sample of the file.
    pub fn add(&mut self, sample: &Sample<'_>) {
        let owned = OwnedSample {
            event: sample.event,
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time,
            raw: sample.raw.to_vec(),
        };
        self.waiting.push(Reverse((owned.time, self.seen, owned)));
        self.seen += 1;
        self.newest = self.newest.max(sample.time);
    }

    /// Returns the oldest sample, if no older one can come.
    pub fn next(&mut self) -> Option<OwnedSample> {
        let Reverse((oldest, ..)) = self.waiting.peek()?;
        (*oldest < self.newest.saturating_sub(HORIZON)).then(|| self.last())?
    }

    /// Returns the oldest sample, once the file is read.
    pub fn last(&mut self) -> Option<OwnedSample> {
        let Reverse((_, _, owned)) = self.waiting.pop()?;
        Some(owned)
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
        let all: Vec<_> = all.map(|sample| (sample.event, sample.time)).collect();
        assert_eq!(all, [(1, 5), (0, 10), (1, 20), (0, 30), (2, 30)]);
    }

    #[test]
    fn what_is_old_enough_need_not_wait() {
        let mut order = ByTime::default();
        order.add(&sample(0, 1));
        order.add(&sample(1, 2));
        order.add(&sample(0, HORIZON + 2));
        assert_eq!(order.next().map(|sample| sample.time), Some(1));
        assert_eq!(order.next(), None);
        // The largest time doesn't overflow.
        order.add(&sample(0, u64::MAX));
        assert_eq!(order.next().map(|sample| sample.time), Some(2));
    }
}
