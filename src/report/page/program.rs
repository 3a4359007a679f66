//! The exploration of a program: what cost most, and the C source with its instructions and
//! states.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::compiled::is_compiled_text;
use super::markup::escaped;
use super::skeleton::capped;
use super::state::{of_registers, state};
use crate::isa::{Code, RegSet};
use crate::program::Program;
use crate::report::listing::{ListedInsn, Listing};
use crate::util::{Pc, base_name};
use crate::verifier::Unverified;
use crate::verifier::survey::{Survey, Visits};

/// Rows of the tables of costs.
const TOP: usize = 10;
/// The most instructions that are shown.
const INSNS: usize = 10_000;
/// Lines without instructions that are shown beside those with some.
const NEIGHBOURS: u32 = 2;

/// A program, its instructions and what exploration did at each.
pub(super) struct Explored<'p> {
    /// The program's number in the page.
    number: usize,
    program: &'p Program,
    survey: &'p Survey,
    code: Code,
    insns: Vec<ListedInsn<'p>>,
    all: usize,
    error: Option<Pc>,
    accepted: bool,
}

/// The instructions of a line of C.
#[derive(Default)]
struct Line<'e> {
    text: &'e str,
    insns: Vec<&'e ListedInsn<'e>>,
    processed: u64,
    pruned: u64,
}

impl<'p> Explored<'p> {
    pub fn new(
        number: usize,
        program: &'p Program,
        why: Option<&Unverified>,
        survey: &'p Survey,
    ) -> Self {
        let mut insns = Listing::new(program, true).insns();
        let all = insns.len();
        insns.truncate(INSNS);
        Self {
            number,
            program,
            survey,
            code: Code::new(&program.insns),
            insns,
            all,
            error: why.and_then(Unverified::pc),
            accepted: why.is_none(),
        }
    }

    fn visits(&self, insn: u32) -> Option<&'p Visits> {
        self.survey.insns().get(&Pc(insn))
    }

    fn processed(&self) -> u64 {
        self.survey.insns().values().map(|v| v.processed).sum()
    }

    /// The lines of each file, by number; instructions without a line have number 0.
    fn files(&self) -> Vec<(&str, BTreeMap<u32, Line<'_>>)> {
        let mut files: Vec<(&str, BTreeMap<u32, Line<'_>>)> = Vec::new();
        for insn in &self.insns {
            let (file, number, text) = match insn.source {
                Some(line) => (line.file, line.line, line.text),
                None => ("", 0, ""),
            };
            let at = files.iter().position(|(name, _)| *name == file);
            let at = at.unwrap_or_else(|| {
                files.push((file, BTreeMap::new()));
                files.len() - 1
            });
            let Some((_, lines)) = files.get_mut(at) else {
                continue;
            };
            let line = lines.entry(number).or_default();
            line.text = text;
            line.insns.push(insn);
            if let Some(visits) = self.visits(insn.insn) {
                line.processed += visits.processed;
                line.pruned += visits.pruned;
            }
        }
        files
    }

    fn share(&self, processed: u64) -> String {
        let all = self.processed().max(1);
        let tenths = u128::from(processed) * 1000 / u128::from(all);
        format!(
            "<td class=\"n\">{}.{} %</td><td><meter min=\"0\" max=\"{all}\" value=\"{processed}\">{processed}</meter></td>",
            tenths / 10,
            tenths % 10
        )
    }
}

