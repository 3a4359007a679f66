//! Removes unreachable operations.

use super::lowered::Lowered;
use super::op::{Op, Target};

/// Removes all operations that are not marked as reached. The operation after one that
/// falls through, and each jump target, must be marked.
pub(super) fn keep(program: &mut Lowered, is_reached: &[bool]) {
    if is_reached.iter().all(|reached| *reached) {
        return;
    }
    // The new index of each operation, or of the next one that is kept.
    let mut kept = 0;
    let mut new_index: Vec<Target> = Vec::with_capacity(is_reached.len() + 1);
    for reached in is_reached {
        new_index.push(kept);
        kept += Target::from(*reached);
    }
    new_index.push(kept);
    let renumber = |at: &mut Target| *at = new_index.get(*at as usize).copied().unwrap_or(kept);
    for target in program.ops.iter_mut().filter_map(Op::target_mut) {
        renumber(target);
    }
    for function in &mut program.functions {
        renumber(&mut function.entry);
        renumber(&mut function.end);
    }
    retain(&mut program.ops, is_reached);
    retain(&mut program.pcs, is_reached);
    retain(&mut program.ordinals, is_reached);
    retain(&mut program.notes, is_reached);
}

/// Keeps the elements that are marked.
fn retain<T>(of: &mut Vec<T>, marked: &[bool]) {
    let mut marks = marked.iter();
    of.retain(|_| marks.next().copied().unwrap_or(true));
}
