//! An assembler with labels, shortest jumps and alignment.
//!
//! `dynasm!` writes jumps with 32 bits and records them here. [`Assembler::finish`]
//! shortens those with a near target, moves the following code, and aligns the heads of
//! loops. Labels and jumps are kept in the order of the code, so that one pass is enough.

use dynasmrt::components::LabelRegistry;
use dynasmrt::x64::X64Relocation;
use dynasmrt::{AssemblyOffset, DynamicLabel, DynasmApi, DynasmLabelApi};

use super::bytes::Bytes;
use crate::jit::emitted::CODE_ALIGNMENT;

/// The code so far.
#[derive(Debug)]
pub(super) struct Assembler {
    bytes: Bytes,
    /// Allocates labels.
    labels: LabelRegistry,
    /// The positions of labels, by their numbers.
    places: Vec<u32>,
    /// The positions that were noted, and whether any are.
    noted: Vec<u32>,
    notes: bool,
    /// What to adjust when the code is moved, in the order of the code.
    marks: Vec<Mark>,
}

/// A position in the code that has to be adjusted.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: u32,
    kind: Kind,
    /// The number of a label; of [`Kind::Align`] how many positions were noted before.
    label: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The label is here.
    Label,
    /// The following code is to be aligned: the head of a loop, or a function.
    Align,
    /// The 4 bytes before are the distance to the label.
    Distance,
    /// The same after a one-byte jump opcode, which may become a short jump.
    Jump,
    /// The same after a two-byte conditional jump opcode.
    JumpIf,
}

/// The alignment of loops and functions.
const ALIGNMENT: u32 = 16;
const _: () = assert!(ALIGNMENT as usize <= CODE_ALIGNMENT);

/// No-op instructions of 1 to 9 bytes, by their length.
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0],
    &[0x0f, 0x1f, 0x44, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
    &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
    &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
];

/// The position of a label that was not placed.
const NOWHERE: u32 = u32::MAX;

impl Assembler {
    /// Creates an assembler with room for this many operations, which `notes` positions or not.
    pub(super) fn new(ops: usize, notes: bool) -> Self {
        Self {
            bytes: Bytes::with_capacity(ops * 8 + 256),
            labels: LabelRegistry::with_capacity(0, 0, ops / 4 + 16),
            places: Vec::with_capacity(ops / 4 + 16),
            noted: Vec::with_capacity(if notes { ops } else { 0 }),
            notes,
            marks: Vec::with_capacity(ops / 2 + 32),
        }
    }

    /// Appends an instruction, or a part of one: the `len` low bytes of a number, at most 8, the
    /// lowest first.
    #[inline]
    pub(super) fn put(&mut self, bytes: u64, len: usize) {
        self.bytes.put(bytes, len);
    }

    /// Notes this position: [`Finished::noted`].
    pub(super) fn note_here(&mut self) {
        if self.notes {
            self.noted.push(self.position());
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "offsets in code have 32 bits"
    )]
    fn position(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Allocates a label, not placed yet.
    pub(super) fn new_dynamic_label(&mut self) -> DynamicLabel {
        self.places.push(NOWHERE);
        self.labels.new_dynamic_label()
    }

    /// Aligns the following code.
    pub(super) fn align_here(&mut self) {
        self.mark(Kind::Align, self.noted.len());
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer labels than bytes"
    )]
    fn mark(&mut self, kind: Kind, label: usize) {
        self.marks.push(Mark {
            at: self.position(),
            kind,
            label: label as u32,
        });
    }

    /// Returns the code with the shortest jumps; none if a jump's label was not placed.
    pub(super) fn finish(mut self) -> Option<Finished> {
        let bytes = self.bytes.as_slice();
        let mut code = Vec::with_capacity(bytes.len() + bytes.len() / 16);
        let aligned: Vec<u32> = self
            .marks
            .iter()
            .filter(|mark| mark.kind == Kind::Align)
            .map(|mark| mark.at)
            .collect();
        let mut places = vec![NOWHERE; self.places.len()];
        // The ends of distances in the new code, their lengths, and their labels.
        let mut distances = Vec::with_capacity(self.marks.len());
        let mut copied = 0;
        let old = std::mem::take(&mut self.noted);
        let mut noted = Vec::with_capacity(old.len());
        // The positions before `end`, and the first `count`, are in code that is copied next.
        let mut move_noted = |end: usize, count: usize, copied: usize, len: usize| {
            while let Some(at) = old.get(noted.len())
                && (noted.len() < count || (*at as usize) < end)
            {
                noted.push(len + (*at as usize).saturating_sub(copied));
            }
        };
        for mark in std::mem::take(&mut self.marks) {
            let end = mark.at as usize;
            match mark.kind {
                Kind::Label => {
                    let place = code.len() + (end - copied);
                    *places.get_mut(mark.label as usize)? = u32::try_from(place).ok()?;
                }
                Kind::Align => {
                    move_noted(end, mark.label as usize, copied, code.len());
                    code.extend_from_slice(bytes.get(copied..end)?);
                    copied = end;
                    align(&mut code);
                }
                Kind::Distance | Kind::Jump | Kind::JumpIf => {
                    move_noted(end, 0, copied, code.len());
                    let to = *self.places.get(mark.label as usize)?;
                    let short = match mark.kind {
                        Kind::Jump if is_near(mark.at, to, &aligned) => Some((5, 0xeb)),
                        Kind::JumpIf if is_near(mark.at, to, &aligned) => {
                            // 0f 8x with 32 bits is 7x with 8 bits.
                            Some((6, bytes.get(end - 5)? - 0x10))
                        }
                        _ => None,
                    };
                    let size = match short {
                        Some((long, opcode)) => {
                            code.extend_from_slice(bytes.get(copied..end - long)?);
                            code.extend_from_slice(&[opcode, 0]);
                            1
                        }
                        None => {
                            code.extend_from_slice(bytes.get(copied..end)?);
                            4
                        }
                    };
                    copied = end;
                    distances.push((code.len(), size, mark.label));
                }
            }
        }
        move_noted(usize::MAX, 0, copied, code.len());
        code.extend_from_slice(bytes.get(copied..)?);
        for (end, size, label) in distances {
            let to = *places.get(label as usize)?;
            if to == NOWHERE {
                return None;
            }
            let distance = i64::from(to) - i64::try_from(end).ok()?;
            let field = code.get_mut(end - size..end)?;
            match size {
                1 => field.copy_from_slice(&i8::try_from(distance).ok()?.to_le_bytes()),
                _ => field.copy_from_slice(&i32::try_from(distance).ok()?.to_le_bytes()),
            }
        }
        Some(Finished {
            bytes: code,
            noted,
            places,
        })
    }
}

