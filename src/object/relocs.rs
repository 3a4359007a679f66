//! Relocations with resolved symbols: the targets of instructions, map slots and table
//! members (libbpf, `bpf_program__record_reloc`, `bpf_object__collect_map_relos`).

use rustc_hash::FxHashMap;

use super::error::{ObjectError, Problem};
use super::image::{DefinedIn, Image, Relocation, Symbol, SymbolKind};
use super::model::{Object, Reloc, RelocTarget};
use super::slots::{CALL, LOAD_64};
use super::struct_ops::Members;
use crate::isa::RawInsn;
use crate::program::Initial;
use crate::spec::MapType;
use crate::util::MapId;

/// Bytes of a pointer in a map's `values`.
const POINTER: u64 = 8;

/// Targets of symbols: the use of each section, and the maps and externs in it.
#[derive(Debug, Default)]
pub(super) struct SymbolTargets {
    /// By section number.
    pub sections: Vec<SectionUse>,
    /// Maps by section and offset of their declaration.
    pub maps: FxHashMap<(usize, u64), MapId>,
    /// The `values` of declared maps: first byte, end, map; in ascending order.
    pub values: Vec<(u64, u64, MapId)>,
    /// Externs by symbol number.
    pub externs: FxHashMap<usize, usize>,
}

/// Use of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SectionUse {
    /// Not a target of references.
    #[default]
    Nothing,
    /// Index in [`Object::code`].
    Code(usize),
    /// A map whose value is the section.
    Data(MapId),
    /// Map declarations.
    Maps,
}

impl SymbolTargets {
    /// The use of the section of this number.
    pub fn of(&self, section: usize) -> SectionUse {
        self.sections.get(section).copied().unwrap_or_default()
    }

    /// The map whose `values` contain a byte of the section of maps, and the offset in
    /// them.
    fn value(&self, byte: u64) -> Option<(MapId, u64)> {
        let after = self.values.partition_point(|(start, ..)| *start <= byte);
        let &(start, end, map) = self.values.get(after.checked_sub(1)?)?;
        (byte < end).then(|| (map, byte - start))
    }
}

/// The relocations of a section of instructions.
///
/// # Errors
/// A relocation outside of instructions.
pub(super) fn of_code(
    image: &Image<'_>,
    targets: &SymbolTargets,
    section: &str,
    insns: &[RawInsn],
    entries: &[Relocation],
) -> Result<Vec<Reloc>, ObjectError> {
    let mut relocations = Vec::with_capacity(entries.len());
    for entry in entries {
        let slot = usize::try_from(entry.offset / RawInsn::SIZE as u64)
            .ok()
            .filter(|_| entry.offset.is_multiple_of(RawInsn::SIZE as u64));
        let insn = slot.and_then(|slot| insns.get(slot));
        let (Some(slot), Some(insn)) = (slot, insn) else {
            let text = "relocation outside of an instruction".to_owned();
            return Err(ObjectError::section(
                section,
                entry.offset,
                Problem::Relocation(text),
            ));
        };
        let target = match image.symbols.get(entry.symbol) {
            Some(symbol) => target(image, targets, *insn, entry.symbol, symbol)
                .unwrap_or_else(|text| RelocTarget::Broken(Box::new(Problem::Relocation(text)))),
            None => continue,
        };
        relocations.push(Reloc { slot, target });
    }
    Ok(relocations)
}

/// The target that an instruction refers to through a symbol.
fn target(
    image: &Image<'_>,
    targets: &SymbolTargets,
    insn: RawInsn,
    number: usize,
    symbol: &Symbol<'_>,
) -> Result<RelocTarget, String> {
    let name = image.symbol_name(symbol);
    if !matches!(insn.opcode, CALL | LOAD_64) {
        return Err(format!(
            "instruction {:#04x} can't refer to '{name}': only calls and 64-bit immediates can",
            insn.opcode
        ));
    }
    if let Some(&index) = targets.externs.get(&number) {
        return Ok(RelocTarget::Extern(index));
    }
    let section = match symbol.defined_in {
        DefinedIn::Section(section) => section,
        DefinedIn::Undefined => return Err(format!("'{name}' isn't defined")),
        DefinedIn::Special(_) => {
            return Err(format!(
                "'{name}' has no section; does the global variable lack an initial value?"
            ));
        }
    };
    let in_section = image.section_name(section);
    match (targets.of(section), insn.opcode) {
        (SectionUse::Code(code), CALL) => {
            let slot = usize::try_from(symbol.value / RawInsn::SIZE as u64)
                .ok()
                .filter(|_| symbol.value.is_multiple_of(RawInsn::SIZE as u64))
                .ok_or_else(|| format!("'{name}' isn't at an instruction"))?;
            Ok(RelocTarget::Call { code, slot })
        }
        (_, CALL) => Err(format!(
            "call target '{name}' in section '{in_section}' is not a function"
        )),
        (SectionUse::Code(code), _)
            if matches!(symbol.kind, SymbolKind::Function | SymbolKind::Section) =>
        {
            Ok(RelocTarget::Function {
                code,
                offset: symbol.value,
            })
        }
        (SectionUse::Data(map), _) => Ok(RelocTarget::Data {
            map,
            offset: symbol.value,
        }),
        (SectionUse::Maps, _) => {
            // The offset of a local map is in the instruction.
            let offset = match symbol.kind {
                SymbolKind::Section => u64::from(insn.imm.cast_unsigned()),
                _ => symbol.value,
            };
            targets
                .maps
                .get(&(section, offset))
                .map(|map| RelocTarget::Map(*map))
                .ok_or_else(|| {
                    format!("no map is declared at offset {offset:#x} of section '{in_section}'")
                })
        }
        _ => Err(format!(
            "refers to '{name}' in section '{in_section}', which is neither code, maps nor data"
        )),
    }
}

