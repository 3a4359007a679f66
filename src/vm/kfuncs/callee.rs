//! A kernel function as a program calls it: found by name, its result cut to its type.

use std::sync::Arc;

use crate::btf::{Kind, essential_name};
use crate::program::Program;
use crate::spec::kfuncs::{self, KfuncId};
use crate::util::TypeId;

/// A kernel function that a program calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callee {
    name: Arc<str>,
    id: Option<KfuncId>,
    size: u32,
}

impl Callee {
    /// The function that a program calls by this number: of the kernel's BTF, or, in a
    /// program that was made ready without a kernel, of its object's, which declares it.
    /// `fd_index` is 0 but for functions of modules, whose BTF a program does not bring.
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

    /// A function of this name whose result has this many bytes.
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

    /// Its place in the table, if it has one.
    #[must_use]
    pub const fn id(&self) -> Option<KfuncId> {
        self.id
    }

    /// What a program finds in r0: as compiled code leaves it there, whose upper half is
    /// zero after it computed with 32 bits.
    pub(super) const fn cut(&self, result: u64) -> u64 {
        match self.size {
            1 => result & 0xff,
            2 => result & 0xffff,
            4 => result & 0xffff_ffff,
            _ => result,
        }
    }
}
