//! The control-flow graph: subprograms, basic blocks, edges.
//!
//! A subprogram begins at slot 0, at the target of every call, and at every function
//! address that is loaded; it ends where the next begins. A block is a maximal run of
//! instructions that is entered only at its first and left only at its last. A call is not
//! an edge, since it returns.

use smallvec::SmallVec;
use thiserror::Error;

use super::code::Code;
use super::insn::{Flow, Insn};
use crate::util::Pc;

/// A program with invalid control flow.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
pub enum CfgError {
    /// There is no instruction.
    #[error("the program is empty")]
    Empty,
    /// A jump leaves its subprogram, or the program.
    #[error("instruction {from} jumps to {to}, outside its subprogram ({start} to {})", last(.end))]
    JumpOutside {
        /// The jump.
        from: Pc,
        /// Its target.
        to: i64,
        /// The first slot of the subprogram.
        start: Pc,
        /// The slot after its last.
        end: Pc,
    },
    /// A jump goes into the middle of a 64-bit immediate.
    #[error("instruction {from} jumps to {to}, the second slot of a 64-bit immediate")]
    JumpIntoImmediate {
        /// The jump.
        from: Pc,
        /// Its target.
        to: Pc,
    },
    /// A call or function address refers to a slot outside the program.
    #[error("instruction {from} refers to a subprogram at {to}, outside the program")]
    SubprogramOutside {
        /// The call.
        from: Pc,
        /// Its target.
        to: i64,
    },
    /// A call or function address refers to the second slot of a 64-bit immediate.
    #[error(
        "instruction {from} refers to a subprogram at {to}, the second slot of a 64-bit immediate"
    )]
    SubprogramInImmediate {
        /// The call.
        from: Pc,
        /// Its target.
        to: Pc,
    },
    /// Control falls through the end of a subprogram.
    #[error("instruction {at}, the last of its subprogram, is neither an exit nor a jump")]
    FallsOff {
        /// The last instruction.
        at: Pc,
    },
}

fn last(end: &Pc) -> u32 {
    end.0.saturating_sub(1)
}

impl CfgError {
    /// The invalid instruction, if there is one.
    #[must_use]
    pub const fn pc(&self) -> Option<Pc> {
        match *self {
            Self::Empty => None,
            Self::JumpOutside { from, .. }
            | Self::JumpIntoImmediate { from, .. }
            | Self::SubprogramOutside { from, .. }
            | Self::SubprogramInImmediate { from, .. } => Some(from),
            Self::FallsOff { at } => Some(at),
        }
    }
}

/// A block, by its index in the order of positions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The number as an index into [`Cfg::blocks`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    fn from_index(index: usize) -> Self {
        Self(Pc::from_index(index).0)
    }
}

/// A basic block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// The first slot.
    pub start: Pc,
    /// The slot after the last.
    pub end: Pc,
    /// The last instruction.
    pub last: Pc,
    /// The number of the subprogram.
    pub subprogram: u32,
    /// Successors: the next block first, then the jump's target; one entry if they are
    /// equal.
    pub successors: SmallVec<[BlockId; 2]>,
    /// Predecessors, in the order of positions.
    pub predecessors: SmallVec<[BlockId; 2]>,
}

/// A subprogram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subprogram {
    /// The first slot.
    pub start: Pc,
    /// The slot after the last.
    pub end: Pc,
    /// The entry block.
    pub entry: BlockId,
    /// The reachable blocks in reverse postorder: each after its predecessors, except for
    /// back edges.
    pub reverse_postorder: Vec<BlockId>,
    /// The edges that close a loop: from a block to one that is still open in the
    /// depth-first search.
    pub back_edges: Vec<(BlockId, BlockId)>,
}

/// The control-flow graph of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cfg {
    blocks: Vec<Block>,
    subprograms: Vec<Subprogram>,
    reachable: Vec<bool>,
}

