//! A program's instructions with labels instead of distances, so that instructions can be
//! inserted and removed.

use crate::isa::RawInsn;
use crate::program::Program;
use crate::util::{Pc, TypeId};

/// Identifies an item of a listing, also after items before it are inserted or removed.
pub type Label = u32;

pub(super) const LOAD_64: u8 = 0x18;
pub(super) const CALL: u8 = 0x85;
const JUMP_LONG: u8 = 0x06;
const PSEUDO_SUBPROGRAM: u8 = 1;
pub(super) const PSEUDO_FUNCTION: u8 = 4;

/// An instruction, of one slot or two.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Identifies it.
    pub label: Label,
    /// The instruction, or its first slot.
    pub insn: RawInsn,
    /// The second slot of a 64-bit immediate.
    pub second: Option<RawInsn>,
    /// The target of a jump, a call or a load of a function's address.
    pub to: Option<Label>,
}

/// The instructions of a program.
#[derive(Debug, Clone)]
pub struct Listing {
    /// In order.
    pub items: Vec<Item>,
    functions: Vec<(Label, TypeId)>,
    free: Label,
}

/// The field with the distance to another instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Distance {
    Offset,
    Immediate,
}

fn distance(insn: RawInsn) -> Option<Distance> {
    let jump = matches!(insn.opcode & 7, 5 | 6);
    match insn.opcode {
        LOAD_64 => (insn.src() == PSEUDO_FUNCTION).then_some(Distance::Immediate),
        CALL => (insn.src() == PSEUDO_SUBPROGRAM).then_some(Distance::Immediate),
        JUMP_LONG => Some(Distance::Immediate),
        _ if !jump || matches!(insn.opcode & 0xf0, 0x80 | 0x90) => None,
        _ => Some(Distance::Offset),
    }
}

impl Listing {
    /// The listing of a program.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let slots = &program.insns;
        let mut items = Vec::new();
        let mut at = 0;
        while let Some(&insn) = slots.get(at) {
            let second = slots.get(at + 1).filter(|_| insn.opcode == LOAD_64);
            let label = Pc::from_index(at).0;
            items.push(Item {
                label,
                insn,
                second: second.copied(),
                to: None,
            });
            at += if second.is_some() { 2 } else { 1 };
        }
        let known = items.clone();
        let is_item = |label: Label| {
            known
                .binary_search_by_key(&label, |item| item.label)
                .is_ok()
        };
        for item in &mut items {
            let relative = distance(item.insn).map(|distance| match distance {
                Distance::Offset => i64::from(item.insn.off),
                Distance::Immediate => i64::from(item.insn.imm),
            });
            let to = relative.map(|relative| i64::from(item.label) + 1 + relative);
            // An invalid target stays as it is.
            let to = to.and_then(|to| Label::try_from(to).ok());
            item.to = to.filter(|to| is_item(*to));
        }
        let functions = program.func_info.iter();
        Self {
            items,
            functions: functions.map(|info| (info.insn_off, info.ty)).collect(),
            free: Pc::from_index(slots.len()).0,
        }
    }

    /// Whether instructions use a register implicitly: loads of packet bytes need the
    /// context in r6.
    #[must_use]
    pub fn loads_packet_bytes(&self) -> bool {
        let mut insns = self.items.iter().map(|item| item.insn.opcode);
        insns.any(|opcode| opcode & 7 == 0 && matches!(opcode & 0xe0, 0x20 | 0x40))
    }

    /// Inserts an instruction before item `at`. With `shared`, jumps to that item lead to
    /// the new one.
    pub fn insert(&mut self, at: usize, insn: RawInsn, to: Option<Label>, shared: bool) -> Label {
        let label = self.free;
        self.free += 1;
        let item = Item {
            label,
            insn,
            second: (insn.opcode == LOAD_64).then(RawInsn::default),
            to,
        };
        let old = self.items.get(at).map(|item| item.label);
        self.items.insert(at, item);
        let starts = old.is_some_and(|old| self.functions.iter().any(|(start, _)| *start == old));
        if let Some(old) = old.filter(|_| shared || starts) {
            self.redirect(old, label, Some(at));
        }
        label
    }

    /// Inserts a copy of another listing's items. References among them are kept; other
    /// references lead to the item after them.
    pub fn splice(&mut self, at: usize, chunk: &[Item]) {
        let Some(behind) = self.items.get(at).map(|item| item.label) else {
            return;
        };
        let first = self.free;
        for (by, (label, item)) in (first..).zip(chunk).enumerate() {
            let to = item.to.map(|to| {
                let inside = chunk.iter().position(|other| other.label == to);
                inside.map_or(behind, |inside| first + Pc::from_index(inside).0)
            });
            self.items.insert(at + by, Item { label, to, ..*item });
            self.free += 1;
        }
    }

    /// Removes items; references to them lead to the next item.
    pub fn remove(&mut self, from: usize, count: usize) {
        let gone: Vec<_> = self.items.drain(from..from + count).collect();
        let heir = self.items.get(from).or(self.items.last());
        let Some(heir) = heir.map(|item| item.label) else {
            return;
        };
        for item in gone {
            self.redirect(item.label, heir, None);
        }
    }

    /// Replaces references to `old` by `new`, except in the item `except`.
    fn redirect(&mut self, old: Label, new: Label, except: Option<usize>) {
        for (index, item) in self.items.iter_mut().enumerate() {
            if item.to == Some(old) && Some(index) != except {
                item.to = Some(new);
            }
        }
        for (start, _) in &mut self.functions {
            if *start == old {
                *start = new;
            }
        }
    }

    /// `program` with these instructions; `None` if a jump is too far.
    #[must_use]
    pub fn program(&self, program: &Program) -> Option<Program> {
        let mut starts = vec![0; self.free as usize];
        let mut slots = 0u32;
        for item in &self.items {
            if let Some(start) = starts.get_mut(item.label as usize) {
                *start = slots;
            }
            slots += 1 + u32::from(item.second.is_some());
        }
        let start = |label: Label| starts.get(label as usize).copied().unwrap_or_default();
        let mut made = program.clone();
        made.insns.clear();
        for item in &self.items {
            let mut insn = item.insn;
            if let (Some(to), Some(distance)) = (item.to, distance(insn)) {
                let relative = i64::from(start(to)) - i64::from(start(item.label)) - 1;
                match distance {
                    Distance::Offset => insn.off = i16::try_from(relative).ok()?,
                    Distance::Immediate => insn.imm = i32::try_from(relative).ok()?,
                }
            }
            made.insns.push(insn);
            made.insns.extend(item.second);
        }
        for (info, (label, _)) in made.func_info.iter_mut().zip(&self.functions) {
            info.insn_off = start(*label);
        }
        let functions = made.func_info.iter().zip(&program.subprograms);
        let functions: Vec<_> = functions
            .map(|(info, old)| old.clone().with_start(Pc(info.insn_off)))
            .collect();
        if !functions.is_empty() {
            made.subprograms = functions;
        }
        // They refer to the old instructions.
        made.lines.clear();
        made.accesses.clear();
        Some(made)
    }
}
