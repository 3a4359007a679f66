//! The instructions of a program: `bpflab disasm`.

use std::fmt;

use serde::Serialize;

use super::datum::hex;
use crate::isa::{CallTarget, Code, Insn, Pseudo};
use crate::program::{MapOrigin, Program};
use crate::util::{MapId, Pc, base_name};

/// A program's instructions in the kernel's disassembly.
#[derive(Debug, Clone)]
pub struct Listing<'p> {
    program: &'p Program,
    source: bool,
}

/// One instruction. Its fields are the keys of `bpflab disasm --json`.
#[derive(Debug, Clone, Serialize)]
pub struct ListedInsn<'p> {
    /// Its program.
    pub program: &'p str,
    /// Its function.
    pub function: &'p str,
    /// Its index in the program, in slots.
    pub insn: u32,
    /// The kernel's text; for invalid instructions the bytes as `.quad`.
    pub text: String,
    /// Its 8 or 16 bytes.
    pub bytes: String,
    /// More about the instruction: the variable, the C access that CO-RE relocated, why it is
    /// invalid.
    pub comment: Option<String>,
    /// The line of C that it comes from.
    pub source: Option<ListedLine<'p>>,
    /// Whether the instruction before it comes from another line.
    #[serde(skip)]
    begins_line: bool,
}

/// A line of the C source.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct ListedLine<'p> {
    /// File, as the compiler was given it.
    pub file: &'p str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// The line without indentation.
    pub text: &'p str,
}

impl<'p> Listing<'p> {
    /// The listing of a program; with the lines of C between the instructions if `source` is set.
    #[must_use]
    pub const fn new(program: &'p Program, source: bool) -> Self {
        Self { program, source }
    }

    /// The instructions, in order.
    #[must_use]
    pub fn insns(&self) -> Vec<ListedInsn<'p>> {
        let program = self.program;
        let code = Code::new(&program.insns);
        let mut listed = Vec::with_capacity(program.insns.len());
        for (pc, insn) in code.iter() {
            let slots = match &insn {
                Ok(insn) => insn.slots() as usize,
                Err(error) => 1 + usize::from(error.has_second_slot()),
            };
            let raw = program.insns.iter().skip(pc.index()).take(slots);
            let bytes: Vec<u8> = raw.clone().flat_map(|raw| raw.to_bytes()).collect();
            let (text, comment) = match insn {
                Ok(insn) => (insn.text(program).to_string(), self.comment(pc, &insn)),
                Err(error) => {
                    let words =
                        raw.map(|raw| format!("{:#018x}", u64::from_le_bytes(raw.to_bytes())));
                    let words: Vec<_> = words.collect();
                    (
                        format!(".quad {}", words.join(", ")),
                        Some(error.to_string()),
                    )
                }
            };
            let source = program.source(pc).filter(|line| line.line > 0);
            let source = source.map(|line| ListedLine {
                file: line.file,
                line: line.line,
                column: line.column,
                text: line.text.trim(),
            });
            let before = listed.last().and_then(|insn: &ListedInsn<'_>| insn.source);
            let place = |line: ListedLine<'p>| (line.file, line.line);
            listed.push(ListedInsn {
                program: &program.name,
                function: program.subprogram(pc).map_or("", |sub| &sub.name),
                insn: pc.0,
                text,
                bytes: hex(&bytes),
                comment,
                source,
                begins_line: before.map(place) != source.map(place),
            });
        }
        listed
    }

    fn comment(&self, pc: Pc, insn: &Insn) -> Option<String> {
        if let Some(access) = self.program.core_access(pc) {
            let poisoned = if access.poisoned {
                ", not in the kernel's types"
            } else {
                ""
            };
            return Some(format!("CO-RE: {}{poisoned}", access.path));
        }
        match insn {
            Insn::LoadPseudo {
                source: Pseudo::MapIdxValue { index, off },
                ..
            } => self.variable(MapId::from_index(usize::try_from(*index).ok()?), *off),
            Insn::LoadPseudo {
                source: Pseudo::Func { .. },
                ..
            }
            | Insn::Call(CallTarget::Subprogram { .. }) => {
                let target = u32::try_from(insn.subprogram_target(pc)?).ok()?;
                Some(self.program.subprogram(Pc(target))?.name.clone())
            }
            Insn::LoadPseudo {
                source: Pseudo::BtfId { id, .. },
                ..
            } => {
                let name = self.program.kernel_btf.as_ref()?.get(*id)?.name();
                Some(name.to_owned())
            }
            _ => None,
        }
    }

    /// The global variable at a byte of a map, by the map's BTF.
    fn variable(&self, map: MapId, off: u32) -> Option<String> {
        let map = self.program.map(map)?;
        let MapOrigin::Section(_) = map.origin else {
            return None;
        };
        let btf = self.program.btf.as_ref()?;
        let mut places = btf.get(map.value_type?)?.variables();
        let place =
            places.find(|place| (place.offset..place.offset + place.size).contains(&off))?;
        let name = btf.get(place.ty)?.name();
        Some(match off - place.offset {
            0 => name.to_owned(),
            into => format!("{name}+{into}"),
        })
    }

    /// Writes the header of a function that begins at the instruction, and the line of C.
    pub(super) fn write_before(
        &self,
        f: &mut fmt::Formatter<'_>,
        insn: &ListedInsn<'_>,
    ) -> fmt::Result {
        if let Some(header) = self.header(insn.insn) {
            writeln!(f, "{header}:")?;
        }
        if self.source
            && insn.begins_line
            && let Some(line) = insn.source
        {
            let file = base_name(line.file);
            writeln!(f, "; {} @ {file}:{}", line.text, line.line)?;
        }
        Ok(())
    }

    /// The C declaration of the function that begins at `pc`, or its name.
    fn header(&self, pc: u32) -> Option<String> {
        let start = |sub: &&crate::program::Subprogram| sub.start == Pc(pc);
        let sub = self.program.subprograms.iter().find(start)?;
        let declaration = self
            .program
            .btf
            .as_ref()
            .zip(sub.type_id)
            .and_then(|(btf, id)| {
                let prototype = btf.get(id)?.target_id()?;
                btf.c_declaration(prototype, &sub.name).ok()
            });
        Some(declaration.unwrap_or_else(|| sub.name.clone()))
    }
}

impl fmt::Display for ListedInsn<'_> {
    /// The text with its comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.insn, self.text)?;
        match &self.comment {
            Some(comment) => write!(f, " // {comment}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program;
        let (name, prog_type) = (&program.name, program.prog_type.name());
        writeln!(
            f,
            "program {name} ({prog_type}, section {})",
            program.section
        )?;
        for insn in self.insns() {
            self.write_before(f, &insn)?;
            writeln!(f, "{insn}")?;
        }
        Ok(())
    }
}
