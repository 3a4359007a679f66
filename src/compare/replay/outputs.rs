//! Compares the replayed outputs of programs (ring and perf buffer records, printed lines)
//! with the recorded ones.
//!
//! A ring buffer has records in the order in which they were reserved, without their CPUs; a
//! replay knows the CPU, but runs one firing after the other. So if several CPUs wrote, the
//! recorded stream must be an interleaving of the replayed streams of the CPUs.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use rustc_hash::FxHashMap;

use super::verdict::{OutputReport, OutputVerdict};
use crate::util::MapId;

/// A stream of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stream {
    /// A ring buffer.
    Ring(MapId),
    /// A perf buffer.
    Perf(MapId),
    /// `bpf_trace_printk`.
    Printk,
}

/// A list of records.
#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`, and its CPU.
    ends: Vec<(usize, Option<u32>)>,
}

impl Records {
    fn push(&mut self, cpu: Option<u32>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push((self.bytes.len(), cpu));
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let (end, _) = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before)?.0,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The indexes of the records of each CPU.
    fn by_cpu(&self) -> BTreeMap<Option<u32>, Vec<usize>> {
        let mut by_cpu: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, (_, cpu)) in self.ends.iter().enumerate() {
            by_cpu.entry(*cpu).or_default().push(index);
        }
        by_cpu
    }
}

/// The two sides of a stream.
#[derive(Debug, Default)]
struct Sides {
    recorded: Records,
    replayed: Records,
}

/// All streams of a recording and of its replay.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    streams: BTreeMap<Stream, Sides>,
}

impl Outputs {
    /// Adds a recorded output.
    pub fn recorded(&mut self, stream: Stream, cpu: Option<u32>, bytes: &[u8]) {
        let sides = self.streams.entry(stream).or_default();
        sides.recorded.push(cpu, bytes);
    }

    /// Adds a replayed output.
    pub fn replayed(&mut self, stream: Stream, cpu: u32, bytes: &[u8]) {
        let sides = self.streams.entry(stream).or_default();
        sides.replayed.push(Some(cpu), bytes);
    }

    /// The verdict on each stream with outputs, and on those in `also`. `name` returns the name
    /// of a stream, `why_not` why it can't be compared.
    pub fn judge(
        &self,
        name: impl Fn(Stream) -> String,
        why_not: impl Fn(Stream) -> Option<String>,
        also: impl IntoIterator<Item = Stream>,
    ) -> Vec<OutputReport> {
        let none = Sides::default();
        let mut streams: BTreeMap<_, _> = also.into_iter().map(|it| (it, &none)).collect();
        streams.extend(self.streams.iter().map(|(stream, sides)| (*stream, sides)));
        let reports = streams.into_iter().map(|(stream, sides)| OutputReport {
            name: name(stream),
            recorded: sides.recorded.len() as u64,
            replayed: sides.replayed.len() as u64,
            verdict: match why_not(stream) {
                Some(why) => OutputVerdict::NotCompared(why),
                None => sides.judge(),
            },
        });
        reports.collect()
    }
}

/// Whether a perf buffer record is what the program sent plus padding. The kernel pads the
/// bytes, with the four of their length before them, to a multiple of eight and records the
/// padded length (`perf_prepare_sample`, `kernel/events/core.c`).
fn is_padded(expected: Option<&[u8]>, got: Option<&[u8]>) -> bool {
    match (expected, got) {
        (Some(expected), Some(got)) => {
            expected.starts_with(got) && expected.len() == (got.len() + 4).next_multiple_of(8) - 4
        }
        _ => false,
    }
}

/// The first difference of two streams.
struct Differs {
    at: u64,
    cpu: Option<u32>,
    expected: Option<Vec<u8>>,
    got: Option<Vec<u8>>,
}

impl Sides {
    fn judge(&self) -> OutputVerdict {
        match (self.differs(), NonZeroU64::new(self.recorded.len() as u64)) {
            (
                Some(Differs {
                    at,
                    cpu,
                    expected,
                    got,
                }),
                _,
            ) => OutputVerdict::Different {
                at,
                cpu,
                expected,
                got,
            },
            (None, Some(records)) => OutputVerdict::Equal(records),
            (None, None) => OutputVerdict::NotCompared("there are no records".to_owned()),
        }
    }

    fn differs(&self) -> Option<Differs> {
        let Self { recorded, replayed } = self;
        let all = |records: &Records| (0..records.len()).collect::<Vec<_>>();
        let whole = self.compare(None, &all(recorded), &all(replayed))?;
        let (before, after) = (recorded.by_cpu(), replayed.by_cpu());
        if !before.contains_key(&None) {
            // The recording knows the CPU of each record.
            let mut cpus = before.keys().chain(after.keys());
            let none = Vec::new();
            return cpus.find_map(|cpu| {
                let recorded = before.get(cpu).unwrap_or(&none);
                self.compare(*cpu, recorded, after.get(cpu).unwrap_or(&none))
            });
        }
        if after.len() > 1 && self.is_interleaved(&after) {
            return None;
        }
        Some(whole)
    }

