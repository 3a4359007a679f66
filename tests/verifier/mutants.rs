//! Compares our verdict with the running kernel's on generated programs: programs of the
//! shared corpus and of objects with random changes, and random programs. Verdict, error
//! number, error line and number of processed instructions are compared; a false accept is
//! always a failure.
//!
//! | variable | meaning |
//! |---|---|
//! | `BPFLAB_MUTANTS=N` | number of programs of each kind (300 by default) |
//! | `BPFLAB_SEED=N` | another seed |
//! | `BPFLAB_FINDINGS=DIR` | programs that differ are reduced and written there as cases, a file for each kind of difference: `bpflab verify --cases` and `bpflab kernel load --cases` read them |
//! | `BPFLAB_CHANGES=N` | maximum number of changes of one program (3 by default) |
//! | `BPFLAB_OBJECTS=DIR:DIR` | objects in these folders instead of the repository's |
//!
//! Skipped without the right to load programs, without the corpus, and on another kernel
//! version than the one that we reproduce.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared::corpus;
mod findings;
use crate::shared::here;
use crate::shared::sample;
mod inner_maps;
mod loops;
mod made_up;
mod objects;
mod opcodes;
use crate::shared::score;

use std::path::PathBuf;
use std::sync::Arc;

use bpflab::Object;
use bpflab::fuzz::{
    Compared, Listing, Mutant, Random, compare, kernel_options as options, mutate, with_other_map,
};
use bpflab::r#gen::KernelTypes;
use bpflab::kernel::{LoadedMaps, running_btf};
use bpflab::program::Program;
use bpflab::spec::MapType;
use bpflab::verifier::{Options, verify};

use findings::Findings;
use score::Score;

/// Programs of each kind by default.
const COUNT: u64 = 300;
/// Mutants of one program that are judged with the same maps.
const MUTANTS_PER_PROGRAM: u64 = 8;
/// Programs with more processed instructions are skipped.
const MAX_PROCESSED: u64 = 20_000;
/// The minimum number of programs out of a thousand with equal results.
const AGREEMENT: usize = 990;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text}: a number"))
    })
}

/// The results so far.
struct Tally {
    options: Options,
    score: Score,
    equal: usize,
    unjudged: usize,
    no_verdict: usize,
    held_unsafe: usize,
    findings: Findings,
}

impl Tally {
    fn new() -> Self {
        let options = options();
        Self {
            options,
            score: Score::default(),
            equal: 0,
            unjudged: 0,
            no_verdict: 0,
            held_unsafe: 0,
            findings: Findings::new(options),
        }
    }

    fn judge(&mut self, program: Program, maps: &LoadedMaps, origin: &str) {
        let program = Arc::new(program);
        match compare(&program, maps, &self.options) {
            Compared::NoVerdict | Compared::Contradiction => self.no_verdict += 1,
            Compared::Unjudged => self.unjudged += 1,
            Compared::Unsafe => self.held_unsafe += 1,
            Compared::Judged(both) => {
                self.score += Score::of(&both.ours, &both.differences, &both.kernel);
                self.equal += usize::from(both.differences.is_empty());
                self.findings.add(&program, maps, *both, origin);
            }
        }
    }

    fn tell(&self, what: &str) {
        eprintln!(
            "{what}: {} of {} equal, {} not judged, {} only we hold to be \
             unsafe, {} without the kernel's verdict\n{}\n{}\n{}",
            self.equal,
            self.score.cases,
            self.unjudged,
            self.held_unsafe,
            self.no_verdict,
            Score::HEADER,
            self.score,
            self.findings,
        );
    }

    /// Checks that all results are equal.
    fn check_all(&self, what: &str) {
        self.check(what);
        assert_eq!(self.equal, self.score.cases, "{what}");
    }

    fn check(&self, what: &str) {
        self.tell(what);
        assert_eq!(self.score.panics, 0, "the verifier panicked");
        assert_eq!(self.score.false_accepts, 0, "only we accept");
        let reached = self.equal * 1000 / self.score.cases.max(1);
        assert!(reached >= AGREEMENT, "{reached} of 1000 are equal");
    }
}

/// A program to be changed.
struct Subject {
    name: String,
    program: Arc<Program>,
}

