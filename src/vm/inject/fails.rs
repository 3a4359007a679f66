//! How a function tells that it failed.

use crate::spec::helpers::{Ret, RetKind};
use crate::spec::kfuncs::{Kfunc, KfuncFlags};

/// How a function tells that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fails {
    /// By a negative errno.
    Errno,
    /// By null.
    Null,
    /// By nothing.
    Never,
}

/// Types of C that hold a negative errno.
const SIGNED: &[&str] = &["int", "long", "s32", "s64", "__s64", "ssize_t"];

impl Fails {
    /// A helper with such a result.
    pub(super) const fn of_helper(ret: Ret) -> Self {
        match ret.kind {
            RetKind::Integer => Self::Errno,
            RetKind::Void => Self::Never,
            _ if ret.nullable() => Self::Null,
            _ => Self::Never,
        }
    }

    /// A kernel function. "Null" of one that returns a number is 0, which is no failure
    /// (`bpf_res_spin_lock`).
    pub(super) fn of_kfunc(kfunc: &Kfunc) -> Self {
        if kfunc.flags.contains(KfuncFlags::RELEASE) {
            Self::Never
        } else if kfunc.flags.contains(KfuncFlags::RET_NULL) && kfunc.returns.ends_with('*') {
            Self::Null
        } else if SIGNED.contains(&kfunc.returns.trim_end()) {
            Self::Errno
        } else {
            Self::Never
        }
    }
}
