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
    /// As [`SubprogramInfo::fastcall_stack_off`], until something else touches the
    /// stack below it.
    fastcall_stack_off: i16,
}

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
    /// The bytes of stack of each function once the spills around calls that keep
    /// registers are gone (`remove_fastcall_spills_fills`).
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
