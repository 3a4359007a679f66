//! Code that takes from the tape what the recorded form wrote: instead of what comes from
//! the world, and over what came from memory of the program's own.
//!
//! ```text
//!     place  = log's length                   where in both logs the program is
//!     entry  = tape + place % places
//!     if the site's number is not there: goto astray
//! on: register = bytes of the entry …
//!
//! astray:                                     behind the function's end
//!     say where, if nobody has; from now on no place is on the tape
//!     entry  = where no site is               world: what is given is all ones
//!     entry  = the own entry in the log       own: what was there stays
//!     goto on
//! ```

use super::emit::{Saved, Slots, pieces};
use super::error::Reason;
use super::liveness::BY_USE;
use super::maps::scratch;
use super::patch::{Block, Label, Patch};
use super::replay_maps::{ReplayMaps, tape};
use super::site::{COUNT_BYTES, Field, Flow, Length, NUMBER_BYTES, Place, Site, Source};
use crate::isa::{AluOp, CallTarget, Insn, JumpOp, Reg, RegSet, Size};
use crate::spec::helpers::id;

/// Takes what a site's entry has.
pub(super) struct Taker<'a, 'f> {
    pub maps: &'a ReplayMaps,
    pub patch: &'a mut Patch,
    pub slots: &'a mut Slots<'f>,
    pub site: &'a Site,
    /// Where arguments of a call are that it has destroyed, or might.
    pub saved: &'a Saved,
}

/// Code in line, and code for behind the function's end.
#[derive(Default)]
pub(super) struct Taken {
    pub line: Block,
    pub end: Block,
}

/// Registers in use.
struct Hands {
    /// Points to the entry.
    entry: Reg,
    other: Reg,
    /// For pointers that were saved.
    third: Option<Reg>,
    /// Where those are kept that somebody needs afterwards.
    kept: Saved,
}

impl Taker<'_, '_> {
    /// Fills what the fields name from the entry.
    ///
    /// # Errors
    /// [`Reason::Registers`] without registers, [`Reason::TooLarge`] for memory that is too
    /// far from its start.
    pub fn take(&mut self, insn: Insn) -> Result<Taken, Reason> {
        let mut taken = Taken::default();
        let is_counted = |(field, _): &(Field, i16)| matches!(field.length, Length::Counted { .. });
        let (counted, fixed): (Vec<_>, Vec<_>) = self.inputs().into_iter().partition(is_counted);
        if self.site.source == Source::Own && self.site.fixed().is_none() {
            // What follows from the program's own memory, whose size it says itself.
            return Ok(taken);
        }
        for (field, at) in &counted {
            self.copy(&mut taken, field, *at)?;
        }
        // Memory first: its pointers may be in registers that are filled then.
        let is_memory = |(field, _): &(Field, i16)| matches!(field.place, Place::Memory { .. });
        let (memory, registers): (Vec<_>, Vec<_>) = fixed.into_iter().partition(is_memory);
        if !memory.is_empty() {
            self.move_words(&mut taken, &memory)?;
        }
        if !registers.is_empty() {
            self.fill(&mut taken, insn, &registers)?;
        }
        Ok(taken)
    }

    /// Registers to work with, none of these: `entry` if it is given, others that are free,
    /// or that can be saved meanwhile.
    fn hands(
        &mut self,
        line: &mut Block,
        entry: Option<Reg>,
        not: RegSet,
        third: bool,
    ) -> Result<Hands, Reason> {
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
        let kept: Saved = spilled.map(|reg| (*reg, self.slots.take())).collect();
        for (reg, slot) in &kept {
            line.store(Size::Dw, Reg::FP, *slot, *reg);
        }
        let mut regs = regs.into_iter();
        let mut next = || regs.next().ok_or(Reason::Registers);
        Ok(Hands {
            entry: entry.map_or_else(&mut next, Ok)?,
            other: next()?,
            third: if third { Some(next()?) } else { None },
            kept,
        })
    }

    /// The fields that come in, and where in the entry they are.
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

    /// Leads `entry` to the site's entry on the tape, with the help of another register.
    fn find(&mut self, taken: &mut Taken, entry: Reg, other: Reg) {
        let behind = match self.site.source {
            Source::World => 0,
            // It was written down already.
            Source::Own => self.site.fixed().unwrap_or_default(),
        };
        let number = i32::from(self.site.number);
        let (astray, on) = (self.patch.label(), self.patch.label());
        let line = &mut taken.line;
        self.place(line, entry, behind);
        line.alu(AluOp::And, entry, signed(tape::PLACES - 1));
        line.map_value(other, self.maps.tape, tape::DATA);
        line.alu(AluOp::Add, entry, other);
        line.load(Size::H, other, entry, 0);
        line.jump_if(JumpOp::Ne, other, number, astray);
        line.bind(on);
        self.go_astray(&mut taken.end, entry, other, behind, (astray, on));
    }

    /// The place of the entry in both logs.
    fn place(&self, to: &mut Block, place: Reg, behind: u32) {
        to.map_value(place, self.maps.log, scratch::LOG_LEN);
        to.load(Size::Dw, place, place, 0);
        if behind > 0 {
            to.alu(AluOp::Sub, place, signed(behind));
        }
    }

