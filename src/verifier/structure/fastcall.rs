//! Spills and fills around `bpf_fastcall` calls (`mark_fastcall_patterns`,
//! `kernel/bpf/verifier.c`).
//!
//! Such a call preserves the caller-saved registers that it doesn't use. A compiler that
//! can't rely on this spills them around the call, at the lowest offsets of the function's
//! stack:
//!
//! ```text
//! *(u64 *)(r10 - 16) = r1
//! call get_smp_processor_id
//! r1 = *(u64 *)(r10 - 16)
//! ```
//!
//! If the helper preserves the registers, the kernel removes both instructions and their
//! stack slots.

use super::functions::SubprogramInfo;
use super::model::InsnInfo;
use super::raw;
use super::summary::{Callees, Summary};
use crate::isa::{RawInsn, Reg, RegSet};
use crate::program::Program;
use crate::util::Pc;

/// The size of a spilled register in bytes.
const SLOT: i16 = 8;

/// Marks the patterns of each function.
pub(super) fn mark(
    program: &Program,
    callees: &Callees<'_>,
    subprograms: &mut [SubprogramInfo],
    insns: &mut [InsnInfo],
) {
    let slots = &program.insns;
    for sub in subprograms {
        let body = slots.get(sub.range()).unwrap_or_default();
        let spills = body.iter().filter_map(|slot| raw::spill(*slot));
        let lowest = spills.map(|(_, off)| off).min().unwrap_or(0).min(0);
        for (pc, &slot) in (sub.start.0..).map(Pc).zip(body) {
            let callee = raw::callee(slot, pc);
            if let Some(summary) = callee.and_then(|callee| callees.summary(callee)) {
                mark_call(slots, sub, insns, pc, summary, lowest);
            }
        }
    }
}

/// Marks the pairs around the call at `pc`, the innermost at the offset `lowest`.
fn mark_call(
    slots: &[RawInsn],
    sub: &mut SubprogramInfo,
    insns: &mut [InsnInfo],
    pc: Pc,
    call: Summary,
    lowest: i16,
) {
    let used = RegSet::arguments(call.arguments);
    let used = if call.is_void {
        used
    } else {
        used.with(Reg::R0)
    };
    let mut kept = RegSet::CALLER_SAVED.minus(used);
    let mut off = lowest;
    let mut pairs: u8 = 0;
    for distance in 1..=6 {
        let (Some(before), after) = (pc.index().checked_sub(distance), pc.index() + distance)
        else {
            break;
        };
        let spill = slots.get(before).and_then(|slot| raw::spill(*slot));
        let fill = slots.get(after).and_then(|slot| raw::fill(*slot));
        let (Some(spill), Some(fill)) = (spill, fill) else {
            break;
        };
        // A jump into the pattern bypasses the spill.
        let is_target = |at: usize| insns.get(at).is_some_and(|info| info.jump_target);
        if is_target(before + 1) || is_target(after) {
            break;
        }
        let reg = Reg::from_number(spill.0).filter(|reg| kept.contains(*reg));
        let Some(reg) = reg.filter(|_| spill == fill && spill.1 == off) else {
            break;
        };
        kept = kept.minus(RegSet::of(&[reg]));
        for at in [before, after] {
            if let Some(info) = insns.get_mut(at) {
                info.fastcall_pattern = true;
            }
        }
        off = off.saturating_add(SLOT);
        pairs += 1;
    }
    if pairs == 0 {
        return;
    }
    // A pair around a clobbering call stays, but doesn't prevent the removal of others.
    if call.fastcall {
        if let Some(info) = insns.get_mut(pc.index()) {
            info.fastcall_spills = pairs;
        }
    } else {
        sub.keep_fastcall_stack = true;
    }
    sub.fastcall_stack_off = sub.fastcall_stack_off.min(off);
}
