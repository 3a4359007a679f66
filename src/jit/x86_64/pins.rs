//! Host registers that a function's program does not use hold what its accesses need.

use smallvec::SmallVec;

use super::regs::{Host, SECOND, host};
use crate::isa::{AluOp, Operand, Reg, RegSet};
use crate::jit::loops::Loops;
use crate::lower::{Op, Place, Target, effect};

/// What is added to a register to get a host address, or is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pin {
    /// The delta of the packet.
    Packet,
    /// The host address of the context.
    Context,
    /// The delta of the values of a map.
    Map(u16),
}

/// What the spare registers of a function hold.
#[derive(Debug, Default)]
pub(super) struct Pins(SmallVec<[(Pin, Host); 4]>);

impl Pins {
    /// Which register holds it.
    pub(super) fn get(&self, pin: Pin) -> Option<Host> {
        self.0
            .iter()
            .find(|(p, _)| *p == pin)
            .map(|(_, host)| *host)
    }

    /// Whether a register holds one.
    pub(super) fn holds(&self, host: Host) -> bool {
        self.0.iter().any(|(_, pinned)| *pinned == host)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pin, Host)> + use<> {
        self.0.clone().into_iter()
    }

    /// The best use of the spare registers of a function.
    pub(super) fn of(survey: &Survey) -> Self {
        let mut wanted = survey.wanted.clone();
        wanted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let spare = survey.used.spare();
        // Once is as good without.
        let wanted = wanted.into_iter().filter(|(_, weight)| *weight > 1);
        let pins = wanted.zip(spare).map(|((pin, _), host)| (pin, host));
        Self(pins.collect())
    }
}

/// What a function uses.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub regs: RegSet,
    pub calls: bool,
    /// The second register for the code of one operation is needed for that.
    pub second: bool,
}

impl Used {
    /// Host registers that nobody uses.
    fn spare(&self) -> impl Iterator<Item = Host> {
        let (regs, calls) = (self.regs, self.calls);
        let kept = [Reg::R9, Reg::R8, Reg::R7, Reg::R6];
        // Calls don't leave these alone, and take arguments that nobody mentions.
        let lost = [Reg::R5, Reg::R4, Reg::R3, Reg::R2, Reg::R1];
        let lost = lost.into_iter().filter(move |_| !calls);
        let spare = kept.into_iter().chain(lost);
        let spare = spare.filter(move |reg| !regs.contains(*reg));
        let second = (!self.second && !calls).then_some(SECOND);
        spare.filter_map(host).chain(second)
    }
}

/// What a function uses, and what it would like to have in registers.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub used: Used,
    wanted: SmallVec<[(Pin, u32); 8]>,
}

/// How much more often a loop's operations are executed.
const LOOP: u32 = 8;
/// Loops in loops that count.
const DEPTH: u8 = 4;

impl Survey {
    pub(super) fn of(entry: Target, ops: &[Op], loops: &Loops) -> Self {
        let mut survey = Self::default();
        for (op, at) in ops.iter().zip(entry..) {
            survey.used.see(*op);
            if let Some(pin) = place_of(*op).and_then(pin_of) {
                survey.want(pin, LOOP.pow(loops.depth(at).min(DEPTH).into()));
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

fn pin_of(place: Place) -> Option<Pin> {
    match place {
        Place::Packet { .. } => Some(Pin::Packet),
        Place::Context { .. } => Some(Pin::Context),
        Place::MapValue { map, .. } => Some(Pin::Map(map)),
        Place::Stack { .. } | Place::Table { .. } | Place::Checked { .. } => None,
    }
}

/// Where an operation's access goes.
const fn place_of(op: Op) -> Option<Place> {
    match op {
        Op::Load { place, .. }
        | Op::LoadSx { place, .. }
        | Op::Store { place, .. }
        | Op::Atomic { place, .. } => Some(place),
        _ => None,
    }
}

impl Used {
    /// Notes what an operation uses.
    fn see(&mut self, op: Op) {
        let effect = effect(op);
        self.regs = self.regs.union(effect.reads).union(effect.writes);
        self.second |= needs_second(op);
        // Where the interpreter's step does it, it finds in the run what others left there.
        self.calls |= matches!(
            op,
            Op::CallHelper { .. } | Op::CallFunction { .. } | Op::TailCall | Op::Lookup { .. }
        );
    }
}

/// Whether the code of an operation may need the second spare register.
pub(super) const fn needs_second(op: Op) -> bool {
    match op {
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
        // What it needs is needed no longer then.
        | Op::Exit => false,
        Op::Load { place, .. } | Op::LoadSx { place, .. } => !is_direct(place),
        Op::Store { place, src, .. } => !is_direct(place) || is_frame_pointer(src),
        _ => true,
    }
}

pub(super) const fn is_frame_pointer(operand: Operand) -> bool {
    matches!(operand, Operand::Reg(Reg::R10))
}

/// Whether an access to this place has code that needs no second way.
pub(super) const fn is_direct(place: Place) -> bool {
    matches!(
        place,
        Place::Stack { .. } | Place::Context { .. } | Place::MapValue { .. } | Place::Packet { .. }
    )
}
