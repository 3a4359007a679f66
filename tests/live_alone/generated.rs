//! Generated tracepoint programs, recorded in the running kernel and replayed on every engine with
//! the same results. Skipped, visibly, if the kernel can't be used.
//!
//! `BPFLAB_RANDOM_COUNT` sets how many programs are generated, `BPFLAB_SEED` chooses others. The
//! command line does the same: `bpflab compare --generated 10000 --seed 1`.

use crate::shared;
use crate::shared::here;
use crate::shared::law;

use bpflab::compare::generated::{GeneratedOptions, compare_generated};
use bpflab::compare::replay::Word;
use bpflab::report::{FindingRow, GeneratedSummary};

use shared::{Need, skip};

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |text| text.parse().expect("a number"))
}

// The only test of its binary: no other thread of the process fires the programs then.
#[test]
fn programs_made_up_do_the_same_in_the_kernel() {
    let _alone = crate::alone();
    if here::kernel().is_none() {
        return;
    }
    let options = GeneratedOptions::default()
        .with_count(setting("BPFLAB_RANDOM_COUNT", law::part(100).into()))
        .with_seed(setting("BPFLAB_SEED", 1));
    let tally = match compare_generated(&options, |_| {}) {
        Ok(tally) => tally,
        Err(error) if error.is_unavailable() => {
            skip(Need::Feature, error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let findings = tally
        .findings
        .iter()
        .map(|found| FindingRow::new(found).to_string());
    let findings: String = findings.collect();
    let summary = GeneratedSummary::new(&tally);
    eprintln!("{summary}");
    assert!(tally.is_fine(), "{findings}\n{summary}");
    // Nearly all are accepted and recorded, and every one recorded has its verdict.
    assert!(summary.accepted * 10 >= options.count * 9, "{summary}");
    assert!(tally.recorded * 10 >= summary.accepted * 9, "{summary}");
    assert!(
        tally.firings >= tally.recorded * options.firings as u64,
        "{summary}"
    );
    for engine in &tally.engines {
        let count = |word| engine.verdicts.get(&word).copied().unwrap_or_default();
        // Some use maps that can't be read, or maps of programs that they never jumped to.
        let (equal, partly) = (count(Word::Equal), count(Word::PartlyCompared));
        assert_eq!(equal + partly, tally.recorded, "{summary}");
        assert!(equal * 4 > tally.recorded, "{summary}");
    }
}
