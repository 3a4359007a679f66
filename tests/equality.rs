//! All engines give the same answer, always: programs made up over the whole instruction
//! set (`bpflab::gen`) run on each of them, and everything that came of it is the same,
//! bit by bit.
//!
//! `BPFLAB_RANDOM_COUNT` says how many programs, `BPFLAB_SEED` gives others. With
//! `--nocapture` each test tells what it counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::compare::{Answer, Engine, Ours, Subject, difference};
use bpflab::r#gen::{Choices, Made, Options, make};
use bpflab::harness::EngineKind;
use bpflab::isa::disassemble;
use bpflab::lower::Passes;
use bpflab::program::Program;
use bpflab::verifier::{self, verify};

/// Programs by default.
const COUNT: u64 = 400;
/// Bytes that decide on a program, at most.
const CHOICES: u64 = 900;

/// A number in the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The programs that this run is about, each with its seed.
fn made(options: Options) -> impl Iterator<Item = (u64, Made)> {
    let first = setting("BPFLAB_SEED", 1) << 32;
    let count = setting("BPFLAB_RANDOM_COUNT", COUNT);
    (first..first + count).map(move |seed| (seed, of_seed(seed, options)))
}

fn of_seed(seed: u64, options: Options) -> Made {
    let len = usize::try_from(60 + seed * 37 % CHOICES).unwrap();
    make(&mut Choices::seeded(seed, len), options)
}

/// Why the verifier refuses one of these programs.
fn refused(programs: &[Arc<Program>]) -> Option<String> {
    programs.iter().find_map(|program| {
        let verdict = verify(program, &verifier::Options::default()).verdict;
        (!verdict.accepted).then_some(verdict.message)
    })
}

fn text(programs: &[Arc<Program>]) -> String {
    let texts = programs
        .iter()
        .map(|program| disassemble(&program.insns, &**program).to_string());
    texts.collect::<Vec<_>>().join("\n---\n")
}

/// What nearly every program made up must be.
#[test]
fn nearly_all_are_accepted() {
    let (mut all, mut accepted) = (0u64, 0u64);
    let mut reasons = BTreeMap::<String, (u64, u64)>::new();
    for (seed, made) in made(Options::default()) {
        all += 1;
        match refused(&made.programs) {
            None => accepted += 1,
            Some(why) => reasons.entry(why).or_insert((0, seed)).0 += 1,
        }
    }
    eprintln!("{accepted} of {all} accepted; refused: {reasons:#?}");
    assert!(
        accepted * 10 >= all * 9,
        "{accepted} of {all}: {reasons:#?}"
    );
}

/// The engines that are held against the checked one, all passes on.
fn fast() -> Vec<Ours> {
    let interp = Ours::new(EngineKind::Interp);
    vec![
        interp.clone().with_loop(),
        interp,
        Ours::new(EngineKind::Jit),
    ]
}

/// The engines with each pass left out, and without any.
fn without_passes() -> Vec<Ours> {
    let passes = Passes::all().iter().chain([Passes::all()]);
    passes
        .flat_map(|pass| fast().into_iter().map(move |engine| engine.without(pass)))
        .collect()
}

/// What was counted: runs by engine that was asked for and engine that the run began on.
#[derive(Debug, Default)]
struct Tally {
    runs: BTreeMap<String, BTreeMap<&'static str, u64>>,
    faults: u64,
    refused: u64,
}

impl Tally {
    /// Runs a subject on these engines; they all have to say what the checked one says.
    fn agree(&mut self, seed: u64, subject: &Subject, engines: &mut [Ours]) -> Answer {
        let checked = Ours::new(EngineKind::Checked).run(subject).unwrap();
        self.faults += u64::from(checked.retval.is_none());
        for engine in engines {
            let answer = engine.run(subject).unwrap();
            if let Some(difference) = difference(&checked, &answer) {
                panic!(
                    "made from seed {seed}, budget {:?}, on {}: {difference}\n{}",
                    subject.budget,
                    engine.name(),
                    text(&subject.programs)
                );
            }
            let on = answer.details.unwrap().engine.name();
            let runs = self.runs.entry(engine.name()).or_default();
            *runs.entry(on).or_default() += 1;
        }
        checked
    }

    /// Whether nearly all runs were on the engine that was asked for.
    fn check(&self, what: &str) {
        eprintln!("{what}: {self:#?}");
        for (engine, runs) in &self.runs {
            let all: u64 = runs.values().sum();
            let checked = runs.get(EngineKind::Checked.name()).unwrap_or(&0);
            assert!(checked * 10 <= all, "{engine}: {self:#?}");
        }
    }
}

/// Programs that the verifier accepts.
fn subjects(options: Options, tally: &mut Tally) -> Vec<(u64, Subject)> {
    let mut subjects = Vec::new();
    for (seed, made) in made(options) {
        if refused(&made.programs).is_some() {
            tally.refused += 1;
        } else {
            subjects.push((seed, Subject::new(made.programs, made.input)));
        }
    }
    subjects
}

/// Return value, instruction count, context, packet, maps, outputs.
#[test]
fn programs_run_alike() {
    let mut tally = Tally::default();
    for (seed, subject) in subjects(Options::default(), &mut tally) {
        tally.agree(seed, &subject, &mut fast());
    }
    tally.check("programs");
}

/// With a budget that ends anywhere: the same fault at the same place, and everything
/// that was done before it.
#[test]
fn budgets_end_alike() {
    let mut tally = Tally::default();
    for (seed, subject) in subjects(Options::default(), &mut tally) {
        let whole = tally.agree(seed, &subject, &mut []);
        let insns = whole
            .details
            .unwrap()
            .outcome
            .runs
            .first()
            .map_or(0, |run| run.insns);
        for eighth in 0..8 {
            let budget = (insns * eighth + seed % 8 * insns / 8) / 8 + eighth % 2;
            tally.agree(seed, &subject.with_budget(budget), &mut fast());
        }
    }
    tally.check("budgets");
    assert!(tally.faults > 0, "{tally:?}");
}

/// Every pass changes how fast a program is, and nothing else.
#[test]
fn passes_change_nothing() {
    let mut tally = Tally::default();
    for (seed, subject) in subjects(Options::default(), &mut tally)
        .into_iter()
        .step_by(4)
    {
        tally.agree(seed, &subject, &mut without_passes());
    }
    tally.check("passes");
}

/// One program, to be looked at: `BPFLAB_SEED` is its number.
#[test]
#[ignore = "a tool: tells a program and its verdict"]
fn tell() {
    let seed = setting("BPFLAB_SEED", 1);
    let made = of_seed(seed, Options::default());
    eprintln!("{}", text(&made.programs));
    for program in &made.programs {
        let options = verifier::Options {
            log: verifier::LogLevel::PATH,
            ..verifier::Options::default()
        };
        eprintln!("{}", verify(program, &options).verdict.log);
    }
}
