//! Names that a text of instructions uses and this module cannot know.

use std::borrow::Cow;

use super::table::Pseudo;
use crate::util::{HelperId, TypeId};

/// Gives names to numbers, for printing, and numbers to names, for assembling.
/// Every method has an answer for "unknown", so an implementation supplies only
/// what it knows.
pub trait Names {
    /// The name of a helper, such as `bpf_map_lookup_elem`.
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        let _ = id;
        None
    }

    /// The name of a kernel function. The text then leaves out `fd_index`, as the
    /// kernel's does, so [`kfunc_named`](Self::kfunc_named) must know it.
    fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Cow<'_, str>> {
        let _ = (id, fd_index);
        None
    }

    /// What to print for a pseudo source, such as the address that the kernel prints.
    fn pseudo(&self, source: Pseudo) -> Option<Cow<'_, str>> {
        let _ = source;
        None
    }

    /// The helper of this name.
    fn helper_named(&self, name: &str) -> Option<HelperId> {
        let _ = name;
        None
    }

    /// The kernel function of this name: its BTF id and index into `fd_array`.
    fn kfunc_named(&self, name: &str) -> Option<(TypeId, i16)> {
        let _ = name;
        None
    }
}

/// Knows no name.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoNames;

impl Names for NoNames {}
