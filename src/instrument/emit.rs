//! The code of an entry: what both forms insert at a site to write the log.
//!
//! ```text
//! a = the buffer
//! b = *(u64 *)(a + length)      the log's length so far
//! *(u64 *)(a + length) = b + n
//! a += b & mask                 where the entry goes
//! *(u16 *)(a + start) = number
//! …                             the fields, at known distances
//! ```
//!
//! There is no test for the end of the buffer: a log that was too long wraps, and its
//! length tells. So a verifier that walks every path walks no more of them than before.
//!
//! Most entries need two registers that nobody else needs there. Large memory is copied by
//! `bpf_probe_read_kernel`; then what a call destroys is saved on the stack around it.

use std::collections::BTreeMap;

use super::error::Reason;
use super::frame::Frame;
use super::liveness::BY_USE;
use super::patch::{Block, Patch};
use super::site::{COUNT_BYTES, Field, Length, Moment, NUMBER_BYTES, Place, Site};
use crate::isa::{AluOp, JumpOp, Reg, RegSet, Size};
use crate::spec::helpers::id;
use crate::util::MapId;

/// The most bytes that are copied word by word.
const MOST_WORDS: u32 = 128;

/// How inserted code finds the buffer with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffer {
    /// Its address is in the frame's first slot.
    Slot,
    /// It is the one value of an array map.
    Value(MapId),
}

/// A log in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    /// How the buffer is found.
    pub(super) buffer: Buffer,
    /// Where in it the log's length is, a `u64`.
    pub(super) length: u32,
    /// Where in it the log begins.
    pub(super) start: u32,
    /// Bytes of the log, a power of two. An entry that begins in it may end behind it.
    pub(super) size: u32,
    /// Bytes of the buffer.
    pub(super) whole: u32,
    /// Where in it the flags are (a `u16`), and the one to set when a field is cut.
    pub(super) capped: Option<(u32, i32)>,
}

/// Slots of a frame that belong to one site, from the first that is free on.
pub(super) struct Slots<'f> {
    frame: &'f mut Frame,
    next: u16,
}

impl<'f> Slots<'f> {
    /// The slots from this number on.
    pub(super) const fn from(frame: &'f mut Frame, next: u16) -> Self {
        Self { frame, next }
    }

    /// The next one.
    pub(super) fn take(&mut self) -> i16 {
        self.next += 1;
        self.frame.slot(self.next - 1)
    }
}

/// Where registers were saved that a call destroys.
pub(super) type Saved = BTreeMap<Reg, i16>;

/// Saves what the fields of entries after a call have to know of its arguments.
pub(super) fn save_arguments(block: &mut Block, slots: &mut Slots<'_>, sites: &[&Site]) -> Saved {
    let fields = sites.iter().flat_map(|site| &site.fields);
    let named = fields.fold(RegSet::EMPTY, |all, field| {
        all.union(field.memory_registers())
    });
    save(block, slots, named)
}

fn save(block: &mut Block, slots: &mut Slots<'_>, regs: RegSet) -> Saved {
    let saved: Saved = regs.iter().map(|reg| (reg, slots.take())).collect();
    for (reg, slot) in &saved {
        block.store(Size::Dw, Reg::FP, *slot, *reg);
    }
    saved
}

impl Log {
    /// The buffer's address.
    pub(super) fn buffer(&self, block: &mut Block, slots: &mut Slots<'_>, into: Reg) {
        match self.buffer {
            Buffer::Slot => block.load(Size::Dw, into, Reg::FP, slots.frame.slot(0)),
            Buffer::Value(map) => block.map_value(into, map, 0),
        }
    }

    /// Leads `at`, which is the buffer's address, to the place of the next entry, less the
    /// log's start; so many bytes are added to the log's length, and as many as `counted` has.
    pub(super) fn advance(
        &self,
        block: &mut Block,
        at: Reg,
        other: Reg,
        fixed: u32,
        counted: Option<Reg>,
    ) {
        let length = i16::try_from(self.length).unwrap_or(i16::MAX);
        let fixed = i32::try_from(fixed).unwrap_or(i32::MAX);
        block.load(Size::Dw, other, at, length);
        block.alu(AluOp::Add, other, fixed);
        if let Some(count) = counted {
            block.alu(AluOp::Add, other, count);
        }
        block.store(Size::Dw, at, length, other);
        if let Some(count) = counted {
            block.alu(AluOp::Sub, other, count);
        }
        block.alu(AluOp::Add, other, -fixed);
        let mask = i32::try_from(self.size - 1).unwrap_or(i32::MAX);
        block.alu(AluOp::And, other, mask);
        block.alu(AluOp::Add, at, other);
    }

