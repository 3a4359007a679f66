//! Names in the text of instructions that this module does not know.

use std::borrow::Cow;

use super::table::Pseudo;
use crate::util::{HelperId, TypeId};

/// Maps numbers to names for printing, and names to numbers for assembling. Every method
/// defaults to "unknown", so an implementation provides only what it knows.
pub trait Names {
    /// The name of a helper, such as `bpf_map_lookup_elem`.
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        let _ = id;
        None
    }

    /// The name of a kfunc. The text then omits `fd_index`, as the kernel's does, so
    /// [`kfunc_named`](Self::kfunc_named) must return it.
    fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Cow<'_, str>> {
        let _ = (id, fd_index);
        None
    }

    /// The text of a pseudo source, such as the address that the kernel prints.
    fn pseudo(&self, source: Pseudo) -> Option<Cow<'_, str>> {
        let _ = source;
        None
    }

    /// The helper of this name.
    fn helper_named(&self, name: &str) -> Option<HelperId> {
        let _ = name;
        None
    }

    /// The kfunc of this name: its BTF id and index into `fd_array`.
    fn kfunc_named(&self, name: &str) -> Option<(TypeId, i16)> {
        let _ = name;
        None
    }
}

/// Provides no names.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoNames;

impl Names for NoNames {}
