//! A kfunc as a program calls it: found by name, its result truncated to its type.

use std::sync::Arc;

use crate::btf::{Kind, essential_name};
use crate::program::Program;
use crate::spec::kfuncs::{self, KfuncId};
use crate::util::TypeId;

/// A kfunc that a program calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callee {
    name: Arc<str>,
    id: Option<KfuncId>,
    size: u32,
}

impl Callee {
    /// The kfunc that a program calls by this BTF ID: an ID of the kernel's BTF, or of the
    /// object's BTF if the program was prepared without a kernel. `None` if `fd_index` is not
    /// 0, since programs don't bring the BTF of modules.
    #[must_use]
    pub fn of(program: &Program, id: TypeId, fd_index: i16) -> Option<Self> {
        let btf = program.kernel_btf.as_ref().filter(|_| fd_index == 0)?;
        let function = btf.get(id).filter(|ty| ty.kind() == Kind::Func)?;
        let result = function.target().and_then(|prototype| {
            let result = prototype.target_id()?;
            btf.size_of(result).ok()
        });
        Some(Self::new(
            essential_name(function.name()),
            result.unwrap_or(8),
        ))
    }

    /// A kfunc with this name and a result of this many bytes.
    #[must_use]
    pub fn new(name: &str, size: u32) -> Self {
        Self {
            name: name.into(),
            id: kfuncs::by_name(name),
            size,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its row in the table, if there is one.
    #[must_use]
    pub const fn id(&self) -> Option<KfuncId> {
        self.id
    }

    /// The value in r0: truncated to the result's size, as compiled code leaves it after
    /// 32-bit operations.
    pub(super) const fn cut(&self, result: u64) -> u64 {
        match self.size {
            1 => result & 0xff,
            2 => result & 0xffff,
            4 => result & 0xffff_ffff,
            _ => result,
        }
    }
}
