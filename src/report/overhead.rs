//! The cost of watching a tracepoint: `bpflab bench tracepoint`.

use std::fmt;

use serde::Serialize;

use super::table::Table;
use crate::util::median;

/// One measurement of a way to watch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WatchTurn {
    /// Nanoseconds per write.
    pub ns: f64,
    /// Recorded share of the events; none if nothing records.
    pub recorded: Option<f64>,
    /// Lost share of the events.
    pub lost: f64,
}

/// A way to watch, or an engine of bpflab. Its fields are keys of
/// `bpflab bench tracepoint --json`.
#[derive(Debug, Clone, Serialize)]
pub struct OverheadRow {
    /// `overhead`.
    kind: &'static str,
    /// Its key.
    pub what: &'static str,
    /// Its label in the table.
    pub label: String,
    /// Median nanoseconds per write.
    pub ns_per_write: Option<f64>,
    /// Nanoseconds per event: the time of a write minus that with nothing attached; on an engine
    /// of bpflab, the time of a run.
    pub ns_per_event: Option<f64>,
    /// The median deviation of the turns from it, in nanoseconds.
    pub spread: Option<f64>,
    /// As a multiple of the empty program's time.
    pub ratio: Option<f64>,
    /// Share of the events that were recorded; none if nothing records.
    pub recorded: Option<f64>,
    /// Share of the events that were lost.
    pub lost: Option<f64>,
    /// Why there is no time.
    pub unavailable: Option<String>,
    /// Nanoseconds in each turn.
    #[serde(skip)]
    turns: Vec<f64>,
    #[serde(skip)]
    is_engine: bool,
}

/// The key of the base line.
const NOTHING: &str = "nothing";
/// The key of the row that others are compared with.
const EMPTY: &str = "empty";

/// All ways to watch, the base line first.
#[derive(Debug, Clone)]
pub struct Overhead {
    heading: String,
    rows: Vec<OverheadRow>,
}

impl OverheadRow {
    /// A way to watch, without times.
    #[must_use]
    pub fn new(what: &'static str, label: &str) -> Self {
        Self {
            kind: "overhead",
            what,
            label: label.to_owned(),
            ns_per_write: None,
            ns_per_event: None,
            spread: None,
            ratio: None,
            recorded: None,
            lost: None,
            unavailable: None,
            turns: Vec::new(),
            is_engine: false,
        }
    }

    /// An engine of bpflab that runs the program.
    #[must_use]
    pub fn of_engine(engine: &'static str, program: &str) -> Self {
        Self {
            is_engine: true,
            ..Self::new(engine, &format!("{program} in bpflab, {engine}"))
        }
    }

    /// The row with its turns.
    #[must_use]
    pub fn timed(self, turns: Vec<WatchTurn>) -> Self {
        let shares = |share: fn(&WatchTurn) -> Option<f64>| -> Option<f64> {
            let shares: Vec<_> = turns.iter().filter_map(share).collect();
            (!shares.is_empty()).then(|| rounded(median(shares), 1000.0))
        };
        Self {
            recorded: shares(|turn| turn.recorded),
            lost: shares(|turn| turn.recorded.map(|_| turn.lost)),
            turns: turns.iter().map(|turn| turn.ns).collect(),
            ..self
        }
    }

    /// The row with nanoseconds per run in each turn.
    #[must_use]
    pub fn on_engine(self, turns: Vec<f64>) -> Self {
        Self { turns, ..self }
    }

    /// The row of a way that is not available.
    #[must_use]
    pub fn absent(self, why: &str) -> Self {
        Self {
            unavailable: Some(why.to_owned()),
            ..self
        }
    }

    /// Nanoseconds per event in each turn; `base` has those of a write with nothing attached.
    fn events(&self, base: &[f64]) -> Vec<f64> {
        match self.is_engine {
            true => self.turns.clone(),
            false => self
                .turns
                .iter()
                .zip(base)
                .map(|(ns, base)| ns - base)
                .collect(),
        }
    }
}

