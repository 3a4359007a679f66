//! What is written is read back.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::instrument::{
    AccessedState, Flow, Length, LoggedField, LoggedLocation, LoggedSite, Moment, SchemaSite, What,
};
use crate::isa::Reg;
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType};

/// A schema with a site that this version knows and one that it does not.
fn schema(number: u32) -> Vec<SchemaSite> {
    let known = LoggedSite {
        pc: number,
        moment: Moment::After,
        accesses: AccessedState::World,
        fields: vec![LoggedField {
            flow: Flow::Input,
            what: What::Filled(1),
            location: LoggedLocation::Memory(Reg::R1),
            length: Length::Counted {
                count: Reg::R2,
                most: 9,
            },
        }],
    };
    let other = serde_json::json!({"pc": number, "moment": "never"});
    vec![SchemaSite::Known(known), SchemaSite::Other(other)]
}

fn header() -> impl Strategy<Value = Header> {
    let words = || vec(".{0,12}", 0..4);
    let how = prop_oneof![
        Just(How::Instrumented),
        Just(How::Other),
        ".{0,20}".prop_map(|why| How::Bare { why }),
        ".{0,20}".prop_map(|why| How::OutputsOnly { why }),
    ];
    let filter = prop_oneof![
        Just(Filter::All),
        Just(Filter::Other),
        any::<u32>().prop_map(|root| Filter::PidTree { root }),
    ];
    let program =
        (any::<[u32; 4]>(), ".{0,9}", ".{0,9}", how).prop_map(|(n, name, attach, how)| {
            RecordedProgram {
                number: n[0],
                name,
                section: "tp/a/b".to_owned(),
                prog_type: "tracepoint".to_owned(),
                license: (n[0] % 2 == 0).then(|| "GPL".to_owned()),
                attach,
                instructions: n[1],
                checksum: n[2],
                sites: n[0] ^ 1,
                schema: (n[1] % 2 == 0).then(|| schema(n[2])),
                context_len: n[3],
                how,
            }
        });
    (
        words(),
        filter,
        any::<[u64; 3]>(),
        vec(program, 0..3),
        any::<u32>(),
    )
        .prop_map(
            |(command, filter, [realtime, monotonic, boottime], programs, number)| Header {
                bpflab: "0.1.0".to_owned(),
                kernel: KernelInfo {
                    release: "6.18.1".to_owned(),
                    version: "#1 SMP".to_owned(),
                    machine: "x86_64".to_owned(),
                },
                possible_cpus: number,
                start: Start {
                    realtime,
                    monotonic,
                    boottime,
                },
                object: Some(ObjectInfo::new("a.bpf.o", &number.to_le_bytes())),
                maps: vec![RecordedMap {
                    number,
                    name: command.concat(),
                    extra: realtime,
                    initial: (number % 2 == 0).then_some(number),
                    inner: (number % 3 == 0).then(Box::default),
                    ..RecordedMap::default()
                }],
                events: vec![RecordedEvent {
                    number,
                    format: command.join("\n"),
                    ..RecordedEvent::default()
                }],
                left_out: (number % 2 == 0).then(|| {
                    vec![LeftOut {
                        program: "probe".to_owned(),
                        why: command.concat(),
                    }]
                }),
                command,
                filter,
                programs,
            },
        )
}

fn summary() -> impl Strategy<Value = Summary> {
    let ended = prop_oneof![
        Just(Ended::Duration),
        Just(Ended::Other),
        any::<i32>().prop_map(|code| Ended::Exited { code }),
        any::<i32>().prop_map(|signal| Ended::Killed { signal }),
        any::<i32>().prop_map(|signal| Ended::Interrupted { signal }),
    ];
    (ended, any::<[u64; 3]>(), option::of(any::<u64>())).prop_map(
        |(ended, [duration, missed, sequence], firings)| Summary {
            ended,
            duration,
            programs: vec![ProgramTotal {
                program: 1,
                firings,
                missed,
            }],
            cpus: vec![CpuTotal { cpu: 3, sequence }],
        },
    )
}

/// The totals that the writer should have counted.
fn totals(steps: &[Step]) -> Totals {
    let mut totals = Totals::default();
    for step in steps {
        match step {
            Step::Firing(bytes) => {
                totals.firings += 1;
                totals.firing_bytes += bytes.len() as u64;
            }
            Step::Output(..) => totals.outputs += 1,
            Step::Sample(..) => totals.samples += 1,
            Step::Loss(loss) if loss.cause == Cause::Missed => {}
            Step::Loss(loss) => totals.lost += loss.count,
            Step::Entry(..) => totals.entries += 1,
            Step::MapRead(..) | Step::Resource(..) | Step::Flush => {}
        }
    }
    totals
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_comes_back(
        header in header(),
        steps in vec(step(), 0..60),
        summary in summary(),
    ) {
        let file = write(&header, &steps, summary.clone());
        let recording = Recording::new(&file[..]).unwrap();
        prop_assert_eq!(recording.header(), &header);
        let (found, ending) = read(&file);
        prop_assert_eq!(sorted(&found), sorted(&steps));
        let Ending::Whole(end) = ending else {
            return Err(TestCaseError::fail(format!("{ending:?}")));
        };
        prop_assert_eq!(end, End { summary, totals: totals(&steps) });
    }

    #[test]
    fn what_was_flushed_is_there_when_the_recorder_is_killed(
        before in vec(step(), 0..30),
        later in vec(step(), 0..30),
    ) {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &Header::default()).unwrap();
        for step in before.iter().chain([&Step::Flush]).chain(&later) {
            step.write(&mut writer).unwrap();
        }
        drop(writer);
        let (found, ending) = read(&file);
        prop_assert!(matches!(ending, Ending::CutOff(CutOff { left: 0, .. })), "{ending:?}");
        let flushed = sorted(&before);
        prop_assert!(found.len() >= flushed.len());
        prop_assert_eq!(sorted(&found[..flushed.len()]), flushed);
    }
}

