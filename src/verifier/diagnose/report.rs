//! The report on a program that is not verified: the fault or the missing features, with C
//! source lines.

use std::collections::BTreeMap;
use std::fmt;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::diagnosis::{Diagnosis, Label, diagnose, diagnose_as};
use super::place::{Refused, RefusedLine};
use super::unjudged;
use crate::isa::{Code, RawInsn};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::{Reject, Unverified};

/// The number of instructions shown before and after one without a C line.
const NEIGHBOURS: u32 = 2;

/// The report. Its fields are the keys of `"report"` in `--json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The category, as in newer kernels: `Memory Safety`.
    pub category: &'static str,
    /// What is wrong, in a few words.
    pub problem: String,
    /// The reason at this instruction.
    pub reason: String,
    /// What the verifier expects; null without advice.
    pub expected: Option<String>,
    /// The contents of the registers in question.
    pub held: Vec<String>,
    /// What to change; null without advice.
    pub help: Option<String>,
    /// The fault's position first, then the positions that led to it.
    pub labels: Vec<PlacedLabel>,
    /// The text, as it is printed without `--json`.
    pub rendered: String,
    /// The same text with the escapes of colours.
    #[serde(skip)]
    styled: String,
}

/// An instruction with an explanation. Its fields are the keys of `labels[]`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PlacedLabel {
    /// The position.
    #[serde(flatten)]
    pub place: Refused,
    /// The instruction's text.
    pub insn_text: Option<String>,
    /// What happens there.
    pub text: String,
    /// Whether this is the line to be changed; one label is.
    pub blamed: bool,
}

impl Report {
    /// The report for a program that is not verified.
    #[must_use]
    pub fn new(program: &Program, why: &Unverified) -> Self {
        let diagnosis = match why {
            Unverified::Rejected(reject) => diagnose(program, reject),
            Unverified::Unjudged(unjudged) => unjudged::diagnose(unjudged),
        };
        Self::of(diagnosis, program, why.reject())
    }

    /// The report on a reject of which a log shows a part of the program: other slots are zero,
    /// and nothing is said about them. Without the program's type `prog_type` is none.
    pub(crate) fn of_log(program: &Program, prog_type: Option<&str>, reject: &Reject) -> Self {
        let mut diagnosis = diagnose_as(program, prog_type.unwrap_or("such"), reject);
        let code = Code::new(&program.insns);
        diagnosis
            .labels
            .retain(|label| code.insn(label.pc).is_some());
        if diagnosis.expected.is_none() {
            diagnosis.reason = "bpflab has no advice for this error line.".to_owned();
        }
        Self::of(diagnosis, program, Some(reject))
    }

    /// The text with the escapes of colours, for a terminal.
    #[doc(hidden)]
    #[must_use]
    pub fn styled(&self) -> &str {
        &self.styled
    }

    fn of(diagnosis: Diagnosis, program: &Program, reject: Option<&Reject>) -> Self {
        let Diagnosis {
            category,
            problem,
            reason,
            expected,
            held,
            help,
            labels,
            blamed,
        } = diagnosis;
        let blamed = blamed.filter(|pc| labels.iter().any(|label| label.pc == *pc));
        let blamed = blamed.or_else(|| Some(labels.first()?.pc));
        let code = Code::new(&program.insns);
        let labels = labels.into_iter().map(|Label { pc, text }| PlacedLabel {
            place: Refused::at(Some(pc), program),
            insn_text: code.insn(pc).map(|insn| insn.text(program).to_string()),
            text,
            blamed: blamed == Some(pc),
        });
        let mut report = Self {
            category: category.name(),
            problem,
            reason,
            expected,
            held,
            help,
            labels: labels.collect(),
            rendered: String::new(),
            styled: String::new(),
        };
        report.rendered = report.render(program, reject, Renderer::plain());
        report.styled = report.render(program, reject, Renderer::styled());
        report
    }

    /// The line to be changed, where it is not the fault's.
    fn blamed_line(&self) -> Option<u32> {
        let source = |label: &PlacedLabel| Some(label.place.source.as_ref()?.line);
        let blamed = self.labels.iter().find(|label| label.blamed)?;
        source(blamed).filter(|line| self.labels.first().and_then(source) != Some(*line))
    }

    fn render(&self, program: &Program, reject: Option<&Reject>, renderer: Renderer) -> String {
        let title = format!("{}: {}", self.category, self.problem);
        let title = match reject {
            // Not every log comes with an error number.
            Some(reject) if reject.errno().0 == 0 => Level::ERROR.primary_title(title),
            Some(reject) => Level::ERROR
                .primary_title(title)
                .id(format!("{:?}", reject.errno())),
            None => Level::WARNING.primary_title(title),
        };
        let mut group = title.elements(snippets(&self.labels, program));
        let at = self.labels.first().and_then(|label| {
            let insn = label.place.insn?;
            let text = label.insn_text.as_deref().unwrap_or("no instruction");
            let function = program.subprogram(Pc(insn))?;
            Some(format!("instruction {insn} of {}: {text}", function.name))
        });
        let notes = at.iter().map(|at| ("at", at));
        let notes = notes.chain([("reason", &self.reason)]);
        let notes = notes.chain(self.held.iter().map(|held| ("held", held)));
        let notes = notes.chain(self.expected.iter().map(|expected| ("expected", expected)));
        for (name, text) in notes {
            group = group.element(Level::NOTE.with_name(name).message(text.as_str()));
        }
        let mut groups = vec![group];
        let help = self.help.as_ref().map(|help| match self.blamed_line() {
            Some(line) => format!("line {line}: {help}"),
            None => help.clone(),
        });
        if let Some(help) = &help {
            groups.push(Group::with_title(
                Level::HELP.secondary_title(help.as_str()),
            ));
        }
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        renderer.render(&groups) + "\n"
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered)
    }
}