/// Whether a jump that ends at `from` reaches `to` with 8 bits, however the code is
/// adjusted: other jumps become shorter, and padding may be inserted at each aligned
/// position.
fn is_near(from: u32, to: u32, aligned: &[u32]) -> bool {
    if from.abs_diff(to) > 127 {
        return false;
    }
    // Padding at the target of a backward jump is inserted before it.
    let (first, end) = if to <= from {
        (to + 1, from)
    } else {
        (from, to + 1)
    };
    let before = |limit: u32| aligned.partition_point(|at| *at < limit);
    let between = before(end).saturating_sub(before(first));
    from.abs_diff(to) as usize + between * (ALIGNMENT as usize - 1) <= 127
}

/// Appends no-ops up to an aligned position.
fn align(code: &mut Vec<u8>) {
    let mut missing = code.len().next_multiple_of(ALIGNMENT as usize) - code.len();
    while let Some(last) = missing.checked_sub(1) {
        let nop = NOPS[last.min(NOPS.len() - 1)];
        code.extend_from_slice(nop);
        missing -= nop.len();
    }
}

/// Finished code.
#[derive(Debug)]
pub(super) struct Finished {
    pub bytes: Vec<u8>,
    /// Where the positions are that were noted.
    pub noted: Vec<usize>,
    places: Vec<u32>,
}

impl Finished {
    /// The position of a label.
    pub(super) fn place(&self, label: DynamicLabel) -> Option<usize> {
        let place = *self.places.get(label.get_id())?;
        (place != NOWHERE).then_some(place as usize)
    }
}

impl Extend<u8> for Assembler {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, iter: T) {
        for byte in iter {
            self.push(byte);
        }
    }
}

impl<'a> Extend<&'a u8> for Assembler {
    #[inline]
    fn extend<T: IntoIterator<Item = &'a u8>>(&mut self, iter: T) {
        self.bytes.extend(iter);
    }
}

impl DynasmApi for Assembler {
    fn offset(&self) -> AssemblyOffset {
        AssemblyOffset(self.bytes.len())
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.put(byte.into(), 1);
    }

    fn align(&mut self, _: usize, _: u8) {
        self.align_here();
    }
}

/// Only dynamic labels are used, and the distance to a label is always the last part of an
/// instruction.
impl DynasmLabelApi for Assembler {
    type Relocation = X64Relocation;

    fn local_label(&mut self, _: &'static str) {}

    fn global_label(&mut self, _: &'static str) {}

    fn dynamic_label(&mut self, id: DynamicLabel) {
        let number = id.get_id();
        if let (Some(place), Ok(here)) =
            (self.places.get_mut(number), u32::try_from(self.bytes.len()))
        {
            *place = here;
            self.mark(Kind::Label, number);
        }
    }

    fn forward_relocation(&mut self, _: &'static str, _: isize, _: u8, _: u8, _: X64Relocation) {}

    fn backward_relocation(&mut self, _: &'static str, _: isize, _: u8, _: u8, _: X64Relocation) {}

    fn global_relocation(&mut self, _: &'static str, _: isize, _: u8, _: u8, _: X64Relocation) {}

    fn dynamic_relocation(&mut self, id: DynamicLabel, _: isize, _: u8, _: u8, _: X64Relocation) {
        let kind = match *self.bytes.as_slice() {
            [.., 0x0f, 0x80..=0x8f, _, _, _, _] => Kind::JumpIf,
            [.., 0xe9, _, _, _, _] => Kind::Jump,
            _ => Kind::Distance,
        };
        self.mark(kind, id.get_id());
    }

    fn value_relocation(&mut self, _: usize, _: u8, _: u8, _: X64Relocation) {}
}
