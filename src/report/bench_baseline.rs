//! The times of an earlier `bpflab bench`, from its output.

use rustc_hash::FxHashMap;
use serde::Deserialize;
use thiserror::Error;

use super::bench::BenchRow;
use crate::harness::converts;
use crate::util::base_name;

/// What identifies a measurement in both runs: the object's file name without its folder, the
/// program, the event and the engine.
type Key = (String, String, String, String);

/// The times of an earlier run, in nanoseconds a run.
#[derive(Debug, Clone, Default)]
pub struct BenchBaseline {
    times: FxHashMap<Key, f64>,
}

/// An error in a file of times.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {text}; --against takes a file written by --save")]
#[non_exhaustive]
pub struct BenchBaselineError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

converts! {
    BenchBaselineError;
}

/// A line of `--json`.
#[derive(Deserialize)]
struct Line {
    kind: String,
    object: String,
    program: String,
    event: Option<String>,
    engine: Option<String>,
    ns_per_run: Option<f64>,
}

impl BenchBaseline {
    /// Reads the output of `bpflab bench --json`.
    ///
    /// # Errors
    /// A line is no row, or no row has a time.
    pub fn read(text: &str) -> Result<Self, BenchBaselineError> {
        let mut times = FxHashMap::default();
        for (line, text) in (1..).zip(text.lines()) {
            if text.trim().is_empty() {
                continue;
            }
            let error = |text: String| BenchBaselineError { line, text };
            let row: Line = serde_json::from_str(text).map_err(|why| error(why.to_string()))?;
            let (Some(event), Some(engine)) = (row.event, row.engine) else {
                if row.kind == "ready" {
                    continue;
                }
                return Err(error(format!(
                    "no event and engine in a row of kind '{}'",
                    row.kind
                )));
            };
            if let Some(ns) = row.ns_per_run {
                times.insert(
                    (
                        base_name(&row.object).to_owned(),
                        row.program,
                        event,
                        engine,
                    ),
                    ns,
                );
            }
        }
        if times.is_empty() {
            let text = "no row has a time".to_owned();
            return Err(BenchBaselineError { line: 1, text });
        }
        Ok(Self { times })
    }

    /// Takes the time of the same program on the same event and engine; none if there is none.
    pub fn take(&mut self, row: &BenchRow) -> Option<f64> {
        let key = (
            base_name(&row.object).to_owned(),
            row.program.clone(),
            row.event.clone(),
            row.engine.to_owned(),
        );
        self.times.remove(&key)
    }

    /// What was not taken: `file/program on event, engine`, in order.
    #[must_use]
    pub fn left(&self) -> Vec<String> {
        let names = self.times.keys().map(|(object, program, event, engine)| {
            format!("{object}/{program} on {event}, {engine}")
        });
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use crate::spec::ProgType;

    fn row(object: &str, engine: &'static str) -> BenchRow {
        let program = Program::new("count", ProgType::Tracepoint, Vec::new());
        BenchRow::new(object, &program, "tp", engine)
    }

    #[test]
    fn a_time_is_that_of_the_same_program_event_and_engine() {
        let saved = [("jit", 10.0), ("interp", 80.0)].map(|(engine, ns)| {
            let row = row("a/x.bpf.o", engine).timed(vec![ns], Some(5));
            serde_json::to_string(&row).unwrap()
        });
        let text =
            saved.join("\n") + "\n{\"kind\":\"ready\",\"object\":\"x\",\"program\":\"count\"}\n";
        let mut baseline = BenchBaseline::read(&text).unwrap();
        assert_eq!(baseline.take(&row("b/y.bpf.o", "jit")), None);
        assert_eq!(baseline.take(&row("b/x.bpf.o", "checked")), None);
        assert_eq!(baseline.take(&row("b/x.bpf.o", "jit")), Some(10.0));
        assert_eq!(baseline.left(), ["x.bpf.o/count on tp, interp"]);
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        for (text, line, part) in [
            ("", 1, "no row has a time"),
            ("{}", 1, "missing field"),
            (
                "\n{\"kind\":\"run\",\"object\":\"x\",\"program\":\"p\"}",
                2,
                "kind 'run'",
            ),
        ] {
            let error = BenchBaseline::read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