/// Writes what was processed, and the lines and instructions that cost most.
pub(super) fn cost(text: &mut String, explored: &Explored<'_>) -> fmt::Result {
    let processed = explored.processed();
    if processed == 0 {
        text.push_str("<p class=\"note\">No instruction was processed.</p>\n");
        return Ok(());
    }
    let visits = explored.survey.insns();
    let pruned: u64 = visits.values().map(|visits| visits.pruned).sum();
    writeln!(
        text,
        "<h3>What cost most</h3>\n<p>{processed} instructions processed, at {} of {} \
         instructions; {pruned} paths pruned, since an explored state subsumed theirs.</p>\n\
         <div class=\"beside\">",
        visits.len(),
        explored.all
    )?;
    let files = explored.files();
    let mut lines: Vec<_> = files
        .iter()
        .enumerate()
        .flat_map(|(at, (file, lines))| {
            let name = base_name(file);
            lines
                .iter()
                .filter(|(number, line)| **number > 0 && line.processed > 0)
                .map(move |(number, line)| (at, name, number, line))
        })
        .collect();
    lines.sort_by_key(|(.., line)| std::cmp::Reverse(line.processed));
    if !lines.is_empty() {
        text.push_str(HEAD_OF_LINES);
        for (at, name, number, line) in lines.iter().take(TOP) {
            writeln!(
                text,
                "<tr><td><a href=\"#p{}f{at}l{number}\">{}:{number}</a> <code>{}</code></td>\
                 <td class=\"n\">{}</td>{}<td class=\"n\">{}</td></tr>",
                explored.number,
                escaped(name),
                escaped(line.text),
                line.processed,
                explored.share(line.processed),
                line.pruned
            )?;
        }
        text.push_str("</tbody></table>\n");
        text.push_str(&capped(TOP, lines.len(), "lines"));
        text.push_str("</div><div>");
    } else {
        text.push_str("<div>");
    }
    let mut insns: Vec<_> = explored
        .insns
        .iter()
        .filter_map(|insn| Some((insn, explored.visits(insn.insn)?)))
        .collect();
    insns.sort_by_key(|(_, visits)| std::cmp::Reverse(visits.processed));
    text.push_str(HEAD_OF_INSNS);
    for (insn, visits) in insns.iter().take(TOP) {
        writeln!(
            text,
            "<tr><td><a href=\"#p{}i{}\">{}</a> <code>{}</code></td><td class=\"n\">{}</td>{}\
             <td class=\"n\">{}</td></tr>",
            explored.number,
            insn.insn,
            insn.insn,
            escaped(&insn.text),
            visits.processed,
            explored.share(visits.processed),
            visits.pruned
        )?;
    }
    text.push_str("</tbody></table>\n");
    text.push_str(&capped(TOP, insns.len(), "instructions"));
    text.push_str("</div></div>\n");
    Ok(())
}

const HEAD_OF_LINES: &str = "<div><table class=\"rows\">\n<thead><tr><th>line of C</th><th class=\"n\">processed</th>\
     <th colspan=\"2\">share</th><th class=\"n\">pruned</th></tr></thead>\n<tbody>\n";
const HEAD_OF_INSNS: &str = "<table class=\"rows\">\n<thead><tr><th>instruction</th><th class=\"n\">processed</th>\
     <th colspan=\"2\">share</th><th class=\"n\">pruned</th></tr></thead>\n<tbody>\n";

/// Writes the C source with instructions and states.
pub(super) fn source(
    text: &mut String,
    explored: &Explored<'_>,
    read: &dyn Fn(&str) -> Option<String>,
) -> fmt::Result {
    text.push_str(
        "<h3>Source, instructions and states</h3>\n<p class=\"note\">A line of C opens to its \
         instructions, an instruction to the first states before it. A link at a value leads to \
         the instruction that made it. On the left: instructions processed.</p>\n",
    );
    if explored.survey.is_full() {
        text.push_str(
            "<p class=\"note\">The page has its most states: later ones are not shown.</p>\n",
        );
    }
    text.push_str(&capped(explored.insns.len(), explored.all, "instructions"));
    for (at, (file, lines)) in explored.files().iter().enumerate() {
        let whole = read(file).filter(|whole| {
            let known = lines.iter().map(|(number, line)| (*number, line.text));
            is_compiled_text(known.filter(|(number, _)| *number > 0), whole)
        });
        let name = if file.is_empty() {
            "instructions without a line of C"
        } else {
            file
        };
        writeln!(text, "<h4>{}</h4>\n<div class=\"lines\">", escaped(name))?;
        let whole: Vec<_> = whole.as_deref().unwrap_or_default().lines().collect();
        let mut next = 1;
        for (number, line) in lines {
            let before = number.saturating_sub(NEIGHBOURS);
            context(text, &whole, &mut next, before, *number)?;
            next = number.saturating_add(1);
            line_of_c(text, explored, at, *number, line, &whole)?;
            if let Some((following, _)) = lines.range(next..).next() {
                let last = next.saturating_add(NEIGHBOURS).min(*following);
                context(text, &whole, &mut next, 0, last)?;
            }
        }
        text.push_str("</div>\n");
    }
    Ok(())
}

/// Writes lines without instructions, from `next` to before `end`, those before `from` as a gap.
fn context(text: &mut String, whole: &[&str], next: &mut u32, from: u32, end: u32) -> fmt::Result {
    if from > *next {
        text.push_str("<div class=\"gap\">⋮</div>\n");
        *next = from;
    }
    while *next < end {
        let line = whole.get((*next as usize).saturating_sub(1));
        if let Some(line) = line {
            writeln!(
                text,
                "<div class=\"line\"><span class=\"num\">{next}</span><span class=\"num\"></span>\
                 <code>{}</code></div>",
                escaped(line)
            )?;
        }
        *next += 1;
    }
    Ok(())
}

