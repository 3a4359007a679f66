//! Which bytes of a frame have to be zero when its function starts.
//!
//! In the checked interpreter a frame is zero at its start. Here only those bytes are
//! that some path may read before it has written them: what is in the others is seen by
//! nobody. Where a pointer to the frame goes out of sight, all of it may be read.

use super::effect::writes;
use super::flow::{Domain, walk};
use super::lowered::{Keys, Lowered};
use super::op::{Op, Place, Target};
use crate::isa::{AluOp, Operand, Reg, Width};
use crate::program::MapDef;
use crate::spec::helpers::{self, Arg, ArgKind, Effects, TypeFlags};
use crate::spec::limits::STACK_SIZE;
use crate::verifier::Verified;

/// The most operations that a program may have for this, and the most bytes of a frame
/// that are made zero sooner than it is known which.
const MOST_OPS: usize = 512;
const FEW_BYTES: u16 = 32;

/// Says for each function what has to be zero.
pub(super) fn zeroing(program: &mut Lowered, verified: &Verified) {
    // Whoever a tail call leads to may read what the frame held before.
    let has_tail_calls = program.ops.contains(&Op::TailCall);
    let gains = program
        .functions
        .iter()
        .any(|function| function.stack > FEW_BYTES);
    if !gains || has_tail_calls || program.ops.len() > MOST_OPS {
        return;
    }
    let mut finder = Finder {
        program,
        verified,
        needs: vec![Some(Bytes::NONE); program.functions.len()],
    };
    walk(&mut finder, &program.ops, &program.functions);
    let needs = finder.needs;
    for (function, needs) in program.functions.iter_mut().zip(needs) {
        if let Some(needs) = needs {
            function.zeroed = needs.ranges(function.stack);
        }
    }
}

/// Some bytes of a frame, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bytes([u64; STACK_SIZE / 64]);

impl Bytes {
    const NONE: Self = Self([0; STACK_SIZE / 64]);

    /// `len` bytes from `off`, which is below zero, as far as they are of the frame.
    fn of(off: i32, len: u32) -> Self {
        let size = i32::try_from(STACK_SIZE).unwrap_or(0);
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        let (from, to) = (off.max(-size), off.saturating_add(len).min(0));
        let mut bytes = Self::NONE;
        for at in from..to {
            let at = usize::try_from(at + size).unwrap_or(0);
            if let Some(word) = bytes.0.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
        }
        bytes
    }

    fn with(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// As ranges of whole words, see [`Function::zeroed`](super::Function::zeroed), none
    /// of them further down than `stack`.
    fn ranges(self, stack: u16) -> Box<[(u16, u16)]> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        let words = self.0.iter().flat_map(|bytes| bytes.to_le_bytes());
        let size = u16::try_from(STACK_SIZE).unwrap_or(0);
        for (bits, below) in words.zip((8..=size).rev().step_by(8)) {
            if bits == 0 || below > stack {
                continue;
            }
            match ranges.last_mut() {
                Some((_, end)) if *end == below => *end = below - 8,
                _ => ranges.push((below, below - 8)),
            }
        }
        ranges.into()
    }
}

/// What a register holds, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// No pointer to the frame.
    Other,
    /// No pointer to the frame, but this number.
    Constant(u32),
    /// The frame pointer and so many bytes.
    Frame(i32),
    /// A pointer to the frame on some ways here, and on others one to another place in
    /// it, or none.
    Mixed,
}

#[derive(Clone)]
struct State {
    regs: [Value; Reg::COUNT],
    /// What was surely written.
    written: Bytes,
}

struct Finder<'a> {
    program: &'a Lowered,
    verified: &'a Verified,
    /// For each function what it may read before it has written it; none where a
    /// pointer went out of sight.
    needs: Vec<Option<Bytes>>,
}

impl Finder<'_> {
    fn needs(&mut self, at: Target) -> Option<&mut Option<Bytes>> {
        let functions = &self.program.functions;
        let after = functions.partition_point(|function| function.entry <= at);
        self.needs.get_mut(after.checked_sub(1)?)
    }

    /// Bytes are read.
    fn read(&mut self, at: Target, state: &State, bytes: Bytes) {
        let missing = bytes.without(state.written);
        if let Some(Some(needs)) = self.needs(at) {
            *needs = needs.with(missing);
        }
    }

    /// A pointer to the frame goes out of sight.
    fn lose(&mut self, at: Target) {
        if let Some(needs) = self.needs(at) {
            *needs = None;
        }
    }

    /// A register is used in a way that is not followed.
    fn escapes(&mut self, at: Target, value: Value) {
        if matches!(value, Value::Frame(_) | Value::Mixed) {
            self.lose(at);
        }
    }

    /// An access reads, if it does, and goes through a register, if it does.
    fn access(&mut self, state: &State, at: Target, place: Place, reads: Option<u8>) {
        match (place, reads) {
            (Place::Stack { off }, Some(size)) => {
                self.read(at, state, Bytes::of(off.into(), size.into()));
            }
            _ => {
                if let Some(base) = place.base() {
                    self.escapes(at, state.regs[base.index()]);
                }
            }
        }
    }

    /// A helper is called.
    fn call(&mut self, state: &State, at: Target, helper: u16) {
        let helper = self.program.helpers.get(usize::from(helper));
        let helper = helper.and_then(|helper| helpers::helper(helper.id));
        let Some(helper) = helper else {
            return self.lose(at);
        };
        let map = self.verified.map_of_call(self.program.pc(at));
        let map = map.and_then(|map| self.program.program.map(map)).cloned();
        let calls_back = helper.effects.intersects(Effects::CALLS_BACK);
        for prototype in helper.prototypes {
            for (n, (arg, reg)) in prototype.args.iter().zip(Reg::ARGUMENTS).enumerate() {
                match state.regs[reg.index()] {
                    Value::Other | Value::Constant(_) => {}
                    Value::Frame(off) if !calls_back => {
                        let size = Reg::ARGUMENTS.get(n + 1).map(|reg| state.regs[reg.index()]);
                        let len = read_by(arg, map.as_ref(), size);
                        self.read(at, state, Bytes::of(off, len));
                    }
                    Value::Frame(_) | Value::Mixed => self.lose(at),
                }
            }
        }
    }
}

