//! The steps of linking, and relocations at their new offsets.

use super::super::error::{ObjectError, Problem};
use super::super::image::{DefinedIn, Image, Relocation, Relocations, Section, SymbolKind};
use super::super::slots::CALL;
use super::input::{Input, Result};
use super::{sections, symbols, types};
use crate::isa::RawInsn;

/// Links files into one.
///
/// # Errors
/// Two definitions of a symbol, conflicting declarations, sections that can't be joined;
/// with the file's name.
pub(in crate::object) fn link(inputs: &[Input<'_>]) -> Result<Image<'static>> {
    let mut sections = sections::join(inputs)?;
    let symbols = symbols::resolve(inputs, &sections)?;
    let relocations = relocations(inputs, &mut sections, &symbols)?;
    let (btf, ext) = types::merge(inputs, &sections, &symbols)?;

    let mut all = sections.all;
    for (name, data) in [(".BTF", btf), (".BTF.ext", ext)] {
        if !data.is_empty() {
            all.push(Section {
                name: name.into(),
                size: data.len() as u64,
                data: data.into(),
                ..sections::empty()
            });
        }
    }
    Ok(Image {
        sections: all,
        symbols: symbols.all,
        relocations,
        file_size: inputs.iter().map(|input| input.image.file_size).sum(),
    })
}

/// The relocations of all files, with their new offsets and symbols.
fn relocations(
    inputs: &[Input<'_>],
    sections: &mut sections::Joined,
    symbols: &symbols::Resolved,
) -> Result<Vec<Relocations>> {
    let mut tables: Vec<Relocations> = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        for table in &input.image.relocations {
            let Some(target) = sections.place(number, table.target) else {
                continue;
            };
            let mut entries = Vec::with_capacity(table.entries.len());
            for entry in &table.entries {
                let at = ObjectError::section(
                    input.image.section_name(table.target),
                    entry.offset,
                    Problem::Link("refers to a symbol outside of the linked sections".to_owned()),
                );
                let symbol = symbols.of(number, entry.symbol);
                let Some(symbol) = symbol else {
                    return Err(at.of(input.name));
                };
                let offset = target.offset + entry.offset;
                shift(input, sections, number, target.section, offset, entry)?;
                entries.push(Relocation {
                    offset,
                    symbol,
                    kind: entry.kind,
                });
            }
            match tables
                .iter_mut()
                .find(|table| table.target == target.section)
            {
                Some(table) => table.entries.append(&mut entries),
                None => tables.push(Relocations {
                    target: target.section,
                    entries,
                }),
            }
        }
    }
    for table in &mut tables {
        table.entries.sort_by_key(|entry| entry.offset);
    }
    Ok(tables)
}

/// Adjusts a relocation against a section: its instruction contains the offset from the
/// section's start, which has moved.
fn shift(
    input: &Input<'_>,
    sections: &mut sections::Joined,
    number: usize,
    target: usize,
    offset: u64,
    entry: &Relocation,
) -> Result<()> {
    let symbol = input.image.symbols.get(entry.symbol);
    let symbol = symbol.filter(|symbol| symbol.kind == SymbolKind::Section);
    let Some(DefinedIn::Section(old)) = symbol.map(|symbol| symbol.defined_in) else {
        return Ok(());
    };
    let moved = sections.place(number, old).map_or(0, |place| place.offset);
    if moved == 0 {
        return Ok(());
    }
    let Some(section) = sections.all.get_mut(target) else {
        return Ok(());
    };
    if !section.executable {
        let text = format!(
            "an address within section '{}' in data can't be linked",
            input.image.section_name(old)
        );
        return Err(
            ObjectError::section(&section.name, offset, Problem::Link(text)).of(input.name),
        );
    }
    let slot = usize::try_from(offset).ok().and_then(|start| {
        let end = start.checked_add(RawInsn::SIZE)?;
        section.data.to_mut().get_mut(start..end)
    });
    let slot: Option<&mut [u8; RawInsn::SIZE]> = slot.and_then(|bytes| bytes.try_into().ok());
    if let Some(bytes) = slot {
        let insn = RawInsn::from_bytes(*bytes);
        let unit = if insn.opcode == CALL {
            RawInsn::SIZE as u64
        } else {
            1
        };
        let imm = i64::from(insn.imm).checked_add_unsigned(moved / unit);
        let imm = imm.and_then(|imm| i32::try_from(imm).ok());
        let imm =
            imm.ok_or_else(|| input.fault("its sections are too large to link".to_owned()))?;
        *bytes = insn.with_imm(imm).to_bytes();
    }
    Ok(())
}