#[test]
fn the_same_recording_has_the_same_bytes() {
    assert_eq!(sample_file(), sample_file());
}

#[test]
fn each_kind_keeps_its_order_over_many_blocks() {
    let steps: Vec<_> = (0..20_000u32)
        .flat_map(|n| {
            let firing = Step::Firing(n.to_le_bytes().repeat(16));
            let output = Step::Output(OutputSource::Ring, [Some(n), None, None], None, Vec::new());
            [firing, output]
        })
        .collect();
    let (found, _) = read(&write(&Header::default(), &steps, Summary::default()));
    let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for step in &found {
        kinds.entry(step.rank()).or_default().push(step);
    }
    let mut wanted: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for step in &steps {
        wanted.entry(step.rank()).or_default().push(step);
    }
    assert_eq!(kinds, wanted);
    let blocks = found.chunk_by(|a, b| a.rank() == b.rank()).count();
    assert!(
        blocks >= 4,
        "{blocks}: outputs don't wait for the last firing"
    );
}

#[test]
fn alike_records_are_packed() {
    let steps = vec![Step::Firing(b"a record like the others before".repeat(4)); 1000];
    let file = write(&Header::default(), &steps, Summary::default());
    assert!(file.len() < 4000, "{}", file.len());
}

#[test]
fn what_is_too_long_is_refused_and_nothing_of_it_written() {
    let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
    writer.firing(b"before").unwrap();
    let long = vec![0; block::MAX_ITEM + 1];
    let error = writer.firing(&long).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a record of 66846721 bytes is too long: the limit is 66846720 bytes"
    );
    // The key alone would fit.
    let entry = MapEntry {
        when: When::After,
        map: 0,
        key: b"key",
        value: &long,
    };
    assert!(matches!(
        writer.map_entry(&entry),
        Err(WriteError::TooLong { .. })
    ));
    writer.firing(b"behind").unwrap();
    let (steps, ending) = read(&writer.finish(Summary::default()).unwrap());
    let firing = |bytes: &[u8]| Step::Firing(bytes.to_vec());
    assert_eq!(steps, [firing(b"before"), firing(b"behind")]);
    assert!(matches!(ending, Ending::Whole(_)));
}

#[test]
fn a_file_that_takes_nothing_is_said() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(
        Writer::new(Full(10), &Header::default()),
        Err(WriteError::Io(_))
    ));
    let mut writer = Writer::new(Full(5000), &Header::default()).unwrap();
    let error = (0u32..1_000_000).find_map(|n| writer.firing(&n.to_le_bytes()).err());
    // A further write would follow an incomplete block.
    assert!(matches!(writer.flush(), Err(WriteError::Io(_))));
    assert!(
        error
            .unwrap()
            .to_string()
            .starts_with("the recording can't be written: ")
    );
}

#[test]
fn programs_and_maps_are_known_again() {
    let slot = |imm| crate::isa::RawInsn::from_bytes([0xb7, 0, 0, 0, imm, 0, 0, 0]);
    let program = Program::new("p", ProgType::Tracepoint, vec![slot(1), slot(2)]);
    let other = Program::new("p", ProgType::Tracepoint, vec![slot(2), slot(1)]);
    let recorded = RecordedProgram::new(3, &program, "syscalls/x", 64, How::Instrumented);
    assert_eq!(recorded.instructions, 2);
    assert_eq!(recorded.prog_type, "tracepoint");
    assert!(recorded.is(&program));
    assert!(!recorded.is(&other));
    assert!(recorded.logs_as(&program));
    let by_another = RecordedProgram {
        sites: recorded.sites ^ 1,
        ..recorded
    };
    assert!(!by_another.logs_as(&program));

    let map = MapDef::new("m", MapType::PercpuHash, 4, 8, 16);
    let recorded = RecordedMap::new(0, &map);
    assert_eq!(recorded.map_type, "percpu_hash");
    assert_eq!(recorded.differs(&map), None);
    let other = MapDef::new("m", MapType::PercpuHash, 4, 16, 16);
    let differs = ("size of values", "8".to_owned(), "16".to_owned());
    assert_eq!(recorded.differs(&other), Some(differs));
}
