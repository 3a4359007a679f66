//! The machine code of a program with its BPF instructions: `bpflab disasm --jit`.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::datum::hex;
use super::listing::{ListedInsn, ListedLine, Listing};
use crate::jit::{Emitted, MachineInsn, disassemble, extensions};
use crate::lower::Lowered;
use crate::spec::context::Arch;
use crate::util::Pc;

/// A program's machine code, each piece under the BPF instruction that it was compiled from.
#[derive(Debug, Clone)]
pub struct MachineListing<'p> {
    listing: Listing<'p>,
    lowered: &'p Lowered,
    machine: Arch,
    /// The instruction set extensions that the code uses.
    extensions: &'static str,
    code: Vec<MachineInsn>,
    entries: FxHashMap<Pc, Piece>,
    pieces: FxHashMap<Pc, Piece>,
    /// The entry code before the first function.
    entry_code: Piece,
}

/// A piece of the code: its first byte and the byte after its last, as offsets.
type Piece = (usize, usize);

/// A machine instruction. Its fields are the keys of `bpflab disasm --jit --json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ListedMachineInsn<'p> {
    /// Its program.
    pub program: &'p str,
    /// Its function; none for the entry code that Rust calls.
    pub function: Option<&'p str>,
    /// `x86-64` or `arm64`.
    pub machine: &'static str,
    /// The instruction set extensions that the code uses: those of this host, if it is such a
    /// machine.
    pub extensions: &'static str,
    /// Its offset in the program's code, in bytes.
    pub offset: usize,
    /// Its bytes.
    pub bytes: String,
    /// Its text.
    pub text: &'p str,
    /// The BPF instruction that it was compiled from, in slots; none for function prologues.
    pub insn: Option<u32>,
    /// That instruction's text.
    pub bpf: Option<&'p str>,
    /// The line of C that it comes from.
    pub source: Option<ListedLine<'p>>,
}

const fn name(machine: Arch) -> &'static str {
    match machine {
        Arch::X86_64 => "x86-64",
        Arch::Arm64 => "arm64",
    }
}

impl<'p> MachineListing<'p> {
    /// The listing of the code that was emitted for this machine; with the lines of C if `source`
    /// is set.
    #[must_use]
    pub fn new(lowered: &'p Lowered, emitted: &Emitted, machine: Arch, source: bool) -> Self {
        let end = emitted.bytes.len();
        let starts: Vec<usize> = emitted.entries.iter().map(|(_, start)| *start).collect();
        let (mut entries, mut pieces) = (FxHashMap::default(), FxHashMap::default());
        for (number, function) in lowered.functions().iter().enumerate() {
            let start = starts.get(number).copied().unwrap_or(end);
            let after = starts.get(number + 1).copied().unwrap_or(end);
            let place = |op: u32| emitted.ops.get(op as usize).copied().unwrap_or(after);
            entries.insert(function.start, (start, place(function.entry)));
            for op in function.entry..function.end {
                let next = op + 1;
                let piece_end = if next < function.end {
                    place(next)
                } else {
                    after
                };
                pieces.insert(lowered.pc(op), (place(op), piece_end));
            }
        }
        Self {
            listing: Listing::new(lowered.program(), source),
            lowered,
            machine,
            extensions: extensions(machine),
            code: disassemble(machine, &emitted.bytes),
            entries,
            pieces,
            entry_code: (0, starts.first().copied().unwrap_or(end)),
        }
    }

    fn insns(&self, (start, end): Piece) -> &[MachineInsn] {
        let at = |offset| self.code.partition_point(|insn| insn.offset < offset);
        self.code.get(at(start)..at(end)).unwrap_or_default()
    }

    /// Calls `row` for each machine instruction, in order.
    ///
    /// # Errors
    /// The first error of `row`.
    pub fn each<E>(
        &self,
        mut row: impl FnMut(&ListedMachineInsn<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let listed = self.listing.insns();
        let mut rows = |piece: Piece, function: Option<&str>, insn: Option<&ListedInsn<'_>>| {
            self.insns(piece).iter().try_for_each(|machine| {
                row(&ListedMachineInsn {
                    program: &self.lowered.program().name,
                    function,
                    machine: name(self.machine),
                    extensions: self.extensions,
                    offset: machine.offset,
                    bytes: hex(&machine.bytes),
                    text: &machine.text,
                    insn: insn.map(|insn| insn.insn),
                    bpf: insn.map(|insn| insn.text.as_str()),
                    source: insn.and_then(|insn| insn.source),
                })
            })
        };
        rows(self.entry_code, None, None)?;
        for insn in &listed {
            let pc = Pc(insn.insn);
            if let Some(piece) = self.entries.get(&pc) {
                rows(*piece, Some(insn.function), None)?;
            }
            if let Some(piece) = self.pieces.get(&pc) {
                rows(*piece, Some(insn.function), Some(insn))?;
            }
        }
        Ok(())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, piece: Piece) -> fmt::Result {
        for insn in self.insns(piece) {
            writeln!(f, "{:8x}: {}", insn.offset, insn.text)?;
        }
        Ok(())
    }
}

impl fmt::Display for MachineListing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.lowered.program();
        let size: usize = self.code.iter().map(|insn| insn.bytes.len()).sum();
        writeln!(
            f,
            "program {} ({}, section {}), {size} bytes of code for {}{}",
            program.name,
            program.prog_type.name(),
            program.section,
            name(self.machine),
            match self.extensions {
                "" => String::new(),
                extensions => format!(" with {extensions}"),
            },
        )?;
        writeln!(f, "; from Rust into functions")?;
        self.write(f, self.entry_code)?;
        for insn in self.listing.insns() {
            let pc = Pc(insn.insn);
            self.listing.write_before(f, &insn)?;
            if let Some(piece) = self.entries.get(&pc) {
                self.write(f, *piece)?;
            }
            match self.pieces.get(&pc) {
                Some(piece) => {
                    writeln!(f, "{insn}")?;
                    self.write(f, *piece)?;
                }
                None => writeln!(f, "{insn} // never executed")?,
            }
        }
        Ok(())
    }
}