impl Overhead {
    /// No rows yet, for bursts of writes of this size.
    #[must_use]
    pub fn new(target: &str, size: u16, calls: u32, bursts: usize) -> Self {
        Self {
            heading: format!(
                "syscalls/sys_enter_write: write(2) of {size} bytes to {target}, {bursts} bursts of \
                 {calls} a turn"
            ),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn add(&mut self, row: OverheadRow) {
        self.rows.push(row);
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[OverheadRow] {
        &self.rows
    }

    fn events_of(&self, what: &str, base: &[f64]) -> Vec<f64> {
        let row = self.rows.iter().find(|row| row.what == what);
        row.map(|row| row.events(base)).unwrap_or_default()
    }

    /// Computes the time per event and the ratios: medians of values measured in the same round, so
    /// that changes in the machine's speed cancel out.
    pub fn compare(&mut self) {
        let base = self.rows.iter().find(|row| row.what == NOTHING);
        let base = base.map(|row| row.turns.clone()).unwrap_or_default();
        let empty = self.events_of(EMPTY, &base);
        for row in self.rows.iter_mut().filter(|row| !row.turns.is_empty()) {
            let events = row.events(&base);
            row.spread = Some(rounded(spread(&events), 10.0));
            if !row.is_engine {
                row.ns_per_write = Some(rounded(median(row.turns.clone()), 10.0));
            }
            if row.what == NOTHING {
                row.spread = Some(rounded(spread(&row.turns), 10.0));
                continue;
            }
            let ratios = events.iter().zip(&empty).map(|(own, empty)| own / empty);
            let ratio = median(ratios.collect());
            row.ratio = ratio.is_finite().then(|| rounded(ratio, 100.0));
            row.ns_per_event = Some(rounded(median(events), 10.0));
        }
    }
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

/// The median absolute deviation: half of the turns are at most this far from the median.
fn spread(numbers: &[f64]) -> f64 {
    let middle = median(numbers.to_vec());
    let away = numbers.iter().map(|number| (number - middle).abs());
    let spread = median(away.collect());
    if spread.is_finite() { spread } else { 0.0 }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading)?;
        let mut table = Table::default().numbers(&[1, 2, 3, 4, 5]);
        table.row([
            "attached",
            "ns a write",
            "ns an event",
            "±",
            "to empty",
            "recorded",
        ]);
        let or_none = |number: Option<f64>, digits: usize| {
            number.map_or_else(|| "–".to_owned(), |number| format!("{number:.digits$}"))
        };
        for row in &self.rows {
            if let Some(why) = &row.unavailable {
                table.line(format!("  {}: not available: {why}", row.label));
                continue;
            }
            let share = |share: f64| format!("{:.1} %", 100.0 * share);
            let recorded = match (row.recorded, row.lost) {
                (Some(recorded), Some(lost)) if lost > 0.0 => {
                    format!("{}, {} lost", share(recorded), share(lost))
                }
                (Some(recorded), _) => share(recorded),
                (None, _) => "–".to_owned(),
            };
            table.row([
                row.label.clone(),
                or_none(row.ns_per_write, 1),
                or_none(row.ns_per_event, 1),
                or_none(row.spread, 1),
                or_none(row.ratio, 2),
                recorded,
            ]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(ns: [f64; 3], recorded: Option<f64>) -> Vec<WatchTurn> {
        let turn = |ns| WatchTurn {
            ns,
            recorded,
            lost: 0.0,
        };
        ns.map(turn).to_vec()
    }

    #[test]
    fn events_are_compared_within_their_rounds() {
        let mut overhead = Overhead::new("/dev/null", 1, 10, 5);
        let nothing = OverheadRow::new("nothing", "nothing attached");
        overhead.add(nothing.timed(turns([100.0, 200.0, 100.0], None)));
        let empty = OverheadRow::new("empty", "empty program");
        overhead.add(empty.timed(turns([150.0, 300.0, 150.0], None)));
        let perf = OverheadRow::new("perf", "perf");
        overhead.add(perf.timed(turns([300.0, 600.0, 300.0], Some(0.5))));
        overhead.add(OverheadRow::new("ftrace", "ftrace").absent("none here"));
        overhead.add(OverheadRow::of_engine("jit", "p").on_engine(vec![25.0, 50.0, 25.0]));
        overhead.compare();
        let of = |index: usize| {
            let row = &overhead.rows()[index];
            (row.ns_per_write, row.ns_per_event, row.ratio)
        };
        assert_eq!(of(0), (Some(100.0), None, None));
        assert_eq!(of(1), (Some(150.0), Some(50.0), Some(1.0)));
        assert_eq!(of(2), (Some(300.0), Some(200.0), Some(4.0)));
        assert_eq!(of(3), (None, None, None));
        assert_eq!(of(4), (None, Some(25.0), Some(0.5)));
        let text = overhead.to_string();
        assert!(text.contains("ftrace: not available: none here"), "{text}");
        assert!(
            text.contains("50.0 %") && text.contains("p in bpflab, jit"),
            "{text}"
        );
        let json = serde_json::to_value(&overhead.rows()[2]).unwrap();
        assert_eq!(json["recorded"], 0.5);
    }

    #[test]
    fn nothing_measured_is_nothing_shown() {
        let mut overhead = Overhead::new("/dev/null", 1, 10, 5);
        overhead.add(OverheadRow::new("nothing", "nothing attached").timed(Vec::new()));
        overhead.compare();
        assert_eq!(overhead.rows()[0].ns_per_write, None);
    }
}
