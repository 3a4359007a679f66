//! The kernel types that an object needs: the subset of a kernel's BTF from which the same
//! programs can be built elsewhere (as `bpftool gen min_core_btf`).

use super::model::{ExternKind, Object};
use super::resolve::{self, attach_btf_id};
use super::target::Target;
use crate::btf::{Btf, Kind, PartIds, essential_name};
use crate::isa::{CallTarget, Insn, decode_all};
use crate::spec::ProgType;
use crate::spec::helpers::{Detail, Prototype, RetKind, helper};
use crate::util::TypeId;

impl Object {
    /// The subset of the [target](Self::set_target) kernel's types that this object uses.
    /// Relocated for this subset, programs have the same instructions, and the verifier
    /// finds the types it needs. `None` if no types are used, or no kernel BTF is
    /// available.
    #[must_use]
    pub fn kernel_types(&self) -> Option<Btf> {
        let kernel = resolve::kernel(self)?;
        let wanted = self.wanted_types(&kernel);
        let programs = |object: &Self| -> Vec<_> {
            let programs = object.every_program();
            programs.map(|program| Some(program.ok()?.insns)).collect()
        };
        let before = programs(self);
        let same = |part: &Btf| {
            let mut other = self.clone();
            other.set_target(Target::Kernel(part.clone()));
            programs(&other) == before
        };
        // Most instructions contain only offsets; if they contain ids, the ids must be
        // kept.
        let parts = [PartIds::Renumbered, PartIds::Kept]
            .into_iter()
            .filter_map(|ids| kernel.part(wanted.iter().copied(), ids).ok());
        let smallest = { parts }.find(same);
        Some(smallest.unwrap_or(kernel))
    }

    /// The types of a kernel that its programs or their verification need.
    pub(crate) fn wanted_types(&self, kernel: &Btf) -> Vec<TypeId> {
        let mut wanted = Vec::new();
        // CO-RE candidates and arguments of global functions are looked up by name.
        let own = self.btf.iter().flat_map(Btf::own_types);
        for ty in own.filter(|ty| !ty.name().is_empty() && is_type(ty.kind())) {
            let named = kernel.flavors(ty.name());
            wanted.extend(named.filter(|ty| is_type(ty.kind())).map(|ty| ty.id()));
        }
        for ext in &self.externs {
            let kind = match ext.kind {
                ExternKind::KernelFunction { .. } => Kind::Func,
                ExternKind::KernelVariable { ty: Some(_) } => Kind::Var,
                _ => continue,
            };
            wanted.extend(
                kernel
                    .find(essential_name(&ext.name), kind)
                    .map(|ty| ty.id()),
            );
            wanted.extend(kernel.find(&ext.name, kind).map(|ty| ty.id()));
            if kind == Kind::Var {
                // Whether a variable is per-CPU is determined by its section.
                let sections = kernel.types().filter(|ty| ty.kind() == Kind::Datasec);
                wanted.extend(sections.map(|ty| ty.id()));
            }
        }
        let entries = self.entries.iter();
        wanted.extend(entries.filter_map(|entry| attach_btf_id(entry, kernel)));
        let details = self.called_prototypes().flat_map(|prototype| {
            let args = prototype.args.iter().map(|arg| arg.detail);
            args.chain([prototype.ret.detail])
        });
        wanted.extend(details.filter_map(|detail| match detail {
            Detail::Struct(name) => Some(kernel.find(name, Kind::Struct)?.id()),
            _ => None,
        }));
        wanted
    }

    /// The prototypes of the helpers that its programs call.
    fn called_prototypes(&self) -> impl Iterator<Item = &'static Prototype> + '_ {
        let insns = self.code.iter().flat_map(|code| decode_all(&code.insns));
        let called = insns.filter_map(|(_, insn)| match insn {
            Ok(Insn::Call(CallTarget::Helper(id))) => helper(id),
            _ => None,
        });
        called.flat_map(|helper| helper.prototypes)
    }

    /// Whether its programs get kernel objects from helpers or from their context, without
    /// naming a type themselves.
    pub(super) fn gets_kernel_objects(&self) -> bool {
        let typed = [RetKind::PtrToBtfId, RetKind::PtrToMemOrBtfId];
        let mut types = self.entries.iter().map(|entry| entry.prog_type);
        types.any(|prog_type| prog_type == Some(ProgType::Netfilter))
            || self
                .called_prototypes()
                .any(|prototype| typed.contains(&prototype.ret.kind))
    }
}

