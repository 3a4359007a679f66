//! Externs: symbols that the kernel, its configuration or another object defines (libbpf,
//! `bpf_object__collect_externs`).

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::error::{ObjectError, Problem};
use super::image::{Binding, Image};
use super::kconfig;
use super::model::{Extern, ExternKind};
use super::types::{Sections, resolve};
use crate::btf::{Btf, Kind, Linkage, Type};
use crate::util::TypeId;

/// BTF section of `__kconfig` variables, and the name of their map.
pub(super) const KCONFIG: &str = ".kconfig";
/// BTF section of `__ksym` variables and functions.
pub(super) const KSYMS: &str = ".ksyms";

/// The externs of an object in libbpf's order, and the extern of each symbol.
pub(super) type Externs = (Vec<Extern>, FxHashMap<usize, usize>);

/// Collects the externs.
///
/// # Errors
/// A `__kconfig` variable of an unsupported type.
pub(super) fn collect(image: &Image<'_>, btf: Option<&Btf>) -> Result<Externs, ObjectError> {
    let sections = extern_sections(&Sections::new(btf));
    let mut found = Vec::new();
    for (index, symbol) in image.symbols.iter().enumerate() {
        if !symbol.is_extern() {
            continue;
        }
        let ty = btf.and_then(|btf| declaration(btf, &symbol.name));
        let section = ty.and_then(|ty| sections.get(&ty.id()).copied());
        let (kind, align) = match (ty, section) {
            (Some(ty), Some(KCONFIG)) => kconfig_variable(ty)
                .map_err(|text| ObjectError::external(&symbol.name, Problem::Kconfig(text)))?,
            (Some(ty), Some(KSYMS)) => (kernel_symbol(ty), 0),
            _ => (ExternKind::Elsewhere, 0),
        };
        found.push((
            index,
            align,
            Extern {
                name: symbol.name.clone().into_owned(),
                weak: symbol.binding == Binding::Weak,
                kind,
                type_id: ty.map(|ty| ty.id()),
            },
        ));
    }
    // Poisoned calls contain an extern's index in this order, so it must be libbpf's.
    found.sort_by(|(_, align_a, a), (_, align_b, b)| {
        let key = |ext: &Extern, align: u32| match ext.kind {
            ExternKind::Kconfig(variable) => (0, Reverse(align), variable.size),
            ExternKind::KernelVariable { .. } | ExternKind::KernelFunction { .. } => {
                (1, Reverse(0), 0)
            }
            ExternKind::Elsewhere => (2, Reverse(0), 0),
        };
        key(a, *align_a)
            .cmp(&key(b, *align_b))
            .then_with(|| a.name.cmp(&b.name))
    });

    let mut externs = Vec::with_capacity(found.len());
    let mut by_symbol = FxHashMap::default();
    let mut end = 0u32;
    for (index, (symbol, align, mut ext)) in found.into_iter().enumerate() {
        if let ExternKind::Kconfig(variable) = &mut ext.kind {
            let place = end.checked_next_multiple_of(align).and_then(|offset| {
                variable.offset = offset;
                offset.checked_add(variable.size)
            });
            end = place.ok_or_else(|| {
                let text = "the configuration values take more than 4 GiB".to_owned();
                ObjectError::external(&ext.name, Problem::Kconfig(text))
            })?;
        }
        by_symbol.insert(symbol, index);
        externs.push(ext);
    }
    Ok((externs, by_symbol))
}

/// Maps each variable or function in `.kconfig` and `.ksyms` to its section.
fn extern_sections(sections: &Sections<'_>) -> FxHashMap<TypeId, &'static str> {
    let of = |name| {
        let places = sections
            .get(name)
            .into_iter()
            .flat_map(|section| section.variables());
        places.map(move |place| (place.ty, name))
    };
    of(KCONFIG).chain(of(KSYMS)).collect()
}

/// The declaration of an extern.
fn declaration<'a>(btf: &'a Btf, name: &str) -> Option<Type<'a>> {
    btf.named(name)
        .find(|ty| ty.linkage() == Some(Linkage::Extern))
}

fn kconfig_variable(ty: Type<'_>) -> Result<(ExternKind, u32), String> {
    let (Kind::Var, Some(of)) = (ty.kind(), ty.target_id()) else {
        return Err("a function can't be a configuration value".to_owned());
    };
    let btf = ty.btf();
    let (kind, signed) = kconfig::kind_of(btf, of).ok_or_else(|| {
        format!(
            "no configuration value is {}; use bool, char, an integer, \
             enum libbpf_tristate or char []",
            resolve(btf, of).kind()
        )
    })?;
    let size = btf.size_of(of).map_err(|error| error.to_string())?;
    let align = btf.align_of(of).map_err(|error| error.to_string())?;
    let variable = kconfig::Variable {
        kind,
        offset: 0,
        size,
        signed,
    };
    Ok((ExternKind::Kconfig(variable), align.max(1)))
}

fn kernel_symbol(ty: Type<'_>) -> ExternKind {
    match (ty.kind(), ty.target_id()) {
        (Kind::Func, Some(prototype)) => ExternKind::KernelFunction { prototype },
        (_, of) => {
            let resolved = of.map(|of| resolve(ty.btf(), of));
            ExternKind::KernelVariable {
                ty: resolved
                    .filter(|ty| ty.kind() != Kind::Void)
                    .map(|ty| ty.id()),
            }
        }
    }
}

/// Bytes of the `.kconfig` map: the end of its last variable.
pub(super) fn kconfig_size(externs: &[Extern]) -> u32 {
    let ends = externs.iter().filter_map(|ext| match ext.kind {
        ExternKind::Kconfig(variable) => Some(variable.offset.saturating_add(variable.size)),
        _ => None,
    });
    ends.max().unwrap_or(0)
}
