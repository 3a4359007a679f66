//! How far bpflab supports the kfuncs of a kernel: `bpflab kernel check`,
//! `bpflab inspect --support` of a kernel's BTF.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::btf::{Btf, Kind};
use crate::spec::kfuncs;
use crate::vm::kfuncs::body;

/// The kfuncs of a kernel, counted. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KfuncSupport {
    /// Functions that the BTF tags as kfuncs.
    pub in_btf: usize,
    /// Those in bpflab's table.
    pub known: usize,
    /// Those whose calls the verifier judges: all in the table.
    pub judged: usize,
    /// Those with a body: others need a mock to run.
    pub with_body: usize,
}

impl KfuncSupport {
    /// Counts the kfuncs of a kernel's BTF.
    #[must_use]
    pub fn of(kernel: &Btf) -> Self {
        let tags = kernel.types().filter(|ty| ty.kind() == Kind::DeclTag);
        let tags = tags.filter(|tag| tag.name() == "bpf_kfunc" && tag.component().is_none());
        let names: BTreeSet<_> = tags.filter_map(|tag| Some(tag.target()?.name())).collect();
        let known = { names.iter() }.filter_map(|name| kfuncs::by_name(name));
        let known: Vec<_> = known.collect();
        let count = |has: fn(&kfuncs::KfuncId) -> bool| known.iter().filter(|id| has(id)).count();
        Self {
            in_btf: names.len(),
            known: known.len(),
            judged: known.len(),
            with_body: count(|id| body(*id).is_some()),
        }
    }
}

impl fmt::Display for KfuncSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            in_btf,
            known,
            judged,
            with_body,
        } = self;
        if *in_btf == 0 {
            return f.write_str("not marked in the kernel's BTF, so not counted");
        }
        write!(
            f,
            "{in_btf} in the kernel's BTF, {known} known, {judged} judged, {with_body} with a body"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Linkage};
    use crate::util::TypeId;

    #[test]
    fn tagged_functions_are_counted_by_what_is_known_of_them() {
        let mut builder = Builder::new();
        let prototype = builder.prototype(TypeId(0), &[]);
        // With a body; without; known to the engines only; of a module; not tagged.
        let kfuncs = [
            "bpf_task_acquire",
            "hid_bpf_input_report",
            "bpf_throw",
            "bpf_strnlen_of_a_module",
        ];
        for name in kfuncs {
            let function = builder.function(name, prototype, Linkage::Static);
            builder.decl_tag("bpf_kfunc", function, None, false);
        }
        builder.function("bpf_task_release", prototype, Linkage::Static);
        let counted = KfuncSupport::of(&builder.build().unwrap());
        let expected = KfuncSupport {
            in_btf: 4,
            known: 3,
            judged: 3,
            with_body: 2,
        };
        assert_eq!(counted, expected);
        // Older kernels don't tag their kfuncs.
        let mut builder = Builder::new();
        builder.prototype(TypeId(0), &[]);
        let untagged = KfuncSupport::of(&builder.build().unwrap());
        let text = "not marked in the kernel's BTF, so not counted";
        assert_eq!(untagged.to_string(), text);
    }
}
