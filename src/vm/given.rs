//! What programs gave out, until somebody takes it.
//!
//! Records come by the thousand, and many a run is over before anybody looks at one. So
//! their bytes lie behind one another in a buffer that stays from run to run, and they
//! become [`Output`]s when they are taken.

use super::handle::MapHandle;
use super::outcome::Output;

/// Bytes and entries of buffers that are kept when what is in them has been taken.
const KEPT: usize = 1 << 20;

/// Things that programs gave out, in order.
#[derive(Debug, Default)]
pub(super) struct Given {
    order: Vec<Entry>,
    /// The bytes of the records one behind the other, then those of a draft.
    bytes: Vec<u8>,
    /// Where the draft begins.
    draft: usize,
    /// What else was given out.
    others: Vec<Output>,
}

/// Where a record went.
#[derive(Debug, Clone, Copy)]
pub(super) enum Destination {
    /// A ring buffer.
    Ring(MapHandle),
    /// A perf buffer of this CPU.
    Perf(MapHandle, u32),
}

/// Something that a program gave out, seen where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emitted<'a> {
    /// A record for a ring buffer. It also waits in the map.
    Ring(MapHandle, &'a [u8]),
    /// A record for the perf buffer of this CPU.
    Perf(MapHandle, u32, &'a [u8]),
    /// What is no record.
    Other(&'a Output),
}

#[derive(Debug)]
enum Entry {
    /// A record of so many bytes.
    Record(Destination, usize),
    /// The next of the others.
    Other,
}

impl Given {
    /// Where the bytes of the next record are to be appended: of earlier drafts that
    /// became no record nothing is left.
    pub(super) fn draft(&mut self) -> &mut Vec<u8> {
        self.bytes.truncate(self.draft);
        &mut self.bytes
    }

    /// Adds to the draft.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The draft's bytes.
    pub(super) fn drafted(&self) -> &[u8] {
        self.bytes.get(self.draft..).unwrap_or_default()
    }

    /// Makes the draft a record.
    pub(super) fn record(&mut self, to: Destination) {
        let len = self.drafted().len();
        self.order.push(Entry::Record(to, len));
        self.draft = self.bytes.len();
    }

    /// Adds something that is no record.
    pub(super) fn push(&mut self, output: Output) {
        self.order.push(Entry::Other);
        self.others.push(output);
    }

    /// Whether there is nothing to take, not even room that is too much to keep.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.bytes.capacity() <= KEPT
    }

    /// What is no record.
    pub(super) fn others(&self) -> impl Iterator<Item = &Output> {
        self.others.iter()
    }

    /// Shows everything, and forgets it; the room stays for what is to come.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Emitted<'_>)) {
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

    /// Takes everything, with `record` for who knows the names of maps.
    pub(super) fn take(
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

    fn all(given: &mut Given) -> Vec<Output> {
        given.take(|to, data| match to {
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
        let mut given = Given::default();
        assert!(all(&mut given).is_empty());
        for _ in 0..2 {
            given.draft().extend([9; 3]);
            given.push(Output::Signal(1));
            given.draft().extend([1, 2]);
            given.record(Destination::Ring(MapHandle(7)));
            given.draft();
            given.record(Destination::Ring(MapHandle(8)));
            given.push(Output::TcpAck(2));
            given.draft().push(3);
            given.extend(&[4]);
            assert_eq!(given.drafted(), [3, 4]);
            given.record(Destination::Perf(MapHandle(7), 5));
            given.draft().push(9);
            assert_eq!(given.others().count(), 2);
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
            assert_eq!(all(&mut given), expected);
            assert!(all(&mut given).is_empty());

            given.draft().extend([1, 2]);
            given.record(Destination::Ring(MapHandle(7)));
            given.push(Output::TcpAck(2));
            given.draft().push(3);
            given.record(Destination::Perf(MapHandle(7), 5));
            let mut seen = Vec::new();
            given.drain(|one| seen.push(format!("{one:?}")));
            let expected = [
                Emitted::Ring(MapHandle(7), &[1, 2]),
                Emitted::Other(&Output::TcpAck(2)),
                Emitted::Perf(MapHandle(7), 5, &[3]),
            ];
            assert_eq!(seen, expected.map(|one| format!("{one:?}")));
            assert!(all(&mut given).is_empty());
        }
    }

    #[test]
    fn large_buffers_are_not_kept() {
        let mut given = Given::default();
        given.draft().resize(4 * KEPT, 0);
        given.record(Destination::Ring(MapHandle(0)));
        assert_eq!(all(&mut given).len(), 1);
        assert!(given.bytes.capacity() < 2 * KEPT);
    }
}
