//! How functions report failure.

use crate::spec::helpers::{Ret, RetKind};
use crate::spec::kfuncs::{Kfunc, KfuncFlags, KfuncResult};

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
    /// For a helper with this return type.
    pub(in crate::vm) const fn of_helper(ret: Ret) -> Self {
        match ret.kind {
            RetKind::Integer => Self::Errno,
            RetKind::Void => Self::Never,
            _ if ret.nullable() => Self::Null,
            _ => Self::Never,
        }
    }

    /// For a kfunc. `KF_RET_NULL` kfuncs that return a number return 0 for success
    /// (`bpf_res_spin_lock`), so 0 is not used for them.
    pub(in crate::vm) fn of_kfunc(kfunc: &Kfunc) -> Self {
        if kfunc.flags.contains(KfuncFlags::RELEASE) {
            Self::Never
        } else if kfunc.flags.contains(KfuncFlags::RET_NULL) && kfunc.result.is_pointer() {
            Self::Null
        } else if kfunc.result == KfuncResult::Signed {
            Self::Errno
        } else {
            Self::Never
        }
    }
}
