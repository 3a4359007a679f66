//! The reject: why a program is not accepted.

use std::fmt;

use thiserror::Error;

use super::missing::Feature;
use super::trail::Trail;
use crate::spec::call::Precondition;
use crate::util::{Errno, Pc};

/// The result of a check of the verifier.
pub(crate) type VerifyResult<T = ()> = Result<T, Reject>;

/// A reject: the kernel's error number and message, and the instruction.
///
/// Boxed inside, so that checks that pass stay cheap.
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
    violated: Option<Precondition>,
}

impl Reject {
    /// A reject with the kernel's message: one or more lines, without the final newline.
    pub(crate) fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self(Box::new(Fault {
            errno,
            text: text.into(),
            pc: None,
            trail: None,
            unmodelled: None,
            violated: None,
        }))
    }

    /// Ends a verification at a feature that this verifier does not model. Internal to the
    /// verifier: [`verify`](super::verify) turns it into `Unverified::Unjudged`.
    pub(super) fn unmodelled(feature: Feature) -> Self {
        let mut reject = Self::new(Errno(0), "");
        reject.0.unmodelled = Some(feature);
        reject
    }

    /// The unmodelled feature that ended the verification, if any. A caller that replaces a
    /// check's reject by its own has to check this first.
    pub(super) fn feature(&self) -> Option<Feature> {
        self.0.unmodelled
    }

    /// Sets the instruction, unless there is one already.
    #[must_use]
    pub(crate) fn at(mut self, pc: Pc) -> Self {
        self.0.pc.get_or_insert(pc);
        self
    }

    /// Sets the trail, unless there is one already.
    #[must_use]
    pub(crate) fn with_trail(mut self, trail: impl FnOnce() -> Trail) -> Self {
        self.0.trail.get_or_insert_with(trail);
        self
    }

    /// Sets the violated precondition of a call, unless there is one already.
    #[must_use]
    pub(super) fn violating(mut self, precondition: Precondition) -> Self {
        self.0.violated.get_or_insert(precondition);
        self
    }

    /// Appends a line to the message.
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

    /// Replaces the error number.
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

    /// The lines that the kernel prints; empty if it prints nothing.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The last of these lines: the error line.
    #[must_use]
    pub fn message(&self) -> &str {
        self.0.text.lines().next_back().unwrap_or_default()
    }

    /// The instruction at fault; `None` if the fault is not at one instruction.
    #[must_use]
    pub fn pc(&self) -> Option<Pc> {
        self.0.pc
    }

    /// The precondition that an argument of a helper violates; `None` for other faults.
    #[doc(hidden)]
    #[must_use]
    pub fn violated(&self) -> Option<Precondition> {
        self.0.violated
    }

    /// The path that led to the reject, if one was recorded.
    #[must_use]
    pub fn trail(&self) -> Option<&Trail> {
        self.0.trail.as_ref()
    }
}

/// Returns `Err` with an error number and a kernel message.
macro_rules! reject {
    ($errno:ident, $($text:tt)+) => {
        return Err($crate::verifier::reject::Reject::new(
            $crate::util::Errno::$errno,
            format!($($text)+),
        ))
    };
}
pub(crate) use reject;

/// Returns `Err` for a program that uses a [`Feature`] which this verifier does not model.
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
        fn check() -> VerifyResult {
            unmodelled!(Ksym);
        }
        let stop = check().unwrap_err();
        let stop = stop
            .and("Caller passes invalid args")
            .with_errno(Errno::EINVAL);
        assert_eq!(stop.feature(), Some(Feature::Ksym));
        assert_eq!((stop.errno(), stop.text()), (Errno(0), ""));
        assert_eq!(Reject::new(Errno::EINVAL, "").feature(), None);
    }

    #[test]
    fn a_check_returns_with_the_words() {
        fn check(offset: i32) -> VerifyResult {
            if offset > 0 {
                reject!(EINVAL, "invalid offset {offset}");
            }
            Ok(())
        }
        assert_eq!(check(0), Ok(()));
        assert_eq!(check(3).unwrap_err().message(), "invalid offset 3");
    }
}
