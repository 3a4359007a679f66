//! Positions of all instructions, and the distances of jumps.

use std::collections::{BTreeMap, BTreeSet};

use super::block::{Block, Item, Label, Target};
use super::edits::Patch;
use crate::instrument::error::Reason;
use crate::isa::CallTarget;
use crate::isa::{Code, Insn, Pseudo, RawInsn};
use crate::program::Program;
use crate::util::Pc;

/// An instruction with its position.
#[derive(Debug, Clone, Copy)]
struct Placed {
    insn: Insn,
    goes: Goes,
    /// Whether its offset field is too small for the distance.
    far: bool,
    /// Its position.
    at: u32,
}

/// What an instruction refers to.
#[derive(Debug, Clone, Copy)]
enum Goes {
    /// Nothing.
    Nowhere,
    /// A jump target.
    To(Target),
    /// The function that it calls, or whose address it takes.
    Function(Pc),
}

/// The patched program as a list of rows.
pub(super) struct Layout {
    rows: Vec<Placed>,
    labels: BTreeMap<Label, usize>,
    /// The rows, by original position: of functions' entries, of jump targets, of the
    /// instructions themselves.
    functions: BTreeMap<Pc, usize>,
    targets: Vec<Option<usize>>,
    originals: Vec<Option<usize>>,
    len: u32,
}

impl Layout {
    pub(super) fn new(patch: &Patch, program: &Program, code: &Code) -> Result<Self, Reason> {
        let mut layout = Self {
            rows: Vec::with_capacity(code.len() * 2),
            labels: BTreeMap::new(),
            functions: BTreeMap::new(),
            targets: vec![None; code.len()],
            originals: vec![None; code.len()],
            len: 0,
        };
        layout.fill(patch, program, code)?;
        layout.settle()?;
        Ok(layout)
    }

    /// Creates all rows in order.
    fn fill(&mut self, patch: &Patch, program: &Program, code: &Code) -> Result<(), Reason> {
        let declared = program.subprograms.iter().map(|sub| sub.start);
        let called = code
            .iter()
            .filter_map(|(pc, insn)| insn.ok()?.subprogram_target(pc));
        let called = called.filter_map(|to| u32::try_from(to).ok().map(Pc));
        let functions: BTreeSet<Pc> = declared.chain(called).collect();
        let mut current = None;
        for (pc, insn) in code.iter() {
            let insn = insn.map_err(|error| Reason::NoInstruction(error.to_string()))?;
            if functions.contains(&pc) {
                self.block(current.and_then(|start| patch.end.get(&start)));
                current = Some(pc);
                self.functions.insert(pc, self.rows.len());
                self.block(patch.entry.get(&pc));
            }
            set(&mut self.targets, pc, self.rows.len());
            self.block(patch.before.get(&pc));
            self.block(patch.last_before.get(&pc));
            if let Some(instead) = patch.instead.get(&pc) {
                self.block(Some(instead));
            } else {
                set(&mut self.originals, pc, self.rows.len());
                self.row(insn, goes(insn, pc)?);
            }
            self.block(patch.after.get(&pc));
        }
        self.block(current.and_then(|start| patch.end.get(&start)));
        Ok(())
    }

    fn block(&mut self, block: Option<&Block>) {
        for item in block.map_or(&[][..], |block| &block.items) {
            match *item {
                Item::Insn(insn) => self.row(insn, Goes::Nowhere),
                Item::Jump(insn, target) => self.row(insn, Goes::To(target)),
                Item::Bind(label) => drop(self.labels.insert(label, self.rows.len())),
            }
        }
    }

    fn row(&mut self, insn: Insn, goes: Goes) {
        self.rows.push(Placed {
            insn,
            goes,
            far: false,
            at: 0,
        });
    }

    /// Computes the positions. A jump that is too short is extended, which may make others too
    /// short.
    fn settle(&mut self) -> Result<(), Reason> {
        loop {
            let mut at = 0u32;
            for row in &mut self.rows {
                row.at = at;
                at = at.checked_add(row.slots()).ok_or(Reason::Jump)?;
            }
            self.len = at;
            let far: Vec<usize> = (0..self.rows.len())
                .filter(|number| self.is_too_short(*number))
                .collect();
            if far.is_empty() {
                return Ok(());
            }
            for number in far {
                if let Some(row) = self.rows.get_mut(number) {
                    row.far = true;
                }
            }
        }
    }

    /// Whether a jump's distance exceeds its 16-bit offset.
    fn is_too_short(&self, number: usize) -> bool {
        let Some(row) = self.rows.get(number).filter(|row| !row.far) else {
            return false;
        };
        let short = row.insn.jump_off().is_some() && !matches!(row.insn, Insn::JumpLong { .. });
        let off = |to: u32| i64::from(to) - i64::from(row.at) - 1;
        short
            && self
                .destination(row.goes)
                .is_some_and(|to| i16::try_from(off(to)).is_err())
    }

