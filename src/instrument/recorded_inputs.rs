//! Emits the replay form's code that loads inputs from the recorded log: in place of inputs
//! from the world, and over inputs from the program's own state.
//!
//! ```text
//!     position = log's length                 the current position in both logs
//!     entry = recorded log + position % positions
//!     if the site's number is not there: goto diverged
//! on: register = bytes of the entry …
//!
//! diverged:                                   after the function's end
//!     store the position if none is stored; move the position out of the recorded log
//!     entry = a part without sites            world: inputs are all ones
//!     entry = the replay's own entry          own state: inputs stay
//!     goto on
//! ```

use super::emit::{Saved, Slots, pieces};
use super::error::Reason;
use super::liveness::BY_USE;
use super::maps::scratch;
use super::patch::{Block, Label, Patch};
use super::replay_maps::{ReplayMaps, recorded_log};
use super::site::{
    AccessedState, COUNT_BYTES, Field, FieldLocation, Flow, Length, NUMBER_BYTES, Site,
};
use crate::isa::{AluOp, CallTarget, Insn, JumpOp, Reg, RegSet, Size};
use crate::spec::helpers::id;

/// Loads the inputs of a site from its recorded entry.
pub(super) struct InputReader<'a, 'f> {
    pub maps: &'a ReplayMaps,
    pub patch: &'a mut Patch,
    pub slots: &'a mut Slots<'f>,
    pub site: &'a Site,
    /// The slots of call arguments that the call has clobbered, or may clobber.
    pub saved: &'a Saved,
}

/// Inline code, and code for after the function's end.
#[derive(Default)]
pub(super) struct InputCode {
    pub line: Block,
    pub end: Block,
}

/// Scratch registers.
struct Scratch {
    /// The address of the entry.
    entry: Reg,
    other: Reg,
    /// For pointers that were saved.
    third: Option<Reg>,
    /// The slots of those registers that are live afterwards.
    saved: Saved,
}

impl InputReader<'_, '_> {
    /// Loads all input fields from the entry.
    ///
    /// # Errors
    /// [`Reason::Registers`] without free registers, [`Reason::TooLarge`] for memory too far
    /// from its start.
    pub fn read(&mut self, insn: Insn) -> Result<InputCode, Reason> {
        let mut code = InputCode::default();
        let is_counted = |(field, _): &(Field, i16)| matches!(field.length, Length::Counted { .. });
        let (counted, fixed): (Vec<_>, Vec<_>) = self.inputs().into_iter().partition(is_counted);
        if self.site.accesses == AccessedState::Own && self.site.fixed().is_none() {
            // These inputs follow from the program's own memory, whose size it computes itself.
            return Ok(code);
        }
        for (field, at) in &counted {
            self.copy(&mut code, field, *at)?;
        }
        // Memory first: its pointers may be in registers that are loaded then.
        let is_memory =
            |(field, _): &(Field, i16)| matches!(field.location, FieldLocation::Memory { .. });
        let (memory, registers): (Vec<_>, Vec<_>) = fixed.into_iter().partition(is_memory);
        if !memory.is_empty() {
            self.move_words(&mut code, &memory)?;
        }
        if !registers.is_empty() {
            self.fill(&mut code, insn, &registers)?;
        }
        Ok(code)
    }

    /// Scratch registers that are not in `not`: `entry` if given, and others that are free or
    /// can be saved.
    fn scratch_registers(
        &mut self,
        line: &mut Block,
        entry: Option<Reg>,
        not: RegSet,
        third: bool,
    ) -> Result<Scratch, Reason> {
        let not = entry.iter().fold(not, |not, reg| not.with(*reg));
        let of = |set: RegSet| {
            let set = set.minus(not);
            BY_USE.into_iter().filter(move |reg| set.contains(*reg))
        };
        let needed = usize::from(entry.is_none()) + 1 + usize::from(third);
        let regs: Vec<Reg> = of(self.site.free)
            .chain(of(self.site.spillable))
            .take(needed)
            .collect();
        if regs.len() < needed {
            return Err(Reason::Registers);
        }
        let spilled = regs.iter().filter(|reg| !self.site.free.contains(**reg));
        let saved: Saved = spilled.map(|reg| (*reg, self.slots.take())).collect();
        for (reg, slot) in &saved {
            line.store(Size::Dw, Reg::FP, *slot, *reg);
        }
        let mut regs = regs.into_iter();
        let mut next = || regs.next().ok_or(Reason::Registers);
        Ok(Scratch {
            entry: entry.map_or_else(&mut next, Ok)?,
            other: next()?,
            third: if third { Some(next()?) } else { None },
            saved,
        })
    }

    /// The input fields, with their offsets in the entry.
    fn inputs(&self) -> Vec<(Field, i16)> {
        let mut at = i16::try_from(NUMBER_BYTES).unwrap_or_default();
        let mut inputs = Vec::new();
        for field in &self.site.fields {
            if field.flow == Flow::Input {
                inputs.push((*field, at));
            }
            let len = i16::try_from(field.length.most()).unwrap_or(i16::MAX);
            at = at.saturating_add(len);
        }
        inputs
    }