/// Whether it is the fault, the label, and its source line.
type InLine<'a> = (bool, &'a PlacedLabel, &'a RefusedLine);

/// One snippet for each file, the fault's first; labels without a C line show instructions.
fn snippets<'a>(labels: &'a [PlacedLabel], program: &Program) -> Vec<Snippet<'a, Annotation<'a>>> {
    let mut files: Vec<(&str, Vec<InLine<'_>>)> = Vec::new();
    let mut without = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let Some(line) = &label.place.source else {
            without.push((at == 0, label));
            continue;
        };
        let entry = (at == 0, label, line);
        match files.iter_mut().find(|(file, _)| *file == line.file) {
            Some((_, labels)) => labels.push(entry),
            None => files.push((&line.file, vec![entry])),
        }
    }
    let mut snippets: Vec<_> = files
        .into_iter()
        .map(|(file, labels)| of_file(file, &labels, program))
        .collect();
    if !without.is_empty() {
        snippets.push(of_instructions(&without, program));
    }
    snippets
}

/// A snippet of the C lines whose text is in BTF.ext.
fn of_file<'a>(
    file: &'a str,
    labels: &[InLine<'a>],
    program: &Program,
) -> Snippet<'a, Annotation<'a>> {
    let first = labels.iter().map(|(.., line)| line.line).min().unwrap_or(1);
    let last = labels.iter().map(|(.., line)| line.line).max().unwrap_or(1);
    let lines = known_lines(program, file, first, last);
    let mut source = String::new();
    let mut starts = BTreeMap::new();
    for number in first..=last {
        starts.insert(number, source.len());
        source.push_str(lines.get(&number).copied().unwrap_or(""));
        source.push('\n');
    }
    let annotations: Vec<_> = labels
        .iter()
        .map(|(is_fault, label, line)| {
            let text = lines.get(&line.line).copied().unwrap_or("");
            let (from, to) = marked(text, line.column);
            let start = starts.get(&line.line).copied().unwrap_or(0);
            kind(*is_fault)
                .span(start + from..start + to)
                .label(label.text.as_str())
        })
        .collect();
    Snippet::source(source)
        .path(file)
        .line_start(first as usize)
        .annotations(annotations)
}

const fn kind(is_fault: bool) -> AnnotationKind {
    if is_fault {
        AnnotationKind::Primary
    } else {
        AnnotationKind::Context
    }
}

/// The text of the lines from `first` to `last` of a file, where it is known.
fn known_lines<'p>(
    program: &'p Program,
    file: &str,
    first: u32,
    last: u32,
) -> BTreeMap<u32, &'p str> {
    let Some(btf) = &program.btf else {
        return BTreeMap::new();
    };
    program
        .lines
        .iter()
        .map(|info| info.source(btf))
        .filter(|line| line.file == file && (first..=last).contains(&line.line))
        .map(|line| (line.line, line.text))
        .collect()
}

/// The part of a line to mark: from a 1-based byte column to the end of the line's text.
fn marked(text: &str, column: u32) -> (usize, usize) {
    let end = text.trim_end().len();
    let indent = text.len() - text.trim_start().len();
    let from = usize::try_from(column).unwrap_or(0).saturating_sub(1);
    let from = if text.is_char_boundary(from) && from < end {
        from.max(indent)
    } else {
        indent
    };
    (from.min(end), end)
}

/// A snippet of instructions with their neighbours; instruction numbers replace line
/// numbers.
fn of_instructions<'a>(
    labels: &[(bool, &'a PlacedLabel)],
    program: &Program,
) -> Snippet<'a, Annotation<'a>> {
    let place = |label: &PlacedLabel| label.place.insn.unwrap_or(0);
    let all = || labels.iter().map(|(_, label)| place(label));
    let first = all().min().unwrap_or(0).saturating_sub(NEIGHBOURS);
    let last = all().max().unwrap_or(0).saturating_add(NEIGHBOURS);
    let code = Code::new(&program.insns);
    let mut source = String::new();
    let mut spans = BTreeMap::new();
    let mut last_line = "";
    for at in first..=last {
        let shown = program.insns.get(Pc(at).index()) != Some(&RawInsn::default());
        let Some(insn) = code.get(Pc(at)).filter(|_| shown) else {
            // Not in the log, the second slot of an instruction, or the program's end.
            source.push('\n');
            continue;
        };
        let text = match insn {
            Ok(insn) => insn.text(program).to_string(),
            Err(error) => error.to_string(),
        };
        spans.insert(at, source.len()..source.len() + text.len());
        source.push_str(&text);
        // Older kernels print the C line without its number.
        let line = program.source(Pc(at)).filter(|line| line.line == 0);
        let line = line.map_or("", |line| line.text.trim());
        if !line.is_empty() && line != last_line {
            source.push_str("    ; ");
            source.push_str(line);
        }
        last_line = line;
        source.push('\n');
    }
    let annotations: Vec<_> = labels
        .iter()
        .filter_map(|(is_fault, label)| {
            let span = spans.get(&place(label))?.clone();
            Some(kind(*is_fault).span(span).label(label.text.as_str()))
        })
        .collect();
    Snippet::source(source)
        .path(format!("{} (instructions)", program.name))
        .line_start(first as usize)
        .annotations(annotations)
}
