//! Unrolls small loops, so that instructions are counted, and the budget is checked, once
//! for several rounds.

use super::emitter::Emitter;
use super::pins::is_direct;
use super::round::Round;
use crate::jit::count::MOST_ROUNDS;
use crate::lower::{Keys, Notes, Op, Target};

/// The most operations of all rounds of a loop.
const MOST: Target = 40;

impl Emitter<'_> {
    /// Emits the code of a loop in several rounds, which begins at `head`, if it is small
    /// and simple; returns the operation after it.
    pub(super) fn rounds(&mut self, head: Target) -> Option<Target> {
        let loops = &self.loops;
        let ops = self.lowered.ops().get(head as usize..)?;
        let may_be = ops.iter().zip(head..).take(MOST as usize);
        let mut back = None;
        for (op, at) in may_be {
            match *op {
                Op::Jump { target } | Op::JumpIf { target, .. } if target <= at => {
                    back = (target == head).then_some(at);
                    break;
                }
                Op::Jump { .. } | Op::JumpIf { .. } => {}
                _ if self.is_simple(at, op) => {}
                _ => break,
            }
        }
        let back = back?;
        let end = back + 1;
        // Within the loop, only its own jump leads back.
        let is_alone = (head..end).all(|at| loops.depth(at) == loops.depth(head));
        let rounds = MOST / (end - head);
        let rounds = i32::try_from(rounds).unwrap_or(0).min(MOST_ROUNDS);
        if !is_alone || rounds < 2 || (head + 1..end).any(|at| loops.is_head(at)) {
            return None;
        }
        let once = self.counts.edge(back, head);
        for number in 0..rounds {
            let labels = match number {
                0 => Vec::new(),
                _ => (head..back)
                    .map(|_| self.code.new_dynamic_label())
                    .collect(),
            };
            self.round = Some(Round {
                head,
                back,
                ahead: number * once,
                is_last: number + 1 == rounds,
                labels,
            });
            if number == 0 {
                self.held = None;
                self.begin(head);
            }
            let mut at = self.code_of(head)?;
            while at < end {
                at = self.one(at)?;
            }
        }
        self.round = None;
        Some(end)
    }

    /// Whether an operation's code may be repeated: no stub or call refers to its position.
    fn is_simple(&self, at: Target, op: &Op) -> bool {
        match *op {
            Op::Alu { .. }
            | Op::MovSx { .. }
            | Op::Neg { .. }
            | Op::Endian { .. }
            | Op::LoadImm { .. }
            | Op::Known { .. } => true,
            Op::Load { mem, .. } | Op::LoadSx { mem, .. } | Op::Store { mem, .. } => is_direct(mem),
            Op::Atomic { mem, .. } => {
                is_direct(mem) && self.lowered.note(at).contains(Notes::ALIGNED)
            }
            Op::Lookup { map, key, .. } => {
                let map = self.lowered.maps().get(usize::from(map));
                let is_call = map.is_none_or(|map| matches!(map.keys, Keys::Other { .. }));
                is_direct(key) && !is_call
            }
            _ => false,
        }
    }
}
