//! Checks a property of generated programs; the shortest program that violates it is
//! printed.

use std::cell::RefCell;

use bpflab::compare::Subject;
use bpflab::r#gen::{Choices, Options, make};
use bpflab::isa::disassemble;
use bpflab::verifier::{self, verify};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::sample;
use super::tally::Tally;

/// The most bytes from which a program is generated.
const CHOICES: usize = 900;

/// A number in the environment.
fn setting<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number"))
    })
}

/// The number of programs to make of so many. What is expected of all of them needs thirty.
pub fn part(count: u32) -> u32 {
    sample::cases(count).max(count.min(30))
}

/// Checks a property for `count` programs that the verifier accepts, or for a [part] of them.
pub fn hold(
    what: &'static str,
    count: u32,
    options: Options,
    mut law: impl FnMut(&mut Tally, &Subject) -> Result<(), String>,
) -> Tally {
    let tally = RefCell::new(Tally::new(what));
    let law = RefCell::new(&mut law);
    // Machine code with a bug may crash the test; then the last printed program is the
    // culprit.
    let tells = std::env::var_os("BPFLAB_TELL").is_some();
    let config = Config {
        cases: setting("BPFLAB_RANDOM_COUNT", part(count)),
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&setting("BPFLAB_SEED", 1u64).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let result =
        TestRunner::new_with_rng(config, rng).run(&vec(any::<u8>(), 0..CHOICES), |bytes| {
            let made = make(&mut Choices::new(bytes), options);
            let mut tally = tally.borrow_mut();
            tally.made += 1;
            tally.masked += made.masked;
            let subject = Subject::from(made);
            if let Some(why) = refused(&subject) {
                *tally.refused.entry(why).or_default() += 1;
                return Ok(());
            }
            tally.tells = tells;
            if tells {
                eprintln!("{}", text(&subject));
            }
            (law.borrow_mut())(&mut tally, &subject).map_err(TestCaseError::fail)
        });
    if let Err(error) = result {
        match error {
            TestError::Fail(why, bytes) => {
                let made = make(&mut Choices::new(bytes.clone()), options);
                panic!("{why}\n{}\nmade from {bytes:?}", text(&made.into()));
            }
            abort => panic!("{abort}"),
        }
    }
    tally.into_inner()
}

/// Why the verifier rejects one of the programs.
fn refused(subject: &Subject) -> Option<String> {
    subject.programs().find_map(|program| {
        let verdict = verify(program, &verifier::Options::default()).verdict;
        (!verdict.is_accepted()).then_some(verdict.message)
    })
}

fn text(subject: &Subject) -> String {
    let texts = subject.programs().map(|program| {
        let kind = program.prog_type.name();
        format!("{kind}\n{}", disassemble(&program.insns, &**program))
    });
    texts.collect::<Vec<_>>().join("---\n")
}
