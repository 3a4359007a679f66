//! Merges the types of several files into one table, with the BTF.ext records that refer to
//! it.

use rustc_hash::FxHashMap;

use super::super::error::{ObjectError, Problem};
use super::super::image::SymbolKind;
use super::input::{Input, Result};
use super::sections::Joined;
use super::symbols::Resolved;
use crate::btf::{
    Btf, BtfError, BtfExt, Builder, CoreRelo, Editor, FuncInfo, Kind, LineInfo, Linkage, Record,
    Records, Type, Variable,
};
use crate::util::TypeId;

/// The merged types and records, as section contents; empty without types.
///
/// # Errors
/// Types that don't fit one table.
pub(super) fn merge(
    inputs: &[Input<'_>],
    sections: &Joined,
    symbols: &Resolved,
) -> Result<(Vec<u8>, Vec<u8>)> {
    if inputs.iter().all(|input| input.btf.is_none()) {
        return Ok((Vec::new(), Vec::new()));
    }
    let merged = Merge {
        inputs,
        sections,
        symbols,
        ids: Vec::new(),
    };
    merged.run().map_err(|error| {
        let problem = Problem::Link(format!("the merged types: {}", error.problem));
        ObjectError::section(".BTF", error.offset as u64, problem)
    })
}

struct Merge<'a> {
    inputs: &'a [Input<'a>],
    sections: &'a Joined,
    symbols: &'a Resolved,
    /// The new id of each type of each file.
    ids: Vec<Vec<TypeId>>,
}