    /// Where a byte of an entry is, from where [`advance`](Self::advance) leads to.
    pub(super) fn at(&self, byte: u32) -> i16 {
        i16::try_from(self.start + byte).unwrap_or(i16::MAX)
    }

    /// The code of an entry. `saved` is where the arguments of a call are that is over.
    ///
    /// # Errors
    /// [`Reason::Registers`] without registers, [`Reason::TooLarge`] when the entry is larger
    /// than what lies behind the log.
    pub(super) fn entry(
        &self,
        patch: &mut Patch,
        slots: &mut Slots<'_>,
        site: &Site,
        saved: &Saved,
    ) -> Result<Block, Reason> {
        if self.start + self.size + site.most() > self.whole {
            return Err(Reason::TooLarge(site.most()));
        }
        let mut entry = Entry {
            log: *self,
            patch,
            slots,
            site,
            values: saved.clone(),
            block: Block::default(),
        };
        if site.fields.iter().any(needs_call) {
            entry.with_calls()?;
        } else {
            entry.without_calls()?;
        }
        Ok(entry.block)
    }
}

/// Whether a field is copied by a helper.
pub(super) const fn needs_call(field: &Field) -> bool {
    match (field.place, field.length) {
        (Place::Memory { .. }, Length::Counted { .. })
        | (Place::Memory { plain: false, .. }, _) => true,
        (Place::Memory { .. }, Length::Fixed(bytes)) => bytes > MOST_WORDS,
        _ => false,
    }
}

/// An entry in the making.
struct Entry<'a, 'f> {
    log: Log,
    patch: &'a mut Patch,
    slots: &'a mut Slots<'f>,
    site: &'a Site,
    /// Where the values of registers are that are not in them any more.
    values: Saved,
    block: Block,
}

impl Entry<'_, '_> {
    /// An entry whose fields are all copied by loads and stores.
    fn without_calls(&mut self) -> Result<(), Reason> {
        let pointers = self.site.fields.iter().any(|field| {
            field
                .memory_registers()
                .iter()
                .any(|reg| self.values.contains_key(&reg))
        });
        let needed = if pointers { 3 } else { 2 };
        let (regs, spilled) = self.registers(needed)?;
        for (reg, slot) in &spilled {
            self.block.store(Size::Dw, Reg::FP, *slot, *reg);
        }
        let (at, other) = match regs[..] {
            [at, other, ..] => (at, other),
            _ => return Err(Reason::Registers),
        };
        self.position(at, other, None);
        self.fields(at, other, regs.get(2).copied())?;
        for (reg, slot) in &spilled {
            self.block.load(Size::Dw, *reg, Reg::FP, *slot);
        }
        Ok(())
    }

    /// Registers to use, and where to keep those that somebody needs afterwards.
    fn registers(&mut self, needed: usize) -> Result<(Vec<Reg>, Saved), Reason> {
        let of = |set: RegSet| BY_USE.into_iter().filter(move |reg| set.contains(*reg));
        let free = of(self.site.free);
        let regs: Vec<Reg> = free.chain(of(self.site.spillable)).take(needed).collect();
        if regs.len() < needed {
            return Err(Reason::Registers);
        }
        let kept = regs.iter().filter(|reg| !self.site.free.contains(**reg));
        let kept = kept.map(|reg| (*reg, self.slots.take())).collect();
        Ok((regs, kept))
    }

