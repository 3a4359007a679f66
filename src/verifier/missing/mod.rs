//! Features that this verifier does not model. A program that uses one is neither accepted
//! nor rejected: it is unjudged.
//!
//! Exploration stops at the first such use; [`scan`] finds those in the program that an
//! instruction shows. The functions of [`Feature`] say which features a program, an
//! instruction, an argument or a result needs; both exploration and scan call them. Uses that
//! depend on the contents of registers are only listed where exploration stops.

mod scan;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::btf::Btf;
use crate::isa::{CallTarget, Code, Insn, Pseudo};
use crate::program::Program;
use crate::spec::helpers::{RetKind, helper};
use crate::spec::kfuncs;
use crate::util::{Pc, TypeId};

/// How pahole marks kfuncs in a kernel's BTF, since Linux 6.10 (`BTF_KFUNC_TYPE_TAG`).
const KFUNC_TAG: &str = "bpf_kfunc";
pub(super) use scan::scan;

/// Declares [`Feature`]: the variants, their keys in `--json`, and their names.
macro_rules! features {
    ($($variant:ident $key:literal $name:literal $doc:literal,)+) => {
        /// A feature of BPF programs that this verifier does not model.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Feature {
            $(#[doc = $doc] $variant,)+
        }

        impl Feature {
            /// Every feature.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The key in `--json`: `kfunc`, `kernel_btf`.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// The name in a sentence: `kfunc`, `struct_ops program`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

features! {
    StructOps "struct_ops" "struct_ops program"
        "A program that implements a structure or a member which Linux 6.18 does not have.",
    Extension "extension" "extension program without its target"
        "A program that replaces a function of another one, which was not given.",
    AttachProgram "attach_program" "attach_prog_fd"
        "A program that attaches to another program or to a module by a descriptor \
         (`attach_prog_fd`), which says nothing outside of its process.",
    KernelBtf "kernel_btf" "kernel type without the kernel's BTF"
        "A type of the kernel, where the kernel's BTF was not given.",
    Kfunc "kfunc" "kfunc" "A call of a kfunc.",
    Ksym "ksym" "address of a kernel symbol"
        "The address of a kernel variable, or of a module's symbol.",
    MapShape "map_shape" "map that its tool completes at run time"
        "A key, a value or an inner map of a map whose tool sets the shape at run time.",
}

impl Feature {
    /// The feature that an instruction needs, regardless of its registers.
    pub(super) fn of_insn(program: &Program, insn: &Insn) -> Option<Self> {
        match *insn {
            Insn::LoadPseudo {
                source: Pseudo::BtfId { btf_fd, .. },
                ..
            } => (btf_fd != 0 || program.kernel_btf.is_none()).then_some(Self::Ksym),
            _ => None,
        }
    }

    /// The feature that a call of a kfunc needs.
    pub(super) fn of_kfunc(program: &Program, id: TypeId, fd_index: i16) -> Option<Self> {
        // The placeholder of an unresolved weak kfunc.
        if (id, fd_index) == (TypeId(0), 0) {
            return None;
        }
        if fd_index != 0 {
            return Some(Self::Kfunc);
        }
        let Some(btf) = &program.kernel_btf else {
            return Some(Self::KernelBtf);
        };
        match kfuncs::by_name(btf.get(id)?.name()) {
            Some(_) => None,
            None => Self::of_unknown_kfunc(program, id),
        }
    }

    /// The feature that a call of a function needs that is no kfunc of Linux 6.18. If a kernel's
    /// types mark it as a kfunc, another release has it; else programs must not call it. The
    /// object's own types say nothing about the kernel.
    pub(super) fn of_unknown_kfunc(program: &Program, id: TypeId) -> Option<Self> {
        let is_kfunc = |kernel: &Btf| kernel.decl_tags(id).any(|tag| tag.name() == KFUNC_TAG);
        program
            .kernel_types()
            .is_none_or(is_kfunc)
            .then_some(Self::Kfunc)
    }

    /// The feature that the result of a helper needs.
    pub(super) fn of_result(program: &Program, kind: RetKind) -> Option<Self> {
        match kind {
            RetKind::PtrToBtfId | RetKind::PtrToMemOrBtfId if program.kernel_btf.is_none() => {
                Some(Self::KernelBtf)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A use of a feature that is not modelled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The feature.
    pub feature: Feature,
    /// The name of the kfunc, the helper or the symbol.
    pub name: Option<String>,
    /// The instruction that uses it; `None` if the program as a whole does.
    pub pc: Option<Pc>,
}

impl Missing {
    /// A use of a feature by an instruction of a program, or by the program as a whole.
    pub(super) fn new(program: &Program, feature: Feature, pc: Option<Pc>) -> Self {
        let insn = pc.and_then(|pc| Code::new(&program.insns).insn(pc));
        let symbol = |id| Some(program.kernel_btf.as_ref()?.get(id)?.name().to_owned());
        let name = match insn {
            Some(Insn::Call(CallTarget::Kfunc { id, fd_index: 0 })) => symbol(id),
            Some(Insn::Call(CallTarget::Helper(id))) => {
                helper(id).map(|helper| format!("bpf_{}", helper.name))
            }
            Some(Insn::LoadPseudo {
                source: Pseudo::BtfId { id, btf_fd: 0 },
                ..
            }) => symbol(id),
            _ => None,
        };
        Self { feature, name, pc }
    }
}

/// `kfunc bpf_rbtree_add (insn 12)`.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.feature)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match self.pc {
            Some(pc) => write!(f, " (insn {pc})"),
            None => Ok(()),
        }
    }
}
