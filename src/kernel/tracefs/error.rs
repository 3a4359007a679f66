//! Errors of tracefs.

use thiserror::Error;

use crate::util::Errno;
use crate::vm::events::EventError;

/// Errors of tracefs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TracefsError {
    /// It is not mounted and can't be.
    #[error("tracefs is not available here: {errno}{}", hint(*errno))]
    Unavailable {
        /// The errno of mounting it.
        errno: Errno,
    },
    /// The event does not exist.
    #[error("no tracepoint {group}/{name}{}", or_similar(.similar))]
    NoEvent {
        /// The group.
        group: String,
        /// The event.
        name: String,
        /// Events with similar names, the nearest first.
        similar: Vec<String>,
    },
    /// A file can't be read or written.
    #[error("tracefs: {path}: {errno}{}", hint(*errno))]
    File {
        /// Its path in tracefs.
        path: String,
        /// The errno.
        errno: Errno,
    },
    /// A file has unexpected contents.
    #[error("tracefs: {path}: {problem}")]
    Content {
        /// Its path in tracefs.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A `format` file can't be parsed.
    #[error(transparent)]
    Format(#[from] EventError),
}

impl TracefsError {
    /// Whether tracefs is missing or not permitted, and not the request wrong.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::File { errno, .. } => matches!(*errno, Errno::EPERM | Errno::EACCES),
            Self::NoEvent { .. } | Self::Content { .. } | Self::Format(_) => false,
        }
    }
}

/// A hint for an errno.
fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM | Errno::EACCES => {
            "; needs root (CAP_SYS_ADMIN), and a kernel that is not locked down"
        }
        Errno::ENODEV => "; this kernel has no tracefs (CONFIG_TRACING)",
        Errno::ENOSYS => "; mounting it privately needs Linux 5.2",
        _ => "",
    }
}

fn or_similar(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("; similar are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let mut error = TracefsError::Unavailable {
            errno: Errno::EPERM,
        };
        assert!(error.to_string().contains("needs root"));
        assert!(error.is_unavailable());
        error = TracefsError::NoEvent {
            group: "irq".to_owned(),
            name: "softirq_entri".to_owned(),
            similar: vec!["irq/softirq_entry".to_owned()],
        };
        assert_eq!(
            error.to_string(),
            "no tracepoint irq/softirq_entri; similar are irq/softirq_entry"
        );
        assert!(!error.is_unavailable());
        error = TracefsError::File {
            path: "events/a/b/id".to_owned(),
            errno: Errno::EIO,
        };
        assert_eq!(
            error.to_string(),
            "tracefs: events/a/b/id: EIO (Input/output error)"
        );
    }
}
