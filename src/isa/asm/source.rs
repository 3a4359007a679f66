//! The right side of `r1 =`.

use super::cursor::{Cursor, Parsed};
use super::operand::{
    MemoryOperand, Type, address, bits64, memory_operand, named, operand, register, register_for,
    register_of, signed_type, unsigned_memory_operand, unsigned_type,
};
use crate::isa::eval::low32;
use crate::isa::insn::Insn;
use crate::isa::opcode::LD_IMM64;
use crate::isa::raw::RawInsn;
use crate::isa::reg::Reg;
use crate::isa::table::{AluOp, AtomicOp, EndianOp, EndianSize, Pseudo, PseudoKind, Size, Width};
use crate::util::TypeId;

/// Result of parsing a statement.
pub(super) enum Item<'a> {
    /// An instruction.
    Insn(Insn),
    /// A jump, a call or a load of an address, with an unresolved offset to this label.
    To(Insn, &'a str),
    /// A slot written as a number.
    Word(u64),
}

/// The prefix of a statement, which resolves ambiguities of its text.
#[derive(Clone, Copy, Default)]
pub(super) struct Hints {
    /// The opcode.
    pub opcode: Option<u8>,
    /// The first slot.
    pub slot: Option<RawInsn>,
}

/// The right side of an assignment to a register.
pub(super) fn source<'a>(
    cursor: &mut Cursor<'a>,
    width: Width,
    dst: Reg,
    hints: Hints,
) -> Parsed<Item<'a>> {
    if cursor.at_number() {
        return constant(cursor, width, dst, hints).map(Item::Insn);
    }
    let start = *cursor;
    if cursor.eat("-") {
        same(cursor, width, dst)?;
        return Ok(Item::Insn(Insn::Neg { width, dst }));
    }
    if cursor.eat("*") {
        return load(cursor, start, width, dst).map(Item::Insn);
    }
    if cursor.eat("(") {
        let from = signed_type(cursor)?;
        if from.bits() >= width.bits() {
            return Err(start.expected("a type smaller than the register"));
        }
        cursor.expect(")")?;
        let src = register_of(cursor, width)?;
        return Ok(Item::Insn(Insn::MovSx {
            width,
            from,
            dst,
            src,
        }));
    }
    let Some(word) = cursor.peek_word() else {
        return Err(start.expected("a register, a constant, or `*(u64 *)(r1 +0)`"));
    };
    if named(word).is_some() {
        let src = operand(cursor, width)?;
        return Ok(Item::Insn(Insn::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src,
        }));
    }
    if let Some(insn) = endian(cursor, word, dst)? {
        whole_only(&start, width)?;
        return Ok(Item::Insn(insn));
    }
    cursor.word();
    match word {
        "addr_space_cast" => {
            whole_only(&start, width)?;
            addr_space_cast(cursor, dst)
        }
        "load_acquire" => {
            cursor.expect("(")?;
            let MemoryOperand { size, base, off } = unsigned_memory_operand(cursor)?;
            cursor.expect(")")?;
            narrow_only(&start, width, size)?;
            Ok(Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            })
        }
        "map" | "btf" | "subprog" => {
            whole_only(&start, width)?;
            let source = pseudo(cursor, word)?;
            Ok(Insn::LoadPseudo { dst, source })
        }
        _ if cursor.eat("(") => atomic(cursor, start, word, (width, dst)),
        // The address of a function: `r1 = callback ll`.
        _ if cursor.eat("ll") => {
            whole_only(&start, width)?;
            let insn = Insn::LoadPseudo {
                dst,
                source: Pseudo::Func { rel: 0 },
            };
            return Ok(Item::To(insn, word));
        }
        _ => Err(start.expected("a register, a constant, or `*(u64 *)(r1 +0)`")),
    }
    .map(Item::Insn)
}

/// The same register as on the left side.
fn same(cursor: &mut Cursor<'_>, width: Width, dst: Reg) -> Parsed<()> {
    let start = *cursor;
    if register(cursor)? == (width, dst) {
        Ok(())
    } else {
        let name = format!("the same register, {}{}", width.letter(), dst.number());
        Err(start.expected(name))
    }
}

