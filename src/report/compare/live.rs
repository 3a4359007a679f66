//! Programs in the kernel and in bpflab, on the same events: `bpflab compare OBJ`.

use std::fmt::{self, Write};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::compare::live::Summary;
use crate::compare::replay::{Gap, ProgramReport, Report, Verdict, Word};
use crate::harness::EngineKind;
use crate::report::counted::counted;
use crate::report::page::{differences, document, escaped, write_table, write_verdict};
use crate::report::record::RecordReport;
use crate::report::replay::{Explained, ReplayView, said_of_map, said_of_output, said_of_program};
use crate::report::table::Table;

/// A recording and its replays, with the verdict on each program and engine.
#[derive(Debug)]
pub struct CompareReport {
    /// The object's file.
    object: String,
    recorded: RecordReport,
    summary: Summary,
    replays: Vec<(Report, Duration)>,
}

impl CompareReport {
    /// A report on a recording, and its replay on each engine with the time that it took.
    #[must_use]
    pub fn new(
        object: &str,
        recording: &str,
        summary: Summary,
        replays: Vec<(Report, Duration)>,
    ) -> Self {
        Self {
            object: object.to_owned(),
            recorded: RecordReport::new(recording, summary.clone()),
            summary,
            replays,
        }
    }

    /// The verdict on the whole: the worst of all engines, and at least incomplete if children of
    /// the command were not followed.
    #[must_use]
    pub fn word(&self) -> Word {
        let words = || self.reports().map(Report::word);
        let worst = match words().max() {
            // Another engine has compared what one did not run.
            Some(Word::NothingCompared) if words().any(|it| it < Word::NothingCompared) => {
                Word::PartlyCompared
            }
            worst => worst.unwrap_or(Word::NothingCompared),
        };
        match self.summary.unfollowed {
            0 => worst,
            _ => worst.max(Word::Incomplete),
        }
    }