impl Cfg {
    /// The graph of a program. Invalid slots count as the jumps or other instructions that
    /// their opcodes indicate, as in the kernel's `check_cfg`.
    ///
    /// ```
    /// use bpflab::isa::{Cfg, Code, assemble};
    /// use bpflab::util::Pc;
    ///
    /// let code = Code::new(&assemble("r0 = 9; nine\n again: r0 -= 1\n if r0 > 0 goto again\n exit")?);
    /// let cfg = Cfg::new(&code)?;
    /// let starts: Vec<Pc> = cfg.blocks().iter().map(|block| block.start).collect();
    /// assert_eq!(starts, [Pc(0), Pc(1), Pc(3)]);
    /// assert_eq!(cfg.subprograms()[0].back_edges.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CfgError`] for the first jump, call or end without a valid successor.
    pub fn new(code: &Code) -> Result<Self, CfgError> {
        let bounds = subprogram_bounds(code)?;
        let mut blocks = Vec::new();
        for (number, range) in (0u32..).zip(bounds.windows(2)) {
            if let &[start, end] = range {
                subprogram_blocks(code, number, start, end, &mut blocks)?;
            }
        }
        link(code, &mut blocks);

        let mut reachable = vec![false; blocks.len()];
        let mut open = reachable.clone();
        let subprograms = bounds
            .windows(2)
            .filter_map(|range| {
                let &[start, end] = range else { return None };
                let entry = block_at(&blocks, start)?;
                let (reverse_postorder, back_edges) =
                    depth_first(&blocks, entry, &mut reachable, &mut open);
                Some(Subprogram {
                    start,
                    end,
                    entry,
                    reverse_postorder,
                    back_edges,
                })
            })
            .collect();
        Ok(Self {
            blocks,
            subprograms,
            reachable,
        })
    }

    /// The blocks, in the order of their positions.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The block of this number.
    #[must_use]
    pub fn block(&self, id: BlockId) -> Option<&Block> {
        self.blocks.get(id.index())
    }

    /// The block that contains `pc`.
    #[must_use]
    pub fn block_at(&self, pc: Pc) -> Option<BlockId> {
        block_at(&self.blocks, pc)
    }

    /// The subprograms, in the order of positions; the first is the program's entry.
    #[must_use]
    pub fn subprograms(&self) -> &[Subprogram] {
        &self.subprograms
    }

    /// The number of the subprogram that contains `pc`.
    #[must_use]
    pub fn subprogram_at(&self, pc: Pc) -> Option<u32> {
        Some(self.block(self.block_at(pc)?)?.subprogram)
    }

    /// Whether control can reach the block from the entry of its subprogram.
    #[must_use]
    pub fn is_reachable(&self, id: BlockId) -> bool {
        self.reachable.get(id.index()).copied().unwrap_or(false)
    }
}

/// The starts of the subprograms and the end of the program.
fn subprogram_bounds(code: &Code) -> Result<Vec<Pc>, CfgError> {
    if code.is_empty() {
        return Err(CfgError::Empty);
    }
    let mut bounds = vec![Pc(0), Pc::from_index(code.len())];
    for (from, insn) in code.iter() {
        let Some(to) = insn
            .ok()
            .and_then(|insn: Insn| insn.subprogram_target(from))
        else {
            continue;
        };
        let target = u32::try_from(to)
            .map(Pc)
            .ok()
            .filter(|to| to.index() < code.len());
        let Some(target) = target else {
            return Err(CfgError::SubprogramOutside { from, to });
        };
        if code.is_second_slot(target) {
            return Err(CfgError::SubprogramInImmediate { from, to: target });
        }
        bounds.push(target);
    }
    bounds.sort_unstable();
    bounds.dedup();
    Ok(bounds)
}

/// Splits a subprogram into blocks, without their edges.
fn subprogram_blocks(
    code: &Code,
    subprogram: u32,
    start: Pc,
    end: Pc,
    blocks: &mut Vec<Block>,
) -> Result<(), CfgError> {
    let mut leads = vec![false; end.index() - start.index()];
    let mut lead = |pc: Pc| {
        if let Some(lead) = leads.get_mut(pc.index().wrapping_sub(start.index())) {
            *lead = true;
        }
    };
    lead(start);
    let mut pc = start;
    while pc < end {
        let next = code.next(pc);
        let flow = code.flow(pc).unwrap_or(Flow::Next);
        if let Flow::Goto(to) | Flow::Branch(to) = flow {
            lead(checked_target(code, pc, to, start, end)?);
        }
        if flow != Flow::Next {
            lead(next);
        }
        if next >= end && matches!(flow, Flow::Next | Flow::Branch(_)) {
            return Err(CfgError::FallsOff { at: pc });
        }
        pc = next;
    }

    let mut pc = start;
    while pc < end {
        let mut last = pc;
        let mut next = code.next(pc);
        while next < end
            && !leads
                .get(next.index() - start.index())
                .copied()
                .unwrap_or(true)
        {
            last = next;
            next = code.next(next);
        }
        blocks.push(Block {
            start: pc,
            end: next.min(end),
            last,
            subprogram,
            successors: SmallVec::new(),
            predecessors: SmallVec::new(),
        });
        pc = next;
    }
    Ok(())
}

