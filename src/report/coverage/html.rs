//! Coverage as a page: the table of files, and each file's source with counts and states.

use std::fmt::{self, Write};

use super::share::Share;
use super::summary::{CoverageReport, CoverageRow};
use crate::coverage::{Branch, Line, Side, Source, SourceFile, State, Tally};
use crate::report::page::{document, escaped, is_compiled_text};

/// The coverage as one HTML file that needs nothing else. `read` gives the whole text of a source
/// file; without it, or if it is not the compiled text, only the lines with instructions are shown,
/// whose texts the object has.
#[must_use]
pub fn coverage_page(source: &Source, read: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = content(&mut text, source, &read);
    document("Coverage", Some("missed line or branch"), &text)
}

fn content(
    text: &mut String,
    source: &Source,
    read: &dyn Fn(&str) -> Option<String>,
) -> fmt::Result {
    let report = CoverageReport::new(source, false);
    files(text, &report)?;
    text.push_str(
        "<p class=\"legend\"><span class=\"covered\">covered</span> \
         <span class=\"missed\">missed</span> \
         <span class=\"dead\">dead: the verifier proved that no run executes it</span> \
         <span class=\"unmeasured\">not measured</span></p>\n",
    );
    for (number, (name, file)) in source.files.iter().enumerate() {
        let known = || file.lines.iter().map(|(at, line)| (*at, &*line.text));
        let whole = read(name).filter(|whole| is_compiled_text(known(), whole));
        source_of(text, number, name, file, whole.as_deref())?;
    }
    Ok(())
}

/// The table of files.
fn files(text: &mut String, report: &CoverageReport<'_>) -> fmt::Result {
    text.push_str(
        "<table class=\"rows\">\n<thead><tr><th>file</th><th>lines</th><th>branches</th>\
         <th>functions</th><th>dead</th><th>not measured</th></tr></thead>\n<tbody>\n",
    );
    for (number, row) in report.rows().enumerate() {
        match row.file {
            Some(file) => write!(
                text,
                "<tr><td><a href=\"#file-{number}\">{}</a></td>",
                escaped(file)
            )?,
            None => text.push_str("<tr class=\"total\"><td>total</td>"),
        }
        shares(text, row)?;
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n");
    Ok(())
}

fn shares(text: &mut String, row: &CoverageRow<'_>) -> fmt::Result {
    for share in [row.lines, row.branches, row.functions] {
        match share.percent() {
            Some(percent) => write!(
                text,
                "<td>{share}<meter min=\"0\" max=\"100\" value=\"{percent}\">{percent} %</meter></td>"
            )?,
            None => text.push_str("<td>–</td>"),
        }
    }
    write!(
        text,
        "<td>{}</td><td>{}</td>",
        row.lines.dead, row.lines.not_measured
    )
}

/// A file: its source with counts.
fn source_of(
    text: &mut String,
    number: usize,
    name: &str,
    file: &SourceFile,
    whole: Option<&str>,
) -> fmt::Result {
    writeln!(
        text,
        "<section id=\"file-{number}\">\n<h2><code>{}</code></h2>",
        escaped(name)
    )?;
    if whole.is_none() {
        text.push_str(
            "<p class=\"note\">Only lines with instructions, as the object has them: the file as it \
             was compiled is not there.</p>\n",
        );
    }
    let missed: Vec<_> = file
        .functions
        .iter()
        .filter(|(_, tally)| tally.state() == State::Missed)
        .map(|(function, _)| escaped(&function.name))
        .collect();
    if !missed.is_empty() {
        writeln!(
            text,
            "<p>Functions that were not called: {}.</p>",
            missed.join(", ")
        )?;
    }
    text.push_str("<table class=\"source\">\n<tbody>\n");
    match whole {
        Some(whole) => {
            for (number, line) in (1..).zip(whole.lines()) {
                source_line(text, number, line, file.lines.get(&number))?;
            }
        }
        None => {
            let mut expected = 0;
            for (number, line) in &file.lines {
                if *number != expected && expected != 0 {
                    text.push_str("<tr class=\"gap\"><td></td><td></td><td>⋮</td></tr>\n");
                }
                source_line(text, *number, &line.text, Some(line))?;
                expected = number.saturating_add(1);
            }
        }
    }
    text.push_str("</tbody>\n</table>\n</section>\n");
    Ok(())
}

fn source_line(text: &mut String, number: u32, source: &str, line: Option<&Line>) -> fmt::Result {
    let source = escaped(source);
    let Some(line) = line else {
        return writeln!(text, "<tr><td>{number}</td><td></td><td>{source}</td></tr>");
    };
    let class = class(line.tally);
    let count = match line.tally.state() {
        State::Covered | State::Missed => line.tally.count.to_string(),
        State::Dead => "dead".to_owned(),
        State::NotMeasured => "–".to_owned(),
    };
    let partial = |sides: &[Tally; 2]| {
        let share = Share::of(sides.iter().copied());
        share.covered > 0 && share.missed > 0
    };
    let is_mark = class == "missed" || line.branches.values().any(partial);
    let mark = if is_mark { " mark" } else { "" };
    write!(
        text,
        "<tr class=\"{class}{mark}\"><td>{number}</td><td>{count}</td><td>{source}"
    )?;
    for (branch, sides) in &line.branches {
        branch_sides(text, branch, sides)?;
    }
    text.push_str("</td></tr>\n");
    Ok(())
}

/// A branch, if it was executed: how often each side was. The line's state says the rest.
fn branch_sides(text: &mut String, branch: &Branch, sides: &[Tally; 2]) -> fmt::Result {
    let share = Share::of(sides.iter().copied());
    if share.covered == 0 {
        return Ok(());
    }
    let class = if share.missed > 0 { "partial" } else { "both" };
    let counts = Side::ALL.iter().zip(sides).map(|(side, tally)| {
        let count = match tally.state() {
            State::Dead => "dead".to_owned(),
            State::Covered | State::Missed | State::NotMeasured => tally.count.to_string(),
        };
        format!("{} {count}", side.name())
    });
    let counts: Vec<_> = counts.collect();
    write!(
        text,
        " <span class=\"branch {class}\" title=\"column {}, jump if {}\">{}</span>",
        branch.column,
        escaped(&branch.op),
        counts.join(", ")
    )
}

const fn class(tally: Tally) -> &'static str {
    match tally.state() {
        State::Covered => "covered",
        State::Missed => "missed",
        State::Dead => "dead",
        State::NotMeasured => "unmeasured",
    }
}
