//! Patches a number into an instruction.

use super::error::Fault;
use super::value::{Field, Outcome};
use crate::btf::{Btf, Encoding, Kind};
use crate::isa::RawInsn;
use crate::util::TypeId;

/// The immediate of a poisoned call: "bad relo" in hexadecimal spelling, not a helper's
/// number. The verifier reports it as `invalid func unknown#195896080`.
pub const POISON: i32 = 0x0bad_2310;

/// The low three bits of an opcode: instruction class (RFC 9669, section 3.1).
const CLASS: u8 = 0x07;
const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const ALU64: u8 = 0x07;
/// Source operand is a register, not the immediate.
const SOURCE_REG: u8 = 0x08;
/// Load of a 64-bit immediate.
const LD_IMM64: u8 = 0x18;
/// Call of a helper.
const CALL: u8 = 0x85;
/// The bits of a load's or store's size.
const SIZE: u8 = 0x18;

/// Size bits and bytes of loads and stores.
const SIZES: [(u8, u32); 4] = [(0x00, 4), (0x08, 2), (0x10, 1), (0x18, 8)];

/// The instruction that replaces one whose relocation has no target.
#[must_use]
pub const fn poison() -> RawInsn {
    RawInsn::new(CALL, 0, 0, 0, POISON)
}

/// Whether an instruction was poisoned.
#[must_use]
pub fn is_poison(insn: RawInsn) -> bool {
    insn == poison()
}

/// Replaces the instruction at `at`, both of its slots if it has two.
pub(super) fn poison_at(insns: &mut [RawInsn], at: usize) -> Result<(), Fault> {
    let insn = insns.get_mut(at).ok_or(Fault::NoInsn)?;
    let wide = insn.opcode == LD_IMM64;
    *insn = poison();
    if wide {
        *insns.get_mut(at + 1).ok_or(Fault::Imm64)? = poison();
    }
    Ok(())
}

/// Whether the size of a load or store may change: pointers, and integers that zero
/// extension preserves.
fn resizable(local: &Btf, one: TypeId, target: &Btf, other: TypeId) -> bool {
    let (Ok(a), Ok(b)) = (local.resolve(one), target.resolve(other)) else {
        return false;
    };
    let unsigned =
        |int: Option<crate::btf::Int>| int.is_some_and(|int| int.encoding != Encoding::Signed);
    (a.kind() == Kind::Ptr && b.kind() == Kind::Ptr) || (unsigned(a.int()) && unsigned(b.int()))
}

/// Result of patching an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patched {
    /// It contains the new number.
    Done,
    /// It loads or stores a field whose size differs in a way that no instruction can
    /// handle: it must be poisoned.
    WrongSize,
}

/// Replaces the object's own number with the target's, after checking the old one.
pub(super) fn patch(
    insns: &mut [RawInsn],
    at: usize,
    (local, old): (&Btf, Outcome),
    (target, new): (&Btf, Outcome),
) -> Result<Patched, Fault> {
    let insn = insns.get_mut(at).ok_or(Fault::NoInsn)?;
    let check = |found: u64| {
        let fine = !old.exact || found == old.value;
        if fine {
            Ok(())
        } else {
            Err(Fault::Unexpected {
                found,
                expected: old.value,
            })
        }
    };
    // Sign extension, as C does to compare an int with an unsigned 64-bit number.
    let widen = |value: i32| i64::from(value).cast_unsigned();
    match insn.opcode & CLASS {
        ALU | ALU64 if insn.opcode & SOURCE_REG == 0 => {
            check(widen(insn.imm))?;
            insn.imm = low_half(new.value);
        }
        LDX | ST | STX => {
            check(widen(i32::from(insn.off)))?;
            let off = i16::try_from(new.value).map_err(|_| Fault::Offset(new.value))?;
            match (old.field, new.field) {
                (Some(old), Some(new)) if old.size != new.size => {
                    if !resizable(local, old.ty, target, new.ty) {
                        return Ok(Patched::WrongSize);
                    }
                    insn.opcode = resized(insn.opcode, old, new)?;
                }
                // A bitfield on one side only: no load fits both.
                (Some(_), None) | (None, Some(_)) => return Ok(Patched::WrongSize),
                _ => {}
            }
            insn.off = off;
        }
        LD => {
            let (first, second) = (*insn, insns.get(at + 1).copied().ok_or(Fault::Imm64)?);
            let plain = first.opcode == LD_IMM64
                && first.src() == 0
                && first.off == 0
                && (second.opcode, second.regs, second.off) == (0, 0, 0);
            if !plain {
                return Err(Fault::Imm64);
            }
            let low = u64::from(first.imm.cast_unsigned());
            check(low | u64::from(second.imm.cast_unsigned()) << 32)?;
            for (slot, imm) in [
                (at, low_half(new.value)),
                (at + 1, low_half(new.value >> 32)),
            ] {
                if let Some(insn) = insns.get_mut(slot) {
                    insn.imm = imm;
                }
            }
        }
        _ => return Err(Fault::Opcode(insn.opcode)),
    }
    Ok(Patched::Done)
}

/// The lower 32 bits.
fn low_half(value: u64) -> i32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// The opcode with the size bits of the new field.
fn resized(opcode: u8, old: Field, new: Field) -> Result<u8, Fault> {
    let found = SIZES
        .iter()
        .find(|(bits, _)| *bits == opcode & SIZE)
        .map_or(0, |(_, size)| *size);
    if found != old.size {
        return Err(Fault::AccessSize {
            found,
            expected: old.size,
        });
    }
    let bits = SIZES
        .iter()
        .find(|(_, size)| *size == new.size)
        .ok_or(Fault::NewSize(new.size))?
        .0;
    Ok(opcode & !SIZE | bits)
}
