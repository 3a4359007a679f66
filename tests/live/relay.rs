//! Programs that tail-call one another in the running kernel: a firing continues from program to
//! program, and every engine replays it. Skipped, visibly, if the kernel can't be used.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use bpflab::Object;
use bpflab::compare::live::{Live, LiveError, LiveOptions, Summary};
use bpflab::compare::recording::{How, Part, Recording};
use bpflab::compare::replay::{Replay, Verdict, Word};
use bpflab::harness::EngineKind;
use bpflab::instrument::{Begins, Firing, Plan, Segments};

use shared::{Need, skip};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

fn object(name: &str) -> Object {
    let path = format!("{}/tests/objects/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    Object::open(path).unwrap()
}

/// Records an object's programs while those calls are made. None if this machine can't, which is
/// printed.
fn record(object: &Object, count: u32) -> Option<(Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let recorded = match Live::start(object, &LiveOptions::default()) {
        Ok(mut live) => live.run(&mut calls(count), &mut bytes),
        Err(error) => Err(error),
    };
    match recorded {
        Ok(summary) => Some((bytes, summary)),
        Err(error) if LiveError::is_unavailable(&error) => {
            skip(Need::Feature, error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// System calls about the files 0, 1, 2 and others.
fn calls(count: u32) -> Command {
    let lines = format!(
        "dd if=/dev/zero of=/dev/null bs=1 count={count} status=none
         i=0; while [ $i -lt 50 ]; do echo $i >&2; i=$((i + 1)); done"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &lines]).stderr(Stdio::null());
    command
}

/// The paths of a recording's firings: how many segments they have, and how often each program
/// began one in which way.
fn ways(object: &Object, bytes: &[u8]) -> (BTreeMap<usize, u32>, BTreeMap<(String, u8), u32>) {
    let mut reader = Recording::new(bytes).unwrap();
    let programs = reader.header().programs.clone();
    let plans = programs.iter().map(|program| {
        let original = object.program(&program.name).unwrap();
        (program.number, Plan::new(&original).unwrap())
    });
    let plans: BTreeMap<u32, Plan> = plans.collect();
    let (mut lengths, mut begun) = (BTreeMap::new(), BTreeMap::new());
    while let Some(part) = reader.next_part().unwrap() {
        let Part::Firings(firings) = part else {
            continue;
        };
        for bytes in firings {
            let firing = Firing::parse(bytes).unwrap();
            let mut pieces = 0;
            for piece in Segments::new(firing.program, firing.log, |number| plans.get(&number)) {
                let plan = &plans[&piece.program];
                assert!(plan.entries(piece.log).all(|entry| entry.is_ok()));
                let name = plan.program().name.clone();
                let begins = match piece.begins {
                    Begins::Fired => 0,
                    Begins::TookOver => 1,
                    Begins::WentOn => 2,
                };
                *begun.entry((name, begins)).or_insert(0) += 1;
                pieces += 1;
            }
            *lengths.entry(pieces).or_insert(0) += 1;
        }
    }
    (lengths, begun)
}

#[test]
fn firings_go_from_program_to_program() {
    let object = object("relay");
    let Some((bytes, summary)) = record(&object, 500) else {
        return;
    };
    assert_eq!(summary.lost(), 0, "{summary:?}");
    assert!(summary.recorded() > 1000, "{summary:?}");
    for program in &summary.programs {
        assert_eq!(program.how, How::Instrumented, "{}", program.name);
    }
    let (lengths, begun) = ways(&object, &bytes);
    // No tail call; one; six that return to the caller; the limit of 33.
    for (pieces, least) in [(1, 20), (2, 500), (6, 50), (34, 500)] {
        assert!(lengths[&pieces] >= least, "{lengths:?}");
    }
    assert_eq!(lengths.len(), 4, "{lengths:?}");
    let count = |name: &str, begins| begun[&(name.to_owned(), begins)];
    assert_eq!(count("middle", 2), 2 * count("middle", 1));
    assert_eq!(count("again", 1), 33 * lengths[&34]);
    let replay = Replay::new(&object, bytes).unwrap();
    for engine in ENGINES {
        let report = replay.run(engine).unwrap();
        assert_eq!(report.word(), Word::Equal, "{engine}: {report:#?}");
        assert_eq!(report.firings(), summary.recorded());
    }
}

/// Firings that tail-call a program that can't be recorded are not recorded; others are.
#[test]
fn a_tail_call_into_a_program_that_is_not_recorded_is_none_to_record() {
    let object = object("relay_unrecorded");
    let Some((bytes, summary)) = record(&object, 200) else {
        return;
    };
    let find = |name: &str| {
        let mut programs = summary.programs.iter();
        programs.find(|program| program.name == name).unwrap()
    };
    match &find("to_mixed").how {
        How::OutputsOnly { why } => {
            assert!(why.contains("may lead to 'walks', which can't"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(find("walks").how, How::OutputsOnly { .. }));
    for name in ["counts", "to_recorded"] {
        assert_eq!(find(name).how, How::Instrumented, "{name}");
        assert!(find(name).firings >= 400, "{summary:?}");
    }
    let replay = Replay::new(&object, bytes).unwrap();
    for engine in ENGINES {
        let report = replay.run(engine).unwrap();
        assert_eq!(report.word(), Word::PartlyCompared, "{engine}: {report:#?}");
        let gaps = report.gaps();
        for program in &report.programs {
            let is_recorded = ["counts", "to_recorded"].contains(&&*program.name);
            let is_equal = matches!(program.verdict, Verdict::Equal(_));
            assert_eq!(is_equal, is_recorded, "{program:#?}");
            let is_gap = gaps.iter().any(|gap| gap.name == program.name);
            assert_ne!(is_gap, is_recorded, "{gaps:?}");
        }
    }
}
