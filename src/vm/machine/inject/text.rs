//! Text form of injections: `TARGET[(MAP)][=ERRNO][@CALLS]`.

use std::fmt;
use std::str::FromStr;

use super::cause::Cause;
use super::error::InjectError;
use super::injection::{Injection, Target};
use super::schedule::Schedule;
use crate::util::Errno;

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Function(name) => write!(f, "bpf_{name}")?,
            Target::Cause(cause) => f.write_str(cause.name())?,
        }
        if let Some(map) = &self.map {
            write!(f, "({map})")?;
        }
        if let Some(errno) = self.errno {
            match errno.name() {
                Some(name) => write!(f, "={name}")?,
                None => write!(f, "={}", errno.0)?,
            }
        }
        self.schedule.fmt(f)
    }
}

/// The rest of a text, and its position.
struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn wrong(&self, wanted: &'static str) -> InjectError {
        InjectError::Syntax {
            text: self.text.to_owned(),
            at: self.at,
            wanted,
        }
    }

    fn left(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes the text up to any of these characters, or all of it.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let left = self.left();
        let taken = left.split(ends).next().unwrap_or(left);
        self.at += taken.len();
        taken
    }

    /// Takes a character if it is the next.
    fn take(&mut self, next: char) -> bool {
        let is_next = self.left().starts_with(next);
        self.at += usize::from(is_next) * next.len_utf8();
        is_next
    }

    fn number(&mut self) -> Result<u64, InjectError> {
        let digits = self
            .left()
            .split(|c: char| !c.is_ascii_digit())
            .next()
            .unwrap_or_default();
        let number = digits.parse().map_err(|_| self.wrong("a number"))?;
        self.at += digits.len();
        Ok(number)
    }

    /// A number of at least 1.
    fn ordinal(&mut self) -> Result<u64, InjectError> {
        let before = self.at;
        match self.number()? {
            0 => Err(InjectError::Syntax {
                text: self.text.to_owned(),
                at: before,
                wanted: "a number above 0",
            }),
            number => Ok(number),
        }
    }

    fn errno(&mut self) -> Result<Errno, InjectError> {
        let wanted = "the name of an error, such as ENOMEM,";
        let name = self.left().split('@').next().unwrap_or_default();
        let by_number = || name.parse().ok().filter(|n| *n > 0).map(Errno);
        let errno = Errno::from_name(name).or_else(by_number);
        let errno = errno.ok_or_else(|| self.wrong(wanted))?;
        self.at += name.len();
        Ok(errno)
    }

    fn schedule(&mut self) -> Result<Schedule, InjectError> {
        if self.take('/') {
            return Ok(Schedule::Every(self.ordinal()?));
        }
        if let Some((percent, _)) = self.left().split_once('%') {
            let chance = percent.parse::<f64>().ok();
            let chance = chance.filter(|chance| (0.0..=100.0).contains(chance));
            let chance = chance.ok_or_else(|| self.wrong("0 to 100 per cent"))?;
            self.at += percent.len() + 1;
            let seed = if self.take(':') { self.number()? } else { 0 };
            return Ok(Schedule::Chance(chance / 100.0, seed));
        }
        let first = self.ordinal()?;
        if !self.take('-') {
            return Ok(Schedule::Calls(first, Some(first)));
        }
        if self.left().is_empty() {
            return Ok(Schedule::Calls(first, None));
        }
        Ok(Schedule::Calls(first, Some(self.ordinal()?)))
    }
}

impl FromStr for Injection {
    type Err = InjectError;

    fn from_str(text: &str) -> Result<Self, InjectError> {
        let mut rest = Rest { text, at: 0 };
        let target = rest.until(&['(', '=', '@']);
        if target.is_empty() {
            return Err(rest.wrong("the name of a function or of a cause"));
        }
        let cause = Cause::NAMES.iter().find(|(name, _)| *name == target);
        let mut injection = match cause {
            Some((_, cause)) => Self::of(*cause),
            None => Self::call(target),
        };
        if rest.take('(') {
            let map = rest.until(&[')']);
            if map.is_empty() || !rest.take(')') {
                return Err(rest.wrong("a map's name and ')'"));
            }
            injection = injection.on_map(map);
        }
        if rest.take('=') {
            injection = injection.error(rest.errno()?);
        }
        if rest.take('@') {
            injection = injection.on(rest.schedule()?);
        }
        if !rest.left().is_empty() {
            return Err(rest.wrong("the end"));
        }
        Ok(injection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Injection, InjectError> {
        text.parse()
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for text in [
            "bpf_map_update_elem",
            "bpf_map_update_elem(hist)=ENOMEM@3",
            "map-update(a.b)=E2BIG@3-5",
            "buffer-full(events)@7-",
            "allocation@/2",
            "probe-read=EFAULT@12.5%",
            "probe-read@10%:7",
            "bpf_redirect=4000",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("map_pop_elem"), parse("bpf_map_pop_elem"));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let at = |text| match parse(text).unwrap_err() {
            InjectError::Syntax { at, wanted, .. } => (at, wanted),
            other => panic!("{other}"),
        };
        let name = "the name of an error, such as ENOMEM,";
        assert_eq!(at(""), (0, "the name of a function or of a cause"));
        assert_eq!(at("@3"), (0, "the name of a function or of a cause"));
        assert_eq!(at("x=ENOSUCH"), (2, name));
        assert_eq!(at("x=0@1"), (2, name));
        assert_eq!(at("x@0"), (2, "a number above 0"));
        assert_eq!(at("x@3-a"), (4, "a number"));
        assert_eq!(at("x@101%"), (2, "0 to 100 per cent"));
        assert_eq!(at("x@1%:"), (5, "a number"));
        assert_eq!(at("x@3!"), (3, "the end"));
        assert_eq!(at("x(m"), (3, "a map's name and ')'"));
        assert_eq!(at("x()"), (2, "a map's name and ')'"));
        assert_eq!(at("x(m)y"), (4, "the end"));
    }
}
