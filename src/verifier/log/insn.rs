//! Instructions in the log: their text, the source line before them, the state after them.

use std::borrow::Cow;
use std::fmt;

use super::state::StateText;
use super::touched::Touched;
use crate::isa::{Code, Names, Pseudo, Reg};
use crate::program::Program;
use crate::spec::MapType;
use crate::util::{HelperId, MapId, Pc, TypeId, base_name};
use crate::verifier::env::Verifier;
use crate::verifier::state::State;

/// The column of the state after an instruction, unless the text is longer
/// (`BPF_LOG_ALIGNMENT`).
const COLUMN: usize = 40;
/// After a longer text, the column is a multiple of this (`BPF_LOG_MIN_ALIGNMENT`).
const STEP: usize = 8;

impl Verifier<'_> {
    /// Prints the whole innermost frame of the current state, as the rest of a line.
    pub(crate) fn log_state(&mut self) {
        self.log_frame(self.state.current());
    }

    /// Prints a whole frame of the current state (`print_verifier_state` with `print_all`).
    pub(crate) fn log_frame(&mut self, frame: usize) {
        if self.log.is_on() {
            let text = StateText {
                program: self.program,
                maps: &self.maps,
                state: &self.state,
                frame,
                touched: Touched::ALL,
            };
            self.log.write(format_args!("{text}\n"));
        }
    }

    /// The text of a whole frame of a state, for a message.
    pub(crate) fn state_text<'a>(&'a self, state: &'a State, frame: usize) -> StateText<'a> {
        StateText {
            program: self.program,
            maps: &self.maps,
            state,
            frame,
            touched: Touched::ALL,
        }
    }

    /// Prints the registers and slots touched since the last print: after the instruction,
    /// if it was printed last, otherwise on a new line (`print_insn_state`).
    pub(crate) fn log_insn_state(&mut self) {
        if !self.log.is_on() {
            return;
        }
        let last = &self.log.last;
        if last.end != 0 && last.end == self.log.len() {
            let gap = gap(last.len);
            // Replaces the newline.
            self.log.truncate(self.log.len() - 1);
            self.log.write(format_args!("{:gap$};", ""));
        } else {
            self.log.write(format_args!("{}:", self.pc()));
        }
        let text = StateText {
            program: self.program,
            maps: &self.maps,
            state: &self.state,
            frame: self.state.current(),
            touched: self.log.touched,
        };
        self.log.write(format_args!("{text}\n"));
        self.log.touched = Touched::NONE;
    }

    /// Prints the current instruction and its source line, preceded by the state that
    /// earlier instructions touched.
    pub(crate) fn log_insn(&mut self) {
        if !self.log.is_on() {
            return;
        }
        if !self.log.touched.is_empty() {
            self.log_insn_state();
        }
        self.log_source(self.pc(), "; ");
        let begin = self.log.len();
        let text = InsnText {
            program: self.program,
            code: &self.structure.code,
            pc: self.pc(),
            addresses: self.log.shows_addresses(),
        };
        self.log.write(format_args!("{}: {text}\n", self.pc()));
        let end = self.log.len();
        self.log.last.end = end;
        self.log.last.len = end - begin;
    }

    /// Prints the source line of an instruction after `prefix`, unless it was the last one
    /// printed (`verbose_linfo`).
    pub(crate) fn log_source(&mut self, pc: Pc, prefix: &str) {
        if !self.log.is_on() {
            return;
        }
        let lines = &self.program.lines;
        let after = lines.partition_point(|line| line.insn_off <= pc.0);
        // The first line also stands for the instructions before it.
        let at = after.saturating_sub(1);
        let last = self.log.last.source.and_then(|at| lines.get(at));
        let (Some(line), Some(btf)) = (lines.get(at), self.program.btf.as_ref()) else {
            return;
        };
        if last.is_some_and(|last| last.file == line.file && last.line() == line.line()) {
            return;
        }
        let source = line.source(btf);
        let text = source.text.trim_ascii_start();
        let file = base_name(source.file);
        self.log
            .write(format_args!("{prefix}{text} @ {file}:{}\n", source.line));
        self.log.last.source = Some(at);
    }

    /// Starts exploration of a function: its first source line is always printed.
    pub(crate) fn log_restart(&mut self) {
        self.log.last.source = None;
    }

    /// Prints the live registers and the loop of each instruction
    /// (`compute_live_registers`, level 2).
    pub(crate) fn log_live_registers(&mut self) {
        if !self.log.is_full() {
            return;
        }
        self.log.write(format_args!("Live regs before insn:\n"));
        let (program, code) = (self.program, &self.structure.code);
        let addresses = self.log.shows_addresses();
        for (pc, _) in code.iter() {
            let info = &self.structure.insns[pc.index()];
            match info.scc {
                0 => self.log.write(format_args!("    ")),
                number => self.log.write(format_args!("{number:3} ")),
            }
            let live = LiveRegs(info.live);
            let text = InsnText {
                program,
                code,
                pc,
                addresses,
            };
            self.log.write(format_args!("{:3}: {live} {text}\n", pc.0));
        }
    }
}

