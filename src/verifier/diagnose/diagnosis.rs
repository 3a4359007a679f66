//! The diagnosis: explains a reject from its message, the program and the path.

use super::advice::{Advice, Category, Flaw, When, advice};
use super::bounds::insufficient;
use super::origin::{Path, Step};
use super::sum::sum;
use super::template::{Captures, fit};
use super::value::describe;
use crate::isa::{CallTarget, Code, Insn, Reg};
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::{Errno, Pc};
use crate::verifier::Reject;
use crate::verifier::structure::required;

/// The maximum number of branches shown.
const BRANCHES: usize = 4;

/// Why a program was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The category.
    pub category: Category,
    /// What is wrong, in a few words.
    pub problem: String,
    /// The reason at this instruction.
    pub reason: String,
    /// What the verifier expects, if known.
    pub expected: Option<String>,
    /// The registers in question: `R0 held a pointer to a map's value of 'hist', or NULL:
    /// map_value_or_null(…)`.
    pub held: Vec<String>,
    /// What to change.
    pub help: Option<String>,
    /// The fault's position first, then the positions that led to it, in path order.
    pub labels: Vec<Label>,
    /// The instruction whose line is to be changed, if it is not the fault's.
    pub blamed: Option<Pc>,
}

/// An instruction with an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The instruction.
    pub pc: Pc,
    /// What happens there.
    pub text: String,
}

/// Explains a reject of a program.
#[must_use]
pub fn diagnose(program: &Program, reject: &Reject) -> Diagnosis {
    diagnose_as(program, program.prog_type.name(), reject)
}

/// Explains a reject of a program, with these words for the program's type.
pub(super) fn diagnose_as(program: &Program, prog_type: &str, reject: &Reject) -> Diagnosis {
    if reject.errno() == Errno::EPERM && reject.text().is_empty() {
        return not_permitted(program);
    }
    let lines = reject.text().lines();
    let noted = reject.trail().map(|trail| trail.path.as_slice());
    let path = reject.pc().map(|pc| Path::new(program, noted, pc));
    let holds = |when: &When, captures: &Captures| match when {
        When::Always => true,
        When::Poison(ids) => {
            let id = captures.get("id").and_then(|id| id.parse().ok());
            id.is_some_and(|id: u32| ids.contains(&id))
        }
        when => cause(when, reject, path.as_ref(), captures).is_some(),
    };
    let found = advice(lines, holds);
    let reg = register(
        found.as_ref().map(|(_, captures)| captures),
        reject,
        path.as_ref(),
    );
    // Faults of the whole program, or of its permissions, are not about a value.
    let about_values = found
        .as_ref()
        .is_none_or(|(row, _)| !matches!(row.category, Category::Structure | Category::Policy));
    let reg = reg.filter(|_| about_values);
    Builder {
        program,
        prog_type,
        reject,
        path: path.as_ref(),
        reg,
    }
    .build(found)
}

/// Explains an error of a loader that may not load the program or create its maps: the kernel
/// prints nothing about it.
fn not_permitted(program: &Program) -> Diagnosis {
    let required = required(program);
    Diagnosis {
        category: Category::Policy,
        problem: "loader without the right to load the program".to_owned(),
        reason:
            "The loader lacks a capability for the type of the program, or for one of its maps."
                .to_owned(),
        expected: Some(format!("a loader with {required}")),
        held: Vec::new(),
        help: Some("load it as root, or give the loader these capabilities (setcap)".to_owned()),
        labels: vec![Label {
            pc: Pc(0),
            text: "not loaded".to_owned(),
        }],
        blamed: None,
    }
}

