//! Pins: values that accesses need, kept in host registers that the function does not use.

use smallvec::SmallVec;

use super::regs::{Host, SECOND, host};
use crate::isa::{AluOp, Operand, Reg, RegSet};
use crate::jit::loops::Loops;
use crate::lower::{Function, Lowered, MemRef, Op};

/// A delta that turns an address into a host address, or a host address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pin {
    /// The delta of the packet.
    Packet,
    /// The host address of the context.
    Context,
    /// The delta of the values of a map.
    Map(u16),
}

/// The pins in the spare registers of a function.
#[derive(Debug, Default)]
pub(super) struct Pins(SmallVec<[(Pin, Host); 4]>);

impl Pins {
    /// The register of a pin.
    pub(super) fn get(&self, pin: Pin) -> Option<Host> {
        self.0
            .iter()
            .find(|(p, _)| *p == pin)
            .map(|(_, host)| *host)
    }

    /// Whether a register holds a pin.
    pub(super) fn holds(&self, host: Host) -> bool {
        self.0.iter().any(|(_, pinned)| *pinned == host)
    }

    /// All pins with their registers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pin, Host)> + use<> {
        self.0.clone().into_iter()
    }

    /// Chooses the pins that save the most loads; `needs_second` says whether the second spare
    /// register is needed within operations.
    pub(super) fn of(survey: &Survey, needs_second: impl FnOnce() -> bool) -> Self {
        let mut wanted = survey.wanted.clone();
        wanted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        // A single use gains nothing.
        let wanted = wanted.into_iter().filter(|(_, weight)| *weight > 1);
        let mut wanted = wanted.map(|(pin, _)| pin).peekable();
        let mut pins = Self::default();
        for host in survey.used.spare() {
            pins.0.extend(wanted.next().map(|pin| (pin, host)));
        }
        // Most functions want no more, so that their operations need not be searched.
        if wanted.peek().is_some() && !survey.used.calls && !needs_second() {
            pins.0.extend(wanted.next().map(|pin| (pin, SECOND)));
        }
        pins
    }
}

/// What a function uses.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub regs: RegSet,
    pub calls: bool,
    pub tail_calls: bool,
    /// The number of loops left is needed.
    pub loops: bool,
}

impl Used {
    /// Unused host registers, without the spare ones.
    fn spare(&self) -> impl Iterator<Item = Host> {
        let (regs, calls) = (self.regs, self.calls);
        let kept = [Reg::R9, Reg::R8, Reg::R7, Reg::R6];
        // Calls clobber these, and use them for implicit arguments.
        let lost = [Reg::R5, Reg::R4, Reg::R3, Reg::R2, Reg::R1];
        let lost = lost.into_iter().filter(move |_| !calls);
        let spare = kept.into_iter().chain(lost);
        let spare = spare.filter(move |reg| !regs.contains(*reg));
        spare.filter_map(host)
    }
}

/// What a function uses, and the pins that its accesses need, with their weights.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub used: Used,
    wanted: SmallVec<[(Pin, u32); 8]>,
}

/// The assumed number of executions of a loop's operations.
const LOOP: u32 = 8;
/// The most nested loops that add weight.
const DEPTH: u8 = 4;

impl Survey {
    pub(super) fn of(function: &Function, lowered: &Lowered, loops: &Loops) -> Self {
        let mut survey = Self::default();
        let registers = lowered.registers_of(function);
        survey.used.regs = registers.reads.union(registers.writes);
        for (op, at) in lowered.ops_of(function).iter().zip(function.entry..) {
            match op {
                // The interpreter's step finds in the run what others left there.
                Op::CallHelper { .. }
                | Op::Throw { .. }
                | Op::CallFunction { .. }
                | Op::Lookup { .. } => survey.used.calls = true,
                Op::TailCall => (survey.used.calls, survey.used.tail_calls) = (true, true),
                Op::MayGoto { .. } => survey.used.loops = true,
                _ => {
                    if let Some(pin) = op.mem().and_then(pin_of) {
                        survey.want(pin, LOOP.pow(loops.depth(at).min(DEPTH).into()));
                    }
                }
            }
        }
        survey
    }

    fn want(&mut self, pin: Pin, weight: u32) {
        match self.wanted.iter_mut().find(|(p, _)| *p == pin) {
            Some((_, sum)) => *sum = sum.saturating_add(weight),
            None => self.wanted.push((pin, weight)),
        }
    }
}

fn pin_of(mem: MemRef) -> Option<Pin> {
    match mem {
        MemRef::Packet { .. } => Some(Pin::Packet),
        MemRef::Context { .. } => Some(Pin::Context),
        MemRef::MapValue { map, .. } => Some(Pin::Map(map)),
        MemRef::Stack { .. }
        | MemRef::Table { .. }
        | MemRef::Kernel { .. }
        | MemRef::Arena { .. }
        | MemRef::Checked { .. } => None,
    }
}

/// Whether the code of an operation may need the second spare register.
pub(super) const fn needs_second(op: &Op) -> bool {
    match *op {
        Op::Alu { op, src, .. } => {
            let divides = matches!(op, AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod);
            divides || is_frame_pointer(src)
        }
        Op::JumpIf { dst, src, .. } => {
            matches!(dst, Reg::R10) || is_frame_pointer(src)
        }
        Op::MovSx { .. }
        | Op::Neg { .. }
        | Op::Endian { .. }
        | Op::LoadImm { .. }
        | Op::Known { .. }
        | Op::LoadPointer { .. }
        | Op::Jump { .. }
        // At the exit, no pin is needed any more.
        | Op::Exit => false,
        Op::Load { mem, .. } | Op::LoadSx { mem, .. } => !is_direct(mem),
        Op::Store { mem, src, .. } => !is_direct(mem) || is_frame_pointer(src),
        _ => true,
    }
}

pub(super) const fn is_frame_pointer(operand: Operand) -> bool {
    matches!(operand, Operand::Reg(Reg::R10))
}

/// Whether the code of an access needs no stub for a checked access.
pub(super) const fn is_direct(mem: MemRef) -> bool {
    matches!(
        mem,
        MemRef::Stack { .. }
            | MemRef::Context { .. }
            | MemRef::MapValue { .. }
            | MemRef::Packet { .. }
    )
}