impl Merge<'_> {
    fn run(mut self) -> std::result::Result<(Vec<u8>, Vec<u8>), BtfError> {
        self.ids = self.number();
        let mut builder = Builder::new();
        for (number, input) in self.inputs.iter().enumerate() {
            for ty in input.btf.iter().flat_map(Btf::own_types) {
                if self.keeps(number, ty) {
                    builder.copy(ty, |id| self.id(number, id));
                }
            }
        }
        for (name, (size, places)) in self.data() {
            builder.section(&name, size, &places);
        }
        let (btf, merged) = builder.build()?.deduplicate()?;
        let mut strings = Strings {
            editor: Editor::new(&btf),
            known: FxHashMap::default(),
        };
        let final_id = |number: usize, id: TypeId| {
            let id = self.id(number, id);
            merged.get(id.index()).copied().unwrap_or(id)
        };
        let funcs = self.records(
            &mut strings,
            |ext| &ext.funcs,
            |number, _, record, insn_off| FuncInfo {
                insn_off,
                ty: final_id(number, record.ty),
            },
        );
        let lines = self.records(
            &mut strings,
            |ext| &ext.lines,
            |number, strings, record, insn_off| LineInfo {
                insn_off,
                file: strings.of(self.inputs, number, record.file),
                text: strings.of(self.inputs, number, record.text),
                ..record
            },
        );
        let relocations = self.records(
            &mut strings,
            |ext| &ext.relocations,
            |number, strings, record, insn_off| CoreRelo {
                insn_off,
                ty: final_id(number, record.ty),
                access: strings.of(self.inputs, number, record.access),
                ..record
            },
        );
        let ext = BtfExt {
            funcs,
            lines,
            relocations,
        };
        Ok((strings.editor.finish()?.to_bytes(), ext.to_bytes()))
    }

    /// Computes the new ids before anything is copied: types contain forward references.
    fn number(&self) -> Vec<Vec<TypeId>> {
        let mut next = 1u32;
        let mut ids: Vec<Vec<TypeId>> = Vec::with_capacity(self.inputs.len());
        for (number, input) in self.inputs.iter().enumerate() {
            let mut own = vec![TypeId(0)];
            for ty in input.btf.iter().flat_map(Btf::own_types) {
                let keeps = self.keeps(number, ty);
                own.push(if keeps { TypeId(next) } else { TypeId(0) });
                next = next.saturating_add(u32::from(keeps));
            }
            ids.push(own);
        }
        // A global symbol of several files gets the id of the file that defines it.
        for (number, input) in self.inputs.iter().enumerate() {
            for ty in input.btf.iter().flat_map(Btf::own_types) {
                let Some(winner) = self.defining_file(ty).filter(|winner| *winner != number) else {
                    continue;
                };
                let of = self
                    .symbols
                    .types
                    .get(winner)
                    .and_then(|types| types.get(ty.name()));
                let id = of.and_then(|id| ids.get(winner)?.get(id.index()).copied());
                let own = ids
                    .get_mut(number)
                    .and_then(|own| own.get_mut(ty.id().index()));
                if let (Some(id), Some(own)) = (id, own) {
                    *own = id;
                }
            }
        }
        ids
    }

    fn id(&self, input: usize, old: TypeId) -> TypeId {
        let own = self.ids.get(input).and_then(|ids| ids.get(old.index()));
        own.copied().unwrap_or_default()
    }

    /// The file that provides the global variable or function of this name; `None` for
    /// static ones, and for the license.
    fn defining_file(&self, ty: Type<'_>) -> Option<usize> {
        let seen = ty
            .linkage()
            .is_some_and(|linkage| linkage != Linkage::Static);
        let global = self.symbols.globals.get(ty.name()).filter(|_| seen)?;
        Some(global.input)
    }

    /// Whether a type is copied to the new table.
    fn keeps(&self, input: usize, ty: Type<'_>) -> bool {
        match (ty.kind(), ty.linkage()) {
            (Kind::Datasec, _) => false,
            (_, None | Some(Linkage::Static)) => true,
            _ => self.defining_file(ty) == Some(input),
        }
    }

    /// The sections with their variables, in order of their first appearance.
    fn data(&self) -> Vec<(String, (u32, Vec<Variable>))> {
        let mut found: Vec<(String, (u32, Vec<Variable>))> = Vec::new();
        let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
        for (number, input) in self.inputs.iter().enumerate() {
            let values = values(input);
            let types = input.btf.iter().flat_map(Btf::own_types);
            for section in types.filter(|ty| ty.kind() == Kind::Datasec) {
                let name = section.name();
                let place = self.sections.named(input, number, name);
                if place.is_none() && input.image.find(name).is_some() {
                    // The license is the same in every file.
                    continue;
                }
                let size = place.and_then(|place| self.sections.all.get(place.section));
                let size = size.and_then(|section| u32::try_from(section.size).ok());
                let base = place.map_or(0, |place| place.offset);
                let index = *by_name.entry(name.to_owned()).or_insert_with(|| {
                    found.push((name.to_owned(), (size.unwrap_or(0), Vec::new())));
                    found.len() - 1
                });
                let unfinished = section.size() == Some(0);
                let places = section.variables().filter_map(|variable| {
                    let ty = section.btf().ty(variable.ty);
                    if !self.keeps(number, ty) {
                        return None;
                    }
                    let value = values.get(ty.name()).copied();
                    let value =
                        value.filter(|_| unfinished && ty.linkage() == Some(Linkage::Global));
                    let offset = value
                        .unwrap_or(u64::from(variable.offset))
                        .checked_add(base)?;
                    Some(Variable {
                        ty: self.id(number, variable.ty),
                        offset: u32::try_from(offset).ok()?,
                        size: variable.size,
                    })
                });
                if let Some((_, (_, all))) = found.get_mut(index) {
                    all.extend(places);
                }
            }
        }
        for (_, (_, places)) in &mut found {
            places.sort_by_key(|place| place.offset);
        }
        // Drop sections whose variables are all defined elsewhere.
        found.retain(|(_, (size, places))| *size > 0 || !places.is_empty());
        found
    }

    /// The records of one part of BTF.ext, by section, with their new offsets.
    fn records<T: Record>(
        &self,
        strings: &mut Strings,
        part: impl Fn(&BtfExt) -> &[Records<T>],
        moved: impl Fn(usize, &mut Strings, T, u32) -> T,
    ) -> Vec<Records<T>> {
        let mut all: Vec<Records<T>> = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let Some(btf) = &input.btf else { continue };
            for records in part(&input.ext) {
                let name = btf.string(records.section).unwrap_or_default();
                let Some(place) = self.sections.named(input, number, name) else {
                    continue;
                };
                let section = strings.add(name);
                let base = u32::try_from(place.offset).unwrap_or(u32::MAX);
                let own = records.records.iter().map(|record| {
                    let insn_off = record.insn_off().saturating_add(base);
                    moved(number, strings, *record, insn_off)
                });
                let own: Vec<T> = own.collect();
                match all.iter_mut().find(|records| records.section == section) {
                    Some(records) => records.records.extend(own),
                    None => all.push(Records {
                        section,
                        records: own,
                    }),
                }
            }
        }
        all
    }
}

/// The offsets of a file's global variables.
fn values<'a>(input: &'a Input<'_>) -> FxHashMap<&'a str, u64> {
    let symbols = input.image.symbols.iter();
    symbols
        .filter(|symbol| symbol.kind == SymbolKind::Object)
        .map(|symbol| (&*symbol.name, symbol.value))
        .collect()
}

/// Strings to add to the merged table.
struct Strings {
    editor: Editor,
    known: FxHashMap<String, u32>,
}

impl Strings {
    fn add(&mut self, text: &str) -> u32 {
        if let Some(offset) = self.known.get(text) {
            return *offset;
        }
        let offset = self.editor.add_string(text);
        self.known.insert(text.to_owned(), offset);
        offset
    }

    /// A string of a file.
    fn of(&mut self, inputs: &[Input<'_>], input: usize, offset: u32) -> u32 {
        let btf = inputs.get(input).and_then(|input| input.btf.as_ref());
        let text = btf.and_then(|btf| btf.string(offset)).unwrap_or_default();
        self.add(text)
    }
}
