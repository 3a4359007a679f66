//! Programs that run on samples of events: in the order of time, not that of the file.

use bpflab::Object;
use bpflab::compare::recording::{Header, RecordedEvent, Sample, Summary, Writer};
use bpflab::compare::replay::{Replay, Word};
use bpflab::object::Target;

/// The start of a format file, with the common fields.
const COMMON: &str = "\
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

";

const WAKEUP: &str = "\
\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
";

const SWITCH: &str = "\
\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;
";

fn event(number: u32, name: &str, fields: &str) -> RecordedEvent {
    let mut event = RecordedEvent::default();
    event.number = number;
    event.group = "sched".to_owned();
    event.name = name.to_owned();
    event.id = 300 + number;
    event.format = format!("name: {name}\nID: {}\n{COMMON}{fields}", event.id);
    event
}

/// A record with this process id at this offset.
fn record(len: usize, at: usize, process: u32) -> Vec<u8> {
    let mut raw = vec![0; len];
    raw[at..at + 4].copy_from_slice(&process.to_le_bytes());
    raw
}

#[test]
fn samples_are_played_as_they_happened() {
    let mut header = Header::default();
    header.possible_cpus = 2;
    header.events = vec![
        event(0, "sched_wakeup", WAKEUP),
        event(1, "sched_switch", SWITCH),
    ];
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    // Task 7 waits for 2 µs, for 20 µs and for 300 µs. The ring of its wake-ups was drained
    // first.
    let wakeups = [1_000_000, 2_000_000, 3_000_000].map(|time| (0, time));
    let switches = [1_002_100, 2_020_100, 3_300_100].map(|time| (1, time));
    for (event, time) in wakeups.into_iter().chain(switches) {
        let raw = match event {
            0 => record(32, 24, 7),
            _ => {
                let mut raw = record(64, 56, 7);
                raw[32] = 1; // The previous task sleeps.
                raw
            }
        };
        let sample = Sample {
            event,
            cpu: event,
            pid: 42,
            tid: 42,
            time,
            raw: &raw,
        };
        writer.sample(&sample).unwrap();
    }
    let file = writer.finish(Summary::default()).unwrap();
    let mut object = Object::open("examples/bpf/runqlat.bpf.o").unwrap();
    object.set_target(Target::Own);
    let replay = Replay::new(&object, file).unwrap();
    for engine in super::ENGINES {
        let bare = replay.run_bare(&object, engine).unwrap();
        assert_eq!(
            bare.report.word(),
            Word::NothingCompared,
            "{:?}",
            bare.report
        );
        assert_eq!(bare.report.firings(), 6);
        let hist = bare.vm.map("hist").unwrap();
        let count = |slot: u32| hist.get::<u32, u64>(&slot).unwrap().unwrap();
        assert_eq!([1, 4, 8].map(count), [1, 1, 1], "on {engine}");
        assert_eq!((0..20).map(count).sum::<u64>(), 3);
    }
}