/// Fills in the `values` of maps of maps and of programs.
///
/// # Errors
/// A value that is not a map or program of the object.
pub(super) fn of_maps(
    object: &mut Object,
    image: &Image<'_>,
    targets: &SymbolTargets,
    section: usize,
    entries: &[Relocation],
) -> Result<(), ObjectError> {
    for entry in entries {
        let fault = |text: String| {
            let name = image.section_name(section);
            ObjectError::section(name, entry.offset, Problem::Relocation(text))
        };
        let Some(symbol) = image.symbols.get(entry.symbol) else {
            continue;
        };
        let name = image.symbol_name(symbol);
        let slot = targets
            .value(entry.offset)
            .filter(|(_, byte)| byte % POINTER == 0);
        let place = slot.and_then(|(map, byte)| Some((map, u32::try_from(byte / POINTER).ok()?)));
        let Some((id, index)) = place else {
            return Err(fault(format!("'{name}' isn't in the values of a map")));
        };
        let Some(map) = object.maps.get(id.index()) else {
            continue;
        };
        let initial = match map.map_type {
            MapType::HashOfMaps if map.key_size != 4 => {
                return Err(fault(
                    "a hash of maps with values has keys of 4 bytes".to_owned(),
                ));
            }
            MapType::ArrayOfMaps | MapType::HashOfMaps => {
                let inner = match symbol.defined_in {
                    DefinedIn::Section(section) => targets.maps.get(&(section, symbol.value)),
                    _ => None,
                };
                let map = *inner.ok_or_else(|| fault(format!("'{name}' is not a map")))?;
                Initial::Map { index, map }
            }
            _ => {
                let entry = entry_of(object, targets, symbol)
                    .ok_or_else(|| fault(format!("'{name}' is not a program")))?;
                Initial::Program {
                    index,
                    name: object
                        .entries
                        .get(entry)
                        .map(|e| e.name.clone())
                        .unwrap_or_default(),
                }
            }
        };
        if let Some(map) = object.maps.get_mut(id.index()) {
            map.initial.push(initial);
        }
    }
    Ok(())
}

/// Resolves the programs that a section of `struct_ops` tables refers to, and records them
/// in the tables and in the programs.
///
/// # Errors
/// A member that is set to something other than a program.
pub(super) fn of_tables(
    object: &mut Object,
    image: &Image<'_>,
    targets: &SymbolTargets,
    section: usize,
    entries: &[Relocation],
) -> Result<(), ObjectError> {
    let Some(btf) = object.btf.clone() else {
        return Ok(());
    };
    let mut members = Members::new(&btf);
    let mut tables: Vec<(u64, MapId)> = targets
        .maps
        .iter()
        .filter(|((declared_in, _), _)| *declared_in == section)
        .map(|((_, offset), map)| (*offset, *map))
        .collect();
    tables.sort_unstable_by_key(|(offset, _)| *offset);
    for entry in entries {
        let fault = |text: String| {
            let name = image.section_name(section);
            ObjectError::section(name, entry.offset, Problem::Relocation(text))
        };
        let Some(symbol) = image.symbols.get(entry.symbol) else {
            continue;
        };
        let after = tables.partition_point(|(offset, _)| *offset <= entry.offset);
        let table = after.checked_sub(1).and_then(|at| tables.get(at));
        let member = table.and_then(|&(start, map)| {
            let ty = object.maps.get(map.index())?.value_type?;
            let byte = u32::try_from(entry.offset - start).ok()?;
            let (ty, index, member) = members.at(ty, byte)?;
            Some((map, ty, index, member))
        });
        let Some((map, ty, index, member)) = member else {
            return Err(fault("no member begins there".to_owned()));
        };
        let Some(program) = entry_of(object, targets, symbol) else {
            let name = image.symbol_name(symbol);
            return Err(fault(format!(
                "member '{member}' is set to '{name}', which is not a program"
            )));
        };
        let Some(entry) = object.entries.get_mut(program) else {
            continue;
        };
        entry
            .member
            .get_or_insert_with(|| (ty.to_owned(), member.to_owned()));
        let name = entry.name.clone();
        if let Some(table) = object.maps.get_mut(map.index()) {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            table.initial.push(Initial::Program { index, name });
        }
    }
    Ok(())
}

/// The program that begins at a symbol.
fn entry_of(object: &Object, targets: &SymbolTargets, symbol: &Symbol<'_>) -> Option<usize> {
    let DefinedIn::Section(section) = symbol.defined_in else {
        return None;
    };
    let SectionUse::Code(code) = targets.of(section) else {
        return None;
    };
    let slot = usize::try_from(symbol.value).ok()? / RawInsn::SIZE;
    let function = object.function_at(code, slot)?;
    let begins = object.functions.get(function)?.slots.start == slot;
    let at = object
        .entries
        .binary_search_by_key(&function, |entry| entry.function)
        .ok()?;
    begins.then_some(at)
}