    /// The new position of a reference.
    fn destination(&self, goes: Goes) -> Option<u32> {
        let row = match goes {
            Goes::Nowhere => return None,
            Goes::To(Target::Label(label)) => *self.labels.get(&label)?,
            Goes::To(Target::Pc(pc)) => get(&self.targets, pc)?,
            Goes::Function(pc) => *self.functions.get(&pc)?,
        };
        Some(self.position(row))
    }

    /// The position of a row; the end of the program for the row after the last.
    fn position(&self, row: usize) -> u32 {
        self.rows.get(row).map_or(self.len, |row| row.at)
    }

    /// The slots of the program.
    pub(super) fn slots(&self) -> Result<Vec<RawInsn>, Reason> {
        let mut slots = Vec::with_capacity(self.len as usize);
        for row in &self.rows {
            let to = match (row.goes, self.destination(row.goes)) {
                (Goes::Nowhere, _) => {
                    slots.extend_from_slice(&row.insn.encode());
                    continue;
                }
                (_, to) => to.ok_or(Reason::Jump)?,
            };
            for insn in row.going(to).ok_or(Reason::Jump)? {
                slots.extend_from_slice(&insn.encode());
            }
        }
        Ok(slots)
    }

    /// The new position of a function's entry.
    pub(super) fn function(&self, pc: Pc) -> Pc {
        let row = self.functions.get(&pc).copied();
        row.map_or_else(|| self.line(pc), |row| Pc(self.position(row)))
    }

    /// The new position for a source line: a function's entry if there is one.
    pub(super) fn line(&self, pc: Pc) -> Pc {
        let function = self.functions.get(&pc).copied();
        let row = function.or_else(|| get(&self.targets, pc));
        row.map_or(pc, |row| Pc(self.position(row)))
    }

    /// The new position of a jump target.
    pub(super) fn target(&self, pc: Pc) -> Option<Pc> {
        get(&self.targets, pc).map(|row| Pc(self.position(row)))
    }

    /// The new position of an instruction, unless it was replaced.
    pub(super) fn original(&self, pc: Pc) -> Option<Pc> {
        get(&self.originals, pc).map(|row| Pc(self.position(row)))
    }
}

impl Placed {
    /// The number of slots.
    const fn slots(&self) -> u32 {
        match (self.far, self.insn) {
            (false, insn) => insn.slots(),
            (true, Insn::Jump { .. }) => 1,
            (true, _) => 3,
        }
    }

    /// The instructions, adjusted to their target.
    fn going(&self, to: u32) -> Option<Vec<Insn>> {
        let off = |from: u32| i32::try_from(i64::from(to) - i64::from(from) - 1).ok();
        if !self.far {
            return Some(vec![refer(self.insn, off(self.at)?)?]);
        }
        if matches!(self.insn, Insn::Jump { .. }) {
            return Some(vec![Insn::JumpLong { off: off(self.at)? }]);
        }
        // The short jump skips the `goto +1` before the long jump.
        Some(vec![
            self.insn.with_jump_off(1)?,
            Insn::Jump { off: 1 },
            Insn::JumpLong {
                off: off(self.at.checked_add(2)?)?,
            },
        ])
    }
}

/// The instruction with another distance to its target.
fn refer(insn: Insn, off: i32) -> Option<Insn> {
    match insn {
        Insn::Call(CallTarget::Subprogram { .. }) => {
            Some(Insn::Call(CallTarget::Subprogram { rel: off }))
        }
        Insn::LoadPseudo {
            dst,
            source: Pseudo::Func { .. },
        } => Some(Insn::LoadPseudo {
            dst,
            source: Pseudo::Func { rel: off },
        }),
        jump => jump.with_jump_off(off),
    }
}

/// The reference of an instruction of the original program.
fn goes(insn: Insn, pc: Pc) -> Result<Goes, Reason> {
    let position = |to: i64| u32::try_from(to).map(Pc).map_err(|_| Reason::Jump);
    if let Some(to) = insn.jump_target(pc) {
        return Ok(Goes::To(Target::Pc(position(to)?)));
    }
    if let Some(to) = insn.subprogram_target(pc) {
        return Ok(Goes::Function(position(to)?));
    }
    Ok(Goes::Nowhere)
}

fn set(rows: &mut [Option<usize>], pc: Pc, row: usize) {
    if let Some(slot) = rows.get_mut(pc.index()) {
        *slot = Some(row);
    }
}

fn get(rows: &[Option<usize>], pc: Pc) -> Option<usize> {
    rows.get(pc.index()).copied().flatten()
}
