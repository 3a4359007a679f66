//! The result by file and line of the C source.

use std::collections::BTreeMap;

use serde::Serialize;

use super::read::Measured;
use super::unit::Unit;

/// What is known about a line, a function or a side of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was executed.
    Covered,
    /// It was not executed, and could have been.
    Missed,
    /// The verifier proved that no run executes it.
    Dead,
    /// Its program was never loaded while coverage was measured.
    NotMeasured,
}

/// What several programs, or several loads of one, contribute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was executed.
    pub count: u64,
    is_measured: bool,
    is_reachable: bool,
}

impl Tally {
    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        match self {
            Self { count: 1.., .. } => State::Covered,
            Self {
                is_measured: false, ..
            } => State::NotMeasured,
            Self {
                is_reachable: true, ..
            } => State::Missed,
            Self { .. } => State::Dead,
        }
    }

    /// Whether it counts for percentages: it is covered or missed.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        matches!(self.state(), State::Covered | State::Missed)
    }

    /// Adds what another program contributes.
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.is_measured |= other.is_measured;
        self.is_reachable |= other.is_reachable;
    }

    /// Adds another instruction of the same line in the same program: the line was executed as
    /// often as the one executed most.
    fn widen(&mut self, other: Self) {
        let count = self.count.max(other.count);
        self.add(other);
        self.count = count;
    }
}

/// The source files, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The files.
    pub files: BTreeMap<String, SourceFile>,
}

/// A source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// The lines with instructions, by number.
    pub lines: BTreeMap<u32, Line>,
    /// The functions, in the order of their lines.
    pub functions: BTreeMap<Function, Tally>,
}

/// A function that was compiled on its own: not those that the compiler inlined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// The line of its first instruction.
    pub line: u32,
    /// Its name.
    pub name: String,
}

/// A line with instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The text; empty if the object does not have it.
    pub text: String,
    /// How often it was executed.
    pub tally: Tally,
    /// Its branches: the conditional jumps.
    pub branches: BTreeMap<Branch, [Tally; 2]>,
}

/// A conditional jump of a line, by which the same one of several programs is recognised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Branch {
    /// Its column, from 1; 0 if unknown.
    pub column: u32,
    /// Which one of a program it is, of those at the same place with the same condition.
    pub nth: u32,
    /// Its condition's operator. Compilations may reverse a condition.
    pub op: String,
}

/// The sides of a branch, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The jump is taken.
    Taken,
    /// Execution continues after the jump.
    NotTaken,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Taken, Self::NotTaken];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::NotTaken => "not taken",
        }
    }
}

impl Source {
    /// Adds up what these programs contribute to each line.
    #[must_use]
    pub fn of(measured: &[Measured]) -> Self {
        let mut source = Self::default();
        for one in measured {
            source.add(&one.unit, Some((&one.executed, &one.taken)));
        }
        source
    }

    /// Adds a program that was not measured.
    pub fn add_unmeasured(&mut self, unit: &Unit) {
        self.add(unit, None);
    }

    /// Adds a program that was not loaded, of an object of which another one was measured.
    pub fn add_missed(&mut self, unit: &Unit) {
        self.add(unit, Some((&[], &[])));
    }

    /// Adds a program with its counts by slot; slots without one count 0.
    fn add(&mut self, unit: &Unit, counts: Option<(&[u64], &[u64])>) {
        let (all_executed, all_taken) = counts.unwrap_or_default();
        let count = |of: &[u64], at: u32| of.get(at as usize).copied().unwrap_or(0);
        let executed = |at| count(all_executed, at);
        let taken = |at| count(all_taken, at);
        let tally = |at: u32, count: u64| Tally {
            count,
            is_measured: counts.is_some(),
            is_reachable: !unit.is_dead(at),
        };
        let mut lines: BTreeMap<(&str, u32), (&str, Tally)> = BTreeMap::new();
        let mut second = unit.second.iter().peekable();
        for at in 0..unit.slots {
            if second.next_if_eq(&&at).is_some() {
                continue;
            }
            if let Some(line) = unit.line_at(at) {
                let place = (file_of(unit, line.file), line.line);
                let entry = lines.entry(place).or_insert(("", Tally::default()));
                entry.1.widen(tally(at, executed(at)));
                if entry.0.is_empty() {
                    entry.0 = &line.text;
                }
            }
        }
        for ((file, number), (text, tally)) in lines {
            let line = self.line(file, number);
            line.tally.add(tally);
            if line.text.is_empty() {
                text.clone_into(&mut line.text);
            }
        }
        let mut nth: BTreeMap<(&str, u32, u32, &str), u32> = BTreeMap::new();
        for jump in &unit.jumps {
            let Some(line) = unit.line_at(jump.at) else {
                continue;
            };
            let file = file_of(unit, line.file);
            let before = nth
                .entry((file, line.line, line.column, &jump.op))
                .or_insert(0);
            let branch = Branch {
                column: line.column,
                nth: *before,
                op: jump.op.clone(),
            };
            *before += 1;
            let times = taken(jump.at);
            let mut sides = [
                tally(jump.to, times),
                tally(jump.at + 1, executed(jump.at).saturating_sub(times)),
            ];
            if unit.is_dead(jump.at) {
                sides = [tally(jump.at, 0); 2];
            }
            let sums = self.line(file, line.line).branches.entry(branch);
            for (sum, side) in sums.or_default().iter_mut().zip(sides) {
                sum.add(side);
            }
        }
        for (start, name) in &unit.functions {
            let Some(line) = unit.line_at(*start) else {
                continue;
            };
            let function = Function {
                line: line.line,
                name: name.clone(),
            };
            let file = file_of(unit, line.file).to_owned();
            let functions = &mut self.files.entry(file).or_default().functions;
            let sum = functions.entry(function).or_default();
            sum.add(tally(*start, executed(*start)));
        }
    }

    fn line(&mut self, file: &str, line: u32) -> &mut Line {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), SourceFile::default());
        }
        let file = self.files.entry(file.to_owned()).or_default();
        file.lines.entry(line).or_default()
    }
}

/// The name of a file, without the `./` that a compiler may be given.
fn file_of(unit: &Unit, file: u32) -> &str {
    let name = unit.files.get(file as usize).map_or("", String::as_str);
    name.strip_prefix("./").unwrap_or(name)
}
