//! Our verdict beside the running kernel's, on programs that nobody wrote: those of the
//! shared corpus with a few changes, and programs made up. Verdict, error number, error
//! line and the number of instructions processed are compared; that we accept what the
//! kernel rejects must not happen.
//!
//! | variable | meaning |
//! |---|---|
//! | `BPFLAB_MUTANTS=N` | so many programs of each sort (300 by default) |
//! | `BPFLAB_SEED=N` | others |
//! | `BPFLAB_FINDINGS=DIR` | programs that differ are made small and written there as cases, a file for each kind of difference: `bpflab verify --cases` and `bpflab kernel load --cases` read them |
//! | `BPFLAB_CHANGES=N` | at most so many changes of one program (3 by default) |
//!
//! Skipped without rights to load programs, without the corpus, and on another kernel
//! than the one whose verdicts we give.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "verifier_corpus/corpus.rs"]
#[allow(dead_code, reason = "another test's file: it uses more of it")]
mod corpus;
#[path = "verifier_mutants/findings.rs"]
mod findings;
#[path = "kernel/here.rs"]
mod here;
#[path = "verifier_mutants/judge.rs"]
mod judge;
#[path = "verifier_mutants/listing.rs"]
mod listing;
#[path = "verifier_mutants/made_up.rs"]
mod made_up;
#[path = "verifier_mutants/mutate.rs"]
mod mutate;
#[path = "scalars/random.rs"]
#[allow(dead_code, reason = "another test's file: it uses more of it")]
mod random;
#[path = "verifier_corpus/score.rs"]
mod score;

use std::sync::Arc;

use bpflab::kernel::LoadedMaps;
use bpflab::program::Program;
use bpflab::spec::MapType;
use bpflab::verifier::Options;

use findings::Findings;
use judge::{Compared, compare, options};
use listing::Listing;
use mutate::{Mutant, mutate};
use random::Random;
use score::Score;

/// The kernel whose verdicts we give.
const JUDGE: &str = "6.18.";
/// Programs of each sort by default.
const COUNT: u64 = 300;
/// Mutants of one program that are judged with the same maps.
const LITTER: u64 = 8;
/// Programs that take longer to walk are left out.
const SHORT_WALK: u64 = 20_000;
/// In so many of a thousand programs everything must be equal.
const AGREEMENT: usize = 980;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text}: a number"))
    })
}

fn is_judge() -> bool {
    let Some(kernel) = here::kernel() else {
        return false;
    };
    if !kernel.release.starts_with(JUDGE) {
        eprintln!("skipped: this is not Linux {JUDGE}x but {}", kernel.release);
        return false;
    }
    true
}

/// What was compared so far.
struct Tally {
    options: Options,
    score: Score,
    equal: usize,
    unsupported: usize,
    no_verdict: usize,
    findings: Findings,
}

impl Tally {
    fn new() -> Self {
        let options = options();
        Self {
            options,
            score: Score::default(),
            equal: 0,
            unsupported: 0,
            no_verdict: 0,
            findings: Findings::new(options),
        }
    }

    fn judge(&mut self, program: Program, maps: &LoadedMaps, origin: &str) {
        let program = Arc::new(program);
        match compare(&program, maps, &self.options) {
            Compared::NoVerdict => self.no_verdict += 1,
            Compared::Unsupported => self.unsupported += 1,
            Compared::Judged(both) => {
                self.score += Score::of(&both.ours, &both.differences, &both.kernel);
                self.equal += usize::from(both.differences.is_empty());
                self.findings.add(&program, maps, *both, origin);
            }
        }
    }

    fn tell(&self, what: &str) {
        eprintln!(
            "{what}: {} of {} equal, {} need what is not supported yet, {} without the kernel's \
             verdict\n{}\n{}\n{}",
            self.equal,
            self.score.cases,
            self.unsupported,
            self.no_verdict,
            Score::HEADER,
            self.score,
            self.findings,
        );
    }

    fn check(&self, what: &str) {
        self.tell(what);
        assert_eq!(self.score.panics, 0, "the verifier panicked");
        assert_eq!(self.score.false_accepts, 0, "only we accept");
        let reached = self.equal * 1000 / self.score.cases.max(1);
        assert!(reached >= AGREEMENT, "{reached} of 1000 are equal");
    }
}

#[test]
fn changed_programs_of_the_corpus() {
    let Some(path) = corpus::path() else { return };
    if !is_judge() {
        return;
    }
    let cases = corpus::read(&path, |_, _| true);
    let cases: Vec<_> = cases
        .into_iter()
        .filter(|case| case.says.processed <= SHORT_WALK)
        .collect();
    let listings: Vec<_> = cases
        .iter()
        .map(|case| Listing::of(&case.program))
        .collect();
    let (count, most) = (number("BPFLAB_MUTANTS", COUNT), number("BPFLAB_CHANGES", 3));
    let mut random = Random(number("BPFLAB_SEED", 1));
    let mut tally = Tally::new();
    let mut made = 0;
    while made < count {
        let at = usize::try_from(random.below(cases.len() as u64)).unwrap();
        let (case, listing) = (&cases[at], &listings[at]);
        let unsupported = matches!(
            judge::ours(&case.program, &tally.options).line,
            line if line.contains(judge::UNSUPPORTED)
        );
        if unsupported {
            continue;
        }
        let Ok(maps) = LoadedMaps::create(&case.program.maps, case.program.btf.as_ref()) else {
            continue;
        };
        // A prog array takes after the first program that uses it.
        let mut kinds = case.program.maps.iter().map(|map| map.map_type);
        let remembers = kinds.any(|kind| kind == MapType::ProgArray);
        for _ in 0..LITTER {
            made += 1;
            let mut mutant = Mutant {
                program: Program::clone(&case.program),
                listing: listing.clone(),
                others: &listings,
            };
            let changes = mutate(&mut mutant, &mut random, most);
            let Some(program) = mutant.listing.program(&mutant.program) else {
                continue;
            };
            let origin = format!("S{} {} with {}", case.stage, case.id, changes.join(", "));
            tally.judge(program, &maps, &origin);
            if remembers {
                break;
            }
        }
    }
    tally.check("changed programs");
}

#[test]
fn programs_made_up() {
    if !is_judge() {
        return;
    }
    let defs = made_up::maps();
    let maps = LoadedMaps::create(&defs, None).expect("three maps");
    let mut random = Random(number("BPFLAB_SEED", 1));
    let mut tally = Tally::new();
    for _ in 0..number("BPFLAB_MUTANTS", COUNT) {
        let program = made_up::program(&mut random, &defs);
        let listing = Listing::of(&program);
        let mut mutant = Mutant {
            program,
            listing,
            others: &[],
        };
        let mut origin = "made up".to_owned();
        // Half of them with a mistake.
        if random.chance(50) {
            origin = mutate(&mut mutant, &mut random, 1).join(", ");
        }
        if let Some(program) = mutant.listing.program(&mutant.program) {
            tally.judge(program, &maps, &origin);
        }
    }
    tally.check("programs made up");
}

#[test]
fn a_listing_gives_the_program_back() {
    let Some(path) = corpus::path() else { return };
    for case in corpus::read(&path, |_, _| true) {
        let again = Listing::of(&case.program).program(&case.program).unwrap();
        assert_eq!(again.insns, case.program.insns, "{}", case.id);
        assert_eq!(again.subprograms, case.program.subprograms, "{}", case.id);
        assert_eq!(again.func_info, case.program.func_info, "{}", case.id);
    }
}
