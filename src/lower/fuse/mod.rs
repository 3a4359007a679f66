//! Finds operations that may be executed as one.
//!
//! | file | what |
//! |---|---|
//! | `fused` | the fused operations, and their rules |
//! | `window` | consecutive operations that nothing jumps into, and what is dead after them |
//! | `arithmetic` | moves, shifts and other arithmetic |
//! | `access` | loads and the operations on the loaded number |
//! | `branch` | operations that end in a branch |

mod access;
mod arithmetic;
mod branch;
pub(super) mod fused;
#[cfg(test)]
mod tests;
mod window;

pub use fused::{Branch, Fused, SelectValue};

use super::lowered::{Lowered, Overlay};
use super::op::Op;
use window::Window;

/// Finds operations that may be fused: greedily the longest, from the start on, without
/// overlaps.
pub(super) fn fuse(program: &Lowered) -> Overlay {
    let leads = leads(program);
    let mut overlay = Overlay::default();
    let mut at = 0;
    while let Some(op) = program.ops.get(at as usize) {
        let window = Window::at(program, &leads, at);
        let Some((fused, n)) = found(*op, &window) else {
            at += 1;
            continue;
        };
        overlay.index.resize(program.ops.len(), 0);
        overlay.fused.push((fused, n));
        let number = u32::try_from(overlay.fused.len()).unwrap_or(0);
        if let Some(index) = overlay.index.get_mut(at as usize) {
            *index = number;
        }
        at += u32::from(n);
    }
    overlay
}

/// The fused form of the first operations of a window, and how many they are.
fn found(first: Op, window: &Window<'_>) -> Option<(Fused, u8)> {
    if window.ops.len() < 2 {
        return None;
    }
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