fn line_of_c(
    text: &mut String,
    explored: &Explored<'_>,
    file: usize,
    number: u32,
    line: &Line<'_>,
    whole: &[&str],
) -> fmt::Result {
    let has_error = line
        .insns
        .iter()
        .any(|insn| Some(Pc(insn.insn)) == explored.error);
    let class = match (has_error, line.processed, line.pruned) {
        (true, ..) => " missed mark",
        (false, 0, _) => " dead",
        (false, _, 0) => "",
        (false, ..) => " mark",
    };
    let open = if has_error || number == 0 {
        " open=\"\""
    } else {
        ""
    };
    let source = whole.get((number as usize).wrapping_sub(1)).copied();
    let width = u128::from(line.processed) * 100 / u128::from(explored.processed().max(1));
    let label = if number == 0 {
        String::new()
    } else {
        number.to_string()
    };
    write!(
        text,
        "<details class=\"line{class}\" id=\"p{}f{file}l{number}\"{open}><summary><span \
         class=\"num\">{label}</span><span class=\"num cost\" style=\"--share:{width}%\">{}</span>\
         <code>{}</code>",
        explored.number,
        line.processed,
        escaped(source.unwrap_or(line.text)),
    )?;
    if line.pruned > 0 {
        write!(
            text,
            " <span class=\"tag weak\">{} pruned</span>",
            line.pruned
        )?;
    }
    text.push_str("</summary>\n");
    for insn in &line.insns {
        instruction(text, explored, insn)?;
    }
    text.push_str("</details>\n");
    Ok(())
}

fn instruction(text: &mut String, explored: &Explored<'_>, insn: &ListedInsn<'_>) -> fmt::Result {
    let number = explored.number;
    let pc = insn.insn;
    let visits = explored.visits(pc);
    let processed = visits.map_or(0, |visits| visits.processed);
    let is_error = Some(Pc(pc)) == explored.error;
    let class = match (is_error, processed) {
        (true, _) => " missed",
        (false, 0) => " dead",
        (false, _) => "",
    };
    let comment = match &insn.comment {
        Some(comment) => format!(" <i>// {}</i>", escaped(comment)),
        None => String::new(),
    };
    let head = format!(
        "<span class=\"num\">{pc}</span><span class=\"num\">{processed}</span><code>{}{comment}</code>",
        escaped(&insn.text)
    );
    let Some(visits) = visits else {
        let why = if explored.accepted {
            "dead: no path reaches it"
        } else {
            "not explored"
        };
        return writeln!(
            text,
            "<div class=\"insn{class}\" id=\"p{number}i{pc}\">{head} <small>{why}</small></div>"
        );
    };
    let open = if is_error { " open=\"\"" } else { "" };
    write!(
        text,
        "<details class=\"insn{class}\" id=\"p{number}i{pc}\"{open}><summary>{head}"
    )?;
    if visits.pruned > 0 {
        write!(
            text,
            " <span class=\"tag weak\">{} pruned</span>",
            visits.pruned
        )?;
    }
    if let Some(first) = visits.states.first() {
        let reads = explored
            .code
            .insn(Pc(pc))
            .map_or(RegSet::of(&[]), |insn| insn.reads());
        let values = of_registers(&first.text, reads);
        if !values.is_empty() {
            write!(text, " <small>{}</small>", escaped(&values))?;
        }
    }
    text.push_str("</summary>\n<ol class=\"states\">\n");
    for seen in &visits.states {
        text.push_str("<li>");
        state(text, &seen.text, |name| {
            let (_, made) = seen.origins.iter().find(|(value, _)| value == name)?;
            let source = explored.program.source(*made);
            let line = source.filter(|line| line.line > 0);
            let line = line.map_or(String::new(), |line| format!(", line {}", line.line));
            Some((
                format!("p{number}i{made}"),
                format!("made by instruction {made}{line}"),
            ))
        })?;
        if seen.pruned {
            text.push_str(" <span class=\"tag weak\">pruned: an explored state subsumes it</span>");
        }
        text.push_str("</li>\n");
    }
    text.push_str("</ol>\n");
    let all = usize::try_from(visits.processed).unwrap_or(usize::MAX);
    text.push_str(&capped(visits.states.len(), all, "states"));
    text.push_str("</details>\n");
    Ok(())
}