/// The text of an instruction as the kernel prints it during verification.
struct InsnText<'a> {
    program: &'a Program,
    code: &'a Code,
    pc: Pc,
    addresses: bool,
}

impl fmt::Display for InsnText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let insn = match self.code.get(self.pc) {
            Some(Ok(insn)) => Some(insn),
            Some(Err(error)) => error.repaired(),
            None => None,
        };
        let names = Loaded {
            program: self.program,
            addresses: self.addresses,
        };
        insn.map_or(Ok(()), |insn| insn.text(&names).fmt(f))
    }
}

/// The number of blanks after an instruction's text of length `len`, which includes the
/// newline (`vlog_alignment`).
fn gap(len: usize) -> usize {
    (len + STEP / 2).max(COLUMN).next_multiple_of(STEP) - len - 1
}

/// A column for each register but the frame pointer: its digit if it is live.
struct LiveRegs(u16);

impl fmt::Display for LiveRegs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let regs = Reg::ALL.into_iter().filter(|&reg| reg != Reg::FP);
        for reg in regs {
            match self.0 >> reg.number() & 1 {
                0 => f.write_str(".")?,
                _ => write!(f, "{}", reg.number())?,
            }
        }
        Ok(())
    }
}

/// The registers of a mask in the lines of precision backtracking (`fmt_reg_mask`):
/// `r0,r6`.
pub(crate) struct RegMask(pub u16);

impl fmt::Display for RegMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        members(f, self.0.into(), |f, number| write!(f, "r{number}"))
    }
}

/// The slots of a mask by their offsets (`bpf_fmt_stack_mask`): `-8,-24`.
pub(crate) struct SlotMask(pub u64);

impl fmt::Display for SlotMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        members(f, self.0, |f, number| write!(f, "-{}", (number + 1) * 8))
    }
}

/// The members of a mask, comma-separated.
fn members(
    f: &mut fmt::Formatter<'_>,
    mask: u64,
    member: impl Fn(&mut fmt::Formatter<'_>, u32) -> fmt::Result,
) -> fmt::Result {
    let mut separator = "";
    for number in (0..u64::BITS).filter(|number| mask >> number & 1 == 1) {
        f.write_str(std::mem::replace(&mut separator, ","))?;
        member(f, number)?;
    }
    Ok(())
}

/// Names as the kernel prints them during verification. Where the kernel prints an address,
/// this prints a placeholder of the same length, equal in every run, so that the columns
/// match.
pub(crate) struct Loaded<'a> {
    pub program: &'a Program,
    /// Whether the loader may see the addresses of maps; if not, they are 0.
    pub addresses: bool,
}

/// Placeholder addresses for maps, and for map values.
const MAPS: u64 = 0xffff_8881_0000_0000;
const VALUES: u64 = 0xffff_c900_0000_0000;
/// Placeholder address for an arena, which a loader maps where it likes.
const USER: u64 = 0x7f00_0001_0000;
/// Placeholder addresses for kernel functions and variables.
const SYMBOLS: u64 = 0xffff_ffff_8100_0000;
/// The distance between maps.
const MAP_DISTANCE: u64 = 0x1_0000;

impl Names for Loaded<'_> {
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        self.program.helper(id)
    }

    fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Cow<'_, str>> {
        self.program.kfunc(id, fd_index)
    }

    fn pseudo(&self, source: Pseudo) -> Option<Cow<'_, str>> {
        let address = match source {
            Pseudo::MapIdx { .. } | Pseudo::MapIdxValue { .. } if !self.addresses => 0,
            Pseudo::MapIdx { index } => MAPS + u64::from(index) * MAP_DISTANCE,
            Pseudo::MapIdxValue { index, off } => {
                let map = self.program.map(MapId(index));
                let arena = map.filter(|map| map.map_type == MapType::Arena);
                let start = match arena.map(|arena| arena.extra) {
                    // An arena's address in user space, if its definition sets it.
                    Some(start) if start != 0 => start,
                    Some(_) => USER,
                    None => VALUES + u64::from(index) * MAP_DISTANCE,
                };
                start.wrapping_add(off.into())
            }
            Pseudo::BtfId { id, .. } => SYMBOLS + u64::from(id.0) * 16,
            Pseudo::Func { rel } => u64::from(rel.cast_unsigned()),
            _ => return None,
        };
        Some(format!("{address:#x}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_in_a_column() {
        // "0: (b7) r0 = 0\n" and 23 blanks: the semicolon is the 39th character.
        assert_eq!(gap(15), 24);
        assert_eq!(gap(36), 3);
        assert_eq!(gap(37), 10);
        assert_eq!(gap(39), 8);
    }

    #[test]
    fn masks_are_lists() {
        assert_eq!(RegMask(0b100_0001).to_string(), "r0,r6");
        assert_eq!(RegMask(0).to_string(), "");
        assert_eq!(SlotMask(0b10101).to_string(), "-8,-24,-40");
        assert_eq!(LiveRegs(0b10_0000_0101).to_string(), "0.2......9");
    }
}
