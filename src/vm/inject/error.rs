//! Injections that make no sense.

use thiserror::Error;

/// Why there can't be such an injection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InjectError {
    /// No helper or kernel function has this name.
    #[error("Linux 6.18 has no helper '{0}', and bpflab knows no such kernel function")]
    Unknown(String),
    /// A function that has no way to tell a program that it failed.
    #[error("'{0}' can't fail: it has no result that says so; mock it to return another one")]
    CannotFail(String),
    /// A text that is no injection.
    #[error(
        "injection '{text}' at byte {at}: {wanted} expected, as in \
         map-update(hist)=ENOMEM@3 or bpf_probe_read=EFAULT@10%:7"
    )]
    Syntax {
        /// The text.
        text: String,
        /// Where it goes wrong.
        at: usize,
        /// What should stand there.
        wanted: &'static str,
    },
}