fn checked_target(code: &Code, from: Pc, to: i64, start: Pc, end: Pc) -> Result<Pc, CfgError> {
    let target = u32::try_from(to)
        .map(Pc)
        .ok()
        .filter(|to| (start..end).contains(to));
    match target {
        None => Err(CfgError::JumpOutside {
            from,
            to,
            start,
            end,
        }),
        Some(to) if code.is_second_slot(to) => Err(CfgError::JumpIntoImmediate { from, to }),
        Some(to) => Ok(to),
    }
}

/// Adds the edges.
fn link(code: &Code, blocks: &mut [Block]) {
    for index in 0..blocks.len() {
        let (end, last) = (blocks[index].end, blocks[index].last);
        let (next, jump) = match code.flow(last).unwrap_or(Flow::Next) {
            Flow::Next => (Some(end), None),
            Flow::Goto(to) => (None, Some(to)),
            Flow::Branch(to) => (Some(end), Some(to)),
            Flow::Exit => (None, None),
        };
        let jump = jump.and_then(|to| u32::try_from(to).ok()).map(Pc);
        for to in next.into_iter().chain(jump) {
            let Some(to) = block_at(blocks, to) else {
                continue;
            };
            if !blocks[index].successors.contains(&to) {
                blocks[index].successors.push(to);
                blocks[to.index()]
                    .predecessors
                    .push(BlockId::from_index(index));
            }
        }
    }
}

fn block_at(blocks: &[Block], pc: Pc) -> Option<BlockId> {
    let index = blocks
        .partition_point(|block| block.start <= pc)
        .checked_sub(1)?;
    (pc < blocks.get(index)?.end).then(|| BlockId::from_index(index))
}