/// Judges these programs with random changes.
fn judge_changed(what: &str, subjects: &[Subject]) {
    let listings: Vec<_> = subjects
        .iter()
        .map(|subject| Listing::of(&subject.program))
        .collect();
    let (count, most) = (
        number("BPFLAB_MUTANTS", sample::cases(COUNT)),
        number("BPFLAB_CHANGES", 3),
    );
    let mut random = Random(number("BPFLAB_SEED", 1));
    let mut tally = Tally::new();
    let mut made = 0;
    while made < count {
        let at = usize::try_from(random.below(subjects.len() as u64)).unwrap();
        let (mut name, mut program) = (subjects[at].name.clone(), &subjects[at].program);
        let other = Some(()).filter(|()| random.chance(15));
        let other = other.and_then(|()| with_other_map(program, &mut random).map(Arc::new));
        if let Some(other) = &other {
            name += " with another map,";
            program = other;
        }
        let Ok(maps) = LoadedMaps::create(&program.maps, program.btf.as_ref()) else {
            continue;
        };
        // A prog array keeps the type of the first program that uses it.
        let mut kinds = program.maps.iter().map(|map| map.map_type);
        let remembers = kinds.any(|kind| kind == MapType::ProgArray);
        for _ in 0..if remembers { 1 } else { MUTANTS_PER_PROGRAM } {
            made += 1;
            let mut mutant = Mutant {
                program: Program::clone(program),
                listing: listings[at].clone(),
                others: &listings,
            };
            let changes = mutate(&mut mutant, &mut random, most);
            if let Some(program) = mutant.listing.program(&mutant.program) {
                let origin = format!("{name} with {}", changes.join(", "));
                tally.judge(program, &maps, &origin);
            }
        }
    }
    tally.check(what);
}

/// Whether a program is short enough, and not unjudged.
fn is_subject(program: &Arc<Program>) -> bool {
    let verdict = verify(program, &options()).verdict;
    verdict.processed() <= MAX_PROCESSED && !verdict.is_unjudged()
}

#[test]
fn changed_programs_of_the_corpus() {
    let Some(path) = corpus() else { return };
    if here::judge().is_none() {
        return;
    }
    let cases = corpus::read(&path, |_, _| true).into_iter();
    let subjects: Vec<_> = cases
        .filter(|case| case.says.processed <= MAX_PROCESSED && is_subject(&case.program))
        .map(|case| Subject {
            name: format!("S{} {}", case.stage, case.id),
            program: case.program,
        })
        .collect();
    judge_changed("changed programs of the corpus", &subjects);
}

/// Objects of this repository and of the folders in `BPFLAB_OBJECTS`.
fn objects() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("tests/objects"), root.join("examples/bpf")];
    if let Some(more) = std::env::var_os("BPFLAB_OBJECTS") {
        folders = std::env::split_paths(&more).collect();
    }
    let mut found: Vec<_> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder of objects"))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "o"))
        .collect();
    found.sort();
    found
}

#[test]
fn changed_programs_of_objects() {
    if here::judge().is_none() {
        return;
    }
    let mut subjects = Vec::new();
    for path in objects() {
        let Ok(object) = Object::open(&path) else {
            continue;
        };
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        for program in object.programs().filter_map(Result::ok) {
            let name = format!("{file} {}", program.name);
            let program = Arc::new(program.clone());
            if is_subject(&program) {
                subjects.push(Subject { name, program });
            }
        }
    }
    judge_changed("changed programs of objects", &subjects);
}

