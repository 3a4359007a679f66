//! Emits the code that both forms insert at a site to write an entry of the log.
//!
//! ```text
//! a = the buffer
//! b = *(u64 *)(a + length)      length of the log so far
//! *(u64 *)(a + length) = b + n
//! a += b & mask                 position of the entry
//! *(u16 *)(a + start) = number
//! …                             the fields, at known offsets
//! ```
//!
//! There is no bounds check: a log that is too long wraps around, and its length tells. So the
//! verifier explores no more paths than in the original program.
//!
//! Most entries need two registers that are free there. Larger memory is copied by
//! `bpf_probe_read_kernel`; the registers that the call clobbers are then saved on the stack.

use std::collections::BTreeMap;

use super::error::Reason;
use super::frame::Frame;
use super::liveness::BY_USE;
use super::patch::{Block, Patch};
use super::site::{COUNT_BYTES, Field, FieldLocation, Length, Moment, NUMBER_BYTES, Site};
use crate::isa::{AluOp, JumpOp, Reg, RegSet, Size};
use crate::spec::helpers::id;
use crate::util::MapId;

/// Memory up to this size in bytes is copied word by word.
const MOST_WORDS: u32 = 128;

/// How inserted code finds the buffer that holds the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffer {
    /// Its address is in the frame's first added slot.
    Slot,
    /// It is the only value of an array map.
    Value(MapId),
}

/// Where the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    /// How the buffer is found.
    pub(super) buffer: Buffer,
    /// Offset of the log's length in the buffer, a `u64`.
    pub(super) length: u32,
    /// Offset of the log's start in the buffer.
    pub(super) start: u32,
    /// Size of the log in bytes, a power of two. An entry may start in it and end after it.
    pub(super) size: u32,
    /// Size of the buffer in bytes.
    pub(super) whole: u32,
    /// Offset of the flags (a `u16`) in the buffer, and the flag for a truncated field.
    pub(super) capped: Option<(u32, i32)>,
}

/// The added frame slots that a site may use.
pub(super) struct Slots<'f> {
    frame: &'f mut Frame,
    next: u16,
}

impl<'f> Slots<'f> {
    /// The slots from number `next`.
    pub(super) const fn from(frame: &'f mut Frame, next: u16) -> Self {
        Self { frame, next }
    }

    /// Takes the next slot.
    pub(super) fn take(&mut self) -> i16 {
        self.next += 1;
        self.frame.slot(self.next - 1)
    }
}

/// The slots of saved registers.
pub(super) type Saved = BTreeMap<Reg, i16>;

