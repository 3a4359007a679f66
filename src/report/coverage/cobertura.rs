//! Coverage as XML of Cobertura (`coverage-04.dtd`), which GitLab and other code hosts read.

use std::fmt::{self, Write};

use super::share::Share;
use super::summary::CoverageReport;
use crate::coverage::{Line, Source, SourceFile};
use crate::report::page::escaped;

const HEAD: &str = "<?xml version=\"1.0\"?>
<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">
";

/// The coverage as XML of Cobertura: one package, and a class for each file. Lines, functions
/// and branches that are dead or were not measured are left out: the format has no such states.
#[must_use]
pub fn cobertura(source: &Source) -> String {
    let mut text = HEAD.to_owned();
    // Writing to a string can't fail.
    let _ = write(&mut text, source);
    text
}

fn write(text: &mut String, source: &Source) -> fmt::Result {
    let report = CoverageReport::new(source, false);
    let total = report.total();
    let (lines, branches) = (total.lines, total.branches);
    let rates = rates(lines, branches);
    writeln!(
        text,
        "<coverage {rates} lines-covered=\"{}\" lines-valid=\"{}\" branches-covered=\"{}\" \
         branches-valid=\"{}\" complexity=\"0\" version=\"bpflab {}\" timestamp=\"0\">",
        lines.covered,
        lines.count(),
        branches.covered,
        branches.count(),
        env!("CARGO_PKG_VERSION"),
    )?;
    writeln!(text, "<sources><source>.</source></sources>")?;
    writeln!(
        text,
        "<packages><package name=\"\" {rates} complexity=\"0\"><classes>"
    )?;
    for (row, (name, file)) in report.rows().zip(&source.files) {
        write_class(text, name, file, &self::rates(row.lines, row.branches))?;
    }
    writeln!(text, "</classes></package></packages>\n</coverage>")
}

fn write_class(text: &mut String, name: &str, file: &SourceFile, rates: &str) -> fmt::Result {
    let name = escaped(name);
    writeln!(
        text,
        "<class name=\"{name}\" filename=\"{name}\" {rates} complexity=\"0\">\n<methods>"
    )?;
    for (function, tally) in &file.functions {
        let share = Share::of([*tally].into_iter());
        if share.count() > 0 {
            writeln!(
                text,
                "<method name=\"{}\" signature=\"\" {} complexity=\"0\"><lines>\
                 <line number=\"{}\" hits=\"{}\"/></lines></method>",
                escaped(&function.name),
                self::rates(share, Share::default()),
                function.line,
                tally.count,
            )?;
        }
    }
    writeln!(text, "</methods>\n<lines>")?;
    for (number, line) in &file.lines {
        if line.tally.is_counted() {
            write_line(text, *number, line)?;
        }
    }
    writeln!(text, "</lines>\n</class>")
}

fn write_line(text: &mut String, number: u32, line: &Line) -> fmt::Result {
    let hits = line.tally.count;
    write!(text, "<line number=\"{number}\" hits=\"{hits}\"")?;
    let sides = Share::of(line.branches.values().flatten().copied());
    match (sides.covered * 100).checked_div(sides.count()) {
        Some(percent) => writeln!(
            text,
            " branch=\"true\" condition-coverage=\"{percent}% ({}/{})\"/>",
            sides.covered,
            sides.count()
        ),
        None => writeln!(text, "/>"),
    }
}

/// The attributes with the shares, from 0 to 1; 1 if there is nothing to cover.
fn rates(lines: Share, branches: Share) -> String {
    let rate = |share: Share| f64::from(share.hundredths().unwrap_or(10_000)) / 10_000.0;
    let (lines, branches) = (rate(lines), rate(branches));
    format!("line-rate=\"{lines:.4}\" branch-rate=\"{branches:.4}\"")
}
