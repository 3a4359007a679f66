//! The sites of a program, at which both forms write log entries. The names of variants are
//! part of the recording format (`docs/recording-format.md`).

use serde::{Deserialize, Serialize};

use crate::isa::{Insn, Operand, Reg, RegSet};
use crate::util::{MapId, Pc};

/// A point in a program at which a log entry is written. An instruction can have two: outputs
/// are logged before it, inputs after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its number in log entries: its index in [`Plan::sites`](super::Plan::sites).
    pub number: u16,
    /// The instruction in the original program.
    pub pc: Pc,
    /// Whether the entry is written before or after the instruction.
    pub moment: Moment,
    /// The state that the instruction accesses, and so whether a replay executes it, too.
    pub accesses: AccessedState,
    /// The fields of the entry, in this order, packed.
    pub fields: Vec<Field>,
    /// Registers that are not live at this point and not needed by a field.
    pub(super) free: RegSet,
    /// Registers that are defined on every path to this point, so that they can be spilled and
    /// restored, and that no field needs.
    pub(super) spillable: RegSet,
}

/// The side of the instruction on which the entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the instruction.
    Before,
    /// After it; for calls, after they have returned.
    After,
}

/// The state that an instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessedState {
    /// State that a replay has, too: maps, ring buffers. A replay executes the instruction,
    /// logs the result, and continues with the recorded one.
    Own,
    /// The world (time, tasks, kernel and user memory). A replay does not execute the
    /// instruction; its results come from the recorded log.
    World,
}

/// A part of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Input or output.
    pub flow: Flow,
    /// Its meaning.
    pub what: What,
    /// Where its bytes are in the program at that moment.
    pub location: FieldLocation,
    /// Its size in bytes.
    pub length: Length,
}

/// The direction of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// From outside into the program. A different value in a replay means that memory differed
    /// at run time.
    Input,
    /// From the program to the outside. A different value in a replay is a difference.
    Output,
}

/// The meaning of a field, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// `r0` after a call.
    Result,
    /// Whether `r0` is a pointer (1) or null (0) after a call.
    Found,
    /// The result of a load.
    Loaded,
    /// The value of a store.
    Stored,
    /// The operand of an atomic operation.
    Operand,
    /// The expected value of a compare-and-exchange.
    Expected,
    /// The old value returned by an atomic operation.
    Old,
    /// The value of the call argument with this number, from 1.
    Argument(u8),
    /// The memory that the argument with this number, from 1, points to: read by the call.
    Given(u8),
    /// The memory that the argument with this number, from 1, points to: filled by the call.
    Filled(u8),
}

/// The location of a field's bytes in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldLocation {
    /// The low bytes of a register.
    Register(Reg),
    /// The low bytes of a constant.
    Constant(i32),
    /// One byte: 0 if the register is zero (a null pointer), else 1.
    NonNull(Reg),
    /// Memory at a pointer.
    Memory {
        /// The register with the pointer before the instruction; a call has clobbered it if the
        /// [moment](Site::moment) is after it.
        pointer: Reg,
        /// The offset from the own frame pointer, if it points there: then the pointer need not
        /// be saved over a call.
        frame: Option<i16>,
        /// Its alignment if it may point to a stack, which is accessed in aligned pieces only:
        /// 1, 2, 4 or 8.
        align: u8,
        /// Whether the memory may be loaded and stored directly. If not, only helpers
        /// (`bpf_probe_read_kernel`) can access it.
        plain: bool,
        /// The owner of the memory.
        whose: Whose,
    },
}

/// The owner of the memory that a pointer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The run itself: a stack, a ring-buffer record before it is submitted.
    Run,
    /// A value of this map.
    Value(MapId),
    /// Possibly a map value: on some paths, in an inner map, or through a dynptr.
    Unknown,
}

/// The size of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// A constant number of bytes.
    Fixed(u32),
    /// Two bytes with the number, then that many bytes: the value of a register before the
    /// instruction, but at most `most` (the firing then has
    /// [`CAPPED`](super::FiringFlags::CAPPED)).
    Counted {
        /// The register with the number.
        count: Reg,
        /// The largest number of bytes recorded.
        most: u16,
    },
}

