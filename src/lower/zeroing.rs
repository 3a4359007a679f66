//! Which bytes of a frame must be zero when its function starts.
//!
//! In the checked interpreter the whole frame is zero at the start. Here only those bytes
//! are zeroed that some path may read before it has written them. If a pointer to the frame
//! escapes the analysis, all of the frame may be read.

use std::convert::Infallible;

use super::effect::writes;
use super::flow::solve;
use super::lowered::{Helper, Keys, Lowered};
use super::op::{MemRef, Op, Target, has_tail_call};
use crate::analysis::{Meeting, Problem, Solver};
use crate::isa::{AluOp, Operand, Reg, Width};
use crate::program::MapDef;
use crate::spec::call::{ArgSpec, Extent};
use crate::spec::helpers::Effects;
use crate::spec::limits::STACK_SIZE;
use crate::verifier::Verified;

/// The most operations that a program may have for this analysis, and the size up to which
/// a frame is zeroed as a whole instead.
const MOST_OPS: usize = 512;
const FEW_BYTES: u16 = 32;

/// Computes for each function which bytes must be zeroed.
pub(super) fn zeroing(program: &mut Lowered, verified: &Verified) {
    let gains = program
        .functions
        .iter()
        .any(|function| function.stack > FEW_BYTES);
    // The target of a tail call may read what the frame held before.
    if !gains || program.ops.len() > MOST_OPS || has_tail_call(&program.ops) {
        return;
    }
    let mut finder = Finder {
        program,
        verified,
        needs: vec![Some(Bytes::NONE); program.functions.len()],
    };
    let Ok(()) = solve(program, &mut finder, &State::at_entry());
    let needs = finder.needs;
    for (function, needs) in program.functions.iter_mut().zip(needs) {
        if let Some(needs) = needs {
            function.zeroed = needs.ranges(function.stack);
        }
    }
}

/// A set of bytes of a frame, one bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bytes([u64; STACK_SIZE / 64]);

impl Bytes {
    const NONE: Self = Self([0; STACK_SIZE / 64]);

    /// `len` bytes from `off`, which is negative, clipped to the frame.
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

    /// The set as ranges of whole words, see [`Function::zeroed`](super::Function::zeroed),
    /// limited to the upper `stack` bytes.
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

/// A register's value, as far as this analysis needs it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// No pointer to the frame.
    Other,
    /// No pointer to the frame, but this number.
    Constant(u32),
    /// The frame pointer plus this many bytes.
    Frame(i32),
    /// A pointer to the frame on some paths, and another offset or no such pointer on
    /// others.
    Mixed,
}

#[derive(Clone)]
struct State {
    regs: [Value; Reg::COUNT],
    /// The bytes written on all paths.
    written: Bytes,
}

impl State {
    /// At the start of a function.
    fn at_entry() -> Self {
        let mut regs = [Value::Other; Reg::COUNT];
        regs[Reg::FP.index()] = Value::Frame(0);
        Self {
            regs,
            written: Bytes::NONE,
        }
    }
}

struct Finder<'a> {
    program: &'a Lowered,
    verified: &'a Verified,
    /// For each function the bytes that it may read before it has written them; none if a
    /// pointer escapes the analysis.
    needs: Vec<Option<Bytes>>,
}

