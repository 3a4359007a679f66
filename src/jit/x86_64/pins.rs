//! Host registers that a function's program does not use hold what its accesses need.

use smallvec::SmallVec;

use super::emitter::Emitter;
use super::fused::is_direct;
use super::regs::{Host, SECOND, host};
use crate::interp::POINTERS;
use crate::isa::{AluOp, Operand, Reg, RegSet};
use crate::jit::loops::Loops;
use crate::lower::{Branch, Function, Fused, Op, Place, Target, effect};

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
    pub(super) fn survey(&mut self, function: &Function) {
        let ops = self.lowered.ops_of(function);
        let mut survey = Survey::of(function.entry, ops, &self.loops);
        // Pointers that are not at hand are a matter of calls.
        let pointers = &self.lowered.context().pointers;
        let at_hand = pointers.len() <= POINTERS && pointers.iter().all(|field| !field.2);
        survey.used.second |= !at_hand;
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
    /// The second register for the code of one operation is needed for that.
    second: bool,
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
const fn needs_second(op: Op) -> bool {
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

const fn is_frame_pointer(operand: Operand) -> bool {
    matches!(operand, Operand::Reg(Reg::R10))
}

impl Emitter<'_> {
    /// Whether the code of an operation leaves the first spare register alone, or has
    /// noted what it holds.
    pub(super) fn keeps(&self, op: Op) -> bool {
        match op {
            Op::Alu { op, src, .. } => self.alu_keeps(op, src),
            Op::MovSx { src, .. } => src != Reg::R10,
            Op::Load { .. } | Op::LoadSx { .. } | Op::Store { .. } | Op::JumpIf { .. } => {
                !needs_second(op)
            }
            Op::Neg { .. }
            | Op::Endian { .. }
            | Op::LoadImm { .. }
            | Op::Known { .. }
            | Op::Jump { .. } => true,
            _ => false,
        }
    }

    fn alu_keeps(&self, op: AluOp, src: Operand) -> bool {
        match (op, src) {
            (AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod, _) => false,
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Reg(_)) => {
                self.features.bmi2 && !is_frame_pointer(src)
            }
            _ => !is_frame_pointer(src),
        }
    }

    /// The same of several operations as one.
    pub(super) fn fused_keeps(&self, fused: Fused) -> bool {
        match fused {
            Fused::Alu {
                op, left, right, ..
            } => left != Reg::R10 && self.alu_keeps(op, right),
            Fused::Rotate { src, .. } | Fused::Extract { src, .. } | Fused::Bits { src, .. } => {
                src != Reg::R10
            }
            Fused::ShiftAdd { base, index, .. } => base != Reg::R10 && index != Reg::R10,
            Fused::LoadIndexed { .. }
            | Fused::LoadAlu { .. }
            | Fused::Update { .. }
            | Fused::Copy { .. } => true,
            Fused::Branch(branch) | Fused::LoadBranch { branch, .. } => branch_keeps(&branch),
            Fused::AluBranch {
                copy,
                op,
                src,
                branch,
                ..
            } => {
                let copies_frame = copy.is_some_and(|(_, from)| from == Reg::R10);
                !copies_frame && self.alu_keeps(op, src) && branch_keeps(&branch)
            }
            Fused::Select { .. } => false,
        }
    }
}

fn branch_keeps(branch: &Branch) -> bool {
    branch.left != Reg::R10 && !is_frame_pointer(branch.right)
}
