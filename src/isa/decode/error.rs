//! Errors in instruction slots.

use std::fmt;

use thiserror::Error;

use crate::isa::opcode::{LD_IMM64, class};
use crate::isa::raw::RawInsn;
use crate::util::Pc;

/// A part of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named as in RawInsn")]
pub enum Field {
    Opcode,
    Dst,
    Src,
    Off,
    Imm,
    /// The slot after a 64-bit immediate load, as a whole.
    SecondSlot,
    /// The immediate of that slot.
    SecondImm,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opcode => "opcode",
            Self::Dst => "destination register",
            Self::Src => "source register",
            Self::Off => "offset",
            Self::Imm => "immediate",
            Self::SecondSlot => "second slot",
            Self::SecondImm => "immediate of the second slot",
        })
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The opcode does not define this value.
    Unknown,
    /// The instruction does not use the field, which must be zero.
    Reserved,
    /// There is no register of this number.
    NoSuchRegister,
    /// The program ends before the slot.
    Missing,
}

/// An invalid instruction: field, value and problem.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub struct DecodeError {
    /// The instruction's first slot.
    pub pc: Pc,
    /// That slot's content.
    pub raw: RawInsn,
    /// The invalid field.
    pub field: Field,
    /// The field's value; for a whole slot, its 8 bytes as a big-endian number.
    pub value: i64,
    /// What is wrong with it.
    pub problem: Problem,
}

impl DecodeError {
    /// Whether the kernel reports this before it explores the program, even in dead code
    /// (`resolve_pseudo_ldimm64`). It reports other errors only on an explored path.
    #[must_use]
    pub const fn is_structural(&self) -> bool {
        match self.field {
            Field::Opcode | Field::SecondSlot | Field::SecondImm => true,
            Field::Imm => self.raw.opcode & class::MASK == class::LDX,
            Field::Src => self.raw.opcode == LD_IMM64,
            Field::Dst | Field::Off => false,
        }
    }

    /// Whether the instruction has a second slot, that is, loads a 64-bit immediate.
    #[must_use]
    pub const fn has_second_slot(&self) -> bool {
        self.raw.opcode == LD_IMM64
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pc,
            raw,
            field,
            value,
            problem,
        } = *self;
        write!(f, "instruction {pc} (opcode {:#04x}): ", raw.opcode)?;
        match (field, problem) {
            (Field::Opcode, _) => f.write_str("no instruction has this opcode"),
            (Field::SecondSlot, Problem::Missing) => {
                f.write_str("the program ends before the second slot of a 64-bit immediate")
            }
            (Field::SecondSlot, _) => write!(
                f,
                "second slot {value:#018x} of a 64-bit immediate: all but its immediate must be zero"
            ),
            (_, Problem::NoSuchRegister) => {
                write!(f, "{field} r{value} does not exist: r0 to r10 do")
            }
            (_, Problem::Reserved) => write!(f, "{field} {value} is reserved and must be 0"),
            (_, _) => write!(f, "{field} {value} is unknown to this opcode"),
        }
    }
}
