//! Words that rows and tables share.

use crate::util::Errno;
use crate::verifier::Decision;

/// An error number and a message, as far as there are any.
pub(super) fn reason(errno: Option<u16>, message: &str) -> String {
    match (errno, message) {
        (None | Some(0), message) => message.to_owned(),
        (Some(errno), "") => format!("{:?}", Errno(errno)),
        (Some(errno), message) => format!("{:?}: {message}", Errno(errno)),
    }
}

/// The error number of a verdict in `--json`: 0 for an accepted program, none for an
/// unjudged one.
pub(super) fn errno(decision: Decision, errno: Option<Errno>) -> Option<u16> {
    match decision {
        Decision::Accept => Some(0),
        Decision::Reject => errno.map(|errno| errno.0),
        Decision::Unjudged => None,
    }
}

/// Whether this is the word for a verdict that another can be compared with.
pub(super) fn is_verdict(word: &str) -> bool {
    [Decision::Accept, Decision::Reject]
        .iter()
        .any(|decision| decision.word() == word)
}
