//! The assembler: text to instructions.
//!
//! Two notations are accepted, line by line and freely mixed: the kernel's, as printed by
//! its verifier, `bpftool` and [`disassemble`](super::disassemble), and LLVM's, as printed
//! by `llvm-objdump` and accepted by clang. Besides instructions a text may contain
//!
//! - labels (`loop:`), which jumps and calls refer to by name; `r1 = name ll` loads the
//!   address of the function at the label;
//! - comments, from `//`, `;` or a free-standing `#` to the end of the line;
//! - disassembler prefixes: a position (`3:`), the opcode (`(b7)`), the bytes (`b7 00 00 00
//!   07 00 00 00`). Opcode and bytes resolve ambiguities (`call 5` is a helper or a
//!   subprogram; in the kernel's text a 64-bit immediate looks like a move) and must match
//!   the text. Headings and relocations of `llvm-objdump` are skipped;
//! - `.quad N`: one slot, or half of a 64-bit immediate, as a number.

mod cursor;
mod error;
mod operand;
mod source;
mod statement;

use std::collections::BTreeMap;

pub use error::{AsmError, AsmErrorKind};

use self::cursor::{Cursor, Parsed};
use self::source::{Hints, Item};
use self::statement::statement;
use super::insn::{CallTarget, Insn};
use super::names::{Names, NoNames};
use super::raw::RawInsn;
use super::table::Pseudo;
use crate::util::Pc;

/// An assembled text.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Assembly {
    /// The program.
    pub slots: Vec<RawInsn>,
    /// The source line of each slot, from 1.
    pub lines: Vec<u32>,
    /// Positions of the labels.
    pub labels: BTreeMap<String, Pc>,
}

/// Assembles a text whose calls name functions by number.
///
/// ```
/// use bpflab::isa::{NoNames, assemble, disassemble};
///
/// let slots = assemble(
///     "    r0 = 0                      // the kernel's notation and LLVM's
///          if r1 == 0x0 goto done
///          r0 = *(u64 *)(r1 + 0x8)
///      done:
///          exit",
/// )?;
/// assert_eq!(
///     disassemble(&slots, &NoNames),
///     "0: (b7) r0 = 0\n\
///      1: (15) if r1 == 0x0 goto pc+1\n\
///      2: (79) r0 = *(u64 *)(r1 +8)\n\
///      3: (95) exit\n"
/// );
/// let error = assemble("r0 = 0\nr0 += x1").unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 7: expected a register or a constant, found `x1`");
/// # Ok::<(), bpflab::isa::AsmError>(())
/// ```
///
/// # Errors
/// [`AsmError`]: the first error in the text, with its position.
pub fn assemble(text: &str) -> Result<Vec<RawInsn>, AsmError> {
    assemble_with(text, &NoNames).map(|assembly| assembly.slots)
}

/// Assembles a text.
///
/// # Errors
/// [`AsmError`]: the first error in the text, with its position.
pub fn assemble_with(text: &str, names: &dyn Names) -> Result<Assembly, AsmError> {
    let mut assembler = Assembler::default();
    for (number, line) in (1..).zip(text.lines()) {
        if !is_heading(line) {
            assembler.line(Cursor::new(line, number), names)?;
        }
    }
    assembler.finish()
}

/// Whether `llvm-objdump` prints this line in addition to the instructions.
fn is_heading(line: &str) -> bool {
    let line = line.trim_start();
    let relocation = || {
        line.split_once(':')
            .is_some_and(|(_, r)| r.trim_start().starts_with("R_BPF_"))
    };
    line.starts_with("Disassembly of section") || line.contains(":\tfile format ") || relocation()
}

#[derive(Default)]
struct Assembler<'a> {
    out: Assembly,
    fixups: Vec<Fixup<'a>>,
}

/// An instruction whose label is not resolved yet.
struct Fixup<'a> {
    insn: Insn,
    at: Pc,
    label: &'a str,
    hints: Hints,
    place: Cursor<'a>,
}

impl<'a> Assembler<'a> {
    fn line(&mut self, mut cursor: Cursor<'a>, names: &dyn Names) -> Parsed<()> {
        while let Some(label) = label(&mut cursor) {
            self.define(label)?;
        }
        let hints = prefix(&mut cursor);
        if cursor.at_end() {
            return Ok(());
        }
        let place = cursor;
        if cursor.eat("<unknown>") {
            // LLVM cannot print all instructions; the bytes determine them.
            let slot = hints.slot.ok_or_else(|| place.expected("an instruction"))?;
            self.push(&[slot], place);
            return cursor.expect_end();
        }
        let item = statement(&mut cursor, names, hints)?;
        cursor.expect_end()?;
        match item {
            Item::Insn(insn) => {
                check(insn, hints, place)?;
                self.push(&insn.encode(), place);
            }
            Item::To(insn, label) => {
                let at = Pc::from_index(self.out.slots.len());
                self.push(&insn.encode(), place);
                self.fixups.push(Fixup {
                    insn,
                    at,
                    label,
                    hints,
                    place,
                });
            }
            Item::Word(word) => self.push(&[RawInsn::from_bytes(word.to_le_bytes())], place),
        }
        Ok(())
    }

