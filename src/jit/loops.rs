//! The loops of a program, found by its backward jumps.

use crate::lower::{Op, Target};

/// Which operations are in loops.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// For each operation how many backward jumps span it, and whether one leads to it;
    /// empty if there are none.
    ops: Vec<(u8, bool)>,
    /// For each operation whether a jump leads to it.
    targets: Vec<bool>,
}

impl Loops {
    /// The loops of operations; to `others` more lead than jumps.
    pub(super) fn of(ops: &[Op], others: impl IntoIterator<Item = Target>) -> Self {
        let mut changes: Vec<(i32, bool)> = Vec::new();
        let mut targets = vec![false; ops.len()];
        for (op, from) in ops.iter().zip(0u32..) {
            let Some(target) = op.target() else {
                continue;
            };
            if let Some(is_target) = targets.get_mut(target as usize) {
                *is_target = true;
            }
            if target > from {
                continue;
            }
            if changes.is_empty() {
                changes.resize(ops.len() + 1, (0, false));
            }
            if let Some((depth, is_head)) = changes.get_mut(target as usize) {
                (*depth, *is_head) = (*depth + 1, true);
            }
            if let Some((depth, _)) = changes.get_mut(from as usize + 1) {
                *depth -= 1;
            }
        }
        for other in others {
            if let Some(is_target) = targets.get_mut(other as usize) {
                *is_target = true;
            }
        }
        let mut depth = 0;
        let ops = changes.into_iter().map(|(change, is_head)| {
            depth += change;
            (u8::try_from(depth).unwrap_or(u8::MAX), is_head)
        });
        Self {
            ops: ops.collect(),
            targets,
        }
    }

    /// The number of loops that contain an operation.
    pub(super) fn depth(&self, at: Target) -> u8 {
        self.ops.get(at as usize).map_or(0, |(depth, _)| *depth)
    }

    /// Whether a jump leads to an operation.
    pub(super) fn is_target(&self, at: Target) -> bool {
        self.targets.get(at as usize).is_none_or(|is| *is)
    }

    /// Whether an operation is a loop head.
    pub(super) fn is_head(&self, at: Target) -> bool {
        self.ops
            .get(at as usize)
            .is_some_and(|(_, is_head)| *is_head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_in_a_loop() {
        let jump = |target| Op::Jump { target };
        let ops = [Op::Exit, Op::Exit, jump(1), jump(0), jump(5), Op::Exit];
        let loops = Loops::of(&ops, [0]);
        let depths: Vec<u8> = (0..6).map(|at| loops.depth(at)).collect();
        assert_eq!(depths, [1, 2, 2, 1, 0, 0]);
        let heads: Vec<u32> = (0..6).filter(|at| loops.is_head(*at)).collect();
        assert_eq!(heads, [0, 1]);
        let targets: Vec<u32> = (0..6).filter(|at| loops.is_target(*at)).collect();
        assert_eq!(targets, [0, 1, 5]);
        assert_eq!(Loops::of(&ops[4..], []).depth(0), 0);
    }
}