impl Flow {
    /// The side of the instruction on which fields of this direction are logged.
    #[must_use]
    pub const fn moment(self) -> Moment {
        match self {
            Self::Input => Moment::After,
            Self::Output => Moment::Before,
        }
    }
}

impl What {
    /// The direction of a field with this meaning.
    #[must_use]
    pub const fn flow(self) -> Flow {
        match self {
            Self::Result | Self::Found | Self::Loaded | Self::Old | Self::Filled(_) => Flow::Input,
            Self::Stored | Self::Operand | Self::Expected | Self::Argument(_) | Self::Given(_) => {
                Flow::Output
            }
        }
    }
}

impl Length {
    /// The largest size of the field in an entry, including its length.
    #[must_use]
    pub const fn most(self) -> u32 {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Counted { most, .. } => COUNT_BYTES + most as u32,
        }
    }
}

impl Field {
    /// The field of an instruction with this meaning; none if the instruction has no such
    /// value, or if it is in memory.
    pub(super) fn of(insn: Insn, what: What) -> Option<Self> {
        let register = FieldLocation::Register;
        let (location, bytes) = match (what, insn) {
            (What::Loaded, Insn::Load { size, dst, .. } | Insn::LoadAcquire { size, dst, .. }) => {
                (register(dst), size.bytes())
            }
            (What::Loaded, Insn::LoadSx { from, dst, .. }) => (register(dst), from.size().bytes()),
            (What::Stored, Insn::Store { size, src, .. }) => match src {
                Operand::Reg(src) => (register(src), size.bytes()),
                Operand::Imm(imm) => (FieldLocation::Constant(imm), size.bytes()),
            },
            (What::Stored, Insn::StoreRelease { size, src, .. }) => (register(src), size.bytes()),
            (What::Operand, Insn::Atomic { width, src, .. }) => {
                (register(src), width.size().bytes())
            }
            (What::Expected, Insn::Atomic { op, width, .. }) if op.compares() => {
                (register(Reg::R0), width.size().bytes())
            }
            (What::Old, Insn::Atomic { op, width, src, .. }) => {
                (register(op.old(src)?), width.size().bytes())
            }
            (What::Result, Insn::Call(_)) => (register(Reg::R0), 8),
            (What::Found, Insn::Call(_)) => (FieldLocation::NonNull(Reg::R0), 1),
            (What::Argument(number), Insn::Call(_)) => (register(argument(number)?), 8),
            _ => return None,
        };
        Some(Self {
            flow: what.flow(),
            what,
            location,
            length: Length::Fixed(bytes.into()),
        })
    }

    /// The registers that hold it at its moment.
    pub(super) const fn value_registers(&self) -> RegSet {
        match self.location {
            FieldLocation::Register(reg) | FieldLocation::NonNull(reg) => RegSet::of(&[reg]),
            FieldLocation::Memory { .. } | FieldLocation::Constant(_) => RegSet::EMPTY,
        }
    }

    /// The registers with its address and size before the instruction.
    pub(super) const fn memory_registers(&self) -> RegSet {
        let pointer = match self.location {
            FieldLocation::Memory {
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

/// The register of the call argument with this number, from 1.
pub(super) fn argument(number: u8) -> Option<Reg> {
    let index = usize::from(number).checked_sub(1)?;
    Reg::ARGUMENTS.get(index).copied()
}

/// Bytes of a site's number at the start of an entry.
pub(super) const NUMBER_BYTES: u32 = 2;
/// Bytes of the number before a field of [`Length::Counted`].
pub(super) const COUNT_BYTES: u32 = 2;

impl Site {
    /// The largest size of an entry in bytes.
    #[must_use]
    pub fn most(&self) -> u32 {
        let fields = self.fields.iter().map(|field| field.length.most());
        fields.fold(NUMBER_BYTES, u32::saturating_add)
    }

    /// The size of every entry in bytes, if it is constant.
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
