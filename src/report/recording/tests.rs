use super::*;
use crate::compare::recording::{
    Cause, Contents, CpuTotal, Ended, Filter, Header, How, KernelInfo, Loss, MapEntry, MapRead,
    ObjectInfo, RecordedEvent, RecordedMap, RecordedProgram, Recording, Resource, Sample, Start,
    Summary, When, Writer,
};
use crate::instrument::{Firing, FiringFlags};

fn header() -> Header {
    Header {
        bpflab: "0.1.0".to_owned(),
        kernel: KernelInfo {
            release: "6.18.44".to_owned(),
            version: "#1".to_owned(),
            machine: "x86_64".to_owned(),
        },
        possible_cpus: 2,
        start: Start {
            realtime: 1_709_251_200_000_000_000,
            monotonic: 5000,
            boottime: 5000,
        },
        command: vec!["dd".to_owned(), "count=3".to_owned()],
        filter: Filter::PidTree { root: 77 },
        object: Some(ObjectInfo::new("hist.bpf.o", b"an object")),
        programs: vec![
            RecordedProgram {
                number: 0,
                name: "count".to_owned(),
                section: "tp/a/b".to_owned(),
                prog_type: "tracepoint".to_owned(),
                instructions: 68,
                how: How::Instrumented,
                ..RecordedProgram::default()
            },
            RecordedProgram {
                number: 1,
                name: "tail".to_owned(),
                section: "tp/c/d".to_owned(),
                prog_type: "tracepoint".to_owned(),
                instructions: 5,
                how: How::OutputsOnly {
                    why: "instruction 3: a tail call".to_owned(),
                },
                ..RecordedProgram::default()
            },
        ],
        left_out: None,
        maps: vec![RecordedMap {
            name: "hist".to_owned(),
            map_type: "array".to_owned(),
            ..RecordedMap::default()
        }],
        events: Vec::new(),
    }
}

/// A recording with three firings of CPU 1: the numbers 0, 1 and 3.
fn writer(file: &mut Vec<u8>) -> Writer<&mut Vec<u8>> {
    let mut writer = Writer::new(file, &header()).unwrap();
    let resource = Resource {
        name: Resource::OBJECT,
        bytes: b"an object",
    };
    writer.resource(&resource).unwrap();
    let entry = MapEntry {
        when: When::Before,
        map: 0,
        key: &[0; 4],
        value: &[0; 8],
    };
    writer.map_entry(&entry).unwrap();
    let read = MapRead {
        when: When::Before,
        map: 0,
        contents: Contents::Whole,
        entries: 1,
        why: b"",
    };
    writer.map_read(&read).unwrap();
    // An inner firing comes out before the one that it interrupted.
    for (sequence, depth) in [(1, 1), (0, 0), (3, 0)] {
        let firing = Firing {
            program: 0,
            cpu: 1,
            depth,
            flags: FiringFlags::empty(),
            sequence,
            time: 6000 + sequence,
            produced: 0,
            pid_tgid: 0,
            returned: 0,
            context: &[1; 16],
            log: &[2; 10],
        };
        let mut record = Vec::new();
        firing.write(&mut record);
        writer.firing(&record).unwrap();
    }
    writer
}

fn read(file: &[u8]) -> RecordingReport {
    RecordingReport::read("a.rec", Recording::new(file).unwrap())
}

