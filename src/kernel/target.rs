//! Translates a program that was relocated for another kernel: its BTF ids become those of the
//! running kernel.
//!
//! Ids differ between builds of the same release, and those of a module's types are counted in its
//! own BTF, which a load names by a descriptor. Offsets and sizes that CO-RE computed stay as
//! they are; the caller must make sure that they fit.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use super::btf_folder::{self, FOLDER};
use crate::btf::{Btf, Type};
use crate::isa::{PseudoKind, RawInsn};
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::TypeId;

/// `BPF_JMP | BPF_CALL`, and the source field of a kfunc call.
const CALL: u8 = 0x85;
const KFUNC: u8 = 2;

/// A program whose references into kernel BTF use the running kernel's ids.
pub(super) struct Translated<'a> {
    pub insns: Cow<'a, [RawInsn]>,
    pub attach_btf_id: Option<TypeId>,
    /// The module whose type that is.
    pub attach_module: Option<&'static str>,
    /// The modules of kfuncs. The offset of a call is 1 plus the number of the module here, plus
    /// the number of the program's maps.
    pub modules: Vec<&'static str>,
    /// For a struct_ops program of an object, the number of its member, which takes the place
    /// of the attach type.
    pub member: Option<u32>,
}

/// What the running kernel doesn't have: `FUNC 'vfs_reed'`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Absent(pub String);

impl Absent {
    fn of(ty: Type<'_>) -> Self {
        Self(format!("{} '{}'", ty.kind(), ty.name()))
    }
}

/// Translates a program for the running kernel. Without the BTF of both kernels the ids stay.
pub(super) fn translate(program: &Program) -> Result<Translated<'_>, Absent> {
    match (&program.kernel_btf, running_btf()) {
        (Some(of), Some(to)) => between(program, of, to),
        _ => Ok(Translated {
            insns: program.insns.as_slice().into(),
            attach_btf_id: program.attach_btf_id,
            attach_module: None,
            modules: Vec::new(),
            member: program.member(),
        }),
    }
}

/// The running kernel's BTF, read once; none if it is not available.
#[must_use]
pub fn running_btf() -> Option<&'static Btf> {
    static BTF: OnceLock<Option<Btf>> = OnceLock::new();
    BTF.get_or_init(|| {
        Btf::parse(&std::fs::read(Path::new(FOLDER).join(btf_folder::KERNEL)).ok()?).ok()
    })
    .as_ref()
}

/// The BTF of each loaded module, on the running kernel's, with the module's name; read once.
fn running_modules() -> &'static [(String, Btf)] {
    static MODULES: OnceLock<Vec<(String, Btf)>> = OnceLock::new();
    MODULES.get_or_init(|| {
        let kernel = running_btf().into_iter();
        let modules = kernel.flat_map(|kernel| btf_folder::modules(Path::new(FOLDER), kernel));
        modules.collect()
    })
}

