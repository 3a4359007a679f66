//! Resolves an object's externs for the kernel that programs are relocated for (libbpf,
//! `bpf_object__resolve_externs`).

use super::core::types_are_compatible;
use super::error::Problem;
use super::kconfig;
use super::maps_data::write;
use super::model::{Entry, Extern, ExternKind, Object};
use super::target::Target;
use crate::btf::{Btf, Kind, Type, essential_name};
use crate::program::MapOrigin;
use crate::util::{MapId, TypeId};

/// Value of an extern.
#[derive(Debug, Clone)]
pub(super) enum Resolved {
    /// A byte of the `.kconfig` map.
    Kconfig { map: MapId, offset: u32 },
    /// A variable or function in the kernel's BTF.
    InBtf(TypeId),
    /// An address.
    Address(u64),
    /// A weak extern that the kernel doesn't have.
    Missing,
    /// Unresolved: an error of the programs that use it.
    Unresolved(Problem),
}

/// Resolves every extern.
pub(super) fn resolve(object: &Object, kernel: Option<&Btf>) -> Vec<Resolved> {
    let kconfig = kconfig_map(object);
    object
        .externs
        .iter()
        .map(|ext| match ext.kind {
            ExternKind::Kconfig(variable) => {
                match object.kconfig.bytes(&ext.name, variable, ext.weak) {
                    Ok(None) if !ext.weak => unresolved(
                        "no value is known for it: set one (set_kconfig), or read a kernel's \
                         configuration (read_kconfig); as __weak it would be 0"
                            .to_owned(),
                    ),
                    Ok(_) => Resolved::Kconfig {
                        map: MapId::from_index(kconfig.unwrap_or_default()),
                        offset: variable.offset,
                    },
                    Err(text) => Resolved::Unresolved(Problem::Kconfig(text)),
                }
            }
            ExternKind::KernelVariable { ty: Some(_) } => in_btf(object, ext, kernel, Kind::Var),
            ExternKind::KernelFunction { .. } => in_btf(object, ext, kernel, Kind::Func),
            ExternKind::KernelVariable { ty: None } => match object.ksyms.get(&ext.name) {
                Some(address) => Resolved::Address(*address),
                None if ext.weak => Resolved::Missing,
                None => unresolved(
                    "its address is unknown: set one (set_ksym); if __weak, it would be 0"
                        .to_owned(),
                ),
            },
            ExternKind::Elsewhere if ext.weak => Resolved::Missing,
            ExternKind::Elsewhere => unresolved(
                "neither __ksym nor __kconfig, so another object must define it: link the two"
                    .to_owned(),
            ),
        })
        .collect()
}

/// Index of the `.kconfig` map.
fn kconfig_map(object: &Object) -> Option<usize> {
    object
        .maps
        .iter()
        .position(|map| map.origin == MapOrigin::Kconfig)
}

/// Writes the known configuration values into the `.kconfig` map. A value that doesn't fit
/// is an error of the programs that read it.
pub(super) fn fill_kconfig(object: &mut Object) {
    let asks = object
        .externs
        .iter()
        .any(|ext| matches!(ext.kind, ExternKind::Kconfig(_)) && ext.name.starts_with("CONFIG_"));
    let running = asks && matches!(object.target, Target::Auto);
    object
        .kconfig
        .set_running(running.then(kconfig::running).flatten());
    let index = kconfig_map(object);
    let Some(map) = index.and_then(|index| object.maps.get_mut(index)) else {
        return;
    };
    for ext in &object.externs {
        if let ExternKind::Kconfig(variable) = ext.kind {
            let known = object.kconfig.bytes(&ext.name, variable, ext.weak);
            let bytes = match known.ok().flatten() {
                Some(bytes) => bytes,
                None if map.initial.is_empty() => continue,
                // A value that is no longer known becomes 0 again.
                None => vec![0; variable.size as usize],
            };
            write(map, variable.offset as usize, &bytes);
        }
    }
}

fn unresolved(text: String) -> Resolved {
    Resolved::Unresolved(Problem::Unresolved(text))
}

/// A kernel variable or function; without a kernel, the object's own declaration.
fn in_btf(object: &Object, ext: &Extern, kernel: Option<&Btf>, kind: Kind) -> Resolved {
    let Some(kernel) = kernel else {
        return match (ext.type_id, &object.btf) {
            (Some(id), Some(_)) => Resolved::InBtf(id),
            _ => Resolved::Missing,
        };
    };
    // libbpf ignores the flavor in function names, but not in variable names.
    let name = match kind {
        Kind::Func => essential_name(&ext.name),
        _ => &ext.name,
    };
    let found = kernel.find(name, kind);
    if let (Some(found), Some(local)) = (found, &object.btf)
        && !agrees(local, ext, found)
    {
        // A weak function of another type counts as missing, a variable doesn't.
        if ext.weak && kind == Kind::Func {
            return Resolved::Missing;
        }
        return unresolved(format!("the kernel's {kind} of this name has another type"));
    }
    match found {
        Some(found) => Resolved::InBtf(found.id()),
        None if ext.weak => Resolved::Missing,
        None => unresolved(format!(
            "the kernel's BTF has no {kind} of this name; a module's BTF is added by --btf-module, or \
             Target::with_module() in a test"
        )),
    }
}

/// Whether an extern's declared type is compatible with the kernel's.
fn agrees(local: &Btf, ext: &Extern, found: Type<'_>) -> bool {
    let declared = match ext.kind {
        ExternKind::KernelFunction { prototype } => Some(prototype),
        ExternKind::KernelVariable { ty } => ty,
        _ => None,
    };
    let types = declared.zip(found.target_id());
    types.is_none_or(|(declared, of)| types_are_compatible(local, declared, found.btf(), of))
}

/// The BTF id of an entry point's attach target.
pub(super) fn attach_btf_id(entry: &Entry, kernel: &Btf) -> Option<TypeId> {
    if let Some((ty, _)) = &entry.member {
        return kernel
            .find(essential_name(ty), Kind::Struct)
            .map(|ty| ty.id());
    }
    let name = entry.btf_target()?;
    let kind = if name.starts_with("btf_trace_") {
        Kind::Typedef
    } else {
        Kind::Func
    };
    kernel.find(&name, kind).map(|ty| ty.id())
}

/// The BTF that an object is relocated and verified for, if it needs a kernel's and there is one.
pub(super) fn kernel(object: &Object) -> Option<Btf> {
    let attaches = |kernel: &Btf| {
        let mut entries = object.entries.iter();
        entries.any(|entry| attach_btf_id(entry, kernel).is_some())
    };
    needs_kernel(object)
        .then(|| object.target.kernel(attaches))
        .flatten()
}

/// Whether relocating this object, or verifying its programs, needs the kernel's BTF.
fn needs_kernel(object: &Object) -> bool {
    object.code.iter().any(|code| !code.core.is_empty())
        || object.externs.iter().any(|ext| {
            matches!(
                ext.kind,
                ExternKind::KernelFunction { .. } | ExternKind::KernelVariable { ty: Some(_) }
            )
        })
        || object
            .entries
            .iter()
            .any(|entry| entry.member.is_some() || entry.btf_target().is_some())
        || object.gets_kernel_objects()
}
