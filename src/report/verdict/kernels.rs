//! The verdicts of several kernels in one table.

use std::fmt;

use serde::Deserialize;

use super::kernel_said::Match;
use super::row::Subject;
use super::words::reason;

/// Who said why.
type Reasons = Vec<(&'static str, String)>;

/// What one kernel said, and bpflab for that kernel if it was asked: the JSON of `verify
/// --vs-kernel` or of `kernel load`.
#[derive(Debug, Clone, Deserialize)]
struct Said {
    id: Option<String>,
    object: Option<String>,
    program: Option<String>,
    #[serde(flatten)]
    verdict: Verdict,
    kernel: Option<Verdict>,
    #[serde(rename = "match")]
    matches: Option<Match>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Verdict {
    verdict: String,
    errno: Option<u16>,
    #[serde(default)]
    message: String,
}

impl Said {
    fn subject(&self) -> Subject {
        Subject {
            id: self.id.clone(),
            object: self.object.clone(),
            program: self.program.clone(),
            ..Subject::default()
        }
    }

    /// Whether bpflab was asked and said something else.
    fn differs(&self) -> bool {
        match (&self.kernel, &self.matches) {
            (None, _) => false,
            (Some(_), Some(compared)) => !compared.is_whole(),
            // One of the two has no verdict.
            (Some(_), None) => true,
        }
    }

    /// The kernel's verdict.
    fn kernel(&self) -> &Verdict {
        self.kernel.as_ref().unwrap_or(&self.verdict)
    }

    fn cell(&self) -> String {
        let kernel = &self.kernel().verdict;
        let ours = &self.verdict.verdict;
        match self.matches {
            _ if !self.differs() => kernel.clone(),
            Some(compared) if ours == kernel => {
                format!("{kernel}, other {}", compared.differing().join(" and "))
            }
            _ => format!("{kernel}, ours {ours}"),
        }
    }

    /// Both reasons if they differ, the kernel's if it did not accept.
    fn reasons(&self) -> Reasons {
        let kernel = self.kernel();
        let ours = self.differs().then_some(("ours", &self.verdict));
        let said = ours.into_iter().chain([("kernel", kernel)]);
        said.map(|(who, said)| (who, reason(said.errno, &said.message)))
            .filter(|(_, reason)| !reason.is_empty())
            .collect()
    }
}

/// A row for each program, a column for each kernel, and below what is not accepted everywhere.
/// It is Markdown, too.
#[derive(Debug, Default)]
pub struct KernelsTable {
    kernels: Vec<String>,
    /// The programs, each with what each kernel said.
    programs: Vec<(Subject, Vec<Option<Said>>)>,
}

impl KernelsTable {
    /// Adds a kernel by its release, and what it said: lines of JSON. Lines that are no verdicts
    /// are left out; errors are printed where they happen.
    pub fn add(&mut self, release: &str, lines: &str) {
        let before = self.kernels.len();
        self.kernels.push(release.to_owned());
        for line in lines.lines() {
            let Ok(said) = serde_json::from_str::<Said>(line) else {
                continue;
            };
            let subject = said.subject();
            // Two programs of an object can have one name: the first that has no cell yet.
            let free = self
                .programs
                .iter_mut()
                .find(|(program, cells)| *program == subject && cells.len() <= before);
            if let Some((_, cells)) = free {
                cells.resize(before, None);
                cells.push(Some(said));
            } else {
                let mut cells = vec![None; before];
                cells.push(Some(said));
                self.programs.push((subject, cells));
            }
        }
    }
}

impl fmt::Display for KernelsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = Subject::several_objects(self.programs.iter().map(|(program, _)| program));
        let mut rows = Vec::new();
        for (program, cells) in &self.programs {
            let cells = (0..self.kernels.len()).map(|at| {
                let said = cells.get(at).and_then(Option::as_ref);
                said.map_or_else(|| "no answer".to_owned(), Said::cell)
            });
            rows.push(
                [program.name_among(several)]
                    .into_iter()
                    .chain(cells)
                    .collect::<Vec<_>>(),
            );
        }
        let head = ["program".to_owned()]
            .into_iter()
            .chain(self.kernels.iter().cloned());
        let head: Vec<_> = head.collect();
        let width = |at: usize| {
            let cells = rows.iter().chain([&head]).filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..head.len()).map(width).collect();
        let mut line = |cells: &[String]| {
            for (cell, width) in cells.iter().zip(&widths) {
                write!(f, "| {cell:<width$} ")?;
            }
            writeln!(f, "|")
        };
        line(&head)?;
        line(
            &widths
                .iter()
                .map(|width| "-".repeat(*width))
                .collect::<Vec<_>>(),
        )?;
        rows.iter().try_for_each(|row| line(row))?;
        self.reasons(several, f)
    }
}

impl KernelsTable {
    /// The reasons below the table; kernels that say the same share a paragraph.
    fn reasons(&self, several: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (program, cells) in &self.programs {
            let name = program.name_among(several);
            let mut told: Vec<(Reasons, Vec<&str>)> = Vec::new();
            for (kernel, said) in self.kernels.iter().zip(cells) {
                let reasons = said.as_ref().map(Said::reasons).unwrap_or_default();
                match told.iter_mut().find(|(other, _)| *other == reasons) {
                    _ if reasons.is_empty() => {}
                    Some((_, kernels)) => kernels.push(kernel),
                    None => told.push((reasons, vec![kernel])),
                }
            }
            for (reasons, kernels) in told {
                writeln!(f, "\n{name} on {}:", kernels.join(", "))?;
                for (who, reason) in reasons {
                    writeln!(f, "    {who:<6} {reason}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(program: &str, ours: &str, kernel: &str, message: &str) -> String {
        let whole = ours == kernel;
        format!(
            r#"{{"object":"x.o","program":"{program}","verdict":"{ours}","errno":13,"message":"",
            "kernel":{{"verdict":"{kernel}","errno":13,"message":"{message}"}},
            "match":{{"verdict":{whole},"errno":null,"message":null,"processed":null}}}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn a_row_for_each_program_a_column_for_each_kernel() {
        let mut table = KernelsTable::default();
        let accepted = said("a", "accept", "accept", "").replace("13", "0");
        let rejected = said("b", "reject", "reject", "R0 !read_ok");
        table.add(
            "6.1",
            &format!("{accepted}\n{rejected}\n{{\"error\":\"x\"}}\n"),
        );
        let other = said("b", "accept", "reject", "too large");
        table.add("7.2", &format!("{accepted}\n{other}"));
        table.add("7.3", "");
        assert_eq!(
            table.to_string(),
            "\
| program | 6.1    | 7.2                 | 7.3       |
| ------- | ------ | ------------------- | --------- |
| a       | accept | accept              | no answer |
| b       | reject | reject, ours accept | no answer |

b on 6.1:
    kernel EACCES: R0 !read_ok

b on 7.2:
    ours   EACCES
    kernel EACCES: too large
"
        );
    }

    #[test]
    fn kernels_that_say_the_same_share_a_paragraph() {
        let mut table = KernelsTable::default();
        let line = r#"{"object":"x.o","program":"p","verdict":"reject","errno":22,"message":"no"}"#;
        table.add("6.1", line);
        table.add("6.12", &format!("{line}\n{line}"));
        let text = table.to_string();
        assert!(
            text.contains("p on 6.1, 6.12:\n    kernel EINVAL: no\n"),
            "{text}"
        );
        assert_eq!(
            text.matches("no answer").count(),
            1,
            "two programs of one name: {text}"
        );
    }
}
