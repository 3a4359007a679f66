//! Buffer for the outputs of programs, until they are taken.
//!
//! A run may output thousands of records that nobody reads. So the bytes of all records are
//! appended to one buffer that is reused from run to run. [`Output`]s are only made when the
//! outputs are taken.

use super::outcome::Output;
use crate::vm::maps::MapHandle;

/// The most bytes of buffer capacity to keep after the outputs were taken.
const KEPT: usize = 1 << 20;

/// Outputs of programs, in order.
#[derive(Debug, Default)]
pub(in crate::vm) struct OutputBuffer {
    order: Vec<Entry>,
    /// The bytes of all records, in order, then those of the draft.
    bytes: Vec<u8>,
    /// Offset of the draft: the record that is being written.
    draft: usize,
    /// The outputs that are not records.
    others: Vec<Output>,
}

/// The buffer that a record was written to.
#[derive(Debug, Clone, Copy)]
pub(in crate::vm) enum Destination {
    /// A ring buffer.
    Ring(MapHandle),
    /// A perf buffer of this CPU.
    Perf(MapHandle, u32),
}

/// One output of a program, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Emitted<'a> {
    /// A record for a ring buffer. The map holds a copy until it is consumed.
    Ring(MapHandle, &'a [u8]),
    /// A record for the perf buffer of this CPU.
    Perf(MapHandle, u32, &'a [u8]),
    /// An output that is not a record.
    Other(&'a Output),
}

#[derive(Debug)]
enum Entry {
    /// A record with this many bytes.
    Record(Destination, usize),
    /// The next element of `others`.
    Other,
}

impl OutputBuffer {
    /// The buffer to append the next record's bytes to. An earlier draft that did not become
    /// a record is discarded.
    pub(in crate::vm) fn draft(&mut self) -> &mut Vec<u8> {
        self.bytes.truncate(self.draft);
        &mut self.bytes
    }

    /// Adds to the draft.
    pub(in crate::vm) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The draft's bytes.
    pub(in crate::vm) fn drafted(&self) -> &[u8] {
        self.bytes.get(self.draft..).unwrap_or_default()
    }

    /// Turns the draft into a record.
    pub(in crate::vm) fn record(&mut self, to: Destination) {
        let len = self.drafted().len();
        self.order.push(Entry::Record(to, len));
        self.draft = self.bytes.len();
    }

    /// Adds an output that is not a record.
    pub(in crate::vm) fn push(&mut self, output: Output) {
        self.order.push(Entry::Other);
        self.others.push(output);
    }

    /// Whether there is nothing to take, and no excess capacity to release.
    pub(in crate::vm) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.bytes.capacity() <= KEPT
    }

    /// The outputs that are not records.
    pub(in crate::vm) fn others(&self) -> impl Iterator<Item = &Output> {
        self.others.iter()
    }

    /// Calls `each` with every output and removes them all; the capacity is kept.
    pub(in crate::vm) fn drain(&mut self, mut each: impl FnMut(Emitted<'_>)) {
        let mut rest = self.bytes.as_slice();
        let mut others = self.others.iter();
        for entry in &self.order {
            match *entry {
                Entry::Record(to, len) => {
                    let Some((bytes, behind)) = rest.split_at_checked(len) else {
                        break;
                    };
                    rest = behind;
                    each(match to {
                        Destination::Ring(map) => Emitted::Ring(map, bytes),
                        Destination::Perf(map, cpu) => Emitted::Perf(map, cpu, bytes),
                    });
                }
                Entry::Other => others
                    .next()
                    .into_iter()
                    .for_each(|one| each(Emitted::Other(one))),
            }
        }
        self.order.clear();
        self.others.clear();
        self.bytes.clear();
        self.draft = 0;
    }

    /// Takes all outputs; `record` makes an [`Output`] of a record.
    pub(in crate::vm) fn take(
        &mut self,
        mut record: impl FnMut(Destination, Vec<u8>) -> Output,
    ) -> Vec<Output> {
        let mut rest = self.bytes.as_slice();
        let mut others = self.others.drain(..);
        let taken = self.order.drain(..).filter_map(|entry| match entry {
            Entry::Record(to, len) => {
                let (bytes, behind) = rest.split_at_checked(len)?;
                rest = behind;
                Some(record(to, bytes.to_vec()))
            }
            Entry::Other => others.next(),
        });
        let taken = taken.collect();
        drop(others);
        self.bytes.clear();
        self.draft = 0;
        self.bytes.shrink_to(KEPT);
        self.order.shrink_to(KEPT / size_of::<Entry>());
        self.others.shrink_to(KEPT / size_of::<Output>());
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(outputs: &mut OutputBuffer) -> Vec<Output> {
        outputs.take(|to, data| match to {
            Destination::Ring(map) => Output::RingBuf {
                map: map.0.to_string().into(),
                data,
            },
            Destination::Perf(map, cpu) => Output::Perf {
                map: map.0.to_string().into(),
                cpu,
                data,
            },
        })
    }

    #[test]
    fn records_and_other_things_stay_in_order_and_drafts_vanish() {
        let mut outputs = OutputBuffer::default();
        assert!(all(&mut outputs).is_empty());
        for _ in 0..2 {
            outputs.draft().extend([9; 3]);
            outputs.push(Output::Signal(1));
            outputs.draft().extend([1, 2]);
            outputs.record(Destination::Ring(MapHandle(7)));
            outputs.draft();
            outputs.record(Destination::Ring(MapHandle(8)));
            outputs.push(Output::TcpAck(2));
            outputs.draft().push(3);
            outputs.extend(&[4]);
            assert_eq!(outputs.drafted(), [3, 4]);
            outputs.record(Destination::Perf(MapHandle(7), 5));
            outputs.draft().push(9);
            assert_eq!(outputs.others().count(), 2);
            let ring = |map: &str, data: &[u8]| Output::RingBuf {
                map: map.into(),
                data: data.to_vec(),
            };
            let perf = Output::Perf {
                map: "7".into(),
                cpu: 5,
                data: vec![3, 4],
            };
            let expected = [
                Output::Signal(1),
                ring("7", &[1, 2]),
                ring("8", &[]),
                Output::TcpAck(2),
                perf,
            ];
            assert_eq!(all(&mut outputs), expected);
            assert!(all(&mut outputs).is_empty());

            outputs.draft().extend([1, 2]);
            outputs.record(Destination::Ring(MapHandle(7)));
            outputs.push(Output::TcpAck(2));
            outputs.draft().push(3);
            outputs.record(Destination::Perf(MapHandle(7), 5));
            let mut seen = Vec::new();
            outputs.drain(|one| seen.push(format!("{one:?}")));
            let expected = [
                Emitted::Ring(MapHandle(7), &[1, 2]),
                Emitted::Other(&Output::TcpAck(2)),
                Emitted::Perf(MapHandle(7), 5, &[3]),
            ];
            assert_eq!(seen, expected.map(|one| format!("{one:?}")));
            assert!(all(&mut outputs).is_empty());
        }
    }

    #[test]
    fn large_buffers_are_not_kept() {
        let mut outputs = OutputBuffer::default();
        outputs.draft().resize(4 * KEPT, 0);
        outputs.record(Destination::Ring(MapHandle(0)));
        assert_eq!(all(&mut outputs).len(), 1);
        assert!(outputs.bytes.capacity() < 2 * KEPT);
    }
}
