//! Explanations and advice for the kernel's error lines: one table, by category.
//!
//! A template captures parts of the kernel's line (`{reg}`, `{off}`) for the texts of its
//! row. The texts also use values from the program: `{helper}` (the callee of the
//! instruction), `{made}` (what made the value), `{prog_type}`, `{cause}` (the call that
//! the row's condition found), `{sum}` (why an access is out of bounds), `{place}`, `{covered}`
//! (how much of an access a comparison with the packet's end covers).

mod calls;
mod graphs;
mod loader;
mod memory;
mod objects;
mod pointers;
mod row;
mod structure;
mod targets;

use super::template::{Captures, fit};
pub use row::Category;
pub(super) use row::{Advice, Flaw, When};

/// The first row that matches. Later lines of a reject are tried first, since users search
/// for the last line.
pub(super) fn advice<'l>(
    lines: impl DoubleEndedIterator<Item = &'l str> + Clone,
    holds: impl Fn(&When, &Captures) -> bool,
) -> Option<(&'static Advice, Captures)> {
    let tables = [
        memory::ADVICE,
        graphs::ADVICE,
        objects::ADVICE,
        pointers::ADVICE,
        calls::ADVICE,
        structure::ADVICE,
        targets::ADVICE,
        loader::ADVICE,
    ];
    lines.rev().find_map(|line| {
        tables.iter().copied().flatten().find_map(|row| {
            let captures = fit(row.line, line)?;
            holds(&row.when, &captures).then_some((row, captures))
        })
    })
}

/// Whether there is a row for a line.
pub(crate) fn has_advice(line: &str) -> bool {
    advice(std::iter::once(line), |_, _| true).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = &'static Advice> {
        [
            memory::ADVICE,
            graphs::ADVICE,
            objects::ADVICE,
            pointers::ADVICE,
            calls::ADVICE,
            structure::ADVICE,
            targets::ADVICE,
            loader::ADVICE,
        ]
        .into_iter()
        .flatten()
    }

    /// The values that come from the program and not from the line.
    const KNOWN: [&str; 10] = [
        "demand",
        "helper",
        "made",
        "prog_type",
        "kind",
        "access",
        "cause",
        "sum",
        "place",
        "covered",
    ];

    #[test]
    fn texts_use_places_that_there_are() {
        for row in rows() {
            for text in [row.reason, row.here, row.expected, row.help] {
                assert!(!text.is_empty(), "{}", row.line);
                for part in text.split('{').skip(1) {
                    let name = part.split('}').next().unwrap();
                    let place = format!("{{{name}}}");
                    assert!(
                        row.line.contains(&place) || KNOWN.contains(&name),
                        "{}: {place}",
                        row.line
                    );
                }
            }
        }
    }

    #[test]
    fn every_row_can_be_reached() {
        for (at, row) in rows().enumerate() {
            if row.when != When::Always {
                continue;
            }
            let hidden = rows().take(at).find(|earlier| {
                earlier.when == When::Always && fit(earlier.line, row.line).is_some()
            });
            assert!(hidden.is_none(), "{} is hidden", row.line);
        }
    }
}