/// Saves the arguments of a call that entries after it need.
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
    /// Loads the buffer's address.
    pub(super) fn buffer(&self, block: &mut Block, slots: &mut Slots<'_>, into: Reg) {
        match self.buffer {
            Buffer::Slot => block.load(Size::Dw, into, Reg::FP, slots.frame.slot(0)),
            Buffer::Value(map) => block.map_value(into, map, 0),
        }
    }

    /// Moves `at` from the buffer's address to the position of the next entry, minus the log's
    /// start. Adds `fixed` bytes, and the number in `counted`, to the log's length.
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

    /// The offset of an entry's byte from the address that [`advance`](Self::advance) computes.
    pub(super) fn at(&self, byte: u32) -> i16 {
        i16::try_from(self.start + byte).unwrap_or(i16::MAX)
    }

    /// Emits the code of an entry. `saved` has the arguments of a finished call.
    ///
    /// # Errors
    /// [`Reason::Registers`] without free registers, [`Reason::TooLarge`] if the entry is
    /// larger than the room after the log.
    pub(super) fn entry(
        &self,
        patch: &mut Patch,
        slots: &mut Slots<'_>,
        site: &Site,
        saved: &Saved,
    ) -> Result<Block, Reason> {
        // The code of a field may write up to eight bytes at its position.
        if self.start + self.size + site.most() + 8 > self.whole {
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
    match (field.location, field.length) {
        (FieldLocation::Memory { .. }, Length::Counted { .. })
        | (FieldLocation::Memory { plain: false, .. }, _) => true,
        (FieldLocation::Memory { .. }, Length::Fixed(bytes)) => bytes > MOST_WORDS,
        _ => false,
    }
}

/// An entry whose code is being emitted.
struct Entry<'a, 'f> {
    log: Log,
    patch: &'a mut Patch,
    slots: &'a mut Slots<'f>,
    site: &'a Site,
    /// Slots with the values of registers that have been clobbered.
    values: Saved,
    block: Block,
}

impl Entry<'_, '_> {
    /// Emits an entry whose fields are all copied by loads and stores.
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

    /// Scratch registers, and slots to save those that are live.
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

    /// Emits an entry with fields that a helper copies.
    fn with_calls(&mut self) -> Result<(), Reason> {
        // Save all that is live afterwards and all that a field names.
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

    /// Whether the register is live afterwards.
    fn is_needed(&self, reg: Reg) -> bool {
        !self.site.free.contains(reg)
    }

    /// Loads the size of the variable-size field into `r2`.
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

    /// Points `at` to the entry, minus the log's start, and adds the entry's size to the log's
    /// length.
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

    /// The offset of a field from the address of the entry.
    fn offset_of(&self, number: usize) -> i16 {
        let before = self.site.fields.iter().take(number);
        let sum = before.fold(self.log.start + NUMBER_BYTES, |sum, field| {
            sum + field.length.most()
        });
        i16::try_from(sum).unwrap_or(i16::MAX)
    }

    /// Writes the fields that need no call.
    fn fields(&mut self, at: Reg, other: Reg, third: Option<Reg>) -> Result<(), Reason> {
        for (number, field) in self.site.fields.iter().enumerate() {
            let off = self.offset_of(number);
            let Length::Fixed(bytes) = field.length else {
                continue;
            };
            match field.location {
                _ if needs_call(field) => {}
                FieldLocation::Register(reg) => {
                    let reg = self.readable(reg, other);
                    for (from, size) in pieces(0, 8, bytes) {
                        debug_assert_eq!(from, 0, "a register has one piece");
                        self.block.store(size, at, off, reg);
                    }
                }
                FieldLocation::Constant(imm) => {
                    for (_, size) in pieces(0, 8, bytes) {
                        self.block.store(size, at, off, imm);
                    }
                }
                FieldLocation::NonNull(reg) => {
                    // A branch on the pointer would be a null test before the program's own.
                    // Linux 6.1 takes a tested pointer to memory (a ring-buffer record)
                    // for one that may be null at the next test, and then misses the release
                    // on that path. So it tests a copy, which is a number after a store and
                    // a load: pointers have bit 63 set. The store's other bytes are written
                    // again, or after the log's end.
                    let reg = self.readable(reg, other);
                    self.block.store(Size::Dw, at, off, reg);
                    self.block.load(Size::Dw, other, at, off);
                    self.block.alu(AluOp::Rsh, other, 63);
                    self.block.store(Size::B, at, off, other);
                }
                FieldLocation::Memory {
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

    /// Writes the fields that a helper copies. `r0` is the entry's address, `r2` the count.
    fn copies(&mut self, counted: Option<Reg>) -> Result<(), Reason> {
        let numbers: Vec<usize> = self
            .site
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| needs_call(field))
            .map(|(number, _)| number)
            .collect();
        let saved_entry = (numbers.len() > 1).then(|| self.slots.take());
        if let Some(slot) = saved_entry {
            self.block.store(Size::Dw, Reg::FP, slot, Reg::R0);
        }
        // The field whose size is in a register goes first, before the register is clobbered.
        for (nth, number) in numbers.into_iter().rev().enumerate() {
            let Some(field) = self.site.fields.get(number) else {
                continue;
            };
            let FieldLocation::Memory { pointer, frame, .. } = field.location else {
                continue;
            };
            match saved_entry.filter(|_| nth > 0) {
                Some(slot) => self.block.load(Size::Dw, Reg::R1, Reg::FP, slot),
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

    /// The register itself, or `into` after loading the saved value into it.
    fn readable(&mut self, reg: Reg, into: Reg) -> Reg {
        match self.values.get(&reg) {
            Some(slot) => {
                self.block.load(Size::Dw, into, Reg::FP, *slot);
                into
            }
            None => reg,
        }
    }

    /// Copies a register's value to another register.
    fn value(&mut self, reg: Reg, into: Reg) {
        let from = self.readable(reg, into);
        if from != into {
            self.block.mov(into, from);
        }
    }
}

/// Splits memory of `bytes` bytes, which starts `from` bytes after a multiple of `align`, into
/// aligned pieces: the stack allows no others, and a spilled pointer must be loaded whole.
pub(super) fn pieces(from: i16, align: u8, bytes: u32) -> impl Iterator<Item = (i16, Size)> {
    let mut done = 0u32;
    std::iter::from_fn(move || {
        let left = bytes.checked_sub(done).filter(|left| *left > 0)?;
        let at = i16::try_from(done).ok()?;
        let address = from.wrapping_add(at).cast_unsigned();
        let fits = |size: &Size| {
            u32::from(size.bytes()) <= left
                && size.bytes() <= align
                && address.is_multiple_of(size.bytes().into())
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
