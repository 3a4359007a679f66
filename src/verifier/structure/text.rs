//! What the log shows at level 2 before the walk.

use super::functions::SubprogramInfo;
use super::model::InsnInfo;
use crate::isa::{Code, Reg};
use crate::program::Program;
use crate::verifier::log::{InsnText, Log};

/// Where each function begins: `func#1 @9`.
pub(super) fn functions(log: &mut Log, subprograms: &[SubprogramInfo]) {
    if !log.is_full() {
        return;
    }
    for (number, sub) in subprograms.iter().enumerate() {
        log.write(format_args!("func#{number} @{}\n", sub.start));
    }
}

/// The registers that are live before each instruction, and the loop that it is in.
pub(super) fn live_registers(log: &mut Log, program: &Program, code: &Code, insns: &[InsnInfo]) {
    if !log.is_full() {
        return;
    }
    log.write(format_args!("Live regs before insn:\n"));
    for (pc, _) in code.iter() {
        let info = insns.get(pc.index()).copied().unwrap_or_default();
        match info.scc {
            0 => log.write(format_args!("    ")),
            scc => log.write(format_args!("{scc:3} ")),
        }
        log.write(format_args!("{:3}: ", pc.0));
        for reg in Reg::ALL.iter().filter(|reg| **reg != Reg::FP) {
            match info.live >> reg.number() & 1 {
                0 => log.write(format_args!(".")),
                _ => log.write(format_args!("{}", reg.number())),
            }
        }
        let text = InsnText { program, code, pc };
        log.write(format_args!(" {text}\n"));
    }
}
