//! An object's relocations, for display.

use super::model::{Object, Reloc, RelocTarget};

/// A relocation of an instruction, with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Relocation<'o> {
    /// The section of the instruction.
    pub section: &'o str,
    /// The instruction, in slots from the section's start.
    pub slot: usize,
    /// Kind of target.
    pub kind: RelocationKind,
    /// The target's name; for a broken relocation, the problem.
    pub target: String,
}

/// Kind of a relocation's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RelocationKind {
    /// A called function.
    Call,
    /// A function whose address is taken.
    Function,
    /// A map.
    Map,
    /// Global data.
    Data,
    /// A variable or function outside of the object.
    Extern,
    /// An invalid target; programs that contain it can't be loaded.
    Broken,
}

impl RelocationKind {
    /// Its name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Function => "function",
            Self::Map => "map",
            Self::Data => "data",
            Self::Extern => "extern",
            Self::Broken => "broken",
        }
    }
}

impl Object {
    /// The relocations of instructions, by section and position. For CO-RE relocations see
    /// [`Program::accesses`](crate::program::Program::accesses).
    pub fn relocations(&self) -> impl Iterator<Item = Relocation<'_>> {
        let sections = self.code.iter();
        sections.flat_map(|code| {
            let entries = code.relocations.iter();
            entries.map(|entry| self.relocation(&code.name, entry))
        })
    }

    fn relocation<'o>(&'o self, section: &'o str, entry: &'o Reloc) -> Relocation<'o> {
        let function = |code: usize, slot: usize| match self.function_at(code, slot) {
            Some(index) => self.functions.get(index).map(|found| found.name.clone()),
            None => self
                .code
                .get(code)
                .map(|code| format!("{}+{slot}", code.name)),
        };
        let map = |index: usize| self.maps.get(index);
        let (kind, target) = match &entry.target {
            RelocTarget::Call { code, slot } => {
                let imm = self.immediate(section, entry.slot);
                let slot = usize::try_from(imm + 1)
                    .ok()
                    .and_then(|more| slot.checked_add(more));
                (
                    RelocationKind::Call,
                    slot.and_then(|slot| function(*code, slot)),
                )
            }
            RelocTarget::Function { code, offset } => {
                let imm = self.immediate(section, entry.slot);
                let slot = offset.checked_add_signed(imm).map(|byte| byte / 8);
                let slot = slot.and_then(|slot| usize::try_from(slot).ok());
                (
                    RelocationKind::Function,
                    slot.and_then(|slot| function(*code, slot)),
                )
            }
            RelocTarget::Map(id) => {
                let name = map(id.index()).map(|map| map.name.clone());
                (RelocationKind::Map, name)
            }
            RelocTarget::Data { map: id, offset } => {
                let imm = self.immediate(section, entry.slot);
                let offset = offset.wrapping_add_signed(imm);
                let global = self.globals.iter().find(|global| {
                    let start = u64::from(global.offset);
                    global.map == *id && (start..start + u64::from(global.size)).contains(&offset)
                });
                let name = global.map(|global| match offset - u64::from(global.offset) {
                    0 => global.name.clone(),
                    into => format!("{}+{into}", global.name),
                });
                let place = || Some(format!("{}+{offset}", map(id.index())?.name));
                (RelocationKind::Data, name.or_else(place))
            }
            RelocTarget::Extern(index) => {
                let name = self.externs.get(*index).map(|found| found.name.clone());
                (RelocationKind::Extern, name)
            }
            RelocTarget::Broken(problem) => (RelocationKind::Broken, Some(problem.to_string())),
        };
        Relocation {
            section,
            slot: entry.slot,
            kind,
            target: target.unwrap_or_default(),
        }
    }

    /// The addend that the compiler left in an instruction.
    fn immediate(&self, section: &str, slot: usize) -> i64 {
        let code = self.code.iter().find(|code| code.name == section);
        let insn = code.and_then(|code| code.insns.get(slot));
        insn.map_or(0, |insn| i64::from(insn.imm))
    }
}