impl Finder<'_> {
    fn needs(&mut self, at: Target) -> Option<&mut Option<Bytes>> {
        let functions = &self.program.functions;
        let after = functions.partition_point(|function| function.entry <= at);
        self.needs.get_mut(after.checked_sub(1)?)
    }

    /// Applies a read of bytes.
    fn read(&mut self, at: Target, state: &State, bytes: Bytes) {
        let missing = bytes.without(state.written);
        if let Some(Some(needs)) = self.needs(at) {
            *needs = needs.with(missing);
        }
    }

    /// A pointer to the frame escapes the analysis.
    fn lose(&mut self, at: Target) {
        if let Some(needs) = self.needs(at) {
            *needs = None;
        }
    }

    /// A register is used in a way that is not tracked.
    fn escapes(&mut self, at: Target, value: Value) {
        if matches!(value, Value::Frame(_) | Value::Mixed) {
            self.lose(at);
        }
    }

    /// Applies an access that reads `reads` bytes, if any, and lets its base register be
    /// used.
    fn access(&mut self, state: &State, at: Target, mem: MemRef, reads: Option<u8>) {
        match (mem, reads) {
            (MemRef::Stack { off }, Some(size)) => {
                self.read(at, state, Bytes::of(off.into(), size.into()));
            }
            _ => {
                if let Some(base) = mem.base() {
                    self.escapes(at, state.regs[base.index()]);
                }
            }
        }
    }

    /// Applies a helper call.
    fn call(&mut self, state: &State, at: Target, helper: u16) {
        let helper = self.program.helpers.get(usize::from(helper));
        let Some(helper) = helper.and_then(Helper::spec) else {
            let args = Reg::ARGUMENTS.map(|reg| state.regs[reg.index()]);
            return args.into_iter().for_each(|arg| self.escapes(at, arg));
        };
        let map = self.verified.map_of_call(self.program.pc(at));
        let map = map.and_then(|map| self.program.program.map(map)).cloned();
        let calls_back = helper.effects.intersects(Effects::CALLS_BACK);
        for prototype in helper.prototypes {
            for (n, (arg, reg)) in prototype.arguments.iter().zip(Reg::ARGUMENTS).enumerate() {
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

/// The most bytes that a helper reads through an argument, whose next argument is `next`.
fn read_by(arg: &ArgSpec, map: Option<&MapDef>, next: Option<Value>) -> u32 {
    let Some(region) = arg.region() else {
        return u32::MAX;
    };
    match (region.extent, map, next) {
        _ if region.uninit => 0,
        (Extent::Bytes(size), ..) | (Extent::Next, _, Some(Value::Constant(size))) => size,
        (Extent::Key, Some(map), _) => map.key_size,
        (Extent::Value, Some(map), _) => map.value_size,
        _ => u32::MAX,
    }
}

impl Problem for Finder<'_> {
    type State = State;
    type Stop = Infallible;

    fn join(&self, known: &mut State, other: &State, _: Meeting) -> bool {
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

    fn step(
        &mut self,
        _: &mut Solver<'_, State>,
        state: &mut State,
        at: Target,
    ) -> Result<bool, Infallible> {
        let Some(&op) = self.program.ops.get(at as usize) else {
            return Ok(false);
        };
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
            Op::Cast { src, .. } => self.escapes(at, state.regs[src.index()]),
            Op::Load { size, mem, .. } => self.access(state, at, mem, Some(size.bytes())),
            Op::LoadSx { from, mem, .. } => {
                self.access(state, at, mem, Some(from.size().bytes()));
            }
            Op::Store { size, mem, src, .. } => {
                self.escapes(at, of(src));
                self.access(state, at, mem, None);
                if let MemRef::Stack { off } = mem {
                    let bytes = Bytes::of(off.into(), size.bytes().into());
                    state.written = state.written.with(bytes);
                }
            }
            Op::Atomic {
                width, mem, src, ..
            } => {
                self.escapes(at, state.regs[src.index()]);
                self.access(state, at, mem, Some(width.size().bytes()));
            }
            Op::Lookup { map, key, .. } => {
                let map = self.program.maps.get(usize::from(map));
                let size = map.map_or(u32::MAX, |map| match map.keys {
                    Keys::Other { size } => size,
                    Keys::Index { .. } | Keys::PerCpuIndex { .. } => 4,
                });
                let off = match (key, key.base().map(|base| state.regs[base.index()])) {
                    (MemRef::Stack { off }, _) => Some(i32::from(off)),
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
            // Comparing addresses reads no memory.
            Op::JumpIf { .. }
            | Op::Jump { .. }
            | Op::MayGoto { .. }
            | Op::LoadImm { .. }
            | Op::LoadPointer { .. }
            | Op::LoadPacket { .. }
            | Op::Known { .. }
            | Op::TailCall
            | Op::Throw { .. }
            | Op::Exit => {}
        }
        for reg in writes(op).iter() {
            state.regs[reg.index()] = result;
        }
        Ok(true)
    }
}
