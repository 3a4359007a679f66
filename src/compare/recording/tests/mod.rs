//! Tests of the file: what is written is read back, damage is detected, reading streams.

mod damage;
mod document;
mod forged;
mod round_trip;
mod streaming;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

/// One call of a [`Writer`], with bytes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Firing(Vec<u8>),
    Output(OutputSource, [Option<u32>; 3], Option<u64>, Vec<u8>),
    Sample([u32; 4], u64, Vec<u8>),
    Loss(Loss),
    Entry(When, u32, Vec<u8>, Vec<u8>),
    MapRead(When, u32, Contents, u64, Vec<u8>),
    Resource(Vec<u8>, Vec<u8>),
    /// Not read back.
    Flush,
}

impl Step {
    fn write<W: std::io::Write>(&self, writer: &mut Writer<W>) -> Result<(), WriteError> {
        match self {
            Self::Firing(bytes) => writer.firing(bytes),
            Self::Output(source, [map, cpu, pid], time, bytes) => writer.output(&Output {
                source: *source,
                map: *map,
                cpu: *cpu,
                pid: *pid,
                time: *time,
                bytes,
            }),
            Self::Sample([event, cpu, pid, tid], time, raw) => writer.sample(&Sample {
                event: *event,
                cpu: *cpu,
                pid: *pid,
                tid: *tid,
                time: *time,
                raw,
            }),
            Self::Loss(loss) => writer.loss(loss),
            Self::Entry(when, map, key, value) => writer.map_entry(&MapEntry {
                when: *when,
                map: *map,
                key,
                value,
            }),
            Self::MapRead(when, map, contents, entries, why) => writer.map_read(&MapRead {
                when: *when,
                map: *map,
                contents: *contents,
                entries: *entries,
                why,
            }),
            Self::Resource(name, bytes) => writer.resource(&Resource { name, bytes }),
            Self::Flush => writer.flush(),
        }
    }

    /// The rank of a step whose order among other kinds is not kept; none if its order is kept.
    const fn rank(&self) -> Option<u8> {
        match self {
            Self::Firing(_) => Some(0),
            Self::Output(..) => Some(1),
            Self::Sample(..) => Some(2),
            Self::Loss(_) => Some(3),
            _ => None,
        }
    }
}

/// The steps that write a part.
fn steps_of(part: &Part<'_>) -> Vec<Step> {
    match part {
        Part::Firings(items) => items.clone().map(|b| Step::Firing(b.to_vec())).collect(),
        Part::Outputs(items) => items
            .clone()
            .map(|o| Step::Output(o.source, [o.map, o.cpu, o.pid], o.time, o.bytes.to_vec()))
            .collect(),
        Part::Samples(items) => items
            .clone()
            .map(|s| Step::Sample([s.event, s.cpu, s.pid, s.tid], s.time, s.raw.to_vec()))
            .collect(),
        Part::Losses(items) => items.clone().map(Step::Loss).collect(),
        Part::Entries(items) => items
            .clone()
            .map(|e| Step::Entry(e.when, e.map, e.key.to_vec(), e.value.to_vec()))
            .collect(),
        Part::MapReads(items) => items
            .clone()
            .map(|r| Step::MapRead(r.when, r.map, r.contents, r.entries, r.why.to_vec()))
            .collect(),
        Part::Resources(items) => items
            .clone()
            .map(|r| Step::Resource(r.name.to_vec(), r.bytes.to_vec()))
            .collect(),
        Part::End(_) | Part::CutOff(_) => Vec::new(),
    }
}

/// How reading ended.
#[derive(Debug)]
enum Ending {
    Whole(End),
    CutOff(CutOff),
    Failed(RecordingError),
}

/// Everything that can be read of a file, and how reading ended; the same in the calling thread
/// and ahead.
fn read(file: &[u8]) -> (Vec<Step>, Ending) {
    let recording = match Recording::new(file) {
        Ok(recording) => recording,
        Err(error) => return (Vec::new(), Ending::Failed(error)),
    };
    let (steps, ending) = read_all(recording);
    let ahead = Recording::new(std::io::Cursor::new(file.to_vec())).unwrap();
    let (ahead, end) = read_all(ahead.read_ahead());
    assert_eq!(steps, ahead, "read ahead");
    assert_eq!(format!("{ending:?}"), format!("{end:?}"), "read ahead");
    (steps, ending)
}

fn read_all<R: std::io::Read>(mut recording: Recording<R>) -> (Vec<Step>, Ending) {
    let mut steps = Vec::new();
    let ending = loop {
        match recording.next_part() {
            Ok(Some(Part::End(end))) => break Ending::Whole(end),
            Ok(Some(Part::CutOff(at))) => break Ending::CutOff(at),
            Ok(Some(part)) => steps.extend(steps_of(&part)),
            Ok(None) => panic!("neither an end nor an error"),
            Err(error) => break Ending::Failed(error),
        }
    };
    assert!(matches!(recording.next_part(), Ok(None)), "nothing follows");
    (steps, ending)
}