#[test]
fn a_whole_one_is_told_with_what_is_missing() {
    let mut file = Vec::new();
    let mut writer = writer(&mut file);
    let read_after = MapRead {
        when: When::After,
        map: 0,
        contents: Contents::Torn,
        entries: 0,
        why: b"it changed",
    };
    writer.map_read(&read_after).unwrap();
    let loss = Loss {
        cause: Cause::RingFull,
        cpu: Some(1),
        of: Some(0),
        count: 2,
    };
    writer.loss(&loss).unwrap();
    writer.loss(&loss).unwrap();
    let summary = Summary {
        ended: Ended::Exited { code: 0 },
        duration: 1_234_567_890,
        cpus: vec![CpuTotal {
            cpu: 1,
            sequence: 6,
        }],
        ..Summary::default()
    };
    writer.finish(summary).unwrap();

    let report = read(&file);
    assert!(!report.is_complete());
    let text = report.to_string();
    let bytes = file.len();
    let expected = format!(
        "\
recording a.rec
  format      1.1, {bytes} bytes
  written by  bpflab 0.1.0
  kernel      6.18.44 x86_64
  CPUs        2 possible
  began       2024-03-01 00:00:00 UTC
  command     dd count=3
  recorded    the command and the processes that it started
  object      hist.bpf.o, 9 bytes, checksum bea20013
  carries     object (9 bytes)
  ended       after 1.234 s: the command exited with 0

programs
  count  tp/a/b  tracepoint  68 insns  instrumented  3 firings
  tail   tp/c/d  tracepoint  5 insns   outputs only  0 firings
  tail: instruction 3: a tail call

maps
  hist  array  1 entry before  0 entries after (torn: it changed)

CPUs
  CPU 1  3 firings  3 missing

lost
  ring buffer full  count  CPU 1  4

3 firings, 1 map entry, 4 lost; whole
"
    );
    assert_eq!(text, expected);

    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["state"], "whole");
    assert_eq!(json["cpus"][0]["missing"], 3);
    assert_eq!(json["programs"][0]["nested"], 1);
    assert_eq!(json["programs"][0]["first"], 1000);
    assert_eq!(json["programs"][0]["last"], 1003);
    assert_eq!(json["programs"][0]["log_bytes"], 30);
    assert_eq!(json["header"]["filter"]["root"], 77);
    assert_eq!(json["end"]["ended"]["code"], 0);
}

#[test]
fn one_that_is_cut_off_or_damaged_is_told_as_far_as_it_goes() {
    let mut file = Vec::new();
    writer(&mut file).flush().unwrap();
    let report = read(&file);
    assert_eq!(report.state, ReadState::CutOff);
    assert!(!report.is_complete());
    assert_eq!(report.programs[0].firings, 3);
    assert_eq!(report.cpus[0].missing, 1, "number 2 is not there");
    let last = report.to_string().lines().last().unwrap().to_owned();
    let len = file.len();
    let wanted = format!(
        "3 firings, 1 map entry, 1 lost; cut off in block 5 at byte {len}, 0 bytes into the block"
    );
    assert_eq!(last, wanted);

    let at = file.len() - 1;
    file[at] ^= 1;
    let report = read(&file);
    assert_eq!(report.state, ReadState::Damaged);
    assert_eq!((report.programs[0].firings, report.totals.entries), (0, 1));
    assert!(
        report
            .problem
            .unwrap()
            .starts_with("damaged: block 4 at byte ")
    );
}

#[test]
fn records_that_are_no_firings_are_counted_as_lost() {
    let mut file = Vec::new();
    let mut writer = writer(&mut file);
    writer.firing(b"no firing").unwrap();
    writer.finish(Summary::default()).unwrap();
    let report = read(&file);
    let [row] = &report.losses[..] else {
        panic!("{:?}", report.losses);
    };
    assert_eq!((row.cause, row.count), ("damaged record", 1));
}

#[test]
fn one_in_which_nothing_is_missing_is_complete() {
    let mut file = Vec::new();
    let writer = Writer::new(&mut file, &header()).unwrap();
    writer.finish(Summary::default()).unwrap();
    let report = read(&file);
    assert!(report.is_complete());
    assert!(
        report
            .to_string()
            .ends_with("\n0 firings, nothing lost; whole\n")
    );
}

#[test]
fn bare_events_are_counted() {
    let event = |number, name: &str| RecordedEvent {
        number,
        group: "sched".to_owned(),
        name: name.to_owned(),
        ..RecordedEvent::default()
    };
    let header = Header {
        events: vec![event(0, "sched_switch"), event(1, "sched_waking")],
        ..Header::default()
    };
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &header).unwrap();
    let sample = Sample {
        event: 1,
        cpu: 0,
        pid: 1,
        tid: 1,
        time: 5,
        raw: &[0; 24],
    };
    writer.sample(&sample).unwrap();
    writer.sample(&sample).unwrap();
    writer.finish(Summary::default()).unwrap();
    let report = read(&file);
    assert_eq!((report.events[1].samples, report.events[1].bytes), (2, 48));
    let wanted = "\nevents
  sched/sched_switch  0 samples
  sched/sched_waking  2 samples

2 samples, nothing lost; whole
";
    assert!(report.to_string().ends_with(wanted), "{report}");
}