    fn push(&mut self, slots: &[RawInsn], place: Cursor<'_>) {
        self.out.slots.extend_from_slice(slots);
        self.out.lines.resize(self.out.slots.len(), place.line());
    }

    fn define(&mut self, (name, place): (&str, Cursor<'_>)) -> Parsed<()> {
        let at = Pc::from_index(self.out.slots.len());
        match self.out.labels.insert(name.to_owned(), at) {
            None => Ok(()),
            Some(_) => Err(place.error(AsmErrorKind::DuplicateLabel(name.to_owned()))),
        }
    }

    fn finish(mut self) -> Result<Assembly, AsmError> {
        for fixup in self.fixups {
            let Fixup {
                insn,
                at,
                label,
                hints,
                place,
            } = fixup;
            let Some(target) = self.out.labels.get(label) else {
                let name = label.to_owned();
                return Err(place.error(match insn {
                    Insn::Call(_) => AsmErrorKind::UnknownFunction(name),
                    _ => AsmErrorKind::UndefinedLabel(name),
                }));
            };
            let off = i64::from(target.0) - i64::from(at.0) - 1;
            let insn = i32::try_from(off)
                .ok()
                .and_then(|off| with_target(insn, off));
            let insn = insn.ok_or_else(|| {
                let long = matches!(fixup.insn, Insn::Jump { .. }) && i32::try_from(off).is_ok();
                place.error(AsmErrorKind::TooFar {
                    label: label.to_owned(),
                    off,
                    long,
                })
            })?;
            check(insn, hints, place)?;
            for (slot, encoded) in self
                .out
                .slots
                .iter_mut()
                .skip(at.index())
                .zip(&*insn.encode())
            {
                *slot = *encoded;
            }
        }
        Ok(self.out)
    }
}

/// The instruction with the offset of its label filled in.
fn with_target(insn: Insn, off: i32) -> Option<Insn> {
    Some(match insn {
        Insn::Call(_) => Insn::Call(CallTarget::Subprogram { rel: off }),
        Insn::LoadPseudo { dst, .. } => Insn::LoadPseudo {
            dst,
            source: Pseudo::Func { rel: off },
        },
        jump => jump.with_jump_off(off)?,
    })
}

/// Takes a label: `name:`, or LLVM's `0000000000000010 <name>:`.
fn label<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a str, Cursor<'a>)> {
    let mut ahead = *cursor;
    let (name, place) = if ahead.rest().starts_with(|c: char| c.is_ascii_hexdigit())
        && ahead.run(|c| c.is_ascii_hexdigit()).is_some()
        && ahead.eat("<")
    {
        let place = ahead;
        let name = ahead.run(|c| c != '>')?;
        (name, ahead.eat(">").then_some(place)?)
    } else {
        ahead = *cursor;
        (ahead.word()?, *cursor)
    };
    if !ahead.eat(":") {
        return None;
    }
    *cursor = ahead;
    Some((name, place))
}

/// Parses a disassembler's prefix of an instruction.
fn prefix(cursor: &mut Cursor<'_>) -> Hints {
    let mut hints = Hints::default();
    let mut ahead = *cursor;
    if ahead.run(|c| c.is_ascii_digit()).is_some() && ahead.eat(":") {
        *cursor = ahead;
    }
    let mut ahead = *cursor;
    if ahead.eat("(")
        && let Some(opcode) = byte(&mut ahead)
        && ahead.eat(")")
    {
        hints.opcode = Some(opcode);
        *cursor = ahead;
    }
    while let Some(slot) = slot(cursor) {
        // The second slot of a 64-bit immediate may follow; the first is enough.
        hints.slot.get_or_insert(slot);
        hints.opcode.get_or_insert(slot.opcode);
    }
    hints
}

/// Eight bytes in hex.
fn slot(cursor: &mut Cursor<'_>) -> Option<RawInsn> {
    let mut ahead = *cursor;
    let mut bytes = [0; RawInsn::SIZE];
    for place in &mut bytes {
        *place = byte(&mut ahead)?;
    }
    *cursor = ahead;
    Some(RawInsn::from_bytes(bytes))
}

/// Two hex digits that are not part of a longer word.
fn byte(cursor: &mut Cursor<'_>) -> Option<u8> {
    let digits = cursor.run(|c| c.is_alphanumeric() || c == '_')?;
    if digits.len() != 2 || digits.starts_with('+') {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// Checks that the prefix matches the instruction.
fn check(insn: Insn, hints: Hints, place: Cursor<'_>) -> Parsed<()> {
    let first = insn.encode()[0];
    let (stated, encoded) = match (hints.slot, hints.opcode) {
        (Some(slot), _) => (slot.to_bytes().to_vec(), first.to_bytes().to_vec()),
        (None, Some(opcode)) => (vec![opcode], vec![first.opcode]),
        (None, None) => return Ok(()),
    };
    if stated == encoded {
        return Ok(());
    }
    let hex = |bytes: &[u8]| {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    };
    Err(place.error(AsmErrorKind::Mismatch {
        stated: hex(&stated),
        encoded: hex(&encoded),
    }))
}

#[cfg(test)]
mod tests;