    /// Points `entry` to the site's entry in the recorded log; clobbers another register.
    fn find(&mut self, code: &mut InputCode, entry: Reg, other: Reg) {
        let behind = match self.site.accesses {
            AccessedState::World => 0,
            // The replay has already written its own entry.
            AccessedState::Own => self.site.fixed().unwrap_or_default(),
        };
        let number = i32::from(self.site.number);
        let (diverged, on) = (self.patch.label(), self.patch.label());
        let line = &mut code.line;
        self.position(line, entry, behind);
        line.alu(AluOp::And, entry, signed(recorded_log::POSITIONS - 1));
        line.map_value(other, self.maps.recorded_log, recorded_log::DATA);
        line.alu(AluOp::Add, entry, other);
        line.load(Size::H, other, entry, 0);
        line.jump_if(JumpOp::Ne, other, number, diverged);
        line.bind(on);
        self.diverge(&mut code.end, entry, other, behind, (diverged, on));
    }

    /// Loads the position of the entry in both logs.
    fn position(&self, to: &mut Block, position: Reg, behind: u32) {
        to.map_value(position, self.maps.log, scratch::LOG_LEN);
        to.load(Size::Dw, position, position, 0);
        if behind > 0 {
            to.alu(AluOp::Sub, position, signed(behind));
        }
    }

    /// Emits the code for a recorded log with another site here.
    fn diverge(
        &mut self,
        end: &mut Block,
        entry: Reg,
        other: Reg,
        behind: u32,
        (diverged, on): (Label, Label),
    ) {
        let stored = self.patch.label();
        end.bind(diverged);
        // Store the position, once.
        end.map_value(other, self.maps.recorded_log, recorded_log::STOPPED);
        end.load(Size::Dw, other, other, 0);
        end.jump_if(JumpOp::Ne, other, 0, stored);
        self.position(end, entry, behind);
        end.alu(AluOp::Add, entry, 1);
        end.map_value(other, self.maps.recorded_log, recorded_log::STOPPED);
        end.store(Size::Dw, other, 0, entry);
        // From now on the log's length is a position outside of the recorded log.
        end.map_value(other, self.maps.log, scratch::LOG_LEN);
        end.load(Size::Dw, entry, other, 0);
        end.alu(AluOp::Or, entry, signed(recorded_log::DIVERGED));
        end.store(Size::Dw, other, 0, entry);
        end.bind(stored);
        match self.site.accesses {
            AccessedState::World => end.map_value(
                entry,
                self.maps.recorded_log,
                recorded_log::DATA + recorded_log::DIVERGED,
            ),
            AccessedState::Own => {
                self.position(end, entry, behind);
                end.alu(AluOp::And, entry, signed(scratch::LOG - 1));
                end.map_value(other, self.maps.log, scratch::log_start(0));
                end.alu(AluOp::Add, entry, other);
            }
        }
        end.jump(on);
    }

    /// Loads registers.
    fn fill(
        &mut self,
        code: &mut InputCode,
        insn: Insn,
        fields: &[(Field, i16)],
    ) -> Result<(), Reason> {
        let named = fields.iter().filter_map(|(field, _)| match field.location {
            FieldLocation::Register(reg) | FieldLocation::NonNull(reg) => Some(reg),
            FieldLocation::Constant(_) | FieldLocation::Memory { .. } => None,
        });
        let named: RegSet = named.collect();
        // The last one may hold the entry's address until it is loaded itself.
        let own = fields
            .iter()
            .rev()
            .find_map(|(field, at)| match field.location {
                FieldLocation::Register(reg) => Some((reg, field.length, *at)),
                _ => None,
            });
        let entry = own.map(|(reg, ..)| reg);
        let regs = self.scratch_registers(&mut code.line, entry, named, false)?;
        self.find(code, regs.entry, regs.other);
        let line = &mut code.line;
        for (field, at) in fields {
            match (field.location, field.length) {
                (FieldLocation::Register(reg), Length::Fixed(bytes)) if Some(reg) != entry => {
                    load(line, insn, bytes, reg, regs.entry, *at)?;
                }
                (FieldLocation::NonNull(reg), _) => {
                    let on = self.patch.label();
                    line.load(Size::B, regs.other, regs.entry, *at);
                    line.jump_if(JumpOp::Ne, regs.other, 0, on);
                    if insn == Insn::Call(CallTarget::Helper(id::ringbuf_reserve)) {
                        // Discard the record: the program would not, since it sees null.
                        line.jump_if(JumpOp::Eq, reg, 0, on);
                        line.mov(Reg::R1, reg);
                        line.mov(Reg::R2, 0);
                        line.call(id::ringbuf_discard);
                    }
                    line.mov(reg, 0);
                    line.bind(on);
                }
                _ => {}
            }
        }
        if let Some((reg, Length::Fixed(bytes), at)) = own {
            load(line, insn, bytes, reg, reg, at)?;
        }
        restore(line, &regs.saved);
        Ok(())
    }