    /// Whether everything was compared, nothing is missing, and all that could be judged is
    /// equal.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.word().is_fine()
    }

    /// The values of `--json`, a line each: the recording, each replay, the verdict.
    #[must_use]
    pub fn json(&self) -> Vec<Json> {
        let mut rows = Vec::new();
        let mut recorded = serde_json::to_value(&self.recorded).unwrap_or_default();
        with_kind(&mut recorded, "recorded");
        rows.push(recorded);
        for (report, elapsed) in &self.replays {
            let mut replay = self.view(report, *elapsed).json();
            with_kind(&mut replay, "replay");
            rows.push(replay);
        }
        rows.push(json!({
            "kind": "verdict",
            "object": self.object,
            "verdict": self.word().key(),
            "fine": self.is_fine(),
            "firings": self.firings(),
        }));
        rows
    }

    /// The report as a page.
    #[must_use]
    pub fn page(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_page(&mut text);
        document("Comparison", Some("difference"), &text)
    }

    fn write_page(&self, text: &mut String) -> fmt::Result {
        let said = self.to_string();
        let mut lines = said.lines();
        let first = lines.next().unwrap_or_default();
        writeln!(text, "<p>{}</p>", escaped(first))?;
        write_verdict(text, lines.next_back().unwrap_or_default(), self.is_fine())?;
        write_table(text, &self.verdicts(), true)?;
        let notes = self.notes();
        if !notes.is_empty() {
            text.push_str("<ul>\n");
            for note in &notes {
                writeln!(text, "<li>{}</li>", escaped(note))?;
            }
            text.push_str("</ul>\n");
        }
        for report in self.reports() {
            differences(text, report)?;
        }
        Ok(())
    }

    fn view<'a>(&'a self, report: &'a Report, elapsed: Duration) -> ReplayView<'a> {
        ReplayView {
            recording: &self.recorded.recording,
            object: &self.object,
            report,
            elapsed: Some(elapsed),
        }
    }

    fn firings(&self) -> u64 {
        let firings = self.replays.iter().map(|(report, _)| report.firings());
        firings.max().unwrap_or_default()
    }

    /// The reports, without times.
    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.replays.iter().map(|(report, _)| report)
    }

    /// A row for each program, map and stream of outputs, a column for each engine.
    fn verdicts(&self) -> Table {
        let mut table = Table::default().numbers(&[1]);
        let engines = self.reports().map(|report| report.engine.name().to_owned());
        table.row(
            ["program".to_owned(), "firings".to_owned()]
                .into_iter()
                .chain(engines),
        );
        let Some(first) = self.reports().next() else {
            return table;
        };
        for (at, program) in first.programs.iter().enumerate() {
            let verdicts = self.reports().map(|report| {
                let program = report.programs.get(at);
                program.map_or_else(String::new, |program| cell(program, report.engine))
            });
            let cells = [program.name.clone(), program.firings.to_string()];
            table.row(cells.into_iter().chain(verdicts));
        }
        for (at, map) in first.maps.iter().enumerate() {
            let words = self.reports().map(|report| {
                let map = report.maps.get(at);
                map.map_or(String::new(), |map| word_of_part(map.verdict.word()))
            });
            let cells = [format!("map {}", map.name), String::new()];
            table.row(cells.into_iter().chain(words));
        }
        for (at, output) in first.outputs.iter().enumerate() {
            let words = self.reports().map(|report| {
                let output = report.outputs.get(at);
                output.map_or(String::new(), |output| word_of_part(output.verdict.word()))
            });
            let cells = [
                format!("output {}", output.name),
                output.recorded.to_string(),
            ];
            table.row(cells.into_iter().chain(words));
        }
        table
    }

    /// What differs, each text once, with the engines that have it.
    fn differences_by_engine(&self) -> Vec<(String, Vec<&'static str>)> {
        let mut texts: Vec<(String, Vec<_>)> = Vec::new();
        let mut add = |text: String, engine: EngineKind| match texts
            .iter_mut()
            .find(|(known, _)| *known == text)
        {
            Some((_, engines)) => engines.push(engine.name()),
            None => texts.push((text, vec![engine.name()])),
        };
        for report in self.reports() {
            for program in &report.programs {
                if let Verdict::Different(first) = &program.verdict {
                    add(Explained(&program.name, first).to_string(), report.engine);
                }
            }
        }
        for report in self.reports() {
            for finding in &report.findings {
                add(finding.to_string(), report.engine);
            }
        }
        texts
    }

    /// Notes that don't fit into the table.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut add = |note: String| {
            if !notes.contains(&note) {
                notes.push(note);
            }
        };
        for program in &self.summary.programs {
            if program.missed > 0 {
                let (name, missed) = (&program.name, program.missed);
                add(format!(
                    "{name}: the kernel skipped {missed} events, as the CPU was in another program"
                ));
            }
        }
        if self.summary.unfollowed > 0 {
            add(format!(
                "missing: {} child processes, not followed as there were too many at a time",
                self.summary.unfollowed
            ));
        }
        for report in self.reports() {
            for program in &report.programs {
                let name = &program.name;
                if program.led_to > 0 {
                    add(format!("{name}: {} tail calls led to it", program.led_to));
                }
                match &program.verdict {
                    Verdict::OrderUnknown(_) | Verdict::Incomplete(_) => {
                        add(format!(
                            "{name}: {}",
                            said_of_program(program, report.engine)
                        ));
                    }
                    _ if program.raced > 0 => add(format!(
                        "{name}: in {} a map value differed from the replay's own: the \
                         recorded value was used",
                        counted(program.raced, "firing")
                    )),
                    _ => {}
                }
            }
            for gap in report.gaps() {
                let Gap { kind, name, why } = gap;
                add(format!("not compared: {kind} {name}: {why}"));
            }
            let is_clear = |word| matches!(word, Word::Equal | Word::NothingCompared);
            let maps = report.maps.iter();
            for map in maps.filter(|map| !is_clear(map.verdict.word())) {
                add(format!("map {}: {}", map.name, said_of_map(map)));
            }
            let outputs = report.outputs.iter();
            for output in outputs.filter(|output| !is_clear(output.verdict.word())) {
                add(format!(
                    "output {}: {}",
                    output.name,
                    said_of_output(output)
                ));
            }
            for missing in &report.missing {
                add(format!("missing: {missing}"));
            }
        }
        notes
    }
}

fn with_kind(row: &mut Json, kind: &str) {
    if let Json::Object(row) = row {
        row.shift_insert(0, "kind".to_owned(), kind.into());
    }
}

/// A program's verdict on an engine, or `not run` if another one ran it: that one has its own
/// column.
fn cell(program: &ProgramReport, asked: EngineKind) -> String {
    match (program.word_on(asked), program.stood_in(asked)) {
        (Word::NothingCompared, Some(_)) => "not run".to_owned(),
        (word, Some(engine)) => format!("{word} (on {engine})"),
        (word, None) => word_of_part(word),
    }
}

/// A part's word.
fn word_of_part(word: Word) -> String {
    match word {
        Word::NothingCompared => "not compared".to_owned(),
        word => word.to_string(),
    }
}

