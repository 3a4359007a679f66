//! Finds operations that may be executed as one.
//!
//! | file | what |
//! |---|---|
//! | `fused` | the fused operations, and their rules |
//! | `live` | which registers are live |
//! | `window` | consecutive operations that nothing jumps into, and what is dead after them |
//! | `arithmetic` | moves, shifts and other arithmetic |
//! | `access` | loads and the operations on the loaded number |
//! | `branch` | operations that end in a branch |

mod access;
mod arithmetic;
mod branch;
pub(super) mod fused;
mod live;
#[cfg(test)]
mod tests;
mod window;

pub use fused::{Branch, Fused, SelectValue};

use super::lowered::{Lowered, Overlay};
use super::op::Op;
use crate::isa::AluOp;
use live::Live;
use window::Window;

/// Finds operations that may be fused: greedily the longest, from the start on, without
/// overlaps.
pub(super) fn fuse(program: &Lowered) -> Overlay {
    let (leads, live) = (leads(program), Live::of(program));
    let mut overlay = Overlay::default();
    let mut at = 0;
    let rest = |at: u32| program.ops.get(at as usize..);
    while let Some([first, second, ..]) = rest(at) {
        let is_led_to = leads.get(at as usize + 1) != Some(&false);
        let try_all = || found(first, &Window::at(program, &live, &leads, at));
        let found = match may_begin(first, second) {
            _ if is_led_to => None,
            true => try_all(),
            false => {
                debug_assert!(try_all().is_none(), "{first:?} {second:?}");
                None
            }
        };
        let Some((fused, n)) = found else {
            at += 1;
            continue;
        };
        if overlay.index.is_empty() {
            overlay.index.resize(program.ops.len(), 0);
        }
        overlay.fused.push((fused, n));
        let number = u32::try_from(overlay.fused.len()).unwrap_or(0);
        if let Some(index) = overlay.index.get_mut(at as usize) {
            *index = number;
        }
        at += u32::from(n);
    }
    overlay
}

/// Whether a fused operation may begin with two operations. For most it does not, which their
/// kinds tell.
fn may_begin(first: &Op, second: &Op) -> bool {
    match first {
        Op::Alu { op, .. } => match second {
            Op::JumpIf { .. } => true,
            Op::Load { .. } => *op == AluOp::Add,
            Op::Alu { op: second, .. } => {
                matches!(op, AluOp::Mov | AluOp::Lsh | AluOp::Rsh) || *second == AluOp::Mov
            }
            _ => false,
        },
        Op::Load { .. } => matches!(
            second,
            Op::Alu { .. } | Op::Store { .. } | Op::JumpIf { .. }
        ),
        Op::JumpIf { .. } => matches!(second, Op::Jump { .. } | Op::Alu { op: AluOp::Mov, .. }),
        _ => false,
    }
}

/// The fused form of the first operations of a window, and how many they are.
fn found(first: &Op, window: &Window<'_>) -> Option<(Fused, u8)> {
    match first {
        Op::Alu { .. } => {
            let select = branch::select(window);
            let branch = || branch::after_arithmetic(window);
            let load = || access::indexed(window);
            let found = select.or_else(load).or_else(branch);
            found.or_else(|| arithmetic::arithmetic(window))
        }
        Op::Load { .. } => branch::after_load(window).or_else(|| access::access(window)),
        Op::JumpIf { .. } => branch::select(window).or_else(|| branch::over_jump(window)),
        _ => None,
    }
}

/// For each operation whether any other than the preceding one leads to it, or it begins what an
/// engine may execute instead.
fn leads(program: &Lowered) -> Vec<bool> {
    let mut leads = vec![false; program.ops.len()];
    let mut lead = |at: u32| {
        if let Some(leads) = leads.get_mut(at as usize) {
            *leads = true;
        }
    };
    for function in &program.functions {
        lead(function.entry);
    }
    program
        .ops
        .iter()
        .filter_map(|op| op.target())
        .for_each(&mut lead);
    for found in &program.logarithms {
        lead(found.start);
        lead(found.end);
    }
    leads
}
