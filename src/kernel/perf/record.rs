//! The records of a perf ring buffer (`enum perf_event_type`, `perf_event.h`).

use crate::kernel::sys::SampleType;
use crate::util::{ReadError, Reader};

/// Bytes of a record's header: type, flags (two bytes), length including the header.
pub(super) const HEADER: usize = 8;

/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// A sample of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The CPU of the event.
    pub cpu: u32,
    /// The time in nanoseconds, on the clock of `bpf_ktime_get_ns`.
    pub time: u64,
    /// The process id.
    pub pid: u32,
    /// The thread id.
    pub tid: u32,
    /// A tracepoint's record, or the data that a program sent. The kernel pads it until its
    /// length plus 4 is a multiple of 8.
    pub raw: &'a [u8],
}

/// A record of the ring buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Sample(Sample<'a>),
    /// The number of samples lost because the ring buffer was full.
    Lost(u64),
    /// A record of another type.
    Other,
}

/// Parses a record with its header.
pub(super) fn parse(record: &[u8], holds: SampleType) -> Result<Record<'_>, ReadError> {
    let kind = Reader::new(record).u32()?;
    let mut reader = Reader::at(record, HEADER);
    match kind {
        SAMPLE => sample(&mut reader, holds).map(Record::Sample),
        LOST => {
            let _event = reader.u64()?;
            reader.u64().map(Record::Lost)
        }
        _ => Ok(Record::Other),
    }
}

/// Parses a sample's fields, in the order of `PERF_RECORD_SAMPLE`.
fn sample<'a>(reader: &mut Reader<'a>, holds: SampleType) -> Result<Sample<'a>, ReadError> {
    let mut sample = Sample::default();
    if holds.contains(SampleType::TID) {
        sample.pid = reader.u32()?;
        sample.tid = reader.u32()?;
    }
    if holds.contains(SampleType::TIME) {
        sample.time = reader.u64()?;
    }
    if holds.contains(SampleType::CPU) {
        sample.cpu = reader.u32()?;
        reader.u32()?;
    }
    if holds.contains(SampleType::RAW) {
        let len = reader.u32()?;
        sample.raw = reader.bytes(len as usize)?;
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u32]) -> Vec<u8> {
        let len = u32::try_from(HEADER + words.len() * 4).unwrap();
        let header = [kind, len << 16];
        let all = header.iter().chain(words);
        all.flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_sample_is_taken_apart() {
        let bytes = record(SAMPLE, &[7, 8, 9, 0, 1, 0, 4, 0xddcc_bbaa]);
        let expected = Sample {
            cpu: 1,
            time: 9,
            pid: 7,
            tid: 8,
            raw: &[0xaa, 0xbb, 0xcc, 0xdd],
        };
        assert_eq!(
            parse(&bytes, SampleType::all()),
            Ok(Record::Sample(expected))
        );
        let raw = record(SAMPLE, &[4, 5]);
        let Ok(Record::Sample(only)) = parse(&raw, SampleType::RAW) else {
            panic!("a sample");
        };
        assert_eq!(only.raw, [5, 0, 0, 0]);
    }

    #[test]
    fn what_was_lost_is_told_and_the_rest_passed_over() {
        let lost = record(LOST, &[1, 0, 300, 0]);
        assert_eq!(parse(&lost, SampleType::RAW), Ok(Record::Lost(300)));
        assert_eq!(parse(&record(3, &[]), SampleType::RAW), Ok(Record::Other));
    }

    #[test]
    fn a_length_past_the_end_is_an_error() {
        let bytes = record(SAMPLE, &[5, 0]);
        let error = parse(&bytes, SampleType::RAW).unwrap_err();
        assert_eq!((error.offset, error.wanted, error.left), (12, 5, 4));
        assert!(parse(&[9, 0, 0], SampleType::RAW).is_err());
    }
}
