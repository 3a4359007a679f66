//! The first difference between two verifiers' logs of one program.

use std::fmt;

/// Lines shown before the first that differs.
const CONTEXT: usize = 3;

/// Lines shown of each log from there on.
const SHOWN: usize = 4;

/// The first difference of two logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDifference {
    /// The line, from 1.
    line: usize,
    before: Vec<String>,
    ours: Vec<String>,
    kernel: Vec<String>,
}

impl LogDifference {
    /// Compares line by line, without times and statistics.
    #[must_use]
    pub fn between(ours: &str, kernel: &str) -> Option<Self> {
        let lines = |log: &str| {
            let end = log.find("verification time ").unwrap_or(log.len());
            let log = log.get(..end).unwrap_or(log);
            log.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let (ours, kernel) = (lines(ours), lines(kernel));
        if ours == kernel {
            return None;
        }
        let equal = ours
            .iter()
            .zip(&kernel)
            .take_while(|(one, other)| one == other);
        let at = equal.count();
        let shown = |log: &[String]| log.iter().skip(at).take(SHOWN).cloned().collect();
        Some(Self {
            line: at + 1,
            before: ours
                .iter()
                .take(at)
                .skip(at.saturating_sub(CONTEXT))
                .cloned()
                .collect(),
            ours: shown(&ours),
            kernel: shown(&kernel),
        })
    }
}

impl fmt::Display for LogDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the logs differ from line {}", self.line)?;
        for (sign, lines) in [(' ', &self.before), ('-', &self.ours), ('+', &self.kernel)] {
            for line in lines {
                writeln!(f, "{sign} {line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown_with_what_led_to_it() {
        let ours = "a\nb\nc\nd\nours\nverification time 3 usec\n";
        let kernel = "a\nb\nc\nd\ntheirs\nmore\nverification time 9 usec\n";
        let difference = LogDifference::between(ours, kernel).unwrap();
        assert_eq!(
            difference.to_string(),
            "the logs differ from line 5\n  b\n  c\n  d\n- ours\n+ theirs\n+ more\n"
        );
        let later = ours.replace("time 3", "time 4");
        assert_eq!(LogDifference::between(ours, &later), None);
    }
}