    /// Fills memory of constant size.
    fn move_words(&mut self, code: &mut InputCode, fields: &[(Field, i16)]) -> Result<(), Reason> {
        let pointers = self.site.fields.iter().filter_map(pointer);
        let pointers: RegSet = pointers.collect();
        let third = pointers.iter().any(|reg| self.saved.contains_key(&reg));
        let unsaved = pointers.iter().filter(|reg| !self.saved.contains_key(reg));
        let results = RegSet::of(&[Reg::R0]);
        let is_own = self.site.accesses == AccessedState::Own;
        let not: RegSet = unsaved.chain(results.iter().filter(|_| is_own)).collect();
        let regs = self.scratch_registers(&mut code.line, None, not, third)?;
        self.find(code, regs.entry, regs.other);
        let line = &mut code.line;
        for (field, at) in fields {
            let (
                FieldLocation::Memory {
                    pointer,
                    frame,
                    align,
                    ..
                },
                Length::Fixed(bytes),
            ) = (field.location, field.length)
            else {
                continue;
            };
            let (base, start) = match (frame, self.saved.get(&pointer), regs.third) {
                (Some(off), ..) => (Reg::FP, off),
                (None, Some(slot), Some(third)) => {
                    line.load(Size::Dw, third, Reg::FP, *slot);
                    (third, 0)
                }
                _ => (pointer, 0),
            };
            for (piece, size) in pieces(start, align, bytes) {
                let too_far = Reason::TooLarge(bytes);
                let from = at.checked_add(piece).ok_or(too_far)?;
                line.load(size, regs.other, regs.entry, from);
                line.store(size, base, start.saturating_add(piece), regs.other);
            }
        }
        restore(line, &regs.saved);
        Ok(())
    }

    /// Fills memory of variable size by a helper. The helper replaces the skipped call, so the
    /// registers it clobbers are not live.
    fn copy(&mut self, code: &mut InputCode, field: &Field, at: i16) -> Result<(), Reason> {
        let (FieldLocation::Memory { pointer, frame, .. }, Length::Counted { count, most }) =
            (field.location, field.length)
        else {
            return Ok(());
        };
        let (r1, r2, r3) = (Reg::R1, Reg::R2, Reg::R3);
        // Registers that do not hold a needed argument.
        let (entry, other) = (Reg::R0, Reg::R5);
        let unsaved = [pointer, count]
            .iter()
            .any(|reg| !self.saved.contains_key(reg) && *reg == other);
        if unsaved {
            return Err(Reason::Registers);
        }
        self.find(code, entry, other);
        let line = &mut code.line;
        let value = |line: &mut Block, reg: Reg, into: Reg| match self.saved.get(&reg) {
            Some(slot) => line.load(Size::Dw, into, Reg::FP, *slot),
            None if reg != into => line.mov(into, reg),
            None => {}
        };
        // Arguments are set in ascending order, so no needed register is clobbered.
        match frame {
            Some(off) => {
                line.mov(r1, Reg::FP);
                line.alu(AluOp::Add, r1, i32::from(off));
            }
            None => value(line, pointer, r1),
        }
        value(line, count, r2);
        let short = self.patch.label();
        line.jump_if(JumpOp::Le, r2, i32::from(most), short);
        line.mov(r2, i32::from(most));
        line.bind(short);
        line.mov(r3, entry);
        let bytes = at.saturating_add(i16::try_from(COUNT_BYTES).unwrap_or_default());
        line.alu(AluOp::Add, r3, i32::from(bytes));
        line.call(id::probe_read_kernel);
        Ok(())
    }
}

/// Restores saved registers.
fn restore(line: &mut Block, saved: &Saved) {
    for (reg, slot) in saved {
        line.load(Size::Dw, *reg, Reg::FP, *slot);
    }
}

/// The register with the address of a field's memory.
fn pointer(field: &Field) -> Option<Reg> {
    match (field.location, field.length) {
        (FieldLocation::Memory { pointer, .. }, _) => Some(pointer),
        _ => None,
    }
}

/// Loads the field's bytes as the instruction would have.
fn load(
    line: &mut Block,
    insn: Insn,
    bytes: u32,
    reg: Reg,
    entry: Reg,
    at: i16,
) -> Result<(), Reason> {
    let size = match bytes {
        1 => Size::B,
        2 => Size::H,
        4 => Size::W,
        8 => Size::Dw,
        other => return Err(Reason::TooLarge(other)),
    };
    let signed = match insn {
        Insn::LoadSx { from, .. } => Some(from),
        _ => None,
    };
    match signed {
        Some(from) if from.size() == size => line.push(Insn::LoadSx {
            from,
            dst: reg,
            base: entry,
            off: at,
        }),
        _ => line.load(size, reg, entry, at),
    }
    Ok(())
}

/// A small number as an immediate.
fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
