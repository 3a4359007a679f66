//! Runs a firing again on the checked engine, watching each instruction, to read the registers
//! at a difference.

use super::programs::Form;
use super::replay_vm::ReplayVm;
use crate::engine::{Step, Watch};
use crate::instrument::Firing;
use crate::isa::Reg;
use crate::util::Pc;
use crate::vm::events::Event;

/// The registers before the instruction at `pc` of the program of `form` is executed the
/// `nth` time (from 0) in a firing of the program `running`; empty if it is not.
pub(super) fn look(
    replay_vm: &mut ReplayVm,
    running: usize,
    form: &Form,
    firing: &Firing<'_>,
    pc: Pc,
    nth: usize,
) -> Vec<(Reg, u64)> {
    let handle = replay_vm.programs.get(running).map(|(handle, _)| *handle);
    let Some(handle) = handle else {
        return Vec::new();
    };
    let places = form.places(pc);
    let places: Vec<_> = places
        .map(|(running, at)| (&*running.program.name, at))
        .collect();
    let mut context = firing.context.to_vec();
    context.resize(context.len().max(replay_vm.context_len(running)), 0);
    replay_vm.set_firing(firing);
    let mut watcher = Watcher {
        places: &places,
        left: nth,
        registers: None,
    };
    // A fault is part of the report already.
    let _ = replay_vm
        .vm
        .run_watched(handle, &Event::bytes(context), &mut watcher);
    let registers = watcher.registers.unwrap_or_default();
    let all = Reg::ALL.into_iter().zip(registers);
    all.collect()
}

struct Watcher<'a> {
    /// Names of programs, and the instruction in each.
    places: &'a [(&'a str, Pc)],
    left: usize,
    registers: Option<[u64; Reg::COUNT]>,
}

impl Watch for Watcher<'_> {
    fn before(&mut self, step: &Step<'_>) {
        let is_there =
            |(name, at): &(&str, Pc)| step.pc == *at && step.image.program().name == *name;
        if self.registers.is_some() || !self.places.iter().any(is_there) {
            return;
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.registers = step.frames.last().map(|frame| frame.regs),
        }
    }
}
