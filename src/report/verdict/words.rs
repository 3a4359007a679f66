//! Words that rows and tables share.

use crate::util::Errno;

/// An error number and a message, as far as there are any.
pub(super) fn reason(errno: u16, message: &str) -> String {
    match (errno, message) {
        (0, message) => message.to_owned(),
        (errno, "") => format!("{:?}", Errno(errno)),
        (errno, message) => format!("{:?}: {message}", Errno(errno)),
    }
}

/// The word for a verdict.
pub(super) const fn word(accepted: bool) -> &'static str {
    if accepted { "accept" } else { "reject" }
}
