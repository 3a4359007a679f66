//! The page of `bpflab verify --html`: the verdicts, and each program's exploration.

use std::fmt::{self, Write};

use super::markup::escaped;
use super::path::failing_path;
use super::program::{Explored, cost, source};
use super::skeleton::{capped, document};
use crate::program::Program;
use crate::report::verdict::{VerdictRow, VerdictTally};
use crate::verifier::Unverified;
use crate::verifier::diagnose::Report;
use crate::verifier::survey::{Limits, Survey};

/// The most programs with a section.
const PROGRAMS: usize = 200;
/// The most states of the page.
const STATES: usize = 12_000;
/// The most states of a program.
const PROGRAM_STATES: usize = 4_000;
/// The most states at an instruction.
const INSN_STATES: usize = 3;

/// A program that was judged, and its exploration.
pub struct Judged<'p> {
    /// The program.
    pub program: &'p Program,
    /// Why it is not verified.
    pub why: Option<&'p Unverified>,
    /// Its exploration.
    pub survey: &'p Survey,
    /// The log of level 1: the path to the error.
    pub log: &'p str,
}

/// The page. Rows are added one by one.
#[derive(Debug, Default)]
pub struct VerdictPage {
    rows: String,
    sections: String,
    programs: usize,
    with_section: usize,
    states: usize,
}

impl VerdictPage {
    /// How much of the next program's exploration the page shows; `None` if it has the most
    /// sections already.
    #[must_use]
    pub fn limits(&self) -> Option<Limits> {
        (self.with_section < PROGRAMS).then(|| Limits {
            states_per_insn: INSN_STATES,
            states: PROGRAM_STATES.min(STATES.saturating_sub(self.states)),
        })
    }

    /// Adds a row, and the section of a program. `read` gives the whole text of a source file.
    pub fn add(
        &mut self,
        row: &VerdictRow,
        judged: Option<&Judged<'_>>,
        read: &dyn Fn(&str) -> Option<String>,
    ) {
        let number = self.programs;
        self.programs += 1;
        // Writing to a string can't fail.
        let _ = self.row(row, judged.is_some().then_some(number));
        if let Some(judged) = judged {
            self.with_section += 1;
            self.states += judged
                .survey
                .insns()
                .values()
                .map(|visits| visits.states.len())
                .sum::<usize>();
            let _ = section(&mut self.sections, number, row, judged, read);
        }
    }

    /// The page's text.
    #[must_use]
    pub fn finish(self, tally: &VerdictTally) -> String {
        let mut content = format!(
            "<p>{}, for Linux 6.18.</p>\n<div class=\"wide\"><table class=\"rows\">\n<thead><tr><th>verdict</th>\
             <th>program</th><th>type</th><th class=\"n\">instructions processed</th>\
             <th class=\"n\">states</th><th class=\"n\">µs</th><th>reason</th></tr></thead>\n\
             <tbody>\n{}</tbody>\n</table></div>\n",
            escaped(&tally.to_string()),
            self.rows
        );
        content.push_str(&capped(
            self.with_section,
            self.programs.max(self.with_section),
            "programs have a section; cases and programs without a type have none",
        ));
        content.push_str(&self.sections);
        document(
            "Verdicts",
            Some("error, or place where paths were pruned"),
            &content,
        )
    }

    fn row(&mut self, row: &VerdictRow, section: Option<usize>) -> fmt::Result {
        let text = &mut self.rows;
        write!(text, "<tr><td>{}</td><td>", verdict(row))?;
        let name = escaped(row.subject.name());
        match section {
            Some(number) => write!(text, "<a href=\"#p{number}\">{name}</a>")?,
            None => text.push_str(&name),
        }
        if let Some(object) = &row.subject.object {
            write!(text, " <small>{}</small>", escaped(object))?;
        }
        write!(
            text,
            "</td><td>{}</td>",
            escaped(row.subject.prog_type.unwrap_or(""))
        )?;
        for number in [row.processed, row.total_states, row.time_us] {
            match number {
                Some(number) => write!(text, "<td class=\"n\">{number}</td>")?,
                None => text.push_str("<td class=\"n\">–</td>"),
            }
        }
        writeln!(
            text,
            "<td><code>{}</code></td></tr>",
            escaped(&row.reason())
        )
    }
}

/// The verdict as a coloured word.
fn verdict(row: &VerdictRow) -> String {
    let class = match row.verdict {
        "accept" => "good",
        "reject" | "error" => "bad",
        _ => "weak",
    };
    format!(
        "<span class=\"word {class}\">{}</span>",
        escaped(row.word())
    )
}

fn section(
    text: &mut String,
    number: usize,
    row: &VerdictRow,
    judged: &Judged<'_>,
    read: &dyn Fn(&str) -> Option<String>,
) -> fmt::Result {
    let program = judged.program;
    writeln!(
        text,
        "<section id=\"p{number}\">\n<h2>{} <code>{}</code> <small>{}, section {}</small></h2>",
        verdict(row),
        escaped(row.subject.name()),
        program.prog_type.name(),
        escaped(&program.section)
    )?;
    if let Some(why) = judged.why {
        let report = Report::new(program, why);
        writeln!(
            text,
            "<pre class=\"report mark\">{}</pre>",
            escaped(report.rendered.trim_end())
        )?;
        failing_path(text, number, judged.program, why, judged.log)?;
    }
    let explored = Explored::new(number, program, judged.why, judged.survey);
    cost(text, &explored)?;
    source(text, &explored, read)?;
    text.push_str("</section>\n");
    Ok(())
}
