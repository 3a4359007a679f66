//! Compares our verdicts on the shared corpus with the recorded verdicts of the kernel, by
//! stage (see the corpus's README): the verdict, the error number and error line of
//! rejects, and the number of instructions processed of accepted programs. Skipped without
//! the corpus.
//!
//! `cargo test --test verifier corpus:: -- --nocapture` prints the table. Variables select
//! more output:
//!
//! | variable | lists or picks |
//! |---|---|
//! | `BPFLAB_SHOW=false-accept` (or `false-reject`, `errno`, `line`, `processed`, `panic`; several with commas) | the cases that differ so, with both messages, the commonest first |
//! | `BPFLAB_STAGE=S4` | only this stage; `S2-S7`: these stages |
//! | `BPFLAB_CASE=TEXT` | only cases whose id holds the text |
//! | `BPFLAB_SHOW=reached` | the lines for [`REACHED`] |

use crate::shared::corpus;
mod judge;
use crate::shared;
use crate::shared::score;

use std::collections::BTreeMap;
use std::env;

use corpus::Judged;
use score::{Difference, Ours, Score};

/// The last stage included in the overall figures.
const PROMISED: u32 = 12;

/// The minimum figures of a stage; raise them when they improve (`BPFLAB_SHOW=reached`
/// prints the lines).
#[derive(Clone, Copy, Default)]
struct Reached {
    stage: u32,
    /// Equal verdicts, minimum; unjudged programs don't count as equal.
    verdict: usize,
    /// Programs that only we accept, maximum.
    false_accepts: usize,
    /// Equal error numbers, minimum.
    errno: usize,
    /// Equal error lines, minimum.
    line: usize,
    /// Equal numbers of processed instructions, minimum.
    processed: usize,
}

#[rustfmt::skip]
const REACHED: &[Reached] = &[
    Reached { stage: 2, verdict: 311, false_accepts: 0, errno: 89, line: 89, processed: 222 },
    Reached { stage: 3, verdict: 188, false_accepts: 0, errno: 75, line: 75, processed: 113 },
    Reached { stage: 4, verdict: 279, false_accepts: 0, errno: 99, line: 99, processed: 180 },
    Reached { stage: 5, verdict: 104, false_accepts: 0, errno: 46, line: 46, processed: 58 },
    Reached { stage: 6, verdict: 26, false_accepts: 0, errno: 1, line: 1, processed: 25 },
    Reached { stage: 7, verdict: 56, false_accepts: 0, errno: 19, line: 19, processed: 37 },
    Reached { stage: 8, verdict: 27, false_accepts: 0, errno: 19, line: 19, processed: 8 },
    Reached { stage: 9, verdict: 95, false_accepts: 0, errno: 56, line: 56, processed: 39 },
    Reached { stage: 10, verdict: 112, false_accepts: 0, errno: 52, line: 52, processed: 60 },
    Reached { stage: 11, verdict: 47, false_accepts: 0, errno: 22, line: 22, processed: 25 },
    Reached { stage: 12, verdict: 44, false_accepts: 0, errno: 33, line: 33, processed: 11 },
    Reached { stage: 13, verdict: 2, false_accepts: 0, errno: 2, line: 2, processed: 0 },
    Reached { stage: 14, verdict: 0, false_accepts: 0, errno: 0, line: 0, processed: 0 },
    Reached { stage: 15, verdict: 7, false_accepts: 0, errno: 1, line: 1, processed: 6 },
    Reached { stage: 16, verdict: 19, false_accepts: 0, errno: 2, line: 2, processed: 17 },
    Reached { stage: 17, verdict: 1, false_accepts: 0, errno: 1, line: 1, processed: 0 },
    Reached { stage: 18, verdict: 0, false_accepts: 0, errno: 0, line: 0, processed: 0 },
];

/// Selects cases.
struct Filter {
    stages: std::ops::RangeInclusive<u32>,
    id: String,
}

impl Filter {
    fn from_env() -> Self {
        let stages = env::var("BPFLAB_STAGE").unwrap_or_default();
        let stages = match stages.split_once('-') {
            _ if stages.is_empty() => 0..=u32::MAX,
            Some((from, to)) => of_stage(from)..=of_stage(to),
            None => of_stage(&stages)..=of_stage(&stages),
        };
        let id = env::var("BPFLAB_CASE").unwrap_or_default();
        Self { stages, id }
    }

    fn is_all(&self) -> bool {
        self.stages == (0..=u32::MAX) && self.id.is_empty()
    }
}

fn of_stage(text: &str) -> u32 {
    corpus::number(text).unwrap_or_else(|| panic!("BPFLAB_STAGE: {text} is no stage such as S4"))
}