/// The register in question: the one named by the line, or the base of the access.
fn register(captures: Option<&Captures>, reject: &Reject, path: Option<&Path<'_>>) -> Option<Reg> {
    let named = captures.and_then(named);
    let named = named.or_else(|| {
        let in_line = |line: &'_ str| {
            let (_, rest) = line.split_once('R')?;
            let digits = rest.find(|c: char| !c.is_ascii_digit());
            let number = rest.get(..digits.unwrap_or(rest.len()))?;
            Reg::from_number(number.parse().ok()?)
        };
        reject.text().lines().rev().find_map(in_line)
    });
    named.or_else(|| {
        let insn = path?.insn(reject.pc()?)?;
        match insn {
            // For pointer arithmetic, the scalar operand is the one in question.
            Insn::Alu { dst, src, .. } => {
                let is_number = |reg| {
                    let state = reject.trail().and_then(|trail| trail.register(reg));
                    state.is_some_and(|state| state.starts_with("scalar"))
                };
                src.reg().filter(|_| !is_number(dst)).or(Some(dst))
            }
            insn => insn.memory().map(|(base, ..)| base),
        }
    })
}

fn named(captures: &Captures) -> Option<Reg> {
    Reg::from_number(captures.get("reg")?.parse().ok()?)
}

/// Whether a line of C begins a loop.
fn begins_loop(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '}');
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words
        .next()
        .is_some_and(|word| ["for", "while", "do"].contains(&word))
}

/// The instruction that makes a row's condition true.
fn cause(when: &When, reject: &Reject, path: Option<&Path<'_>>, captures: &Captures) -> Option<Pc> {
    let path = path?;
    match when {
        When::Always | When::Poison(_) => None,
        When::Released => Some(path.invalidated(named(captures)?)?.0),
        When::LostByCall => {
            let (pc, step) = path.history(named(captures)?).made()?;
            (step == Step::Lost).then_some(pc)
        }
        When::Inside(name) => path.open_section(name),
        When::CalledBack => path.calls_back(),
        When::Compared(flaw) => {
            let found = insufficient(reject, path, named(captures)?)?;
            (found.flaw == *flaw).then_some(found.blamed)
        }
        When::NarrowLoad => path.narrow_load(named(captures)?),
        When::Unwritten => path.unwritten(named(captures)?),
        When::CallsFunction => path.called_function(reject.pc()?),
        When::AtCall => {
            let pc = reject
                .pc()
                .filter(|pc| path.called_function(*pc).is_none())?;
            path.callee(pc).map(|_| pc)
        }
        When::Calls(name) => {
            let pc = reject.pc()?;
            path.callee(pc).filter(|callee| callee == name).map(|_| pc)
        }
        When::MadeBy(name) => {
            let (pc, _) = path.history(named(captures)?).made()?;
            path.callee(pc).filter(|callee| callee == name).map(|_| pc)
        }
    }
}

struct Builder<'a> {
    program: &'a Program,
    prog_type: &'a str,
    reject: &'a Reject,
    path: Option<&'a Path<'a>>,
    reg: Option<Reg>,
}