/// How many bytes a helper reads at most where an argument points to, the next argument
/// being this.
fn read_by(arg: &Arg, map: Option<&MapDef>, next: Option<Value>) -> u32 {
    let is_output = arg.flags.contains(TypeFlags::MEM_UNINIT);
    match (arg.kind, map, next) {
        (ArgKind::PtrToMem | ArgKind::PtrToMapValue, ..) if is_output => 0,
        (ArgKind::PtrToMapKey, Some(map), _) => map.key_size,
        (ArgKind::PtrToMapValue, Some(map), _) => map.value_size,
        (ArgKind::PtrToMem, _, Some(Value::Constant(size))) => size,
        _ => u32::MAX,
    }
}

impl Domain for Finder<'_> {
    type State = State;

    fn at_entry(&self) -> State {
        let mut regs = [Value::Other; Reg::COUNT];
        regs[Reg::FP.index()] = Value::Frame(0);
        State {
            regs,
            written: Bytes::NONE,
        }
    }

    fn join(&self, known: &mut State, other: &State) -> bool {
        let both = known.written.and(other.written);
        let mut is_less = both != known.written;
        known.written = both;
        for (mine, theirs) in known.regs.iter_mut().zip(other.regs) {
            let joined = match (*mine, theirs) {
                (a, b) if a == b => a,
                (Value::Other | Value::Constant(_), Value::Other | Value::Constant(_)) => {
                    Value::Other
                }
                _ => Value::Mixed,
            };
            is_less |= joined != *mine;
            *mine = joined;
        }
        is_less
    }

    fn step(&mut self, state: &mut State, at: Target, op: Op) {
        let of = |operand: Operand| match operand {
            Operand::Reg(reg) => state.regs[reg.index()],
            Operand::Imm(imm) => u32::try_from(imm).map_or(Value::Other, Value::Constant),
        };
        let mut result = Value::Other;
        match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let (x, y) = (state.regs[dst.index()], of(src));
                let by = src.imm().filter(|_| width == Width::W64);
                match (op, x, by) {
                    (AluOp::Mov, _, _) if width == Width::W64 => result = y,
                    (AluOp::Mov, _, _) => {
                        self.escapes(at, y);
                        result = y;
                    }
                    (AluOp::Add, Value::Frame(off), Some(by)) => {
                        result = off.checked_add(by).map_or(Value::Mixed, Value::Frame);
                    }
                    (AluOp::Sub, Value::Frame(off), Some(by)) => {
                        result = off.checked_sub(by).map_or(Value::Mixed, Value::Frame);
                    }
                    _ => {
                        self.escapes(at, x);
                        self.escapes(at, y);
                    }
                }
            }
            Op::MovSx { src, .. } => self.escapes(at, state.regs[src.index()]),
            Op::Neg { dst, .. } | Op::Endian { dst, .. } => {
                self.escapes(at, state.regs[dst.index()]);
            }
            Op::Load { size, place, .. } => self.access(state, at, place, Some(size.bytes())),
            Op::LoadSx { from, place, .. } => {
                self.access(state, at, place, Some(from.size().bytes()));
            }
            Op::Store {
                size, place, src, ..
            } => {
                self.escapes(at, of(src));
                self.access(state, at, place, None);
                if let Place::Stack { off } = place {
                    let bytes = Bytes::of(off.into(), size.bytes().into());
                    state.written = state.written.with(bytes);
                }
            }
            Op::Atomic {
                width, place, src, ..
            } => {
                self.escapes(at, state.regs[src.index()]);
                self.access(state, at, place, Some(width.size().bytes()));
            }
            Op::Lookup { map, key, .. } => {
                let map = self.program.maps.get(usize::from(map));
                let size = map.map_or(u32::MAX, |map| match map.keys {
                    Keys::Other { size } => size,
                    Keys::Index { .. } | Keys::PerCpuIndex { .. } => 4,
                });
                let off = match (key, key.base().map(|base| state.regs[base.index()])) {
                    (Place::Stack { off }, _) => Some(i32::from(off)),
                    (_, Some(Value::Frame(off))) => Some(off),
                    (_, Some(Value::Mixed)) => {
                        self.lose(at);
                        None
                    }
                    _ => None,
                };
                if let Some(off) = off {
                    self.read(at, state, Bytes::of(off, size));
                }
            }
            Op::CallHelper { helper } => self.call(state, at, helper),
            Op::CallFunction { .. } => {
                for reg in Reg::ARGUMENTS {
                    self.escapes(at, state.regs[reg.index()]);
                }
            }
            // Addresses may be compared, and are what they are.
            Op::JumpIf { .. }
            | Op::Jump { .. }
            | Op::MayGoto { .. }
            | Op::LoadImm { .. }
            | Op::LoadPointer { .. }
            | Op::LoadPacket { .. }
            | Op::Known { .. }
            | Op::TailCall
            | Op::Exit => {}
        }
        for reg in writes(op).iter() {
            state.regs[reg.index()] = result;
        }
    }
}
