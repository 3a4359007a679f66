//! Programs that a reviewer has to look at, for the formats of code hosts.

use std::path::{Component, Path, PathBuf};

use super::change::Changes;
use super::gate::FailOn;
use super::row::VerdictRow;
use crate::verifier::Decision;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gravity {
    /// The program is wrong, or the change fails.
    Error,
    /// The program is not judged, or `--fail-on` lets it pass.
    Warning,
}

/// A program that a reviewer has to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule's id: `memory-safety`, `insns-growth`.
    pub rule: String,
    /// What the rule is about.
    pub about: String,
    /// How grave it is.
    pub gravity: Gravity,
    /// What is wrong, and what to change; one line each.
    pub message: String,
    /// The program's name.
    pub program: String,
    /// The file: of the C source, relative if it is in the current directory; without a line,
    /// the object's.
    pub file: String,
    /// The line of C, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The line's text.
    pub text: Option<String>,
}

impl Finding {
    /// The programs that are not accepted, in the order of the rows. `here` is the directory
    /// to which files are relative.
    #[must_use]
    pub fn of_rows(rows: &[VerdictRow], here: &Path) -> Vec<Self> {
        let judged = rows.iter().filter_map(|row| Self::of_row(row, here));
        judged.collect()
    }

    /// The programs that are not accepted, and the changes that fail. With `--fail-on` only
    /// failing changes are errors.
    #[must_use]
    pub fn of_changes(changes: &Changes<'_>, here: &Path) -> Vec<Self> {
        let mut findings = Vec::new();
        for change in changes.all() {
            let refused = change.now.and_then(|row| Self::of_row(row, here));
            findings.extend(refused.map(|finding| {
                let gravity = match &change.fails {
                    Some(fails) if fails.contains(&FailOn::Verdict) => Gravity::Error,
                    Some(_) => Gravity::Warning,
                    None => finding.gravity,
                };
                Self { gravity, ..finding }
            }));
            for fails in change.fails.iter().flatten() {
                let (rule, about) = match fails {
                    FailOn::Verdict => continue,
                    FailOn::Missing => ("missing", "Missing Program"),
                    FailOn::Growth(..) => ("growth", "Verifier Cost"),
                };
                findings.push(Self {
                    rule: rule.to_owned(),
                    about: about.to_owned(),
                    gravity: Gravity::Error,
                    message: change.why(*fails),
                    file: relative(change.object(), here),
                    program: change.name(),
                    line: None,
                    column: None,
                    text: None,
                });
            }
        }
        findings
    }

    /// A row's finding; none for an accepted program.
    fn of_row(row: &VerdictRow, here: &Path) -> Option<Self> {
        if row.verdict == Decision::Accept.word() {
            return None;
        }
        let source = row.refused.as_ref().and_then(|at| at.source.as_ref());
        let object = row.subject.object.as_deref().unwrap_or("?");
        let (about, message) = match &row.headline {
            Some(headline) => {
                let mut message = format!("{}: ", row.subject.name());
                // Without advice the problem is the error line.
                if headline.problem != row.message {
                    message += &format!("{}: ", headline.problem);
                }
                message += &format!("{}\n{}", row.reason(), headline.reason);
                if let Some(help) = &headline.help {
                    message += &format!("\nhelp: {help}");
                }
                (headline.category, message)
            }
            None => {
                let message = format!("{}: {}", row.subject.name(), row.reason());
                ("Invalid Program", message)
            }
        };
        let unjudged = row.verdict == Decision::Unjudged.word();
        Some(Self {
            rule: about.to_lowercase().replace(' ', "-"),
            about: about.to_owned(),
            gravity: if unjudged {
                Gravity::Warning
            } else {
                Gravity::Error
            },
            message,
            program: row.subject.name().to_owned(),
            file: relative(source.map_or(object, |line| &line.file), here),
            line: source.map(|line| line.line),
            column: source.map(|line| line.column).filter(|column| *column > 0),
            text: source.map(|line| line.text.clone()),
        })
    }
}

/// A path without `.` and `..`, relative if it is below `here`.
fn relative(path: &str, here: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in Path::new(path).components() {
        let undone = part == Component::ParentDir
            && matches!(parts.components().next_back(), Some(Component::Normal(_)));
        if undone {
            parts.pop();
        } else if part != Component::CurDir {
            parts.push(part);
        }
    }
    let below = parts.strip_prefix(here).unwrap_or(&parts);
    below.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_current_directory_are_relative() {
        let here = Path::new("/src/project");
        for (path, expected) in [
            ("./bpf/a.c", "bpf/a.c"),
            ("bpf/../lib/./a.h", "lib/a.h"),
            ("/src/project/bpf/a.c", "bpf/a.c"),
            ("/src/project/build/../bpf/a.c", "bpf/a.c"),
            ("../other/a.h", "../other/a.h"),
            ("/usr/include/a.h", "/usr/include/a.h"),
        ] {
            assert_eq!(relative(path, here), expected);
        }
    }
}