#[test]
fn programs_made_up() {
    if here::judge().is_none() {
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

/// Generated programs with typed pointers, kfuncs, dynptrs and iterators; a third of them
/// with changes, too.
#[test]
fn programs_with_objects() {
    if here::judge().is_none() {
        return;
    }
    let btf = running_btf().expect("the running kernel's types");
    let kernel = KernelTypes::new(btf);
    let mut random = Random(number("BPFLAB_SEED", 1));
    let most = number("BPFLAB_CHANGES", 3);
    let (mut tally, mut uses) = (Tally::new(), objects::Uses::default());
    let count = number("BPFLAB_MUTANTS", COUNT);
    let mut made = 0;
    while made < count {
        let programs = objects::programs(&mut random, &kernel);
        let first = &programs[0];
        let maps = LoadedMaps::create(&first.maps, first.btf.as_ref()).expect("maps and types");
        for program in programs {
            made += 1;
            uses.add(&program, btf);
            let mut origin = "with objects".to_owned();
            let listing = Listing::of(&program);
            let mut mutant = Mutant {
                program,
                listing,
                others: &[],
            };
            if random.chance(33) {
                origin = mutate(&mut mutant, &mut random, most).join(", ");
            }
            if let Some(program) = mutant.listing.program(&mutant.program) {
                tally.judge(program, &maps, &origin);
            }
        }
    }
    eprintln!("{}", uses.tell());
    tally.check("programs with objects");
    for what in [
        "bpf_rcu_read_lock",
        "bpf_task_acquire",
        "bpf_iter_num_next",
        "bpf_dynptr_clone",
    ] {
        assert!(
            uses.count(what) > 0 || count < COUNT,
            "no program has {what}"
        );
    }
}

/// Loops in which some registers are uninitialised.
#[test]
fn loops_made_up() {
    if here::judge().is_none() {
        return;
    }
    let mut random = Random(number("BPFLAB_SEED", 1));
    let mut tally = Tally::new();
    for _ in 0..number("BPFLAB_MUTANTS", COUNT) {
        let program = loops::program(&mut random);
        let maps = LoadedMaps::create(&[], program.btf.as_ref()).expect("types");
        tally.judge(program, &maps, "loops made up");
    }
    tally.check_all("loops made up");
}

/// Each opcode at each position, with combinations of field values: the error, and which of
/// several faults is reported first, are the same.
#[test]
fn every_opcode_in_every_place() {
    if here::judge().is_none() {
        return;
    }
    let maps = LoadedMaps::create(&[], None).expect("no maps");
    let mut tally = Tally::new();
    for place in opcodes::PLACES {
        for prog_type in opcodes::TYPES {
            let slots = (0..=u8::MAX).flat_map(opcodes::slots);
            for slot in slots.step_by(sample::step()) {
                let program = opcodes::program(place, slot, prog_type);
                tally.judge(program, &maps, &format!("{}: {slot:?}", place.name));
            }
        }
    }
    tally.check_all("every opcode in every place");
}

/// Messages that name a map: an inner map has no name.
#[test]
fn what_is_said_of_maps_by_name() {
    if here::judge().is_none() {
        return;
    }
    let defs = inner_maps::maps();
    let maps = LoadedMaps::create(&defs, None).expect("two maps");
    for inner in [false, true] {
        for helper in inner_maps::HELPERS {
            let program = Arc::new(inner_maps::program(&defs, inner, helper));
            let Compared::Judged(both) = compare(&program, &maps, &options()) else {
                panic!("helper {helper}: no verdict of both");
            };
            assert_eq!(both.ours.line, both.kernel.log_last);
            let name = if inner {
                "map ''"
            } else {
                "map 'a_map_by_name'"
            };
            assert!(
                both.kernel.log_last.contains(name),
                "{}",
                both.kernel.log_last
            );
        }
    }
}

/// Linux 6.18 continues with too many pending jumps if the last one is a tail call: the log
/// says so, and another jump ends the verification.
#[test]
fn more_tail_calls_than_jumps_may_wait() {
    if here::judge().is_none() {
        return;
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/objects/tail_calls_back.bpf.o"
    );
    let object = Object::open(path).unwrap();
    let mut programs = object.programs().filter_map(Result::ok);
    let program = programs.find(|program| program.name == "function_then_main");
    let mut program = program.unwrap().clone();
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
    let rounds = program
        .insns
        .iter_mut()
        .find(|insn| insn.imm == 32)
        .unwrap();
    rounds.imm = 9_000;
    let Compared::Judged(both) = compare(&Arc::new(program), &maps, &options()) else {
        panic!("no verdict of both");
    };
    assert!(both.differences.is_empty());
    assert!(both.kernel.processed > 9_000 * 8);
}

#[test]
fn a_listing_gives_the_program_back() {
    let Some(path) = corpus() else { return };
    for case in corpus::read(&path, |_, _| true) {
        let again = Listing::of(&case.program).program(&case.program).unwrap();
        assert_eq!(again.insns, case.program.insns, "{}", case.id);
        assert_eq!(again.subprograms, case.program.subprograms, "{}", case.id);
        assert_eq!(again.func_info, case.program.func_info, "{}", case.id);
    }
}