/// `7`, or `7 ll` for 64 bits. In the kernel's text only the opcode distinguishes them.
fn constant(cursor: &mut Cursor<'_>, width: Width, dst: Reg, hints: Hints) -> Parsed<Insn> {
    let mut ahead = *cursor;
    ahead.number("a constant")?;
    let long = ahead.eat("ll") || hints.opcode == Some(LD_IMM64);
    if !(long && width == Width::W64) {
        let src = operand(cursor, width)?;
        return Ok(Insn::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src,
        });
    }
    let value = cursor.number_in("a 64-bit constant", i64::MIN.into(), u64::MAX.into())?;
    cursor.eat("ll");
    let value = bits64(value);
    let kind = hints.slot.and_then(|slot| PseudoKind::from_src(slot.src()));
    Ok(match kind {
        None => Insn::LoadImm64 { dst, value },
        Some(kind) => {
            let half = |shift: u32| low32(value >> shift).cast_signed();
            Insn::LoadPseudo {
                dst,
                source: kind.with_imms(half(0), half(32)),
            }
        }
    })
}

/// `*(u64 *)(r1 +0)` or `*(u16 *)skb[r2 + 4]`, after the star.
fn load(cursor: &mut Cursor<'_>, start: Cursor<'_>, width: Width, dst: Reg) -> Parsed<Insn> {
    let mut ahead = *cursor;
    if let Ok(size) = unsigned_type(&mut ahead)
        && ahead.eat("skb")
    {
        *cursor = ahead;
        if dst != Reg::R0 || size == Size::Dw {
            return Err(start.expected("`r0 =` and at most 4 bytes for a packet load"));
        }
        cursor.expect("[")?;
        let index = match cursor.peek_word() {
            Some(_) => Some(register_of(cursor, Width::W64)?),
            None => None,
        };
        let off = if index.is_some() && cursor.rest().starts_with(']') {
            0
        } else {
            // The kernel prints a negative offset as `r7 + -12`.
            if index.is_some() {
                cursor.eat("+");
            }
            cursor.i32("an offset")?
        };
        cursor.expect("]")?;
        return Ok(Insn::LoadPacket { size, index, off });
    }
    let memory = memory_operand(cursor)?;
    let MemoryOperand { base, off, .. } = memory;
    match memory.size {
        Type::Signed(from) => {
            whole_only(&start, width)?;
            Ok(Insn::LoadSx {
                from,
                dst,
                base,
                off,
            })
        }
        Type::Unsigned(size) => {
            narrow_only(&start, width, size)?;
            Ok(Insn::Load {
                size,
                dst,
                base,
                off,
            })
        }
    }
}

/// Checks that a `w` register is not loaded with 64 bits.
fn narrow_only(start: &Cursor<'_>, width: Width, size: Size) -> Parsed<()> {
    if size == Size::Dw {
        whole_only(start, width)
    } else {
        Ok(())
    }
}

/// Checks that the left side is a 64-bit register.
fn whole_only(start: &Cursor<'_>, width: Width) -> Parsed<()> {
    match width {
        Width::W64 => Ok(()),
        Width::W32 => Err(start.expected("a 64-bit register on the left")),
    }
}

/// `be16 r1`.
fn endian(cursor: &mut Cursor<'_>, word: &str, dst: Reg) -> Parsed<Option<Insn>> {
    let found = EndianOp::ALL.iter().copied().find_map(|op| {
        let bits = word.strip_prefix(op.keyword())?.parse().ok()?;
        Some((op, EndianSize::from_bits(bits)?))
    });
    let Some((op, size)) = found else {
        return Ok(None);
    };
    cursor.word();
    same(cursor, Width::W64, dst)?;
    Ok(Some(Insn::Endian { op, size, dst }))
}

/// `(r1, 0, 1)`: the register, the target address space, the source address space.
fn addr_space_cast(cursor: &mut Cursor<'_>, dst: Reg) -> Parsed<Insn> {
    cursor.expect("(")?;
    let src = register_of(cursor, Width::W64)?;
    cursor.expect(",")?;
    let spaces = *cursor;
    let to = cursor.number("an address space")?;
    cursor.expect(",")?;
    let from = cursor.number("an address space")?;
    let (to, from) = match (to, from) {
        (0, 1) => (0, 1),
        (1, 0) => (1, 0),
        _ => return Err(spaces.expected("address spaces `0, 1` or `1, 0`")),
    };
    cursor.expect(")")?;
    Ok(Insn::AddrSpaceCast { dst, src, to, from })
}

