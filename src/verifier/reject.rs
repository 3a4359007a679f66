//! Why a program is refused.

use std::fmt;

use thiserror::Error;

use super::missing::Feature;
use super::trail::Trail;
use crate::util::{Errno, Pc};

/// What every check of the verifier gives back.
pub(crate) type Checked<T = ()> = Result<T, Reject>;

/// A program refused: the kernel's error number and words, and where it happened.
///
/// Boxed inside, so that the checks that pass stay cheap.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct Reject(Box<Fault>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    errno: Errno,
    text: String,
    pc: Option<Pc>,
    trail: Option<Trail>,
    unmodelled: Option<Feature>,
}

impl Reject {
    /// A reject in the kernel's words: one or more lines without the last line's end.
    pub(crate) fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self(Box::new(Fault {
            errno,
            text: text.into(),
            pc: None,
            trail: None,
            unmodelled: None,
        }))
    }

    /// The end of a verification that comes to what this verifier does not model. Only
    /// the verifier sees one: [`verify`](super::verify) makes `Unverified::Unjudged` of it.
    pub(super) fn unmodelled(feature: Feature) -> Self {
        let mut reject = Self::new(Errno(0), "");
        reject.0.unmodelled = Some(feature);
        reject
    }

    /// What this verifier does not model, if that is why the verification ended. Whoever
    /// makes another error of one that a check gives back asks first.
    pub(super) fn feature(&self) -> Option<Feature> {
        self.0.unmodelled
    }

    /// The same at an instruction, unless one is named already.
    #[must_use]
    pub(crate) fn at(mut self, pc: Pc) -> Self {
        self.0.pc.get_or_insert(pc);
        self
    }

    /// The same with the way that led to it, unless one is known already.
    #[must_use]
    pub(crate) fn with_trail(mut self, trail: impl FnOnce() -> Trail) -> Self {
        self.0.trail.get_or_insert_with(trail);
        self
    }

    /// One more line behind those that are there.
    #[must_use]
    pub(crate) fn and(mut self, line: impl fmt::Display) -> Self {
        if self.0.unmodelled.is_some() {
            return self;
        }
        if !self.0.text.is_empty() {
            self.0.text.push('\n');
        }
        self.0.text.push_str(&line.to_string());
        self
    }

    /// The same words under another error number.
    #[must_use]
    pub(crate) fn with_errno(mut self, errno: Errno) -> Self {
        if self.0.unmodelled.is_none() {
            self.0.errno = errno;
        }
        self
    }

    /// The error number that `bpf(BPF_PROG_LOAD)` would set.
    #[must_use]
    pub fn errno(&self) -> Errno {
        self.0.errno
    }

    /// The lines that the kernel prints for it; empty where it refuses in silence.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The last of these lines: the error line.
    #[must_use]
    pub fn message(&self) -> &str {
        self.0.text.lines().next_back().unwrap_or_default()
    }

    /// The instruction at fault; none where the fault is the program's as a whole.
    #[must_use]
    pub fn pc(&self) -> Option<Pc> {
        self.0.pc
    }

    /// The way that led to it, where the walk has noted one.
    #[must_use]
    pub fn trail(&self) -> Option<&Trail> {
        self.0.trail.as_ref()
    }
}

/// `Err` with an error number and a line in the kernel's words.
macro_rules! reject {
    ($errno:ident, $($text:tt)+) => {
        return Err($crate::verifier::reject::Reject::new(
            $crate::util::Errno::$errno,
            format!($($text)+),
        ))
    };
}
pub(crate) use reject;

/// `Err` for a program that uses a [`Feature`] that this verifier does not model.
macro_rules! unmodelled {
    ($feature:ident) => {
        return Err($crate::verifier::reject::Reject::unmodelled(
            $crate::verifier::missing::Feature::$feature,
        ))
    };
}
pub(crate) use unmodelled;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_message() {
        let reject = Reject::new(Errno::EACCES, "R1 max value is outside")
            .and("R1 unbounded")
            .at(Pc(4))
            .at(Pc(5));
        assert_eq!(reject.message(), "R1 unbounded");
        assert_eq!(reject.text(), "R1 max value is outside\nR1 unbounded");
        assert_eq!(reject.pc(), Some(Pc(4)));
        assert_eq!(Reject::new(Errno::EINVAL, "").message(), "");
    }

    #[test]
    fn what_is_not_modelled_stays_so() {
        fn check() -> Checked {
            unmodelled!(Arena);
        }
        let stop = check().unwrap_err();
        let stop = stop
            .and("Caller passes invalid args")
            .with_errno(Errno::EINVAL);
        assert_eq!(stop.feature(), Some(Feature::Arena));
        assert_eq!((stop.errno(), stop.text()), (Errno(0), ""));
        assert_eq!(Reject::new(Errno::EINVAL, "").feature(), None);
    }

    #[test]
    fn a_check_returns_with_the_words() {
        fn check(offset: i32) -> Checked {
            if offset > 0 {
                reject!(EINVAL, "invalid offset {offset}");
            }
            Ok(())
        }
        assert_eq!(check(0), Ok(()));
        assert_eq!(check(3).unwrap_err().message(), "invalid offset 3");
    }
}