impl fmt::Display for CompareReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordReport {
            events,
            seconds,
            events_per_second,
            lost,
            ..
        } = &self.recorded;
        writeln!(
            f,
            "{}: {events} events in {seconds:.3} s ({events_per_second:.0}/s), {lost} lost",
            self.object
        )?;
        self.verdicts().fmt(f)?;
        for note in self.notes() {
            writeln!(f, "{note}")?;
        }
        for (text, engines) in self.differences_by_engine() {
            write!(f, "\non {}: {text}", engines.join(", "))?;
        }
        let times = self.replays.iter().filter_map(|(report, elapsed)| {
            let ns = self.view(report, *elapsed).ns_per_firing()?;
            let (engine, seconds) = (report.engine, elapsed.as_secs_f64());
            Some(format!("{engine} in {seconds:.3} s ({ns:.0} ns a firing)"))
        });
        let times: Vec<_> = times.collect();
        if !times.is_empty() {
            writeln!(f, "replayed, reading included: {}", times.join(", "))?;
        }
        if !self.summary.all {
            let except = self.summary.except();
            writeln!(
                f,
                "programs ran for the command and its children only{except}"
            )?;
        }
        // The notes above name the parts that were not compared.
        match self.word() {
            word @ Word::NothingCompared if self.firings() == 0 => {
                writeln!(f, "verdict: {word}: no event came")
            }
            word => writeln!(f, "verdict: {word}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    use crate::compare::live::{LeftOut, ProgramSummary};
    use crate::compare::recording::How;
    use crate::compare::replay::{MapReport, MapVerdict, NotCompared};

    fn report(engine: EngineKind, ran_on: EngineKind, verdict: Verdict) -> (Report, Duration) {
        let report = Report {
            engine,
            programs: vec![ProgramReport {
                name: "count".to_owned(),
                engine: Some(ran_on),
                fallback: (ran_on != engine).then_some(crate::vm::Fallback::Rejected),
                engine_why: (ran_on != engine).then(|| "loops are too long".to_owned()),
                firings: 1000,
                led_to: 3,
                raced: 0,
                missed: 0,
                verdict,
            }],
            maps: vec![MapReport {
                name: "hist".to_owned(),
                verdict: MapVerdict::Equal(3),
            }],
            outputs: Vec::new(),
            findings: Vec::new(),
            missing: Vec::new(),
        };
        (report, Duration::from_micros(50))
    }

    fn compared(replays: Vec<(Report, Duration)>) -> CompareReport {
        let summary = Summary {
            programs: vec![ProgramSummary {
                number: 0,
                name: "count".to_owned(),
                section: "tp/a/b".to_owned(),
                attach: "tp/a/b".to_owned(),
                how: How::Instrumented,
                firings: 1000,
                anywhere: false,
                missed: 0,
            }],
            left_out: vec![LeftOut {
                program: "probe".to_owned(),
                why: "no kprobes".to_owned(),
                unavailable: true,
            }],
            ..Summary::default()
        };
        CompareReport::new("x.bpf.o", "memory", summary, replays)
    }

    #[test]
    fn each_engine_has_its_column() {
        use EngineKind::{Checked, Jit};
        let report = compared(vec![
            report(Checked, Checked, equal()),
            report(Jit, Checked, equal()),
        ]);
        let text = report.to_string();
        for line in [
            "  program   firings  checked  jit",
            "  count        1000  equal    not run",
            "  map hist           equal    equal",
            "not compared: program count: jit did not run it, checked did: loops are too long",
            "jit in 0.000 s (50 ns a firing)",
            "verdict: partly compared",
        ] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
        assert!(!report.is_fine());
        let json = report.json();
        let kinds: Vec<_> = json
            .iter()
            .map(|row| row["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["recorded", "replay", "replay", "verdict"]);
        assert_eq!(json[3]["verdict"], "partly_compared");
        assert_eq!(json[2]["verdict"], "nothing_compared");
        assert_eq!(json[1]["not_compared"], serde_json::json!([]));
        assert_eq!(json[2]["not_compared"][0]["program"], "count");
    }

    #[test]
    fn nothing_is_not_fine() {
        let never = Verdict::NotCompared(NotCompared::NeverRan);
        let (mut nothing, time) = report(EngineKind::Jit, EngineKind::Jit, never);
        nothing.programs[0].firings = 0;
        let report = compared(vec![(nothing, time)]);
        assert!(!report.is_fine());
        assert!(
            report
                .to_string()
                .contains("verdict: nothing compared: no event came")
        );
    }

    fn equal() -> Verdict {
        Verdict::Equal(NonZeroU64::MIN)
    }

    /// The whole is equal only if each engine is, and all children were followed.
    #[test]
    fn engines_are_equal_together() {
        use EngineKind::{Checked, Jit};
        let both = || vec![report(Checked, Checked, equal()), report(Jit, Jit, equal())];
        let mut report = compared(both());
        assert_eq!(report.word(), Word::Equal);
        report.summary.unfollowed = 2;
        assert_eq!(report.word(), Word::Incomplete);
        let text = report.to_string();
        assert!(text.contains("missing: 2 child processes"), "{text}");
        assert_eq!(compared(Vec::new()).word(), Word::NothingCompared);
        let mut replays = both();
        replays[1].0.maps[0].verdict = MapVerdict::NotCompared("a reason".to_owned());
        let text = compared(replays).to_string();
        for line in [
            "  map hist           equal    not compared",
            "not compared: map hist: a reason",
            "verdict: partly compared",
        ] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
    }
}