    /// An entry some of whose fields are copied by a helper.
    fn with_calls(&mut self) -> Result<(), Reason> {
        // What has to survive: all that is needed afterwards and all that a field names.
        let named = |set: RegSet, field: &Field| {
            let set = set.union(field.value_registers());
            match self.site.moment {
                Moment::Before => set.union(field.memory_registers()),
                Moment::After => set,
            }
        };
        let named = self.site.fields.iter().fold(RegSet::EMPTY, named);
        let kept = self.site.spillable;
        let destroyed = |set: RegSet| set.minus(set.minus(RegSet::CALLER_SAVED));
        let saved = save(&mut self.block, self.slots, destroyed(named.union(kept)));
        self.values.extend(&saved);
        let counted = self.count()?;
        self.position(Reg::R0, Reg::R1, counted);
        if counted.is_some() {
            let off = self.offset_of(self.site.fields.len().saturating_sub(1));
            self.block.store(Size::H, Reg::R0, off, Reg::R2);
        }
        self.fields(Reg::R0, Reg::R1, Some(Reg::R3))?;
        self.copies(counted)?;
        for (reg, slot) in &saved {
            if self.is_needed(*reg) {
                self.block.load(Size::Dw, *reg, Reg::FP, *slot);
            }
        }
        Ok(())
    }

    /// Whether somebody reads the register afterwards.
    fn is_needed(&self, reg: Reg) -> bool {
        !self.site.free.contains(reg)
    }

    /// The bytes of the field whose size varies, in `r2`.
    fn count(&mut self) -> Result<Option<Reg>, Reason> {
        let Some(Length::Counted { count, most }) = self.site.fields.last().map(|it| it.length)
        else {
            return Ok(None);
        };
        self.value(count, Reg::R2);
        let fits = self.patch.label();
        self.block
            .jump_if(JumpOp::Le, Reg::R2, i32::from(most), fits);
        if let Some((flags, capped)) = self.log.capped {
            let flags = offset(flags)?;
            self.log.buffer(&mut self.block, self.slots, Reg::R0);
            self.block.load(Size::H, Reg::R1, Reg::R0, flags);
            self.block.alu(AluOp::Or, Reg::R1, capped);
            self.block.store(Size::H, Reg::R0, flags, Reg::R1);
        }
        self.block.mov(Reg::R2, i32::from(most));
        self.block.bind(fits);
        Ok(Some(Reg::R2))
    }

    /// Makes `at` point to the place of the entry, less the log's start; what the entry
    /// takes is added to the log's length.
    fn position(&mut self, at: Reg, other: Reg, counted: Option<Reg>) {
        let fixed = self.site.fields.iter().fold(NUMBER_BYTES, |sum, field| {
            sum + match field.length {
                Length::Fixed(bytes) => bytes,
                Length::Counted { .. } => COUNT_BYTES,
            }
        });
        let block = &mut self.block;
        self.log.buffer(block, self.slots, at);
        self.log.advance(block, at, other, fixed, counted);
        block.store(Size::H, at, self.log.at(0), i32::from(self.site.number));
    }

    /// Where in the buffer, from the entry's place on, a field stands.
    fn offset_of(&self, number: usize) -> i16 {
        let before = self.site.fields.iter().take(number);
        let sum = before.fold(self.log.start + NUMBER_BYTES, |sum, field| {
            sum + field.length.most()
        });
        i16::try_from(sum).unwrap_or(i16::MAX)
    }

    /// The fields that need no call.
    fn fields(&mut self, at: Reg, other: Reg, third: Option<Reg>) -> Result<(), Reason> {
        for (number, field) in self.site.fields.iter().enumerate() {
            let off = self.offset_of(number);
            let Length::Fixed(bytes) = field.length else {
                continue;
            };
            match field.place {
                _ if needs_call(field) => {}
                Place::Register(reg) => {
                    let reg = self.readable(reg, other);
                    for (from, size) in pieces(0, 8, bytes) {
                        debug_assert_eq!(from, 0, "a register has one piece");
                        self.block.store(size, at, off, reg);
                    }
                }
                Place::Constant(imm) => {
                    for (_, size) in pieces(0, 8, bytes) {
                        self.block.store(size, at, off, imm);
                    }
                }
                Place::NonNull(reg) => {
                    let reg = self.readable(reg, other);
                    let found = self.patch.label();
                    self.block.store(Size::B, at, off, 1);
                    self.block.jump_if(JumpOp::Ne, reg, 0, found);
                    self.block.store(Size::B, at, off, 0);
                    self.block.bind(found);
                }
                Place::Memory {
                    pointer,
                    frame,
                    align,
                    ..
                } => {
                    let (base, from) = match frame {
                        Some(from) => (Reg::FP, from),
                        None => (self.readable(pointer, third.unwrap_or(pointer)), 0),
                    };
                    for (piece, size) in pieces(from, align, bytes) {
                        self.block.load(size, other, base, from + piece);
                        self.block.store(size, at, off + piece, other);
                    }
                }
            }
        }
        Ok(())
    }