/// Depth-first search: returns the reverse postorder and the edges to open blocks. It uses
/// an explicit stack, since a program can nest a million deep; `open` marks the blocks on
/// the stack and is all false before and after.
fn depth_first(
    blocks: &[Block],
    entry: BlockId,
    reached: &mut [bool],
    open: &mut [bool],
) -> (Vec<BlockId>, Vec<(BlockId, BlockId)>) {
    let mut order = Vec::new();
    let mut back_edges = Vec::new();
    let mut stack = vec![(entry, 0)];
    reached[entry.index()] = true;
    open[entry.index()] = true;
    while let Some((block, edge)) = stack.last_mut() {
        let from = *block;
        let Some(&to) = blocks[from.index()].successors.get(*edge) else {
            open[from.index()] = false;
            order.push(from);
            stack.pop();
            continue;
        };
        *edge += 1;
        if open[to.index()] {
            back_edges.push((from, to));
        } else if !reached[to.index()] {
            reached[to.index()] = true;
            open[to.index()] = true;
            stack.push((to, 0));
        }
    }
    order.reverse();
    (order, back_edges)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{arbitrary, assemble};
    use super::*;

    fn cfg(text: &str) -> Result<Cfg, CfgError> {
        Cfg::new(&Code::new(&assemble(text).unwrap()))
    }

    fn error(text: &str) -> String {
        cfg(text).unwrap_err().to_string()
    }

    fn edges(cfg: &Cfg) -> Vec<(u32, Vec<u32>)> {
        let blocks = cfg.blocks().iter();
        blocks
            .map(|b| (b.start.0, b.successors.iter().map(|id| id.0).collect()))
            .collect()
    }

    #[test]
    fn blocks_end_at_jumps_and_begin_at_targets() {
        let cfg = cfg("
                    r2 = 5 ll
                    if r1 == 0 goto even    // ends the first block
            odd:    r0 = 1
            even:   r0 += 1                 // entered from two sides
                    call helper
                    if r0 != 0 goto even
                    exit
            helper: if r1 == 0 goto +0      // both ways lead to the same place
                    exit")
        .unwrap();
        let expected = [
            (0, vec![1, 2]),
            (3, vec![2]),
            (4, vec![3, 2]),
            (7, vec![]),
            (8, vec![5]),
            (9, vec![]),
        ];
        assert_eq!(edges(&cfg), expected);
        assert_eq!(cfg.subprograms().len(), 2);
        assert_eq!(cfg.subprograms()[0].back_edges, [(BlockId(2), BlockId(2))]);
        assert_eq!(
            cfg.blocks()[2].predecessors[..],
            [BlockId(0), BlockId(1), BlockId(2)]
        );
        assert_eq!(cfg.subprogram_at(Pc(9)), Some(1));
        assert_eq!(
            cfg.block_at(Pc(1)),
            Some(BlockId(0)),
            "in the middle of an immediate"
        );
        assert_eq!(cfg.block_at(Pc(10)), None);
    }

    #[test]
    fn an_address_of_a_function_begins_a_subprogram() {
        let cfg = cfg("r1 = f ll\n exit\n f: exit").unwrap();
        let starts: Vec<u32> = cfg.subprograms().iter().map(|s| s.start.0).collect();
        assert_eq!(starts, [0, 3]);
    }

    #[test]
    fn what_no_path_leads_to_is_unreachable() {
        let cfg = cfg("goto end\n r0 = 1\n end: exit").unwrap();
        let reachable: Vec<bool> = (0..3).map(|id| cfg.is_reachable(BlockId(id))).collect();
        assert_eq!(reachable, [true, false, true]);
        assert_eq!(
            cfg.subprograms()[0].reverse_postorder,
            [BlockId(0), BlockId(2)]
        );
    }

    #[test]
    fn control_that_goes_nowhere_is_an_error() {
        assert_eq!(cfg(""), Err(CfgError::Empty));
        assert_eq!(
            error("r0 = 0\n goto +1\n exit"),
            "instruction 1 jumps to 3, outside its subprogram (0 to 2)"
        );
        assert_eq!(
            error("goto -2\n exit"),
            "instruction 0 jumps to -1, outside its subprogram (0 to 1)"
        );
        assert_eq!(
            error("call f\n goto f\n f: exit"),
            "instruction 1 jumps to 2, outside its subprogram (0 to 1)"
        );
        assert_eq!(
            error("goto +1\n r1 = 1 ll\n exit"),
            "instruction 0 jumps to 2, the second slot of a 64-bit immediate"
        );
        assert_eq!(
            error("call pc+7\n exit"),
            "instruction 0 refers to a subprogram at 8, outside the program"
        );
        assert_eq!(
            error("call pc+1\n r1 = 1 ll\n exit"),
            "instruction 0 refers to a subprogram at 2, the second slot of a 64-bit immediate"
        );
        assert_eq!(
            error("call f\n f: exit"),
            "instruction 0, the last of its subprogram, is neither an exit nor a jump"
        );
        assert_eq!(cfg("exit\n r1 = 1 ll").unwrap_err().pc(), Some(Pc(1)));
    }

    /// As in the kernel, which accepts such a slot if it is unreachable.
    #[test]
    fn what_is_no_instruction_flows_as_its_opcode_says() {
        // `if r0 == 5 goto +1` with a reserved field in use.
        let code = Code::new(&assemble(".quad 0x000000050001031d\n exit\n exit").unwrap());
        assert!(code.get(Pc(0)).unwrap().is_err());
        assert_eq!(edges(&Cfg::new(&code).unwrap())[0], (0, vec![1, 2]));
    }

    proptest! {
        #[test]
        fn flow_is_told_by_the_opcode(insn in arbitrary::insn(), pc in 0u32..9) {
            prop_assert_eq!(Flow::of_raw(insn.encode()[0], Pc(pc)), insn.flow(Pc(pc)));
        }

        /// Short jumps among few instructions: many of these graphs are valid.
        #[test]
        fn blocks_partition_the_program(
            steps in proptest::collection::vec((0u8..6, -6i16..6), 1..24),
        ) {
            let mut insns: Vec<String> = steps
                .iter()
                .map(|(kind, off)| match kind {
                    0 => format!("if r1 > 2 goto {off:+}"),
                    1 => format!("goto {off:+}"),
                    2 => format!("call {off:+}"),
                    3 => "r1 = 7 ll".into(),
                    4 => "exit".into(),
                    _ => "r1 += 1".into(),
                })
                .collect();
            insns.push("exit".into());
            let code = Code::new(&assemble(&insns.join("\n")).unwrap());
            let Ok(cfg) = Cfg::new(&code) else { return Ok(()) };
            let mut end = Pc(0);
            for (index, block) in (0..).zip(cfg.blocks()) {
                prop_assert_eq!(block.start, end);
                prop_assert!(block.start <= block.last && block.last < block.end);
                end = block.end;
                for to in &block.successors {
                    let to = cfg.block(*to).unwrap();
                    prop_assert_eq!(to.subprogram, block.subprogram);
                    prop_assert!(to.predecessors.contains(&BlockId(index)));
                }
            }
            prop_assert_eq!(end.index(), code.len());
            for subprogram in cfg.subprograms() {
                // Exactly the edges against the order are back edges.
                let order = &subprogram.reverse_postorder;
                prop_assert_eq!(order.first(), Some(&subprogram.entry));
                let place = |id: BlockId| order.iter().position(|other| *other == id).unwrap();
                for from in order {
                    for to in &cfg.block(*from).unwrap().successors {
                        let back = subprogram.back_edges.contains(&(*from, *to));
                        prop_assert_eq!(back, place(*to) <= place(*from));
                    }
                }
            }
        }
    }
}
