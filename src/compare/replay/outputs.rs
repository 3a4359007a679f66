//! What programs put out by themselves, held against what the recording has of it.
//!
//! The kernel's ring buffer has records in the order in which they were reserved, and does
//! not say on which CPU; a replay knows the CPU, but runs one firing after the other. So
//! where several CPUs wrote, the recorded stream has to be made of theirs: each CPU's
//! records in their order, none left over.

use std::collections::BTreeMap;

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

/// Records one behind the other.
#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
    /// Where each ends, and its CPU.
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

    /// The numbers of the records of each CPU.
    fn by_cpu(&self) -> BTreeMap<Option<u32>, Vec<usize>> {
        let mut by_cpu: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, (_, cpu)) in self.ends.iter().enumerate() {
            by_cpu.entry(*cpu).or_default().push(index);
        }
        by_cpu
    }
}

/// A stream on both sides.
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
    /// What the recording has.
    pub fn recorded(&mut self, stream: Stream, cpu: Option<u32>, bytes: &[u8]) {
        let sides = self.streams.entry(stream).or_default();
        sides.recorded.push(cpu, bytes);
    }

    /// What the replay gave.
    pub fn replayed(&mut self, stream: Stream, cpu: u32, bytes: &[u8]) {
        let sides = self.streams.entry(stream).or_default();
        sides.replayed.push(Some(cpu), bytes);
    }

    /// The verdict on each stream; `name` knows what they are called, and `unsaid` why
    /// nothing can be said of one.
    pub fn judge(
        &self,
        name: impl Fn(Stream) -> String,
        unsaid: impl Fn(Stream) -> Option<String>,
    ) -> Vec<OutputReport> {
        let reports = self.streams.iter().map(|(stream, sides)| OutputReport {
            name: name(*stream),
            recorded: sides.recorded.len() as u64,
            replayed: sides.replayed.len() as u64,
            verdict: match unsaid(*stream) {
                Some(why) => OutputVerdict::NotCompared(why),
                None => sides.judge(),
            },
        });
        reports.collect()
    }
}

/// Whether a record of a perf buffer has what the program gave, and behind it whatever was
/// in the buffer: with the four bytes of their length, the kernel makes the bytes a
/// multiple of eight (`perf_prepare_sample`, `kernel/events/core.c`), and nobody can tell
/// any more how many they were.
fn is_filled_up(expected: Option<&[u8]>, got: Option<&[u8]>) -> bool {
    match (expected, got) {
        (Some(expected), Some(got)) => {
            expected.starts_with(got) && expected.len() == (got.len() + 4).next_multiple_of(8) - 4
        }
        _ => false,
    }
}

impl Sides {
    fn judge(&self) -> OutputVerdict {
        let Self { recorded, replayed } = self;
        let all = |records: &Records| (0..records.len()).collect::<Vec<_>>();
        let whole = self.compare(None, &all(recorded), &all(replayed));
        if whole == OutputVerdict::Equal {
            return whole;
        }
        let (before, after) = (recorded.by_cpu(), replayed.by_cpu());
        if !before.contains_key(&None) {
            // The recording knows the CPU of each record.
            let cpus = before.keys().chain(after.keys());
            let none = Vec::new();
            let mut compared = cpus.map(|cpu| {
                let recorded = before.get(cpu).unwrap_or(&none);
                self.compare(*cpu, recorded, after.get(cpu).unwrap_or(&none))
            });
            let different = compared.find(|verdict| *verdict != OutputVerdict::Equal);
            return different.unwrap_or(OutputVerdict::Equal);
        }
        if after.len() > 1 && self.is_interleaved(&after) {
            return OutputVerdict::Equal;
        }
        whole
    }

    /// Two lists of records, one by one.
    fn compare(&self, cpu: Option<u32>, recorded: &[usize], replayed: &[usize]) -> OutputVerdict {
        for at in 0..recorded.len().max(replayed.len()) {
            let expected = recorded.get(at).and_then(|at| self.recorded.get(*at));
            let got = replayed.get(at).and_then(|at| self.replayed.get(*at));
            // Only perf buffers know the CPU of each record.
            if expected != got && !(cpu.is_some() && is_filled_up(expected, got)) {
                return OutputVerdict::Different {
                    at: at as u64,
                    cpu,
                    expected: expected.map(<[u8]>::to_vec),
                    got: got.map(<[u8]>::to_vec),
                };
            }
        }
        OutputVerdict::Equal
    }

    /// Whether the recorded stream can be made of those of the CPUs, each in its order: as
    /// many of each record, and each CPU's stream is within the whole.
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

    const RING: Stream = Stream::Ring(MapId(0));

    fn judged(recorded: &[(Option<u32>, &str)], replayed: &[(u32, &str)]) -> OutputVerdict {
        let mut outputs = Outputs::default();
        for (cpu, text) in recorded {
            outputs.recorded(RING, *cpu, text.as_bytes());
        }
        for (cpu, text) in replayed {
            outputs.replayed(RING, *cpu, text.as_bytes());
        }
        let mut reports = outputs.judge(|_| "ring".to_owned(), |_| None);
        reports.remove(0).verdict
    }

    #[test]
    fn one_cpus_records_in_their_order() {
        let recorded = [(None, "a"), (None, "b")];
        assert_eq!(
            judged(&recorded, &[(0, "a"), (0, "b")]),
            OutputVerdict::Equal
        );
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
        assert_eq!(judged(&recorded, &replayed), OutputVerdict::Equal);
        // That CPU gave them the other way round.
        let swapped = [(1, "b"), (0, "c"), (0, "a")];
        assert_ne!(judged(&recorded, &swapped), OutputVerdict::Equal);
        let more = [(1, "b"), (0, "a"), (0, "c"), (1, "c")];
        assert_ne!(judged(&recorded, &more), OutputVerdict::Equal);
    }

    #[test]
    fn perf_buffers_are_each_cpus_own() {
        let recorded = [(Some(0), "a"), (Some(0), "b"), (Some(1), "c")];
        let replayed = [(1, "c"), (0, "a"), (0, "b")];
        assert_eq!(judged(&recorded, &replayed), OutputVerdict::Equal);
        // What lies behind a record says nothing.
        let filled = [(Some(0), "12345678????")];
        assert_eq!(judged(&filled, &[(0, "12345678")]), OutputVerdict::Equal);
        assert_ne!(judged(&filled, &[(0, "1234")]), OutputVerdict::Equal);
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
