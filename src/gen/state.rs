//! The generator's knowledge at a point of the program: the contents of each register and
//! stack slot, on all paths there.

use super::kernel::StructIndex;
use crate::isa::{Reg, RegSet, Size};

/// The kind of memory that a pointer points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// The buffer at the lower end of a frame, the function's own or a caller's.
    Stack,
    /// A value of the map of this number.
    Value(u32),
    /// A key that a callback gets: read-only.
    Key,
    /// The packet.
    Packet,
    /// A ring-buffer record.
    Record,
}

/// The bytes around a pointer that may be accessed: those at `low..high` from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub kind: MemoryKind,
    pub low: i16,
    pub high: i16,
    /// The alignment of the pointer: 1, 2, 4 or 8.
    pub align: u8,
}

impl Area {
    /// `len` bytes from the pointer on.
    pub(super) const fn new(kind: MemoryKind, len: i16) -> Self {
        let align = match kind {
            MemoryKind::Packet => 1,
            _ => 8,
        };
        Self {
            kind,
            low: 0,
            high: len,
            align,
        }
    }

    /// The area after the pointer was moved up by `least` to `most`, a multiple of `step`.
    pub(super) fn moved(self, least: i16, most: i16, step: u8) -> Option<Self> {
        let (low, high) = (self.low - least, self.high - most);
        let align = self.align.min(step);
        (low < high).then_some(Self {
            low,
            high,
            align,
            ..self
        })
    }

    /// The offsets at which `size` bytes may be accessed.
    pub(super) fn offsets(self, size: Size, must_align: bool) -> Vec<i16> {
        let bytes = i16::from(size.bytes());
        let strict = must_align || self.kind == MemoryKind::Stack;
        if strict && self.align < size.bytes() {
            return Vec::new();
        }
        let fits = |off: &i16| !strict || off.rem_euclid(bytes) == 0;
        (self.low..=self.high - bytes).filter(fits).collect()
    }

    /// Whether the pointer points to at least `len` bytes.
    pub(super) const fn holds(self, len: i16) -> bool {
        self.low <= 0 && self.high >= len
    }

    /// The area that is valid for both.
    fn join(self, other: Self) -> Option<Self> {
        let joined = Self {
            kind: self.kind,
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            align: self.align.min(other.align),
        };
        (self.kind == other.kind && joined.low < joined.high).then_some(joined)
    }
}

/// The contents of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Unreadable.
    Nothing,
    Number,
    Context,
    PacketEnd,
    Pointer(Area),
    /// A pointer or null; equal ids are the same pointer.
    Maybe(u16, Area),
    /// An object of the kernel; `sure` if its functions take the pointer.
    Object {
        of: StructIndex,
        sure: bool,
    },
    /// An object or null.
    MaybeObject(u16, StructIndex),
}

impl Holds {
    /// The id of a pointer that may be null.
    pub(super) const fn maybe(self) -> Option<u16> {
        match self {
            Self::Maybe(id, _) | Self::MaybeObject(id, _) => Some(id),
            _ => None,
        }
    }

    /// The contents if it is not null.
    pub(super) const fn checked(self) -> Self {
        match self {
            Self::Maybe(_, area) => Self::Pointer(area),
            Self::MaybeObject(_, of) => Self::Object { of, sure: true },
            other => other,
        }
    }

    /// The contents that are valid for both.
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Pointer(one), Self::Pointer(two)) => {
                one.join(two).map_or(Self::Nothing, Self::Pointer)
            }
            (one, two) if one == two => one,
            _ => Self::Nothing,
        }
    }
}

/// The contents of eight bytes of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// Only numbers, in the bytes whose bit is set; the others are unwritten.
    Bytes(u8),
    /// The same, but the others may be parts of a pointer.
    Mixed(u8),
    /// A spilled register.
    Spilled(Holds),
}

