//! Generated programs.

use bpflab::compare::replay::Word;
use bpflab::r#gen::{Choices, Options, make};
use bpflab::instrument::Plan;
use bpflab::spec::ProgType;
use bpflab::vm::events::Event;

use super::examples::CONTEXT;
use super::user_recording::Recorder;
use super::{is_equal_as_far_as_it_can_be, replayed};
use crate::shared::sample;

/// How many programs could be recorded, how many of them make tail calls, and how many could
/// not be.
fn made(prog_type: ProgType, seeds: std::ops::Range<u64>) -> (u64, u64, u64) {
    let (mut equal, mut jumping, mut refused) = (0, 0, 0);
    for seed in seeds {
        // Half of them are made for the kernel.
        let options = match seed % 2 {
            0 => Options::recorded(prog_type),
            _ => Options {
                prog_type: Some(prog_type),
                ..Options::default()
            },
        };
        let made = make(&mut Choices::seeded(seed, 250), options);
        let programs: Vec<_> = [made.program].into_iter().chain(made.others).collect();
        let plans = programs.iter().map(|program| Plan::new(program));
        if let Some(Err(why)) = plans.clone().find(Result::is_err) {
            eprintln!("{seed}: {why}");
            refused += 1;
            continue;
        }
        let jumps = plans.flatten().any(|plan| !plan.jumps().is_empty());
        let Some(mut recorder) = Recorder::try_new(programs, 0) else {
            refused += 1;
            continue;
        };
        let mut event = made.input.clone();
        event.resize(CONTEXT, 0);
        for time in 0..6u32 {
            let world = recorder.vm.world();
            world.clock().set_ns(1000 + u64::from(time));
            world.task().set_pid(time);
            event[8] = u8::try_from(time).unwrap();
            recorder.fire(0, &Event::bytes(event.clone()));
        }
        let recording = recorder.finish();
        let report = replayed(&recording);
        let own = report.programs[0].verdict.word();
        assert_eq!(own, Word::Equal, "seed {seed}: {report:#?}");
        is_equal_as_far_as_it_can_be(&recording, &report);
        equal += 1;
        jumping += u64::from(jumps);
    }
    (equal, jumping, refused)
}

#[test]
fn programs_made_up_are_equal() {
    for prog_type in [
        ProgType::Tracepoint,
        ProgType::RawTracepoint,
        ProgType::PerfEvent,
        ProgType::Kprobe,
    ] {
        let (equal, jumping, refused) = made(prog_type, 0..sample::cases(80));
        eprintln!("{prog_type}: {equal} equal ({jumping} jump), {refused} can't be recorded");
        assert!(
            equal > 10 && jumping > 2 || !sample::all() && equal > 0,
            "{prog_type}: {equal} equal, {refused} refused"
        );
    }
}
