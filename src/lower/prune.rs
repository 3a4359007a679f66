//! Leaving out operations that nobody reaches.

use super::lowered::Lowered;
use super::op::{Op, Target};

/// Leaves out all operations but those that are reached. What falls through has to be
/// followed by what it falls into, and what is jumped to has to be reached.
pub(super) fn keep(program: &mut Lowered, is_reached: &[bool]) {
    if is_reached.iter().all(|reached| *reached) {
        return;
    }
    // The new index of each operation, or of the next one that is kept.
    let mut kept = 0;
    let mut places: Vec<Target> = Vec::with_capacity(is_reached.len() + 1);
    for reached in is_reached {
        places.push(kept);
        kept += Target::from(*reached);
    }
    places.push(kept);
    let place = |at: &mut Target| *at = places.get(*at as usize).copied().unwrap_or(kept);
    for op in &mut program.ops {
        match op {
            Op::Jump { target } | Op::JumpIf { target, .. } | Op::MayGoto { target } => {
                place(target);
            }
            _ => {}
        }
    }
    for function in &mut program.functions {
        place(&mut function.entry);
        place(&mut function.end);
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