/// Whether this kind is a type, and not a kernel symbol.
const fn is_type(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Func | Kind::Var | Kind::Datasec | Kind::DeclTag | Kind::TypeTag
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::btf::tests::vmlinux;
    use crate::verifier::{Decision, Options, verify};

    fn object(name: &str, kernel: &Btf) -> Object {
        let mut object = Object::open(format!("tests/objects/{name}.bpf.o")).unwrap();
        object.set_target(Target::Kernel(kernel.clone()));
        object.set_ksym("vfs_read", 0xffff_ffff_8100_0020);
        object
    }

    #[test]
    fn a_part_of_the_kernel_gives_the_same_programs() {
        let Some(bytes) = vmlinux() else {
            return;
        };
        let kernel = Btf::parse(&bytes).unwrap();
        // Offsets and sizes survive renumbering; ids of types, functions and variables are
        // in the instructions.
        for (name, ids) in [
            ("core_fields", PartIds::Renumbered),
            ("core_bitfields", PartIds::Renumbered),
            ("core_types", PartIds::Kept),
            ("ksyms", PartIds::Kept),
            ("kfuncs", PartIds::Kept),
        ] {
            let mut object = object(name, &kernel);
            let part = object.kernel_types().unwrap();
            let kept = part.count() == kernel.count();
            assert_eq!(kept, ids == PartIds::Kept, "{name}: {} types", part.count());
            assert!(part.to_bytes().len() < bytes.len() / 2, "{name}");
            let insns = |object: &Object| -> Vec<_> {
                let programs = object.programs();
                programs
                    .map(|program| program.ok().map(|program| program.insns))
                    .collect()
            };
            let before = insns(&object);
            assert!(before.iter().any(Option::is_some), "{name}");
            object.set_target(Target::Kernel(part));
            assert_eq!(insns(&object), before, "{name}");
        }
    }

    #[test]
    fn an_outline_of_the_kernel_gives_the_same_verdicts() {
        let Some(bytes) = vmlinux() else {
            return;
        };
        let kernel = Btf::parse(&bytes).unwrap();
        let verdicts = |object: &mut Object, kernel: &Btf| -> Vec<_> {
            object.set_target(Target::Kernel(kernel.clone()));
            let programs = object.every_program().map(|program| {
                let program = Arc::new(program.map_err(|error| error.to_string())?);
                let verdict = verify(&program, &Options::default()).verdict;
                Ok((program.name.clone(), verdict.decision, verdict.message))
            });
            programs.collect::<Vec<Result<_, String>>>()
        };
        let mut accepted = 0;
        for name in [
            "examples/bpf/exits",
            "tests/objects/kernel_memory",
            "tests/objects/probes",
            "tests/objects/contexts",
            "tests/objects/kfuncs",
            "tests/objects/dynptrs",
            "tests/objects/local_storage",
            "tests/objects/ksyms",
            "tests/objects/core_types",
        ] {
            let mut object = Object::open(format!("{name}.bpf.o")).unwrap();
            let outline = kernel.outline(object.wanted_types(&kernel)).unwrap();
            assert!(outline.to_bytes().len() < bytes.len() / 10, "{name}");
            let whole = verdicts(&mut object, &kernel);
            assert_eq!(verdicts(&mut object, &outline), whole, "{name}");
            let is_accepted = |verdict: &&Result<(String, Decision, String), String>| {
                matches!(verdict, Ok((_, Decision::Accept, _)))
            };
            accepted += whole.iter().filter(is_accepted).count();
        }
        assert!(accepted > 30, "{accepted}");
    }

    #[test]
    fn an_object_that_asks_nothing_needs_nothing() {
        let Some(bytes) = vmlinux() else {
            return;
        };
        let kernel = Btf::parse(&bytes).unwrap();
        assert!(object("tail_calls", &kernel).kernel_types().is_none());
        let mut of_its_own = object("core_fields", &kernel);
        of_its_own.set_target(Target::Own);
        assert!(of_its_own.kernel_types().is_none());
    }
}