impl Builder<'_> {
    fn build(&self, found: Option<(&'static Advice, Captures)>) -> Diagnosis {
        let mut labels = self.value_labels();
        let mut diagnosis = match found {
            None => self.unknown(),
            Some((row, mut captures)) => {
                self.add_captures(row, &mut captures);
                // They say more than the value's history about the same instruction.
                let named = self.named_labels(row, &captures);
                labels.retain(|label| named.iter().all(|other| other.pc != label.pc));
                labels.extend(named);
                Diagnosis {
                    category: row.category,
                    problem: row.problem.to_owned(),
                    reason: captures.fill(row.reason),
                    expected: Some(captures.fill(row.expected)),
                    held: Vec::new(),
                    help: Some(captures.fill(row.help)),
                    labels: self.fault(captures.fill(row.here)),
                    blamed: self.blamed(row, &captures),
                }
            }
        };
        diagnosis.held = self.held();
        let trail = self.reject.trail();
        labels.extend(trail.and_then(|trail| trail.contradiction).map(|pc| {
            Label {
                pc,
                text: "no run gets past here on this path; the verifier explores it all the same"
                    .to_owned(),
            }
        }));
        labels.sort_by_key(|label| self.path.map(|path| path.index_of(label.pc)));
        for label in labels {
            let mut before = diagnosis.labels.iter();
            let said = |other: &Label| {
                other.text == label.text && self.line(other.pc) == self.line(label.pc)
            };
            if !before.any(|other| other.pc == label.pc || said(other)) {
                diagnosis.labels.push(label);
            }
        }
        diagnosis
    }

    /// The diagnosis of a line for which there is no advice.
    fn unknown(&self) -> Diagnosis {
        let diagnosis = Diagnosis {
            category: Category::Other,
            problem: self.reject.message().to_owned(),
            reason: "The verifier can't show that this instruction is safe.".to_owned(),
            expected: None,
            held: Vec::new(),
            help: None,
            labels: self.fault("rejected here".to_owned()),
            blamed: None,
        };
        match self.absent_structure() {
            None => diagnosis,
            Some(structure) => Diagnosis {
                category: Category::Policy,
                problem: "structure that the kernel does not have".to_owned(),
                reason: format!(
                    "The kernel's BTF has no struct {structure}. The kernel refuses the program \
                     without a message."
                ),
                help: Some(
                    "load it into a kernel that is built with this structure; --btf FILE names \
                     such a kernel"
                        .to_owned(),
                ),
                labels: self.fault(format!("implements struct {structure}")),
                ..diagnosis
            },
        }
    }

    /// The structure of operations that a struct_ops program implements, if the kernel lacks it.
    fn absent_structure(&self) -> Option<&str> {
        let program = self.program;
        let silent = self.reject.text().is_empty() && program.attach_btf_id.is_none();
        let target = program.attach_target.as_deref().filter(|_| silent)?;
        let (structure, _) = target.split_once('.')?;
        (program.prog_type == ProgType::StructOps).then_some(structure)
    }

    /// The instruction whose line is to be changed, where that is not the fault's: what a later
    /// instruction relies on, or a reference that is not released.
    fn blamed(&self, row: &Advice, captures: &Captures) -> Option<Pc> {
        match row.when {
            When::Compared(_)
            | When::NarrowLoad
            | When::Unwritten
            | When::CallsFunction
            | When::MadeBy(_) => cause(&row.when, self.reject, self.path, captures),
            When::Always if row.category == Category::Resource => {
                captures.get("insn")?.parse().ok().map(Pc)
            }
            _ => None,
        }
    }

    fn fault(&self, text: String) -> Vec<Label> {
        let pc = self.back_edge().or_else(|| self.given_up_in());
        let pc = pc.or_else(|| self.reject.pc());
        let pc = pc.or_else(|| self.named_insn());
        let pc = pc.or_else(|| self.first_call()).unwrap_or(Pc(0));
        vec![Label { pc, text }]
    }

    /// The back edge of an infinite loop.
    fn back_edge(&self) -> Option<Pc> {
        let first = self.reject.text().lines().next()?;
        fit("infinite loop detected at insn {insn}", first)?;
        let last = self.path?.before_fault()?;
        Some(self.head(self.reject.pc().unwrap_or(last), last))
    }

    /// The loop in which the verifier gave up.
    fn given_up_in(&self) -> Option<Pc> {
        const LINES: [&str; 2] = [
            "BPF program is too large. Processed {count} insn",
            "The sequence of {count} jumps is too complex.",
        ];
        let line = self.reject.message();
        LINES.into_iter().find_map(|it| fit(it, line))?;
        let (first, last) = self.path?.longest_loop()?;
        Some(self.head(first, last))
    }

    /// The position of a loop's head in C, given its first instruction and its back edge:
    /// the line with `for`, `while` or `do`, otherwise the smaller line. (Code that clang
    /// moves into a loop keeps its original line.)
    fn head(&self, first: Pc, last: Pc) -> Pc {
        let rank = |pc: &Pc| {
            let source = self.program.source(*pc);
            source.map_or((true, u32::MAX), |it| (!begins_loop(it.text), it.line))
        };
        [last, first].into_iter().min_by_key(rank).unwrap_or(last)
    }

    /// The first call of a subprogram, for faults of all functions together.
    fn first_call(&self) -> Option<Pc> {
        let code = Code::new(&self.program.insns);
        let mut calls = code
            .iter()
            .filter(|(_, insn)| matches!(insn, Ok(Insn::Call(CallTarget::Subprogram { .. }))));
        calls.next().map(|(pc, _)| pc)
    }

    /// The C line of an instruction, if it has one.
    fn line(&self, pc: Pc) -> Option<(&str, u32)> {
        let line = self.program.source(pc)?;
        Some((line.file, line.line))
    }

    /// The instruction named by a reject of the whole program.
    fn named_insn(&self) -> Option<Pc> {
        let line = self.reject.message();
        let at = [
            "unreachable insn {insn}",
            "jump out of range from insn {insn} to {to}",
        ];
        let mut held = at.into_iter().filter_map(|template| fit(template, line));
        let number = held.find_map(|captures| captures.get("insn")?.parse().ok());
        number.map(Pc).or_else(|| {
            // A program that runs past its end does so at its last instruction.
            let last = self.program.insns.len().checked_sub(1)?;
            (line == "last insn is not an exit or jmp").then(|| Pc::from_index(last))
        })
    }

    /// Adds the values that come from the program, not from the line.
    fn add_captures(&self, row: &Advice, captures: &mut Captures) {
        let callee = |pc: Pc| self.path.and_then(|path| path.callee(pc));
        let called = self.reject.pc().and_then(callee);
        captures.add("helper", called.unwrap_or_else(|| "the helper".to_owned()));
        captures.add("prog_type", self.prog_type);
        let kind = captures.get("type").map(describe);
        captures.add("kind", kind.unwrap_or_else(|| "a value".to_owned()));
        let access = self.reject.pc().and_then(|pc| self.program.core_access(pc));
        let access = access.map_or("a type or field", |access| access.path.as_str());
        captures.add("access", access);
        let made = self.history().and_then(|(pc, _)| callee(pc));
        captures.add(
            "made",
            made.map_or("its origin".to_owned(), |made| made + "()"),
        );
        let cause = cause(&row.when, self.reject, self.path, captures)
            .and_then(callee)
            .map(|cause| cause + "()");
        captures.add("cause", cause.unwrap_or_else(|| "a call".to_owned()));
        let demand = self.reject.violated().map(|demand| demand.to_string());
        captures.add(
            "demand",
            demand.unwrap_or_else(|| "another argument".to_owned()),
        );
        captures.add("sum", sum(self.reject, self.path, self.reg));
        let place = match self.given_up_in() {
            Some(_) => "the verifier gives up in this loop",
            None => "the verifier gives up here",
        };
        captures.add("place", place);
        let covered = self.path.zip(self.reg);
        let covered = covered
            .and_then(|(path, reg)| insufficient(self.reject, path, reg))
            .map(|found| found.covered());
        captures.add("covered", covered.unwrap_or_else(|| "too few".to_owned()));
    }

    /// The instruction that made the value in question.
    fn history(&self) -> Option<(Pc, Step)> {
        self.path?.history(self.reg?).made()
    }

    /// Labels for the origin of the value and the changes to it.
    fn value_labels(&self) -> Vec<Label> {
        let (Some(path), Some(reg)) = (self.path, self.reg) else {
            return Vec::new();
        };
        let history = path.history(reg);
        // Values derived from the frame pointer have no origin worth a label.
        if matches!(history.0.last(), Some((_, Step::Copied(Reg::R10)))) {
            return Vec::new();
        }
        let fault = self.reject.pc().and_then(|pc| self.line(pc));
        let mut held = reg;
        let mut labels = Vec::new();
        for (pc, step) in history.0 {
            let text = match step {
                // A change in the C line of the fault itself gets no label.
                Step::Changed if fault.is_some() && self.line(pc) == fault => continue,
                Step::Made => format!("R{} gets its value here", held.number()),
                Step::Changed => format!("R{} is changed here", held.number()),
                Step::Spilled | Step::Filled => continue,
                Step::Copied(from) => {
                    held = from;
                    continue;
                }
                Step::Returned => {
                    let callee = path.callee(pc).unwrap_or_else(|| "the call".to_owned());
                    format!("R{} is what {callee}() returned", reg.number())
                }
                Step::Lost => {
                    let callee = path.callee(pc).unwrap_or_else(|| "the call".to_owned());
                    format!("R{} is clobbered by this call of {callee}()", held.number())
                }
            };
            labels.push(Label { pc, text });
        }
        labels
    }

    /// Labels for positions that the line names, or that the row's condition found.
    fn named_labels(&self, row: &Advice, captures: &Captures) -> Vec<Label> {
        let mut labels = Vec::new();
        let callee = |pc: Pc| {
            let callee = self.path.and_then(|path| path.callee(pc));
            callee.unwrap_or_else(|| "the call".to_owned())
        };
        let cause = cause(&row.when, self.reject, self.path, captures);
        let said = cause.and_then(|pc| match row.when {
            When::Released => Some(format!("{}() invalidates the pointer", callee(pc))),
            When::CalledBack => Some(format!("{}() calls the function back", callee(pc))),
            When::Compared(flaw) => Some(match flaw {
                Flaw::Backwards => "shows that the pointer is past the end".to_owned(),
                Flaw::StartOnly => "does not include the size of the access".to_owned(),
                Flaw::TooFar => "the sum may be too far into the packet".to_owned(),
                Flaw::Short => format!("covers {} bytes", captures.get("covered")?),
            }),
            When::NarrowLoad => Some("reads a number, not an address".to_owned()),
            When::Unwritten => Some("reads a variable that was not set".to_owned()),
            When::CallsFunction => Some("the function begins here".to_owned()),
            When::MadeBy(_) => Some("makes an object of this size".to_owned()),
            When::Always
            | When::LostByCall
            | When::Inside(_)
            | When::Poison(_)
            | When::AtCall
            | When::Calls(_) => None,
        });
        if let Some((pc, text)) = cause.zip(said) {
            labels.push(Label { pc, text });
        }
        let compared = self.path.zip(self.reg);
        let compared = compared.filter(|_| row.when == When::Compared(Flaw::TooFar));
        let compared = compared.and_then(|(path, reg)| insufficient(self.reject, path, reg));
        if let Some(found) = compared {
            labels.push(Label {
                pc: found.pc,
                text: "ignored: the pointer may be too far into the packet".to_owned(),
            });
        }
        if let Some(pc) = self.given_up_in().and_then(|_| self.reject.pc()) {
            labels.push(Label {
                pc,
                text: "the verifier gives up here".to_owned(),
            });
        }
        let acquired = match row.when {
            When::Inside(_) => cause,
            _ => captures
                .get("insn")
                .and_then(|insn| insn.parse().ok())
                .map(Pc),
        };
        if let (Category::Resource, Some(path), Some(pc)) = (row.category, self.path, acquired) {
            let is_argument = self.program.prog_type == ProgType::StructOps;
            let text = match path.callee(pc) {
                None if is_argument => "an argument of the program is a reference".to_owned(),
                _ => format!("acquired here by {}()", callee(pc)),
            };
            labels.push(Label { pc, text });
            let branches = path.branches_since(pc);
            let skipped = branches.len().saturating_sub(BRANCHES);
            labels.extend(branches.into_iter().skip(skipped).map(|(pc, taken)| {
                Label {
                    pc,
                    text: if taken {
                        "the jump is taken"
                    } else {
                        "the jump is not taken"
                    }
                    .to_owned(),
                }
            }));
        }
        labels
    }

    /// The registers in question, in the log's notation and in words.
    fn held(&self) -> Vec<String> {
        let Some(trail) = self.reject.trail() else {
            return Vec::new();
        };
        let Some(reg) = self.reg else {
            return Vec::new();
        };
        let mut regs = vec![reg];
        // For an addition, the other operand may be at fault as well.
        if let Some(Insn::Alu { src, .. }) = self
            .path
            .zip(self.reject.pc())
            .and_then(|(path, pc)| path.insn(pc))
        {
            regs.extend(src.reg().filter(|src| !regs.contains(src)));
        }
        let held = regs.into_iter().filter_map(|reg| {
            let state = trail.register(reg)?;
            let held = format!("R{} held {}", reg.number(), describe(state));
            // A constant is written the same in both notations.
            let is_said = held.ends_with(&format!(" {state}"));
            Some(if is_said {
                held
            } else {
                format!("{held}: {state}")
            })
        });
        held.collect()
    }
}