/// A fetching atomic operation, after its name and parenthesis. The kernel and LLVM write
/// the same operands; LLVM omits the type if the name contains it.
fn atomic(
    cursor: &mut Cursor<'_>,
    start: Cursor<'_>,
    word: &str,
    (left, dst): (Width, Reg),
) -> Parsed<Insn> {
    let matches = |op: AtomicOp, width: Width| {
        let kernel = match width {
            Width::W64 => word.strip_prefix("atomic64_"),
            Width::W32 => word.strip_prefix("atomic_"),
        };
        op.fetches() && (kernel == Some(op.kernel_name()) || op.llvm_name(width) == word)
    };
    let forms = || {
        let ops = AtomicOp::ALL.iter().copied();
        ops.flat_map(|op| Width::ALL.iter().map(move |width| (op, *width)))
            .filter(|(op, width)| matches(*op, *width))
    };
    let Some((op, width)) = forms().next() else {
        return Err(start.expected("an atomic operation such as `atomic64_fetch_add`"));
    };
    let type_start = *cursor;
    let (width, base, off) = if cursor.rest().starts_with('(') {
        let MemoryOperand { size, base, off } = unsigned_memory_operand(cursor)?;
        let found = forms().find(|(_, width)| width.size() == size);
        let (_, width) =
            found.ok_or_else(|| type_start.expected("the type that the operation's name says"))?;
        (width, base, off)
    } else if forms().count() > 1 {
        return Err(type_start.expected("a type, `(u32 *)` or `(u64 *)`"));
    } else {
        let (base, off) = address(cursor)?;
        (width, base, off)
    };
    narrow_only(&start, left, width.size())?;
    cursor.expect(",")?;
    if op.compares() {
        let expected = *cursor;
        if register_for(cursor, width.size())? != Reg::R0 {
            return Err(expected.expected("r0, the value compared with"));
        }
        cursor.expect(",")?;
    }
    let operand = *cursor;
    let src = register_for(cursor, width.size())?;
    cursor.expect(")")?;
    let result = if op.compares() { Reg::R0 } else { src };
    if result != dst {
        let place = if op.compares() { start } else { operand };
        return Err(place.expected(format!(
            "the old value in {result}, not in {dst}: `{result} = {word}(…)`"
        )));
    }
    Ok(Insn::Atomic {
        op,
        width,
        base,
        off,
        src,
    })
}

/// `map[fd:3][0]+8` and other pseudo sources, after the first word.
fn pseudo(cursor: &mut Cursor<'_>, word: &str) -> Parsed<Pseudo> {
    if word == "subprog" {
        cursor.expect("[")?;
        let rel = cursor.i32("an offset")?;
        cursor.expect("]")?;
        return Ok(Pseudo::Func { rel });
    }
    let start = *cursor;
    let (kind, number) = index(cursor)?;
    let unsigned = number.cast_unsigned();
    match (word, kind) {
        ("btf", "id") => Ok(Pseudo::BtfId {
            id: TypeId(unsigned),
            btf_fd: 0,
        }),
        ("btf", "fd") => match index(cursor)? {
            ("id", id) => Ok(Pseudo::BtfId {
                id: TypeId(id.cast_unsigned()),
                btf_fd: number,
            }),
            _ => Err(start.expected("`[fd:3][id:7]`")),
        },
        ("map", "fd" | "idx") => {
            let off = if cursor.eat("[0]") {
                cursor.expect("+")?;
                Some(cursor.bits32("an offset")?.cast_unsigned())
            } else {
                None
            };
            Ok(match (kind, off) {
                ("fd", None) => Pseudo::MapFd { fd: number },
                ("fd", Some(off)) => Pseudo::MapValue { fd: number, off },
                (_, None) => Pseudo::MapIdx { index: unsigned },
                (_, Some(off)) => Pseudo::MapIdxValue {
                    index: unsigned,
                    off,
                },
            })
        }
        ("map", _) => Err(start.expected("`[fd:3]` or `[idx:3]`")),
        _ => Err(start.expected("`[id:7]` or `[fd:3][id:7]`")),
    }
}

/// `[fd:3]`.
fn index<'a>(cursor: &mut Cursor<'a>) -> Parsed<(&'a str, i32)> {
    cursor.expect("[")?;
    let kind = cursor.word().unwrap_or("");
    cursor.expect(":")?;
    let number = cursor.bits32("a number")?;
    cursor.expect("]")?;
    Ok((kind, number))
}

/// LLVM's `ld_pseudo r1, 1, 5`, after the first word: register, kind and immediate. The
/// text lacks the second slot's immediate, which is taken as 0.
pub(super) fn ld_pseudo(cursor: &mut Cursor<'_>) -> Parsed<Insn> {
    let dst = register_of(cursor, Width::W64)?;
    cursor.expect(",")?;
    let start = *cursor;
    let src = u8::try_from(cursor.number("a kind, 1 to 6")?).unwrap_or(0);
    let kind = PseudoKind::from_src(src).ok_or_else(|| start.expected("a kind, 1 to 6"))?;
    cursor.expect(",")?;
    let first = cursor.bits32("a number")?;
    Ok(Insn::LoadPseudo {
        dst,
        source: kind.with_imms(first, 0),
    })
}
