//! The parts of a statement: registers, constants, memory operands.

use super::cursor::{Cursor, Parsed};
use crate::isa::insn::Operand;
use crate::isa::reg::Reg;
use crate::isa::table::{SignedSize, Size, Width};

/// A register as written: the name determines a width.
pub(super) fn register(cursor: &mut Cursor<'_>) -> Parsed<(Width, Reg)> {
    let start = *cursor;
    cursor
        .word()
        .and_then(named)
        .ok_or_else(|| start.expected("a register"))
}

/// The register of this name.
pub(super) fn named(word: &str) -> Option<(Width, Reg)> {
    let width = *Width::ALL
        .iter()
        .find(|width| word.starts_with(width.letter()))?;
    let digits = word.get(1..)?;
    let plain = digits == "0" || !digits.starts_with('0');
    let reg = Reg::from_number(digits.parse().ok().filter(|_| plain)?)?;
    Some((width, reg))
}

/// A register of one width.
pub(super) fn register_of(cursor: &mut Cursor<'_>, width: Width) -> Parsed<Reg> {
    let start = *cursor;
    match register(cursor)? {
        (found, reg) if found == width => Ok(reg),
        _ => Err(start.expected(match width {
            Width::W64 => "a 64-bit register (r0 to r10)",
            Width::W32 => "a 32-bit register (w0 to w10)",
        })),
    }
}

/// A register that is loaded or stored: LLVM writes `w1` for memory of at most 32 bits.
pub(super) fn register_for(cursor: &mut Cursor<'_>, size: Size) -> Parsed<Reg> {
    if size == Size::Dw {
        register_of(cursor, Width::W64)
    } else {
        register(cursor).map(|(_, reg)| reg)
    }
}

/// The second operand of arithmetic. A 32-bit constant may be written unsigned; in 64 bits
/// that would be a different number.
pub(super) fn operand(cursor: &mut Cursor<'_>, width: Width) -> Parsed<Operand> {
    if !cursor.at_number() {
        return match cursor.peek_word().and_then(named) {
            Some(_) => register_of(cursor, width).map(Operand::Reg),
            None => Err(cursor.expected("a register or a constant")),
        };
    }
    match width {
        Width::W64 => cursor.i32("a constant"),
        Width::W32 => cursor.bits32("a constant"),
    }
    .map(Operand::Imm)
}

/// The 64 bits of a number that is known to fit.
pub(super) fn bits64(value: i128) -> u64 {
    u64::try_from(value).unwrap_or_else(|_| i64::try_from(value).unwrap_or(0).cast_unsigned())
}

/// A memory operand, as written.
pub(super) struct MemoryOperand<S> {
    pub size: S,
    pub base: Reg,
    pub off: i16,
}

/// A type of memory.
pub(super) enum Type {
    Unsigned(Size),
    Signed(SignedSize),
}

fn any_type(cursor: &mut Cursor<'_>) -> Parsed<Type> {
    let start = *cursor;
    let word = cursor.word().unwrap_or("");
    let unsigned = Size::from_text(word).map(Type::Unsigned);
    unsigned
        .or_else(|| SignedSize::from_text(word).map(Type::Signed))
        .ok_or_else(|| start.expected("a type: u8, u16, u32, u64, s8, s16 or s32"))
}

pub(super) fn signed_type(cursor: &mut Cursor<'_>) -> Parsed<SignedSize> {
    let start = *cursor;
    match any_type(cursor)? {
        Type::Signed(size) => Ok(size),
        Type::Unsigned(_) => Err(start.expected("a signed type: s8, s16 or s32")),
    }
}

/// `(u64 *)`.
pub(super) fn unsigned_type(cursor: &mut Cursor<'_>) -> Parsed<Size> {
    let start = *cursor;
    match pointer_type(cursor)? {
        Type::Unsigned(size) => Ok(size),
        Type::Signed(_) => Err(start.expected("an unsigned type: u8, u16, u32 or u64")),
    }
}

fn pointer_type(cursor: &mut Cursor<'_>) -> Parsed<Type> {
    cursor.expect("(")?;
    let found = any_type(cursor)?;
    cursor.expect("*")?;
    cursor.expect(")")?;
    Ok(found)
}

/// `(u64 *)(r1 +0)` of any type.
pub(super) fn memory_operand(cursor: &mut Cursor<'_>) -> Parsed<MemoryOperand<Type>> {
    let size = pointer_type(cursor)?;
    cursor.expect("(")?;
    let (base, off) = address(cursor)?;
    cursor.expect(")")?;
    Ok(MemoryOperand { size, base, off })
}

/// `(u64 *)(r1 +0)` of an unsigned type.
pub(super) fn unsigned_memory_operand(cursor: &mut Cursor<'_>) -> Parsed<MemoryOperand<Size>> {
    let size = unsigned_type(cursor)?;
    cursor.expect("(")?;
    let (base, off) = address(cursor)?;
    cursor.expect(")")?;
    Ok(MemoryOperand { size, base, off })
}

/// `r1 +0`, or `r1` alone.
pub(super) fn address(cursor: &mut Cursor<'_>) -> Parsed<(Reg, i16)> {
    let base = register_of(cursor, Width::W64)?;
    let off = if cursor.rest().starts_with(['+', '-']) {
        cursor.i16("an offset")?
    } else {
        0
    };
    Ok((base, off))
}

/// The width of an atomic operation on memory of this size.
pub(super) fn atomic_width(start: &Cursor<'_>, size: Size) -> Parsed<Width> {
    let mut widths = Width::ALL.iter().copied();
    widths
        .find(|width| width.size() == size)
        .ok_or_else(|| start.expected("`(u32 *)` or `(u64 *)`"))
}