#[test]
fn verdicts_of_the_corpus() {
    let Some(path) = corpus() else { return };
    let filter = Filter::from_env();
    let cases = corpus::read(&path, |id, stage| {
        filter.stages.contains(&stage) && id.contains(&filter.id)
    });
    let ours = judge::all(&cases);

    let mut stages = BTreeMap::<u32, Score>::new();
    let mut differing = Vec::new();
    for (case, ours) in cases.iter().zip(&ours) {
        let differences = Difference::between(ours, &case.says);
        *stages.entry(case.stage).or_default() += Score::of(ours, &differences, &case.says);
        differing.extend(differences.into_iter().map(|how| (how, case, ours)));
    }
    let shown = env::var("BPFLAB_SHOW").unwrap_or_default();
    for word in shown
        .split(',')
        .filter(|word| !["", "reached"].contains(word))
    {
        list(word, &differing);
    }
    if !shown.contains("panic") && differing.iter().any(|(how, ..)| *how == Difference::Panic) {
        list("panic", &differing);
    }
    eprintln!("{}", table(&stages));
    if shown.contains("reached") {
        for (stage, score) in &stages {
            let Score {
                verdict,
                false_accepts,
                errno,
                line,
                processed,
                ..
            } = score;
            eprintln!(
                "    Reached {{ stage: {stage}, verdict: {verdict}, false_accepts: \
                 {false_accepts}, errno: {errno}, line: {line}, processed: {processed} }},"
            );
        }
    }
    assert!(
        !differing.iter().any(|(how, ..)| *how == Difference::Panic),
        "the verifier panicked"
    );
    if filter.is_all() && cfg!(not(target_arch = "x86_64")) {
        shared::skip_part(
            shared::Need::Native,
            "the recorded verdicts are those of x86-64",
        );
    } else if filter.is_all() {
        assert_eq!(lost(&stages), Vec::<String>::new());
    }
}

/// The score of each stage, of the promised stages, and of all.
fn table(stages: &BTreeMap<u32, Score>) -> String {
    let sum = |up_to: u32| {
        let mut sum = Score::default();
        stages.range(..=up_to).for_each(|(_, score)| sum += *score);
        sum
    };
    let mut lines = vec![format!("{:<6} {}", "stage", Score::HEADER)];
    for (stage, score) in stages {
        lines.push(format!("{:<6} {score}", format!("S{stage}")));
        if *stage == PROMISED {
            lines.push(format!("{:<6} {}", format!("S1-S{stage}"), sum(*stage)));
        }
    }
    lines.push(format!("{:<6} {}", "all", sum(u32::MAX)));
    lines.join("\n")
}

/// The figures in [`REACHED`] that no longer hold. A stage without a line there must not
/// have a false accept.
fn lost(stages: &BTreeMap<u32, Score>) -> Vec<String> {
    let mut lost = Vec::new();
    for (stage, score) in stages {
        let reached = REACHED.iter().find(|reached| reached.stage == *stage);
        let reached = reached.copied().unwrap_or_default();
        for (what, have, want) in [
            ("verdicts equal", score.verdict, reached.verdict),
            ("error numbers equal", score.errno, reached.errno),
            ("error lines equal", score.line, reached.line),
            ("processed equal", score.processed, reached.processed),
        ] {
            if have < want {
                lost.push(format!("S{stage}: {have} {what}, not {want}"));
            }
        }
        let (have, want) = (score.false_accepts, reached.false_accepts);
        if have > want {
            lost.push(format!("S{stage}: {have} false accepts, not {want}"));
        }
    }
    lost
}

/// Lists the cases with this difference, with both messages, the most frequent kind first.
fn list(word: &str, differing: &[(Difference, &Judged, &Ours)]) {
    let known = Difference::ALL.iter().find(|(_, name)| *name == word);
    let Some((wanted, name)) = known else {
        let names: Vec<_> = Difference::ALL.iter().map(|(_, name)| *name).collect();
        panic!("BPFLAB_SHOW={word}: one of {}", names.join(", "));
    };
    let mut groups = BTreeMap::<String, Vec<String>>::new();
    for (how, case, ours) in differing {
        if how != wanted {
            continue;
        }
        let says = &case.says;
        let (key, text) = match how {
            Difference::Panic => {
                let panic = ours.panic.clone().unwrap_or_default();
                (panic, format!("kernel: {} {}", says.verdict, says.log_last))
            }
            Difference::FalseReject => {
                let place = format!("ours: {} {}", ours.errno, ours.line);
                (template(&ours.line), place)
            }
            Difference::Processed => {
                let text = format!("kernel: {}\n    ours:   {}", says.processed, ours.processed);
                (String::new(), text)
            }
            Difference::FalseAccept | Difference::Errno | Difference::Line => (
                template(&says.log_last),
                format!(
                    "kernel: {} {}\n    ours:   {} {}",
                    says.errno, says.log_last, ours.errno, ours.line
                ),
            ),
        };
        let text = format!("  S{} {}\n    {text}", case.stage, case.id);
        groups.entry(key).or_default().push(text);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.len()));
    let count: usize = groups.iter().map(|(_, cases)| cases.len()).sum();
    eprintln!("== {name}: {count}");
    for (key, cases) in groups {
        eprintln!("-- {} x {key}\n{}", cases.len(), cases.join("\n"));
    }
    eprintln!();
}

/// A message without its numbers.
fn template(line: &str) -> String {
    let mut template = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if template.ends_with('#') => {}
            '0'..='9' => template.push('#'),
            c => template.push(c),
        }
    }
    template
}
