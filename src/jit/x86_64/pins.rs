//! Host registers that a function's program does not use hold what its accesses need.

use smallvec::SmallVec;

use super::emitter::Emitter;
use super::regs::{Host, host};
use crate::isa::{Operand, Reg, RegSet};
use crate::jit::loops::Loops;
use crate::lower::{Function, Op, Place, Target};

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

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pin, Host)> + use<> {
        self.0.clone().into_iter()
    }

    /// The best use of the spare registers of a function.
    fn of(survey: &Survey) -> Self {
        let mut wanted = survey.wanted.clone();
        wanted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let spare = survey.used.spare();
        // Once is as good without.
        let wanted = wanted.into_iter().filter(|(_, weight)| *weight > 1);
        let pins = wanted.zip(spare).map(|((pin, _), host)| (pin, host));
        Self(pins.collect())
    }
}

impl Emitter<'_> {
    /// Looks at a function that is to be emitted next: what its spare registers are to
    /// hold, which registers it changes that it has to keep.
    pub(super) fn survey(&mut self, function: &Function, loops: &Loops) {
        let ops = self.lowered.ops_of(function);
        let survey = Survey::of(function.entry, ops, loops);
        self.pins = Pins::of(&survey);
        self.calls = survey.used.calls;
        let is_pin = |host: &Host| self.pins.iter().any(|(_, pin)| pin == *host);
        let kept = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
        let used = |reg: &Reg| survey.used.regs.contains(*reg);
        let hosts = kept.into_iter().filter_map(|reg| Some((reg, host(reg)?)));
        let changed = hosts.filter(|(reg, host)| used(reg) || is_pin(host));
        self.changed = changed.map(|(_, host)| host).collect();
    }
}

/// What a function uses.
#[derive(Debug, Default)]
struct Used {
    regs: RegSet,
    calls: bool,
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
        spare.filter_map(host)
    }
}

/// What a function uses, and what it would like to have in registers.
#[derive(Debug, Default)]
struct Survey {
    used: Used,
    wanted: SmallVec<[(Pin, u32); 8]>,
}

/// How much more often a loop's operations are executed.
const LOOP: u32 = 8;
/// Loops in loops that count.
const DEPTH: u8 = 4;

impl Survey {
    fn of(entry: Target, ops: &[Op], loops: &Loops) -> Self {
        let mut survey = Self::default();
        for (op, at) in ops.iter().zip(entry..) {
            survey.used.see(op);
            if let Some(pin) = place_of(op).and_then(pin_of) {
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
const fn place_of(op: &Op) -> Option<Place> {
    match op {
        Op::Load { place, .. }
        | Op::LoadSx { place, .. }
        | Op::Store { place, .. }
        | Op::Atomic { place, .. } => Some(*place),
        _ => None,
    }
}

impl Used {
    fn reg(&mut self, reg: Reg) {
        self.regs = self.regs.with(reg);
    }

    fn arguments(&mut self) {
        self.regs = self.regs.union(RegSet::CALLER_SAVED);
    }

    fn operand(&mut self, operand: Operand) {
        if let Operand::Reg(reg) = operand {
            self.reg(reg);
        }
    }

    fn place(&mut self, place: Place) {
        match place {
            Place::Stack { .. } | Place::Context { .. } => {}
            Place::MapValue { base, .. }
            | Place::Packet { base, .. }
            | Place::Table { base, .. }
            | Place::Checked { base, .. } => self.reg(base),
        }
    }

    /// Notes what an operation uses.
    fn see(&mut self, op: &Op) {
        match *op {
            Op::Alu { dst, src, .. } => {
                self.reg(dst);
                self.operand(src);
            }
            Op::MovSx { dst, src, .. } => {
                self.reg(dst);
                self.reg(src);
            }
            Op::Neg { dst, .. } | Op::Endian { dst, .. } | Op::LoadImm { dst, .. } => self.reg(dst),
            Op::Load { dst, place, .. } | Op::LoadSx { dst, place, .. } => {
                self.reg(dst);
                self.place(place);
            }
            Op::Store { place, src, .. } => {
                self.place(place);
                self.operand(src);
            }
            Op::Atomic { place, src, .. } => {
                self.place(place);
                self.reg(src);
                self.reg(Reg::R0);
            }
            Op::LoadPointer { dst, .. } => self.reg(dst),
            Op::JumpIf { dst, src, .. } => {
                self.reg(dst);
                self.operand(src);
            }
            // The interpreter's step leaves alone in the run what nobody mentions.
            Op::Jump { .. } | Op::MayGoto { .. } => {}
            Op::Exit => self.reg(Reg::R0),
            Op::LoadPacket { .. } | Op::TailCall => self.arguments(),
            Op::Lookup { key, .. } => {
                self.place(key);
                self.reg(Reg::R0);
                self.calls = true;
            }
            Op::Known { .. } => self.reg(Reg::R0),
            Op::CallHelper { .. } | Op::CallFunction { .. } => self.calls = true,
        }
    }
}
