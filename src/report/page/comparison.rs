//! The pages of `bpflab replay --html` and `bpflab compare --html`: the verdicts, and first
//! differences side by side.

use std::fmt::{self, Display, Write};

use super::markup::escaped;
use super::run::map_section;
use super::skeleton::document;
use crate::compare::replay::{Report, Verdict};
use crate::report::map_contents::MapContents;
use crate::report::replay::{Explained, ReplayView};
use crate::report::table::Table;

/// The page of replays.
#[derive(Debug, Default)]
pub struct ReplayPage {
    content: String,
}

impl ReplayPage {
    /// Adds a replay on an engine.
    pub fn add(&mut self, view: &ReplayView<'_>) {
        // Writing to a string can't fail.
        let _ = self.replay(view);
    }

    /// Adds a line of the output.
    pub fn add_line(&mut self, line: impl Display) {
        self.content
            .push_str(&format!("<p>{}</p>\n", escaped(&line.to_string())));
    }

    /// Adds a map after a replay of bare events.
    pub fn add_map(&mut self, contents: &MapContents) {
        let _ = map_section(&mut self.content, contents);
    }

    /// The page's text.
    #[must_use]
    pub fn finish(self) -> String {
        document("Replay", Some("difference"), &self.content)
    }

    fn replay(&mut self, view: &ReplayView<'_>) -> fmt::Result {
        let text = &mut self.content;
        let said = view.to_string();
        let title = said.lines().next().unwrap_or_default();
        writeln!(
            text,
            "<section>\n<h2>{} <small>object {}</small></h2>",
            escaped(title),
            escaped(view.object)
        )?;
        let verdict = said
            .lines()
            .rev()
            .find(|line| line.starts_with("verdict: "));
        write_verdict(text, verdict.unwrap_or_default(), view.report.is_fine())?;
        write_table(text, &view.table(), false)?;
        for missing in &view.report.missing {
            writeln!(
                text,
                "<p class=\"word bad\">missing: {}</p>",
                escaped(missing)
            )?;
        }
        differences(text, view.report)?;
        text.push_str("</section>\n");
        Ok(())
    }
}

/// Writes the line with the verdict on the whole.
pub(in crate::report) fn write_verdict(
    text: &mut String,
    line: &str,
    is_fine: bool,
) -> fmt::Result {
    let class = if is_fine { "good" } else { "bad" };
    writeln!(text, "<p class=\"word {class}\">{}</p>", escaped(line))
}

/// Writes a table; with `head` the first row is its heading.
pub(in crate::report) fn write_table(text: &mut String, table: &Table, head: bool) -> fmt::Result {
    text.push_str("<div class=\"wide\"><table class=\"rows\">\n<tbody>\n");
    for (number, cells) in table.cells().enumerate() {
        let tag = if head && number == 0 { "th" } else { "td" };
        text.push_str("<tr>");
        for (column, cell) in cells.iter().enumerate() {
            let class = if table.is_number(column) {
                "n"
            } else if tag == "td" && column > 0 {
                verdict_class(cell)
            } else {
                ""
            };
            write!(text, "<{tag} class=\"{class}\">{}</{tag}>", escaped(cell))?;
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    Ok(())
}

/// The colour of a cell that begins with a verdict.
fn verdict_class(cell: &str) -> &'static str {
    match cell.split([' ', ',', ':']).next() {
        Some("equal") => "word good",
        Some("different") => "word bad",
        Some("not" | "incomplete" | "order") => "word weak",
        _ => "",
    }
}

/// Writes the first difference of each program, the kernel's side beside the replay's.
pub(in crate::report) fn differences(text: &mut String, report: &Report) -> fmt::Result {
    for program in &report.programs {
        let Verdict::Different(first) = &program.verdict else {
            continue;
        };
        let explained = Explained(&program.name, first);
        let all = explained.to_string();
        writeln!(
            text,
            "<h3 class=\"mark\">On {}: {}</h3>",
            report.engine,
            escaped(&explained.headline())
        )?;
        if let Some(place) = &first.place {
            writeln!(
                text,
                "<p>At instruction <code>{}: {}</code></p>",
                place.pc,
                escaped(&place.text)
            )?;
            if let Some(source) = &place.source {
                writeln!(
                    text,
                    "<p><code>{}:{}</code> <code>{}</code></p>",
                    escaped(&source.file),
                    source.line,
                    escaped(&source.text)
                )?;
            }
        }
        if let Some((what, kernel, replay)) = explained.sides() {
            writeln!(
                text,
                "<table class=\"sides\"><thead><tr><th></th><th>in the kernel</th><th>in the \
                 replay</th></tr></thead>\n<tbody><tr><th>{}</th><td><code>{}</code></td>\
                 <td class=\"missed\"><code>{}</code></td></tr></tbody></table>",
                escaped(&what),
                escaped(&kernel),
                escaped(&replay)
            )?;
        }
        writeln!(
            text,
            "<details><summary>As text, with the registers</summary><pre>{}</pre></details>",
            escaped(all.trim_end())
        )?;
    }
    Ok(())
}
