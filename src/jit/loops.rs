//! The loops of a program, found by its backward jumps.

use bitflags::bitflags;

use crate::lower::{Op, Target};

/// Which operations are in loops.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// For each operation how many backward jumps span it; empty if there are none.
    depths: Vec<u8>,
    /// For each operation whether a jump leads to it, and whether a backward one does.
    marks: Vec<Marks>,
}

bitflags! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Marks: u8 {
        const TARGET = 1 << 0;
        const HEAD = 1 << 1;
    }
}

impl Loops {
    /// The loops of operations; to `others` more lead than jumps.
    pub(super) fn of(ops: &[Op], others: impl IntoIterator<Item = Target>) -> Self {
        // How the depth changes before each operation.
        let mut changes: Vec<i32> = Vec::new();
        let mut marks = vec![Marks::empty(); ops.len()];
        let mut mark = |at: Target, with: Marks| {
            if let Some(marks) = marks.get_mut(at as usize) {
                *marks |= with;
            }
        };
        for (op, from) in ops.iter().zip(0u32..) {
            let Some(target) = op.target() else {
                continue;
            };
            mark(target, Marks::TARGET);
            if target > from {
                continue;
            }
            mark(target, Marks::HEAD);
            changes.resize(ops.len() + 1, 0);
            if let Some(depth) = changes.get_mut(target as usize) {
                *depth += 1;
            }
            if let Some(depth) = changes.get_mut(from as usize + 1) {
                *depth -= 1;
            }
        }
        for other in others {
            mark(other, Marks::TARGET);
        }
        let mut depth = 0;
        let depths = changes.into_iter().map(|change| {
            depth += change;
            u8::try_from(depth).unwrap_or(u8::MAX)
        });
        Self {
            depths: depths.collect(),
            marks,
        }
    }

    /// The number of loops that contain an operation.
    pub(super) fn depth(&self, at: Target) -> u8 {
        self.depths.get(at as usize).copied().unwrap_or(0)
    }

    fn has(&self, at: Target, mark: Marks) -> Option<bool> {
        let marks = self.marks.get(at as usize)?;
        Some(marks.contains(mark))
    }

    /// Whether a jump leads to an operation.
    pub(super) fn is_target(&self, at: Target) -> bool {
        self.has(at, Marks::TARGET).unwrap_or(true)
    }

    /// Whether an operation is a loop head.
    pub(super) fn is_head(&self, at: Target) -> bool {
        self.has(at, Marks::HEAD).unwrap_or(false)
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
