//! What is logged where: the sites of a program, which both forms have in common.

use crate::isa::{Reg, RegSet};
use crate::util::{MapId, Pc};

/// A place in a program where an entry of the log is written. An instruction can have
/// two: what is given is written down before it, what is taken after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its number, by which entries name it: its place in [`Plan::sites`](super::Plan::sites).
    pub number: u16,
    /// The instruction in the original program.
    pub pc: Pc,
    /// Whether the entry is written before or after the instruction.
    pub moment: Moment,
    /// Whether a replay executes the instruction, too.
    pub source: Source,
    /// What the entry holds, in this order, packed.
    pub fields: Vec<Field>,
    /// Registers whose value nobody needs at this place: neither the instruction nor
    /// what follows nor a field.
    pub(super) free: RegSet,
    /// Registers that hold a value on every path to this place, so that they can be
    /// spilled to the stack and filled again, and that no field needs.
    pub(super) spillable: RegSet,
}

/// On which side of the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Before it is executed.
    Before,
    /// After it; for calls, when they have returned.
    After,
}

/// Where what an instruction takes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// From what a replay has, too: maps, ring buffers. It executes the instruction, logs
    /// what it got, and goes on with what the tape says.
    Own,
    /// From the world (time, tasks, kernel and user memory). A replay does not execute the
    /// instruction: all that it gives is on the tape.
    World,
}

/// A part of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Which way it goes.
    pub flow: Flow,
    /// What it is.
    pub what: What,
    /// Where the program has it at that moment.
    pub place: Place,
    /// How many bytes it takes.
    pub length: Length,
}

/// Which way something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// From outside into the program. An unequal one in a replay means that the live
    /// memory differed.
    Input,
    /// From the program to the outside. An unequal one in a replay is a difference.
    Output,
}

/// What a field is, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// `r0` after a call.
    Result,
    /// Whether `r0` is a pointer (1) or null (0) after a call.
    Found,
    /// What a load gave.
    Loaded,
    /// What a store stores.
    Stored,
    /// The operand of an atomic operation.
    Operand,
    /// What a compare-and-exchange expects.
    Expected,
    /// What an atomic operation found.
    Old,
    /// The argument of a call with this number, from 1, by value.
    Argument(u8),
    /// The memory that the argument with this number, from 1, points to: given.
    Given(u8),
    /// The memory that the argument with this number, from 1, points to: filled.
    Filled(u8),
}

/// Where a field's bytes are in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The low bytes of a register.
    Register(Reg),
    /// A constant, its low bytes.
    Constant(i32),
    /// One byte: 0 if the register is zero (a null pointer), else 1.
    NonNull(Reg),
    /// Memory that a register pointed to before the instruction.
    Memory {
        /// The register, which a call has destroyed when the [moment](Site::moment) is
        /// after it.
        pointer: Reg,
        /// Its distance from the own frame pointer, if that is what it is: then it need
        /// not be saved over a call.
        frame: Option<i16>,
        /// What it is a multiple of, where it may point to a stack, which is accessed in
        /// aligned pieces only: 1, 2, 4 or 8.
        align: u8,
        /// Whether it may be loaded and stored word by word. If not, only helpers
        /// (`bpf_probe_read_kernel`) take the pointer.
        plain: bool,
        /// Whose memory it is.
        whose: Whose,
    },
}

/// Whose memory a pointer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The run's own: a stack, a ring-buffer record that is not submitted.
    Run,
    /// A value of this map.
    Value(MapId),
    /// Perhaps a value of a map: on some paths, of a map in a map, through a dynamic pointer.
    Unknown,
}

/// How many bytes a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// Always so many.
    Fixed(u32),
    /// Two bytes with the number, then as many bytes: the number that a register had
    /// before the instruction, but no more than `most` (the firing then has
    /// [`CAPPED`](super::FiringFlags::CAPPED)).
    Counted {
        /// The register with the number.
        count: Reg,
        /// The most bytes that are kept.
        most: u16,
    },
}

impl Length {
    /// The most bytes that the field takes in an entry, its length included.
    #[must_use]
    pub const fn most(self) -> u32 {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Counted { most, .. } => COUNT_BYTES + most as u32,
        }
    }
}

impl Field {
    /// The registers that hold it at its moment.
    pub(super) const fn value_registers(&self) -> RegSet {
        match self.place {
            Place::Register(reg) | Place::NonNull(reg) => RegSet::of(&[reg]),
            Place::Memory { .. } | Place::Constant(_) => RegSet::EMPTY,
        }
    }

    /// The registers that say where it is and how much, before the instruction.
    pub(super) const fn memory_registers(&self) -> RegSet {
        let pointer = match self.place {
            Place::Memory {
                pointer,
                frame: None,
                ..
            } => RegSet::of(&[pointer]),
            _ => RegSet::EMPTY,
        };
        match self.length {
            Length::Fixed(_) => pointer,
            Length::Counted { count, .. } => pointer.with(count),
        }
    }
}

/// Bytes of a site's number at the start of an entry.
pub(super) const NUMBER_BYTES: u32 = 2;
/// Bytes of the number before a field of [`Length::Counted`].
pub(super) const COUNT_BYTES: u32 = 2;

impl Site {
    /// The most bytes that an entry takes.
    #[must_use]
    pub fn most(&self) -> u32 {
        let fields = self.fields.iter().map(|field| field.length.most());
        fields.fold(NUMBER_BYTES, u32::saturating_add)
    }

    /// How many bytes each entry takes, if all take as many.
    #[must_use]
    pub fn fixed(&self) -> Option<u32> {
        let mut sum = NUMBER_BYTES;
        for field in &self.fields {
            match field.length {
                Length::Fixed(bytes) => sum = sum.checked_add(bytes)?,
                Length::Counted { .. } => return None,
            }
        }
        Some(sum)
    }
}
