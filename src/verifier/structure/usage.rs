//! The results of exploration for each function.

use super::functions::SubprogramInfo;
use super::model::{InsnInfo, Structure};
use crate::isa::{CallTarget, Insn};
use crate::spec::helpers::id;
use crate::util::Pc;

/// The results of exploration for a function.
#[derive(Debug)]
struct FunctionUsage {
    /// The size of its stack in bytes.
    stack_depth: u32,
    /// Whether it is a callback.
    is_cb: bool,
    /// Whether it is an asynchronous callback.
    is_async_cb: bool,
    /// Like [`SubprogramInfo::fastcall_stack_off`], until another instruction accesses the
    /// stack below it.
    fastcall_stack_off: i16,
}

/// The results of exploration for each function.
#[derive(Debug)]
pub(crate) struct Usage {
    functions: Vec<FunctionUsage>,
}

/// The bytes in which an inlined `bpf_loop` saves three registers.
const INLINED_LOOP_STACK: u32 = 24;
/// The bytes in which `may_goto` stores its counter and its timestamp.
const MAY_GOTO_STACK: u32 = 16;

/// An offset below all accesses: the function's spills are ordinary.
const NO_PATTERN: i16 = i16::MIN;

impl Usage {
    /// For functions that are not explored yet.
    pub(crate) fn new(structure: &Structure) -> Self {
        let of = |sub: &SubprogramInfo| FunctionUsage {
            stack_depth: 0,
            is_cb: sub.is_exception_cb,
            is_async_cb: sub.is_exception_cb,
            fastcall_stack_off: sub.fastcall_stack_off,
        };
        Self {
            functions: structure.subprograms.iter().map(of).collect(),
        }
    }

    /// Records that a function uses `depth` bytes of its stack.
    pub(crate) fn grow_stack(&mut self, function: u32, depth: u32) {
        if let Some(usage) = self.functions.get_mut(function as usize) {
            usage.stack_depth = depth.max(usage.stack_depth);
        }
    }

    /// Records an access to a function's stack at `off` by the instruction with
    /// properties `info`. An access below `fastcall_stack_off` that is not part of the
    /// pattern makes all spills ordinary (`check_fastcall_stack_contract`).
    pub(crate) fn touch_stack(&mut self, function: u32, info: &InsnInfo, off: i32) {
        if let Some(usage) = self.functions.get_mut(function as usize)
            && i32::from(usage.fastcall_stack_off) > off
            && !info.fastcall_pattern
        {
            usage.fastcall_stack_off = NO_PATTERN;
        }
    }

    /// Records that a function is a callback.
    pub(crate) fn call_back(&mut self, function: u32) {
        if let Some(usage) = self.functions.get_mut(function as usize) {
            usage.is_cb = true;
        }
    }

    /// Records that a function is an asynchronous callback.
    pub(crate) fn call_later(&mut self, function: u32) {
        if let Some(usage) = self.functions.get_mut(function as usize) {
            usage.is_cb = true;
            usage.is_async_cb = true;
        }
    }

    /// The stack depth of each function.
    pub(crate) fn stack_depths(&self) -> impl Iterator<Item = u32> {
        self.functions.iter().map(|usage| usage.stack_depth)
    }

    /// The stack depth of a function.
    pub(super) fn stack_depth(&self, function: usize) -> u32 {
        let usage = self.functions.get(function);
        usage.map_or(0, |usage| usage.stack_depth)
    }

    /// Whether a function is a callback.
    pub(super) fn is_cb(&self, function: usize) -> bool {
        let usage = self.functions.get(function);
        usage.is_some_and(|usage| usage.is_cb)
    }

    /// Whether a function is an asynchronous callback.
    pub(super) fn is_async_cb(&self, function: usize) -> bool {
        let usage = self.functions.get(function);
        usage.is_some_and(|usage| usage.is_async_cb)
    }
}

impl Structure {
    /// Subtracts the removable `bpf_fastcall` spills from an accepted program's stack sizes
    /// (`remove_fastcall_spills_fills`).
    pub(crate) fn final_stack_depths(&self, usage: &mut Usage) {
        for (sub, usage) in self.subprograms.iter().zip(&mut usage.functions) {
            let body = self.insns.get(sub.range()).unwrap_or_default();
            let removes = usage.fastcall_stack_off != NO_PATTERN
                && !sub.keep_fastcall_stack
                && body.iter().any(|info| info.fastcall_spills > 0);
            if removes {
                usage.stack_depth = u32::from(usage.fastcall_stack_off.unsigned_abs());
            }
        }
    }

    /// The stack depths that the statistics show for an accepted program. Dead code is
    /// removed by then, and rewritten instructions have added stack that is not checked
    /// against a limit (`opt_remove_dead_code`, `optimize_bpf_loop`, `do_misc_fixups`).
    ///
    /// `seen` says whether an instruction was explored, `plain_loop` whether a call of
    /// `bpf_loop` always has the same callback and no flags, so that it is inlined.
    pub(crate) fn reported_depths(
        &self,
        usage: &Usage,
        seen: impl Fn(Pc) -> bool,
        plain_loop: impl Fn(Pc) -> bool,
    ) -> Vec<u32> {
        let is_loop = |pc| self.code.insn(pc) == Some(Insn::Call(CallTarget::Helper(id::r#loop)));
        let mut depths = Vec::with_capacity(usage.functions.len());
        for (sub, usage) in self.subprograms.iter().zip(&usage.functions) {
            let slots = || sub.range().map(Pc::from_index);
            if !slots().any(&seen) {
                continue;
            }
            let mut depth = usage.stack_depth;
            if slots().any(|pc| is_loop(pc) && seen(pc) && plain_loop(pc)) {
                depth = depth.next_multiple_of(8) + INLINED_LOOP_STACK;
            }
            if slots().any(|pc| seen(pc) && self.counts_loops(pc, &seen)) {
                depth += MAY_GOTO_STACK;
            }
            depths.push(depth);
        }
        depths
    }

    /// Whether the instruction is a `may_goto` that doesn't jump to the next instruction
    /// once dead code is removed.
    fn counts_loops(&self, pc: Pc, seen: impl Fn(Pc) -> bool) -> bool {
        match self.code.insn(pc) {
            Some(Insn::MayGoto { off }) => match u32::try_from(off) {
                Ok(off) => (1..=off).any(|step| seen(Pc(pc.0 + step))),
                Err(_) => true,
            },
            _ => false,
        }
    }
}
