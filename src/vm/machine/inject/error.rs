//! Errors of injections.

use thiserror::Error;

/// Why an injection is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InjectError {
    /// No helper or kfunc has this name.
    #[error("Linux 6.18 has no helper '{0}', and bpflab knows no kfunc with this name")]
    Unknown(String),
    /// A function that can't report failure.
    #[error("'{0}' can't fail: its result can't report an error; mock it to return another value")]
    CannotFail(String),
    /// Malformed text.
    #[error(
        "injection '{text}' at byte {at}: {wanted} expected, as in \
         map-update(hist)=ENOMEM@3 or bpf_probe_read=EFAULT@10%:7"
    )]
    Syntax {
        /// The text.
        text: String,
        /// Offset of the mistake.
        at: usize,
        /// What is expected there.
        wanted: &'static str,
    },
}
