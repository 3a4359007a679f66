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
    /// Compares line by line, without times, statistics and the addresses of maps.
    #[must_use]
    pub fn between(ours: &str, kernel: &str) -> Option<Self> {
        let lines = |log: &str| {
            let end = log.find("verification time ").unwrap_or(log.len());
            let log = log.get(..end).unwrap_or(log);
            log.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let (ours, kernel) = (lines(ours), lines(kernel));
        let same = |one: &String, other: &String| {
            one == other
                || without_address(one).is_some_and(|it| Some(it) == without_address(other))
        };
        let equal = ours
            .iter()
            .zip(&kernel)
            .take_while(|(one, other)| same(one, other));
        let at = equal.count();
        if at == ours.len() && at == kernel.len() {
            return None;
        }
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

/// The parts of a line before and after the kernel's address that a 64-bit immediate loads.
fn without_address(line: &str) -> Option<(&str, &str)> {
    let load = line.find("(18) r")?;
    let at = load + line.get(load..)?.find("= 0xffff")?;
    let rest = line.get(at + 2..)?;
    let end = rest.find(' ').unwrap_or(rest.len());
    Some((line.get(..at)?, rest.get(end..)?))
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

    #[test]
    fn addresses_of_maps_are_the_same() {
        let load = |address, off| format!("3: (18) r1 = {address} ; R1=map_ptr(off={off})\n");
        let (ours, kernel) = ("0xffff888100000000", "0xffff88810ebe0c00");
        let between = |a: &str, b: &str| LogDifference::between(a, b);
        assert_eq!(between(&load(ours, 4), &load(kernel, 4)), None);
        assert!(between(&load(ours, 4), &load(kernel, 8)).is_some());
        assert!(between(&load(ours, 4), &load("0x8", 4)).is_some());
    }
}