    /// The first difference of two lists of records.
    fn compare(&self, cpu: Option<u32>, recorded: &[usize], replayed: &[usize]) -> Option<Differs> {
        (0..recorded.len().max(replayed.len())).find_map(|at| {
            let expected = recorded.get(at).and_then(|at| self.recorded.get(*at));
            let got = replayed.get(at).and_then(|at| self.replayed.get(*at));
            // Only perf buffers have the CPU of each record.
            let is_same = expected == got || cpu.is_some() && is_padded(expected, got);
            (!is_same).then(|| Differs {
                at: at as u64,
                cpu,
                expected: expected.map(<[u8]>::to_vec),
                got: got.map(<[u8]>::to_vec),
            })
        })
    }

    /// Whether the recorded stream can be an interleaving of the CPUs' streams: both have each
    /// record equally often, and each CPU's stream is a subsequence of the recorded one.
    fn is_interleaved(&self, by_cpu: &BTreeMap<Option<u32>, Vec<usize>>) -> bool {
        let mut counts: FxHashMap<&[u8], i64> = FxHashMap::default();
        for at in 0..self.recorded.len() {
            *counts
                .entry(self.recorded.get(at).unwrap_or_default())
                .or_default() += 1;
        }
        for at in 0..self.replayed.len() {
            *counts
                .entry(self.replayed.get(at).unwrap_or_default())
                .or_default() -= 1;
        }
        let same = counts.values().all(|count| *count == 0);
        same && by_cpu.values().all(|own| {
            let mut whole = (0..self.recorded.len()).map(|at| self.recorded.get(at));
            own.iter().all(|at| {
                let wanted = self.replayed.get(*at);
                whole.any(|record| record == wanted)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(records: u64) -> OutputVerdict {
        OutputVerdict::Equal(NonZeroU64::new(records).unwrap())
    }

    /// No verdict on a stream without records.
    #[test]
    fn where_nothing_came_nothing_is_equal() {
        let outputs = Outputs::default();
        assert_eq!(outputs.judge(|_| String::new(), |_| None, []), []);
        let reports = outputs.judge(|_| String::new(), |_| None, [RING]);
        assert!(matches!(reports[0].verdict, OutputVerdict::NotCompared(_)));
        let why = |_| Some("why".to_owned());
        let reports = outputs.judge(|_| String::new(), why, [RING]);
        assert_eq!(
            reports[0].verdict,
            OutputVerdict::NotCompared("why".to_owned())
        );
    }

    const RING: Stream = Stream::Ring(MapId(0));

    fn judged(recorded: &[(Option<u32>, &str)], replayed: &[(u32, &str)]) -> OutputVerdict {
        let mut outputs = Outputs::default();
        for (cpu, text) in recorded {
            outputs.recorded(RING, *cpu, text.as_bytes());
        }
        for (cpu, text) in replayed {
            outputs.replayed(RING, *cpu, text.as_bytes());
        }
        let mut reports = outputs.judge(|_| "ring".to_owned(), |_| None, []);
        reports.remove(0).verdict
    }

    #[test]
    fn one_cpus_records_in_their_order() {
        let recorded = [(None, "a"), (None, "b")];
        assert_eq!(judged(&recorded, &[(0, "a"), (0, "b")]), equal(2));
        let expected = OutputVerdict::Different {
            at: 0,
            cpu: None,
            expected: Some(b"a".to_vec()),
            got: Some(b"b".to_vec()),
        };
        assert_eq!(judged(&recorded, &[(0, "b"), (0, "a")]), expected);
        let expected = OutputVerdict::Different {
            at: 1,
            cpu: None,
            expected: Some(b"b".to_vec()),
            got: None,
        };
        assert_eq!(judged(&recorded, &[(0, "a")]), expected);
    }

    #[test]
    fn several_cpus_share_a_ring() {
        let recorded = [(None, "a"), (None, "b"), (None, "c")];
        let replayed = [(1, "b"), (0, "a"), (0, "c")];
        assert_eq!(judged(&recorded, &replayed), equal(3));
        // The CPU sent them in the other order.
        let swapped = [(1, "b"), (0, "c"), (0, "a")];
        assert_ne!(judged(&recorded, &swapped), equal(3));
        let more = [(1, "b"), (0, "a"), (0, "c"), (1, "c")];
        assert_ne!(judged(&recorded, &more), equal(3));
    }

    #[test]
    fn perf_buffers_are_each_cpus_own() {
        let recorded = [(Some(0), "a"), (Some(0), "b"), (Some(1), "c")];
        let replayed = [(1, "c"), (0, "a"), (0, "b")];
        assert_eq!(judged(&recorded, &replayed), equal(3));
        // Padding is not compared.
        let filled = [(Some(0), "12345678????")];
        assert_eq!(judged(&filled, &[(0, "12345678")]), equal(1));
        assert_ne!(judged(&filled, &[(0, "1234")]), equal(1));
        let wrong = [(1, "a"), (0, "c"), (0, "b")];
        assert!(matches!(
            judged(&recorded, &wrong),
            OutputVerdict::Different {
                at: 0,
                cpu: Some(0),
                ..
            }
        ));
    }
}
