//! What the walk finds out about a function, beside what is known before.

use super::functions::SubprogramInfo;
use super::model::{InsnInfo, Structure};
use crate::isa::{CallTarget, Insn};
use crate::spec::helpers::id;
use crate::util::Pc;

/// The use of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of stack that it uses.
    pub stack_depth: u32,
    /// It is called back.
    pub is_cb: bool,
    /// It is called back after the program has ended.
    pub is_async_cb: bool,
    /// As [`SubprogramInfo::fastcall_stack_off`], until something else touches the
    /// stack below it.
    fastcall_stack_off: i16,
}

/// Bytes in which a loop of `bpf_loop` that is inlined keeps three registers.
const INLINED_LOOP_STACK: u32 = 24;
/// Bytes in which `may_goto` keeps its count and its time.
const MAY_GOTO_STACK: u32 = 16;

/// An offset that no access reaches below: the function's spills are ordinary.
const NO_PATTERN: i16 = i16::MIN;

impl Usage {
    /// Of a function that nothing was walked of.
    pub(crate) fn of(sub: &SubprogramInfo) -> Self {
        Self {
            stack_depth: 0,
            is_cb: sub.is_exception_cb,
            is_async_cb: sub.is_exception_cb,
            fastcall_stack_off: sub.fastcall_stack_off,
        }
    }

    /// Takes note of an access to the function's stack at `off` by the instruction of
    /// which `info` is known. If it reaches below the spills around calls and is none
    /// of them, they are ordinary spills (`check_fastcall_stack_contract`).
    pub(crate) fn touch_stack(&mut self, info: &InsnInfo, off: i32) {
        if i32::from(self.fastcall_stack_off) > off && !info.fastcall_pattern {
            self.fastcall_stack_off = NO_PATTERN;
        }
    }
}

impl Structure {
    /// Takes away from an accepted program's stack what was spilled only around calls
    /// that keep registers (`remove_fastcall_spills_fills`).
    pub(crate) fn final_stack_depths(&self, usage: &mut [Usage]) {
        for (sub, usage) in self.subprograms.iter().zip(usage) {
            let body = self.insns.get(sub.range()).unwrap_or_default();
            let removes = usage.fastcall_stack_off != NO_PATTERN
                && !sub.keep_fastcall_stack
                && body.iter().any(|info| info.fastcall_spills > 0);
            if removes {
                usage.stack_depth = u32::from(usage.fastcall_stack_off.unsigned_abs());
            }
        }
    }

    /// The bytes of stack that the statistics show for an accepted program. Code that
    /// was never walked is gone by then, functions with it, and rewritten instructions
    /// have taken stack that no limit is checked for (`opt_remove_dead_code`,
    /// `optimize_bpf_loop`, `do_misc_fixups`).
    ///
    /// `seen` says whether an instruction was walked, `plain_loop` whether a call of
    /// `bpf_loop` always had the same callback and no flags, so that it is inlined.
    pub(crate) fn reported_depths(
        &self,
        usage: &[Usage],
        seen: impl Fn(Pc) -> bool,
        plain_loop: impl Fn(Pc) -> bool,
    ) -> Vec<u32> {
        let is_loop = |pc| self.code.insn(pc) == Some(Insn::Call(CallTarget::Helper(id::r#loop)));
        let mut depths = Vec::with_capacity(usage.len());
        for (sub, usage) in self.subprograms.iter().zip(usage) {
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

    /// Whether the instruction is a `may_goto` that leads elsewhere than to what
    /// follows once dead code is gone.
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
