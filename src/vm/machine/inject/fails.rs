//! How functions report failure.

use crate::spec::call::{ArgSpec, CallSpec, ResultKind};

/// How a function reports failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum Fails {
    /// With a negative errno.
    Errno,
    /// With null.
    Null,
    /// Not at all.
    Never,
}

impl Fails {
    /// For this function. Kfuncs that return a number, but may "return null", return 0 for
    /// success (`bpf_res_spin_lock`), so 0 is not used for them.
    pub(in crate::vm) fn of(function: &CallSpec) -> Self {
        match function.result.kind {
            ResultKind::Signed => Self::Errno,
            ResultKind::Nothing | ResultKind::Unsigned => Self::Never,
            // After a failure the program would still hold the reference.
            _ if function.arguments.iter().any(always_released) => Self::Never,
            _ if function.result.nullable => Self::Null,
            _ => Self::Never,
        }
    }
}

fn always_released(argument: &ArgSpec) -> bool {
    argument.releases() && !argument.nullable
}
