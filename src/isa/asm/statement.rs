//! Statements: instructions in the kernel's notation or in LLVM's.

use super::cursor::{Cursor, Parsed};
use super::error::AsmErrorKind;
use super::operand::{
    MemoryOperand, atomic_width, bits64, named, operand, register, register_for, register_of,
    unsigned_memory_operand,
};
use super::source::{self, Hints, Item};
use crate::isa::display::{FD_INDEX, UNKNOWN_HELPER, UNKNOWN_KFUNC};
use crate::isa::insn::{CallTarget, Insn, Operand};
use crate::isa::names::Names;
use crate::isa::opcode::call;
use crate::isa::raw::RawInsn;
use crate::isa::reg::Reg;
use crate::isa::table::{AluOp, AtomicOp, JumpOp, Size, Width};
use crate::util::{HelperId, TypeId};

/// Takes the longest known operator that comes next.
fn operator<T>(cursor: &mut Cursor<'_>, from_symbol: impl Fn(&str) -> Option<T>) -> Option<T> {
    let rest = cursor.rest();
    let (symbol, op) = (1..=4).rev().find_map(|len| {
        let symbol = rest.get(..len)?;
        Some((symbol, from_symbol(symbol)?))
    })?;
    cursor.eat(symbol);
    Some(op)
}

/// Parses a statement; the cursor is at its first word.
pub(super) fn statement<'a>(
    cursor: &mut Cursor<'a>,
    names: &dyn Names,
    hints: Hints,
) -> Parsed<Item<'a>> {
    let start = *cursor;
    if cursor.eat("*") {
        return store(cursor).map(Item::Insn);
    }
    let Some(word) = cursor.word() else {
        return Err(start.expected("an instruction or a label"));
    };
    if let Some((width, dst)) = named(word) {
        return assignment(cursor, width, dst, hints);
    }
    match word {
        "if" => condition(cursor),
        "goto" => jump(cursor, Insn::Jump { off: 0 }),
        "gotol" => jump(cursor, Insn::JumpLong { off: 0 }),
        "may_goto" => jump(cursor, Insn::MayGoto { off: 0 }),
        "call" => call(cursor, names, hints),
        "callx" => Ok(Item::Insn(Insn::CallReg {
            target: register_of(cursor, Width::W64)?,
        })),
        "exit" => Ok(Item::Insn(Insn::Exit)),
        "lock" => lock(cursor).map(Item::Insn),
        "store_release" => store_release(cursor).map(Item::Insn),
        "ld_pseudo" => source::ld_pseudo(cursor).map(Item::Insn),
        ".quad" => {
            let value = cursor.number_in("a 64-bit number", i64::MIN.into(), u64::MAX.into())?;
            Ok(Item::Word(bits64(value)))
        }
        _ => Err(start.expected("an instruction or a label")),
    }
}

fn assignment<'a>(
    cursor: &mut Cursor<'a>,
    width: Width,
    dst: Reg,
    hints: Hints,
) -> Parsed<Item<'a>> {
    match operator(cursor, AluOp::from_symbol) {
        None => Err(cursor.expected("an operator such as `=` or `+=`")),
        Some(AluOp::Mov) => source::source(cursor, width, dst, hints),
        Some(op) => {
            let src = operand(cursor, width)?;
            Ok(Item::Insn(Insn::Alu {
                op,
                width,
                dst,
                src,
            }))
        }
    }
}

fn condition<'a>(cursor: &mut Cursor<'a>) -> Parsed<Item<'a>> {
    let (width, dst) = register(cursor)?;
    let op = operator(cursor, JumpOp::from_symbol)
        .ok_or_else(|| cursor.expected("a comparison such as `==` or `s<`"))?;
    // The kernel prints the constant as 32 unsigned bits for both widths.
    let src = if cursor.at_number() {
        Operand::Imm(cursor.bits32("a constant")?)
    } else {
        operand(cursor, width)?
    };
    cursor.expect("goto")?;
    jump(
        cursor,
        Insn::JumpIf {
            op,
            width,
            dst,
            src,
            off: 0,
        },
    )
}

/// The target of a jump: `pc+3`, `+3`, `+0x3 <f+0x40>`, or a label.
fn jump<'a>(cursor: &mut Cursor<'a>, insn: Insn) -> Parsed<Item<'a>> {
    if let Some(label) = label(cursor) {
        return Ok(Item::To(insn, label));
    }
    let off = relative(cursor, "a target: `pc+3`, `+3` or a label")?;
    match insn.with_jump_off(off.value) {
        Some(insn) => Ok(Item::Insn(insn)),
        None => Err(off.start.error(AsmErrorKind::Range {
            what: "offset",
            value: off.value.into(),
            min: i16::MIN.into(),
            max: i16::MAX.into(),
        })),
    }
}

struct Relative<'a> {
    start: Cursor<'a>,
    value: i32,
}

/// A signed number of slots, without the `pc` before it and LLVM's note after it.
fn relative<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Parsed<Relative<'a>> {
    let whole = *cursor;
    cursor.eat("pc");
    let start = *cursor;
    if !start.rest().starts_with(['+', '-']) {
        return Err(whole.expected(what));
    }
    let value = cursor.i32(what)?;
    note(cursor)?;
    Ok(Relative { start, value })
}

