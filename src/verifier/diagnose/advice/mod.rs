//! What the kernel's error lines mean, and what helps: one table, by category.
//!
//! A template names the parts of the kernel's line (`{reg}`, `{off}`); the texts of its
//! row use them again, and further ones that come from the program: `{helper}` (what the
//! instruction calls), `{made}` (what made the value), `{prog_type}`, `{cause}` (the call
//! that the row's condition found), `{sum}` (why an access is out of bounds), `{place}`.

mod calls;
mod memory;
mod pointers;
mod row;
mod structure;

use super::template::{Captures, fit};
pub use row::Category;
pub(super) use row::{Advice, When};

/// The first row that fits: the later of a reject's lines before the earlier ones, since
/// the last is what people search for.
pub(super) fn advice<'l>(
    lines: impl DoubleEndedIterator<Item = &'l str> + Clone,
    holds: impl Fn(&When, &Captures) -> bool,
) -> Option<(&'static Advice, Captures)> {
    let tables = [
        memory::ADVICE,
        pointers::ADVICE,
        calls::ADVICE,
        structure::ADVICE,
    ];
    lines.rev().find_map(|line| {
        tables.iter().copied().flatten().find_map(|row| {
            let captures = fit(row.line, line)?;
            holds(&row.when, &captures).then_some((row, captures))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = &'static Advice> {
        [
            memory::ADVICE,
            pointers::ADVICE,
            calls::ADVICE,
            structure::ADVICE,
        ]
        .into_iter()
        .flatten()
    }

    /// The places that come from the program and not from the line.
    const KNOWN: [&str; 8] = [
        "helper",
        "made",
        "prog_type",
        "kind",
        "access",
        "cause",
        "sum",
        "place",
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
