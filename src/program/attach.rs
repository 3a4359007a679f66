//! The program that another one attaches to.

use std::sync::Arc;

use super::Program;
use crate::btf::Kind;
use crate::util::TypeId;

/// What a program attaches to by its descriptor (`attach_prog_fd`).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum AttachProgram {
    /// Nothing: the program attaches to the kernel, or by other means.
    #[default]
    None,
    /// A program or a module's BTF; which one is not recorded.
    Unknown,
    /// This program.
    Known(Arc<TargetProgram>),
}

impl AttachProgram {
    /// Whether the load names a descriptor.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The program, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&TargetProgram> {
        match self {
            Self::Known(target) => Some(target),
            _ => None,
        }
    }
}

/// An accepted program, with what the verifier remembers of it for programs that attach to it
/// (`struct bpf_prog_aux`). `Verified::target` makes one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TargetProgram {
    /// The program.
    pub program: Arc<Program>,
    /// Its functions that are not dead code, the main program first; none without BTF.
    pub functions: Vec<TargetFunction>,
    /// Its id in the running kernel, if it is loaded there; otherwise it is loaded first with each
    /// program that attaches to it.
    pub kernel_id: Option<u32>,
}

impl TargetProgram {
    /// Whether the program has a function of this name, dead ones included.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        let btf = self.program.btf.as_ref();
        btf.is_some_and(|btf| btf.find(name, Kind::Func).is_some())
    }
}

/// A function that programs may attach to. Of a program that someone else has loaded into the
/// kernel, some facts are not known: a verdict that rests on one is unjudged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetFunction {
    /// Its `BTF_KIND_FUNC` in the program's BTF.
    pub type_id: TypeId,
    /// Whether its type holds for every call (`unreliable` is false).
    pub reliable: Option<bool>,
    /// Whether it is the exception callback.
    pub exception_callback: bool,
    /// Whether it, or a callee, may move packet bytes.
    pub changes_packet: Option<bool>,
    /// Whether it, or a callee, may sleep.
    pub might_sleep: Option<bool>,
}