/// LLVM's symbolic form of a target: `<f+0x40>`.
fn note(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.eat("<") {
        cursor.run(|c| c != '>');
        cursor.expect(">")?;
    }
    Ok(())
}

/// A label, if a name comes next that is not the `pc` of `pc+3`.
fn label<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let mut ahead = *cursor;
    let word = ahead.word()?;
    if word == "pc" && ahead.rest().starts_with(['+', '-']) {
        return None;
    }
    *cursor = ahead;
    Some(word)
}

/// `call pc+3`, `call name#1`, `call name`, `call 1`.
fn call<'a>(cursor: &mut Cursor<'a>, names: &dyn Names, hints: Hints) -> Parsed<Item<'a>> {
    let insn = |target| Ok(Item::Insn(Insn::Call(target)));
    let rest = cursor.rest();
    if cursor.at_number() {
        let signed = rest.starts_with('+');
        let number = cursor.bits32("a function's number")?;
        note(cursor)?;
        let id = number.cast_unsigned();
        return insn(match hints.slot.map(RawInsn::src) {
            Some(call::SUBPROGRAM) => CallTarget::Subprogram { rel: number },
            Some(call::KFUNC) => CallTarget::Kfunc {
                id: TypeId(id),
                fd_index: hints.slot.map_or(0, |slot| slot.off),
            },
            None if signed => CallTarget::Subprogram { rel: number },
            _ => CallTarget::Helper(HelperId(id)),
        });
    }
    if rest.starts_with("pc+") || rest.starts_with("pc-") {
        let rel = relative(cursor, "a target: `pc+3`")?.value;
        return insn(CallTarget::Subprogram { rel });
    }
    let start = *cursor;
    let name = cursor
        .run(|c| !c.is_whitespace() && c != '#')
        .ok_or_else(|| start.expected("a function: `pc+3`, a name or a number"))?;
    if !cursor.eat("#") {
        if let Some(id) = names.helper_named(name) {
            return insn(CallTarget::Helper(id));
        }
        if let Some((id, fd_index)) = names.kfunc_named(name) {
            return insn(CallTarget::Kfunc { id, fd_index });
        }
        return Ok(Item::To(
            Insn::Call(CallTarget::Subprogram { rel: 0 }),
            name,
        ));
    }
    let number = cursor.bits32("the function's number")?.cast_unsigned();
    let (helper, kfunc) = (HelperId(number), TypeId(number));
    if name == UNKNOWN_KFUNC {
        let fd_index = if cursor.eat(FD_INDEX) {
            cursor.i16("an index")?
        } else {
            0
        };
        return insn(CallTarget::Kfunc {
            id: kfunc,
            fd_index,
        });
    }
    if name == UNKNOWN_HELPER || names.helper(helper).as_deref() == Some(name) {
        return insn(CallTarget::Helper(helper));
    }
    match names.kfunc_named(name) {
        Some((id, fd_index)) if id == kfunc => insn(CallTarget::Kfunc { id, fd_index }),
        _ => Err(start.error(AsmErrorKind::UnknownFunction(format!("{name}#{number}")))),
    }
}

/// `*(u64 *)(r10 -8) = r1`, after the star.
fn store(cursor: &mut Cursor<'_>) -> Parsed<Insn> {
    let MemoryOperand { size, base, off } = unsigned_memory_operand(cursor)?;
    cursor.expect("=")?;
    let src = if cursor.at_number() {
        // The constant of an 8-byte store is sign-extended, so it can't be written
        // unsigned.
        Operand::Imm(match size {
            Size::Dw => cursor.i32("a constant")?,
            _ => cursor.bits32("a constant")?,
        })
    } else {
        Operand::Reg(register_for(cursor, size)?)
    };
    Ok(Insn::Store {
        size,
        base,
        off,
        src,
    })
}

/// `lock *(u64 *)(r1 +0) += r2`, after the first word.
fn lock(cursor: &mut Cursor<'_>) -> Parsed<Insn> {
    cursor.expect("*")?;
    let start = *cursor;
    let MemoryOperand { size, base, off } = unsigned_memory_operand(cursor)?;
    let width = atomic_width(&start, size)?;
    let op = operator(cursor, |symbol| {
        let mut ops = AtomicOp::ALL.iter().copied();
        ops.find(|op| !op.fetches() && op.kernel_name() == symbol)
    })
    .ok_or_else(|| cursor.expected("an operator: `+=`, `|=`, `&=` or `^=`"))?;
    Ok(Insn::Atomic {
        op,
        width,
        base,
        off,
        src: register_for(cursor, size)?,
    })
}

/// `store_release((u64 *)(r1 +0), r2)`, after the first word.
fn store_release(cursor: &mut Cursor<'_>) -> Parsed<Insn> {
    cursor.expect("(")?;
    let MemoryOperand { size, base, off } = unsigned_memory_operand(cursor)?;
    cursor.expect(",")?;
    let src = register_for(cursor, size)?;
    cursor.expect(")")?;
    Ok(Insn::StoreRelease {
        size,
        base,
        off,
        src,
    })
}