fn between<'a>(program: &'a Program, of: &Btf, to: &Btf) -> Result<Translated<'a>, Absent> {
    let mut insns = Cow::Borrowed(program.insns.as_slice());
    let mut modules: Vec<&'static str> = Vec::new();
    let mut slot = 0;
    while let Some(insn) = program.insns.get(slot) {
        let wide = insn.is_wide();
        // A non-zero offset or second immediate refers to a module's BTF instead.
        let names_type = if wide {
            let second = program.insns.get(slot + 1);
            insn.src() == PseudoKind::BtfId.src() && second.is_some_and(|second| second.imm == 0)
        } else {
            insn.opcode == CALL && insn.src() == KFUNC && insn.off == 0
        };
        if names_type {
            let found = number(of, to, TypeId(insn.imm.cast_unsigned()))?;
            // The address of a module's variable would need a descriptor in the instruction.
            if wide && found.module.is_some() {
                return Err(Absent::of(of.ty(TypeId(insn.imm.cast_unsigned()))));
            }
            let known = found.module.map(|module| {
                let known = modules.iter().position(|known| *known == module);
                known.unwrap_or_else(|| {
                    modules.push(module);
                    modules.len() - 1
                })
            });
            if let Some(insn) = insns.to_mut().get_mut(slot) {
                insn.imm = found.id.0.cast_signed();
                if let Some(known) = known {
                    let off = 1 + program.maps.len() + known;
                    insn.off = i16::try_from(off).unwrap_or(i16::MAX);
                }
            }
        }
        slot += if wide { 2 } else { 1 };
    }
    let attach = match program.attach_btf_id {
        // A type of the program that it attaches to.
        Some(id) if program.attach_prog.is_some() => Some(Found { id, module: None }),
        Some(id) => Some(number(of, to, id)?),
        None => None,
    };
    let attach_module = attach.and_then(|found| found.module);
    let of_module = attach_module.and_then(|module| {
        let mut modules = running_modules().iter();
        modules.find(|(name, _)| name == module)
    });
    let owner = of_module.map_or(to, |(_, btf)| btf);
    let structure = attach.and_then(|found| owner.get(found.id));
    let member = structure.and_then(|structure| program.member_of(structure));
    // A case has the structure's name only, and the member's number as its attach type.
    if let (ProgType::StructOps, Some(_), None, Some(target)) =
        (program.prog_type, structure, member, &program.attach_target)
        && target.contains('.')
    {
        return Err(Absent(format!("member '{target}'")));
    }
    Ok(Translated {
        insns,
        member,
        attach_btf_id: attach.map(|found| found.id),
        attach_module,
        modules,
    })
}

/// A type of the kernel, or of a module.
#[derive(Debug, Clone, Copy)]
struct Found {
    id: TypeId,
    module: Option<&'static str>,
}

/// The type of the kernel `to`, or of a module of the running one, that `of` has under this id. An
/// id without a type stays: the kernel's answer to it is the verdict.
fn number(of: &Btf, to: &Btf, id: TypeId) -> Result<Found, Absent> {
    let own = |id| Found { id, module: None };
    let Some(ty) = of.get(id).filter(|ty| !ty.name().is_empty()) else {
        return Ok(own(id));
    };
    let same = |found: &Type<'_>| found.kind() == ty.kind() && found.name() == ty.name();
    if to.get(id).is_some_and(|found| same(&found)) {
        return Ok(own(id));
    }
    if let Some(found) = to.find(ty.name(), ty.kind()) {
        return Ok(own(found.id()));
    }
    let in_module = |(name, btf): &'static (String, Btf)| {
        let id = btf.find(ty.name(), ty.kind())?.id();
        let module = Some(name.as_str());
        Some(Found { id, module })
    };
    let found = running_modules().iter().find_map(in_module);
    found.ok_or_else(|| Absent::of(ty))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Linkage};

    fn kernel(names: &[&str]) -> Btf {
        let mut builder = Builder::new();
        let prototype = builder.prototype(TypeId(0), &[]);
        for name in names {
            builder.function(name, prototype, Linkage::Static);
        }
        builder.build().unwrap()
    }

    #[test]
    fn functions_are_found_by_name() {
        let (of, to) = (kernel(&["a", "b"]), kernel(&["b", "c", "a"]));
        let insns = vec![
            RawInsn::new(CALL, 0, KFUNC, 0, 3), // b
            RawInsn::new(0x18, 0, 3, 0, 2),     // a
            RawInsn::new(0, 0, 0, 0, 0),
            RawInsn::new(CALL, 0, KFUNC, 1, 3), // a module's
            RawInsn::new(CALL, 0, 0, 0, 3),     // a helper
        ];
        let mut program = Program::new("p", ProgType::Tracing, insns);
        program.attach_btf_id = Some(TypeId(2));
        let translated = between(&program, &of, &to).ok().unwrap();
        let immediates: Vec<_> = translated.insns.iter().map(|insn| insn.imm).collect();
        assert_eq!(immediates, [2, 4, 0, 3, 3]);
        assert_eq!(translated.attach_btf_id, Some(TypeId(4)));

        let absent = between(&program, &of, &kernel(&["b"])).err();
        assert_eq!(absent, Some(Absent("FUNC 'a'".to_owned())));
    }
}
