//! What the walk finds out about a function, beside what is known before.

use super::functions::SubprogramInfo;
use super::model::{InsnInfo, Structure};

/// The use of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of stack that it uses.
    pub stack_depth: u32,
    /// It is called back.
    pub is_cb: bool,
    /// It is called back after the program has ended.
    pub is_async_cb: bool,
    /// A `may_goto` that can jump farther than to the next instruction was walked.
    pub counts_loops: bool,
    /// A `bpf_loop` was walked always with the same callback and without flags, so
    /// that it becomes a loop of its own (`fit_for_inline`).
    pub inlines_loop: bool,
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
            counts_loops: false,
            inlines_loop: false,
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

    /// The bytes of stack that the statistics show for an accepted program: with those
    /// that rewritten instructions take (`optimize_bpf_loop`, `do_misc_fixups`), which
    /// no limit is checked for.
    pub(crate) fn reported_depth(&self) -> u32 {
        let mut depth = self.stack_depth;
        if self.inlines_loop {
            depth = depth.next_multiple_of(8) + INLINED_LOOP_STACK;
        }
        if self.counts_loops {
            depth += MAY_GOTO_STACK;
        }
        depth
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
}