    /// What happens where the tape has another site.
    fn go_astray(
        &mut self,
        end: &mut Block,
        entry: Reg,
        other: Reg,
        behind: u32,
        (astray, on): (Label, Label),
    ) {
        let said = self.patch.label();
        end.bind(astray);
        // Where, once.
        end.map_value(other, self.maps.tape, tape::STOPPED);
        end.load(Size::Dw, other, other, 0);
        end.jump_if(JumpOp::Ne, other, 0, said);
        self.place(end, entry, behind);
        end.alu(AluOp::Add, entry, 1);
        end.map_value(other, self.maps.tape, tape::STOPPED);
        end.store(Size::Dw, other, 0, entry);
        // From now on the log's length leads nowhere on the tape.
        end.map_value(other, self.maps.log, scratch::LOG_LEN);
        end.load(Size::Dw, entry, other, 0);
        end.alu(AluOp::Or, entry, signed(tape::NOWHERE));
        end.store(Size::Dw, other, 0, entry);
        end.bind(said);
        match self.site.source {
            Source::World => end.map_value(entry, self.maps.tape, tape::DATA + tape::NOWHERE),
            Source::Own => {
                self.place(end, entry, behind);
                end.alu(AluOp::And, entry, signed(scratch::LOG - 1));
                end.map_value(other, self.maps.log, scratch::log_start(0));
                end.alu(AluOp::Add, entry, other);
            }
        }
        end.jump(on);
    }

    /// Fills registers.
    fn fill(
        &mut self,
        taken: &mut Taken,
        insn: Insn,
        fields: &[(Field, i16)],
    ) -> Result<(), Reason> {
        let named = fields.iter().filter_map(|(field, _)| match field.place {
            Place::Register(reg) | Place::NonNull(reg) => Some(reg),
            Place::Constant(_) | Place::Memory { .. } => None,
        });
        let named: RegSet = named.collect();
        // The last one may hold the entry's place until it is filled.
        let own = fields
            .iter()
            .rev()
            .find_map(|(field, at)| match field.place {
                Place::Register(reg) => Some((reg, field.length, *at)),
                _ => None,
            });
        let entry = own.map(|(reg, ..)| reg);
        let hands = self.hands(&mut taken.line, entry, named, false)?;
        self.find(taken, hands.entry, hands.other);
        let line = &mut taken.line;
        for (field, at) in fields {
            match (field.place, field.length) {
                (Place::Register(reg), Length::Fixed(bytes)) if Some(reg) != entry => {
                    load(line, insn, bytes, reg, hands.entry, *at)?;
                }
                (Place::NonNull(reg), _) => {
                    let on = self.patch.label();
                    line.load(Size::B, hands.other, hands.entry, *at);
                    line.jump_if(JumpOp::Ne, hands.other, 0, on);
                    if insn == Insn::Call(CallTarget::Helper(id::ringbuf_reserve)) {
                        // Nobody else would give it back.
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
        give_back(line, &hands.kept);
        Ok(())
    }

    /// Fills memory of a size that is known.
    fn move_words(&mut self, taken: &mut Taken, fields: &[(Field, i16)]) -> Result<(), Reason> {
        let pointers = self.site.fields.iter().filter_map(pointer);
        let pointers: RegSet = pointers.collect();
        let third = pointers.iter().any(|reg| self.saved.contains_key(&reg));
        let unsaved = pointers.iter().filter(|reg| !self.saved.contains_key(reg));
        let results = RegSet::of(&[Reg::R0]);
        let is_own = self.site.source == Source::Own;
        let not: RegSet = unsaved.chain(results.iter().filter(|_| is_own)).collect();
        let hands = self.hands(&mut taken.line, None, not, third)?;
        self.find(taken, hands.entry, hands.other);
        let line = &mut taken.line;
        for (field, at) in fields {
            let (
                Place::Memory {
                    pointer,
                    frame,
                    align,
                    ..
                },
                Length::Fixed(bytes),
            ) = (field.place, field.length)
            else {
                continue;
            };
            let (base, start) = match (frame, self.saved.get(&pointer), hands.third) {
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
                line.load(size, hands.other, hands.entry, from);
                line.store(size, base, start.saturating_add(piece), hands.other);
            }
        }
        give_back(line, &hands.kept);
        Ok(())
    }

    /// Fills memory of as many bytes as a register says: a helper does, in place of the
    /// call that is left out, so that what it destroys nobody needs.
    fn copy(&mut self, taken: &mut Taken, field: &Field, at: i16) -> Result<(), Reason> {
        let (Place::Memory { pointer, frame, .. }, Length::Counted { count, most }) =
            (field.place, field.length)
        else {
            return Ok(());
        };
        let (r1, r2, r3) = (Reg::R1, Reg::R2, Reg::R3);
        // Not those that still hold what is needed.
        let (entry, other) = (Reg::R0, Reg::R5);
        let unsaved = [pointer, count]
            .iter()
            .any(|reg| !self.saved.contains_key(reg) && *reg == other);
        if unsaved {
            return Err(Reason::Registers);
        }
        self.find(taken, entry, other);
        let line = &mut taken.line;
        let value = |line: &mut Block, reg: Reg, into: Reg| match self.saved.get(&reg) {
            Some(slot) => line.load(Size::Dw, into, Reg::FP, *slot),
            None if reg != into => line.mov(into, reg),
            None => {}
        };
        // Arguments come in rising order, so what is needed later is not lost.
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

/// Fills registers again that were saved.
fn give_back(line: &mut Block, kept: &Saved) {
    for (reg, slot) in kept {
        line.load(Size::Dw, *reg, Reg::FP, *slot);
    }
}

/// The register that memory is reached by.
fn pointer(field: &Field) -> Option<Reg> {
    match (field.place, field.length) {
        (Place::Memory { pointer, .. }, _) => Some(pointer),
        _ => None,
    }
}

/// `reg` = the field's bytes, as the instruction would have left them.
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