impl Slot {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bytes(one), Self::Bytes(two)) => Self::Bytes(one & two),
            (Self::Spilled(one), Self::Spilled(two)) if one == two => self,
            (one, two) => Self::Mixed(one.written() & two.written()),
        }
    }

    /// The bytes that certainly hold numbers.
    pub(super) const fn written(self) -> u8 {
        match self {
            Self::Bytes(bytes) | Self::Mixed(bytes) => bytes,
            Self::Spilled(_) => 0,
        }
    }

    /// The slot after these bytes were written, too.
    pub(super) const fn and(self, bytes: u8) -> Self {
        match self.written() | bytes {
            u8::MAX => Self::Bytes(u8::MAX),
            all if matches!(self, Self::Bytes(_)) => Self::Bytes(all),
            all => Self::Mixed(all),
        }
    }
}

/// The number of slots for registers, below the frame pointer.
pub(super) const SLOTS: usize = 8;
/// Bytes of the buffer below the slots, to which pointers point.
pub(super) const BUFFER: i16 = 32;
/// The buffer's offset from the frame pointer.
pub(super) const BUFFER_AT: i16 = -(8 * 8 + BUFFER);

/// All registers and slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub regs: [Holds; Reg::COUNT],
    pub slots: [Slot; SLOTS],
}

impl State {
    /// The state at the start of a function: only the arguments.
    pub(super) fn new(arguments: &[Holds]) -> Self {
        let mut regs = [Holds::Nothing; Reg::COUNT];
        for (reg, holds) in Reg::ARGUMENTS.into_iter().zip(arguments) {
            regs[reg.index()] = *holds;
        }
        Self {
            regs,
            slots: [Slot::Bytes(0); SLOTS],
        }
    }

    /// Joins the state of another path.
    pub(super) fn join(&mut self, other: &Self) {
        for (one, two) in self.regs.iter_mut().zip(other.regs) {
            *one = one.join(two);
        }
        for (one, two) in self.slots.iter_mut().zip(other.slots) {
            *one = one.join(two);
        }
    }

    pub(super) fn get(&self, reg: Reg) -> Holds {
        self.regs[reg.index()]
    }

    pub(super) fn set(&mut self, reg: Reg, holds: Holds) {
        self.regs[reg.index()] = holds;
    }

    /// The registers whose contents satisfy `is`.
    pub(super) fn with(&self, is: impl Fn(Holds) -> bool) -> RegSet {
        let held = Reg::ALL.into_iter().filter(|reg| is(self.get(*reg)));
        held.collect()
    }

    /// The state after a call.
    pub(super) fn after_call(&mut self, result: Holds) {
        for reg in RegSet::CALLER_SAVED.iter() {
            self.set(reg, Holds::Nothing);
        }
        self.set(Reg::R0, result);
    }

    /// Changes the contents of all registers and spilled ones.
    pub(super) fn change(&mut self, change: impl Fn(Holds) -> Holds) {
        for holds in &mut self.regs {
            *holds = change(*holds);
        }
        for slot in &mut self.slots {
            if let Slot::Spilled(holds) = slot {
                *slot = match change(*holds) {
                    Holds::Nothing => Slot::Mixed(0),
                    Holds::Number => Slot::Bytes(u8::MAX),
                    other => Slot::Spilled(other),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_ways_hold_is_held() {
        let value = |len| Holds::Pointer(Area::new(MemoryKind::Value(1), len));
        let mut one = State::new(&[Holds::Number, value(8), value(8), Holds::Context]);
        let other = State::new(&[Holds::Number, value(4), Holds::Number, Holds::Context]);
        one.slots[0] = Slot::Bytes(0xf);
        one.join(&other);
        let expected = [Holds::Number, value(4), Holds::Nothing, Holds::Context];
        assert_eq!(one.regs[1..5], expected);
        assert_eq!(one.slots[0], Slot::Bytes(0));
    }

    #[test]
    fn a_moved_pointer_keeps_what_is_sure() {
        let area = Area::new(MemoryKind::Value(0), 16);
        let moved = area.moved(0, 4, 2).unwrap();
        assert_eq!((moved.low, moved.high, moved.align), (0, 12, 2));
        assert!(moved.offsets(Size::W, true).is_empty());
        assert_eq!(moved.offsets(Size::Dw, false).len(), 5);
        let further = moved.moved(3, 3, 1).unwrap();
        assert_eq!((further.low, further.high), (-3, 9));
        assert_eq!(area.moved(0, 16, 1), None);
        assert_eq!(area.offsets(Size::Dw, true), [0, 8]);
    }
}
