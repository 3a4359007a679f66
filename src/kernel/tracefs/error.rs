//! Why tracefs does not give what it was asked for.

use thiserror::Error;

use crate::util::Errno;
use crate::vm::events::EventError;

/// What went wrong with tracefs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TracefsError {
    /// There is none for us.
    #[error("tracefs is not available here: {errno}{}", hint(*errno))]
    Unavailable {
        /// What mounting it ended with.
        errno: Errno,
    },
    /// There is no such event.
    #[error("there is no tracepoint {group}/{name}{}", or_similar(.similar))]
    NoEvent {
        /// The group.
        group: String,
        /// The event.
        name: String,
        /// Events with a name like it, the nearest first.
        similar: Vec<String>,
    },
    /// A file can't be read or written.
    #[error("tracefs: {path}: {errno}{}", hint(*errno))]
    File {
        /// Its path in tracefs.
        path: String,
        /// What the kernel said.
        errno: Errno,
    },
    /// A file's content is not what it should be.
    #[error("tracefs: {path}: {problem}")]
    Content {
        /// Its path in tracefs.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A `format` file can't be understood.
    #[error(transparent)]
    Format(#[from] EventError),
}

impl TracefsError {
    /// Whether it is missing here, or may not be used, rather than asked for something
    /// wrong.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::File { errno, .. } => matches!(*errno, Errno::EPERM | Errno::EACCES),
            Self::NoEvent { .. } | Self::Content { .. } | Self::Format(_) => false,
        }
    }
}

/// What helps.
fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM | Errno::EACCES => {
            "; it takes root (CAP_SYS_ADMIN), and a kernel that is not locked down"
        }
        Errno::ENODEV => "; this kernel has no tracefs (CONFIG_TRACING)",
        Errno::ENOSYS => "; mounting it privately takes Linux 5.2",
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
        assert!(error.to_string().contains("it takes root"));
        assert!(error.is_unavailable());
        error = TracefsError::NoEvent {
            group: "irq".to_owned(),
            name: "softirq_entri".to_owned(),
            similar: vec!["irq/softirq_entry".to_owned()],
        };
        assert_eq!(
            error.to_string(),
            "there is no tracepoint irq/softirq_entri; similar are irq/softirq_entry"
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