/// The file that steps write.
fn write(header: &Header, steps: &[Step], summary: Summary) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).expect("a header");
    for step in steps {
        step.write(&mut writer).expect("a step");
    }
    writer.finish(summary).expect("an end")
}

/// Steps in an order that ignores what a file need not keep.
fn sorted(steps: &[Step]) -> Vec<Step> {
    let mut steps: Vec<_> = steps
        .iter()
        .filter(|step| !matches!(step, Step::Flush | Step::Loss(Loss { count: 0, .. })))
        .cloned()
        .collect();
    for run in steps.chunk_by_mut(|a, b| a.rank().is_some() && b.rank().is_some()) {
        run.sort_by_key(Step::rank);
    }
    steps
}

/// Bytes: mostly few, sometimes enough to fill a block.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => vec(any::<u8>(), 0..100),
        1 => (any::<u8>(), 100_000..300_000usize).prop_map(|(b, len)| vec![b; len]),
    ]
}

/// A known number: not all bits are set.
fn number() -> impl Strategy<Value = Option<u32>> {
    option::of(0..u32::MAX)
}

fn when() -> impl Strategy<Value = When> {
    prop::sample::select(When::ALL)
}

fn step() -> impl Strategy<Value = Step> {
    let source = prop::sample::select(OutputSource::ALL);
    let cause = prop::sample::select(Cause::ALL);
    let contents = prop::sample::select(Contents::ALL);
    let numbers = [number(), number(), number()];
    prop_oneof![
        10 => bytes().prop_map(Step::Firing),
        5 => (source, numbers, option::of(0..u64::MAX), bytes())
            .prop_map(|(source, numbers, time, b)| Step::Output(source, numbers, time, b)),
        5 => (any::<[u32; 4]>(), any::<u64>(), bytes())
            .prop_map(|(numbers, time, b)| Step::Sample(numbers, time, b)),
        2 => (cause, number(), number(), 0..1000u64)
            .prop_map(|(cause, cpu, of, count)| Step::Loss(Loss { cause, cpu, of, count })),
        5 => (when(), any::<u32>(), bytes(), bytes())
            .prop_map(|(when, map, key, value)| Step::Entry(when, map, key, value)),
        2 => (when(), any::<u32>(), contents, any::<u64>(), bytes())
            .prop_map(|(when, map, c, entries, why)| Step::MapRead(when, map, c, entries, why)),
        1 => (bytes(), bytes()).prop_map(|(name, b)| Step::Resource(name, b)),
        2 => Just(Step::Flush),
    ]
}

/// A short recording with items of every kind, in a block or more each.
fn sample_steps() -> Vec<Step> {
    let firing = |n: u8| Step::Firing(vec![n; 40]);
    let loss = Loss {
        cause: Cause::RingFull,
        cpu: Some(1),
        of: None,
        count: 3,
    };
    vec![
        Step::Resource(Resource::OBJECT.to_vec(), b"\x7fELF".repeat(9)),
        Step::Entry(When::Before, 0, vec![0; 4], vec![0; 16]),
        Step::MapRead(When::Before, 0, Contents::Whole, 1, Vec::new()),
        firing(1),
        firing(2),
        Step::Output(
            OutputSource::Ring,
            [Some(2), None, None],
            None,
            b"hello".to_vec(),
        ),
        Step::Flush,
        firing(3),
        Step::Sample([0, 1, 77, 78], 123_456, vec![9; 24]),
        Step::Loss(loss),
        Step::Flush,
        firing(4),
        Step::Output(
            OutputSource::Printk,
            [None, Some(1), Some(78)],
            Some(5),
            b"a line".to_vec(),
        ),
        Step::Entry(When::After, 0, vec![0; 4], vec![7; 16]),
        Step::MapRead(When::After, 0, Contents::Torn, 1, b"it changed".to_vec()),
    ]
}

/// The file of [`sample_steps`].
fn sample_file() -> Vec<u8> {
    write(&Header::default(), &sample_steps(), Summary::default())
}

/// Where the blocks of a whole file begin, and where the file ends.
fn block_starts(file: &[u8]) -> Vec<usize> {
    let mut starts = vec![block::FILE_HEAD];
    let mut at = block::FILE_HEAD;
    while at < file.len() {
        let head = file[at..].first_chunk().expect("a head");
        let head = block::BlockHead::parse(head).expect("a head");
        at += block::BLOCK_HEAD + head.stored as usize;
        starts.push(at);
    }
    assert_eq!(at, file.len());
    starts
}