    /// The fields that a helper copies. `r0` points to the entry's place, `r2` is the count.
    fn copies(&mut self, counted: Option<Reg>) -> Result<(), Reason> {
        let numbers: Vec<usize> = self
            .site
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| needs_call(field))
            .map(|(number, _)| number)
            .collect();
        let place = (numbers.len() > 1).then(|| self.slots.take());
        if let Some(place) = place {
            self.block.store(Size::Dw, Reg::FP, place, Reg::R0);
        }
        // The one whose size is in a register goes first, while it is there.
        for (nth, number) in numbers.into_iter().rev().enumerate() {
            let Some(field) = self.site.fields.get(number) else {
                continue;
            };
            let Place::Memory { pointer, frame, .. } = field.place else {
                continue;
            };
            match place.filter(|_| nth > 0) {
                Some(place) => self.block.load(Size::Dw, Reg::R1, Reg::FP, place),
                None => self.block.mov(Reg::R1, Reg::R0),
            }
            let mut off = self.offset_of(number);
            match field.length {
                Length::Fixed(bytes) => {
                    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
                    self.block.mov(Reg::R2, bytes);
                }
                Length::Counted { .. } if counted.is_some() => {
                    off += i16::try_from(COUNT_BYTES).unwrap_or(0);
                }
                Length::Counted { .. } => return Err(Reason::Registers),
            }
            self.block.alu(AluOp::Add, Reg::R1, i32::from(off));
            match frame {
                Some(off) => {
                    self.block.mov(Reg::R3, Reg::FP);
                    self.block.alu(AluOp::Add, Reg::R3, i32::from(off));
                }
                None => self.value(pointer, Reg::R3),
            }
            self.block.call(id::probe_read_kernel);
        }
        Ok(())
    }

    /// The register itself, or another with what was saved of it.
    fn readable(&mut self, reg: Reg, into: Reg) -> Reg {
        match self.values.get(&reg) {
            Some(slot) => {
                self.block.load(Size::Dw, into, Reg::FP, *slot);
                into
            }
            None => reg,
        }
    }

    /// Brings what a register had to another one.
    fn value(&mut self, reg: Reg, into: Reg) {
        let from = self.readable(reg, into);
        if from != into {
            self.block.mov(into, from);
        }
    }
}

/// Memory of so many bytes, `from` bytes behind what is a multiple of `align`, in pieces each
/// of which is aligned: the stack takes no others, and a pointer that was spilled there has
/// to be loaded whole.
pub(super) fn pieces(from: i16, align: u8, bytes: u32) -> impl Iterator<Item = (i16, Size)> {
    let mut done = 0u32;
    std::iter::from_fn(move || {
        let left = bytes.checked_sub(done).filter(|left| *left > 0)?;
        let at = i16::try_from(done).ok()?;
        let place = from.wrapping_add(at).cast_unsigned();
        let fits = |size: &Size| {
            u32::from(size.bytes()) <= left
                && size.bytes() <= align
                && place.is_multiple_of(size.bytes().into())
        };
        let size = [Size::Dw, Size::W, Size::H]
            .into_iter()
            .find(fits)
            .unwrap_or(Size::B);
        done += u32::from(size.bytes());
        Some((at, size))
    })
}

fn offset(at: u32) -> Result<i16, Reason> {
    i16::try_from(at).map_err(|_| Reason::TooLarge(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_in_aligned_pieces() {
        let of = |from, align, bytes| {
            let list: Vec<_> = pieces(from, align, bytes)
                .map(|(at, size)| (at, size.bytes()))
                .collect();
            list
        };
        assert_eq!(of(-16, 8, 16), [(0, 8), (8, 8)]);
        assert_eq!(of(-12, 8, 11), [(0, 4), (4, 4), (8, 2), (10, 1)]);
        assert_eq!(of(-13, 8, 6), [(0, 1), (1, 4), (5, 1)]);
        assert_eq!(of(0, 2, 5), [(0, 2), (2, 2), (4, 1)]);
        assert_eq!(of(0, 8, 0), []);
    }
}
