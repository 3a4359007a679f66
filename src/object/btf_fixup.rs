//! Completes an object's BTF with what the compiler didn't know: sizes of sections and
//! offsets of variables in them, static linkage of hidden symbols, externs as variables
//! that the kernel accepts (libbpf, `bpf_object_fixup_btf`, `bpf_object__collect_externs`,
//! `bpf_object__sanitize_and_load_btf`).

use rustc_hash::FxHashMap;

use super::externs::{KCONFIG, KSYMS, kconfig_size};
use super::image::{Binding, Image, Section, Symbol, SymbolKind};
use super::model::{Extern, ExternKind};
use crate::btf::{Btf, BtfError, Editor, Encoding, Kind, Linkage, Type, Variable};
use crate::util::TypeId;

/// Name of the dummy variable that replaces functions in `.ksyms`.
const DUMMY: &str = "dummy_ksym";
/// Nominal size of each extern of `.ksyms`, in bytes.
const KSYM_SIZE: u32 = 4;

/// The completed BTF.
///
/// # Errors
/// BTF that is invalid after completion.
pub(super) fn complete(image: &Image<'_>, btf: &Btf, externs: &[Extern]) -> Result<Btf, BtfError> {
    let symbols = Symbols::new(image);
    let named = image.sections.iter().rev();
    let sections = named.map(|section| (&*section.name, section)).collect();
    let mut editor = Editor::new(btf);
    for ty in btf.own_types() {
        match (ty.kind(), ty.linkage()) {
            (Kind::Datasec, _) if ty.name() == KCONFIG => kconfig(&mut editor, ty, externs),
            (Kind::Datasec, _) if ty.name() == KSYMS => ksyms(&mut editor, ty),
            (Kind::Datasec, _) => data(&mut editor, ty, &sections, &symbols),
            (Kind::Func, Some(Linkage::Global))
                if symbols.hides(SymbolKind::Function, ty.name()) =>
            {
                editor.set_linkage(ty.id(), Linkage::Static);
            }
            _ => {}
        }
    }
    editor.finish()
}

/// Global and weak symbols by name.
struct Symbols<'a>(FxHashMap<&'a str, &'a Symbol<'a>>);

impl<'a> Symbols<'a> {
    fn new(image: &'a Image<'_>) -> Self {
        let seen = image.symbols.iter().filter(|symbol| {
            symbol.binding != Binding::Local
                && matches!(symbol.kind, SymbolKind::Object | SymbolKind::Function)
        });
        Self(seen.map(|symbol| (&*symbol.name, symbol)).collect())
    }

    fn get(&self, kind: SymbolKind, name: &str) -> Option<&Symbol<'a>> {
        self.0
            .get(name)
            .copied()
            .filter(|symbol| symbol.kind == kind)
    }

    fn hides(&self, kind: SymbolKind, name: &str) -> bool {
        self.get(kind, name).is_some_and(|symbol| symbol.hidden)
    }
}

/// Completes a section of the file. Values from the static linker are kept.
fn data(
    editor: &mut Editor,
    section: Type<'_>,
    sections: &FxHashMap<&str, &Section<'_>>,
    symbols: &Symbols<'_>,
) {
    let unfinished = section.size() == Some(0);
    if unfinished
        && let Some(found) = sections.get(section.name())
        && let Ok(size) = u32::try_from(found.size)
    {
        editor.set_section_size(section.id(), size);
    }
    let mut places: Vec<Variable> = section.variables().collect();
    for place in &mut places {
        let variable = section.btf().ty(place.ty);
        if variable.linkage() != Some(Linkage::Global) {
            continue;
        }
        let Some(symbol) = symbols.get(SymbolKind::Object, variable.name()) else {
            continue;
        };
        if unfinished {
            place.offset = u32::try_from(symbol.value).unwrap_or(u32::MAX);
        }
        if symbol.hidden {
            editor.set_linkage(variable.id(), Linkage::Static);
        }
    }
    places.sort_by_key(|place| place.offset);
    editor.set_variables(section.id(), &places);
}

/// Completes the configuration values, with the offsets in `externs`.
fn kconfig(editor: &mut Editor, section: Type<'_>, externs: &[Extern]) {
    let offsets: FxHashMap<TypeId, u32> = externs
        .iter()
        .filter_map(|ext| match ext.kind {
            ExternKind::Kconfig(variable) => Some((ext.type_id?, variable.offset)),
            _ => None,
        })
        .collect();
    let mut places: Vec<Variable> = section.variables().collect();
    for place in &mut places {
        if let Some(&offset) = offsets.get(&place.ty) {
            place.offset = offset;
            editor.set_linkage(place.ty, Linkage::Global);
        }
    }
    places.sort_by_key(|place| place.offset);
    editor.set_variables(section.id(), &places);
    editor.set_section_size(section.id(), kconfig_size(externs));
}

/// Completes kernel symbols. The kernel only accepts variables with a size in a section, so
/// each variable becomes an integer, and each function the common dummy.
fn ksyms(editor: &mut Editor, section: Type<'_>) {
    let btf = section.btf();
    let Some(int) = btf.own_types().find(|ty| {
        ty.int()
            .is_some_and(|int| int.bits == 32 && int.encoding != Encoding::Bool)
    }) else {
        return;
    };
    let mut dummy = None;
    let mut places: Vec<Variable> = section.variables().collect();
    for (place, offset) in places.iter_mut().zip((0u32..).step_by(KSYM_SIZE as usize)) {
        let symbol = btf.ty(place.ty);
        editor.set_linkage(symbol.id(), Linkage::Global);
        if symbol.kind() == Kind::Func {
            let (variable, name) = *dummy.get_or_insert_with(|| {
                let name = editor.add_string(DUMMY);
                (editor.add_variable(name, int.id(), Linkage::Global), name)
            });
            place.ty = variable;
            if let Some(prototype) = symbol.target() {
                let unnamed = prototype.params().enumerate();
                for (index, _) in unnamed.filter(|(_, p)| p.name.is_empty() && p.ty != TypeId(0)) {
                    editor.set_param_name(prototype.id(), index, name);
                }
            }
        } else {
            editor.set_variable_type(symbol.id(), int.id());
        }
        place.offset = offset;
        place.size = KSYM_SIZE;
    }
    let size = u32::try_from(places.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(KSYM_SIZE);
    editor.set_section_size(section.id(), size);
    editor.set_variables(section.id(), &places);
}
