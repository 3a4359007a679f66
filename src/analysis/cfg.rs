//! The control-flow graph of an unverified program, or the error why there is none.
//!
//! A function begins at slot 0, at the target of every call, and at every function address
//! that is loaded; it ends where the next begins. Its jumps stay inside, and its last
//! instruction does not fall through.

use thiserror::Error;

use super::graph::{Edges, Graph, NOWHERE};
use crate::isa::{Code, Flow, Insn};
use crate::util::Pc;

/// A jump, call or end that leads nowhere.
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
    /// A call, or the address of a function, names a slot outside the program.
    #[error("instruction {from} refers to a subprogram at {to}, outside the program")]
    SubprogramOutside {
        /// The call.
        from: Pc,
        /// Its target.
        to: i64,
    },
    /// A call, or the address of a function, names the middle of a 64-bit immediate.
    #[error(
        "instruction {from} refers to a subprogram at {to}, the second slot of a 64-bit immediate"
    )]
    SubprogramInImmediate {
        /// The call.
        from: Pc,
        /// Its target.
        to: Pc,
    },
    /// Control runs past the end of a subprogram.
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
    /// The instruction at fault, if there is one.
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

/// A function of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Function {
    /// The first slot.
    pub start: Pc,
    /// The slot after its last.
    pub end: Pc,
}

/// The control-flow graph of a program whose jumps stay in their functions.
#[derive(Clone, Debug)]
pub(crate) struct Cfg {
    graph: Graph,
    functions: Vec<Function>,
}

impl Cfg {
    /// Builds the graph of a program. As in the kernel's `check_cfg`, an invalid slot has the
    /// successors that its opcode suggests.
    ///
    /// # Errors
    /// [`CfgError`] for the first jump, call or end that leads nowhere.
    pub(crate) fn new(code: &Code) -> Result<Self, CfgError> {
        let bounds = subprogram_bounds(code)?;
        let functions: Vec<Function> = bounds
            .windows(2)
            .filter_map(|range| match *range {
                [start, end] => Some(Function { start, end }),
                _ => None,
            })
            .collect();
        for function in &functions {
            check(code, *function)?;
        }
        let entries = functions.iter().map(|function| function.start.0);
        Ok(Self {
            graph: Graph::new(edges(code), entries),
            functions,
        })
    }

    /// The graph, whose nodes are the slots of the program.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The functions, in the order of their positions; the first is the program's entry.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The number of the function that `pc` lies in, and the function.
    pub(crate) fn function_at(&self, pc: Pc) -> Option<(usize, Function)> {
        let after = self.functions.partition_point(|it| it.start <= pc);
        let number = after.checked_sub(1)?;
        let function = self.functions.get(number).copied()?;
        (pc < function.end).then_some((number, function))
    }
}

/// The edges of each slot of a program, across the ends of functions. The second slot of a
/// 64-bit immediate falls through.
pub(crate) fn edges(code: &Code) -> Vec<Edges> {
    let inside = |to: i64| match u32::try_from(to) {
        Ok(to) if Pc(to).index() < code.len() => to,
        _ => NOWHERE,
    };
    let slots = (0..code.len()).map(Pc::from_index);
    let edges = slots.map(|pc| {
        let next = || inside(code.next(pc).0.into());
        match code.flow(pc).unwrap_or(Flow::Next) {
            Flow::Exit => [NOWHERE; 2],
            Flow::Next => [next(), NOWHERE],
            Flow::Goto(to) => [NOWHERE, inside(to)],
            Flow::Branch(to) => [next(), inside(to)],
        }
    });
    edges.collect()
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

/// Checks that control stays in a function.
fn check(code: &Code, Function { start, end }: Function) -> Result<(), CfgError> {
    let mut pc = start;
    while pc < end {
        let next = code.next(pc);
        let flow = code.flow(pc).unwrap_or(Flow::Next);
        if let Flow::Goto(to) | Flow::Branch(to) = flow {
            check_target(code, pc, to, start, end)?;
        }
        if next >= end && matches!(flow, Flow::Next | Flow::Branch(_)) {
            return Err(CfgError::FallsOff { at: pc });
        }
        pc = next;
    }
    Ok(())
}

fn check_target(code: &Code, from: Pc, to: i64, start: Pc, end: Pc) -> Result<(), CfgError> {
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
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::assemble;

    fn cfg(text: &str) -> Result<Cfg, CfgError> {
        Cfg::new(&Code::new(&assemble(text).unwrap()))
    }

    fn error(text: &str) -> String {
        cfg(text).unwrap_err().to_string()
    }

    fn blocks(cfg: &Cfg) -> Vec<(u32, Vec<u32>)> {
        let blocks = cfg.graph().blocks().iter();
        blocks
            .map(|b| (b.start, b.successors().collect()))
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
        assert_eq!(blocks(&cfg), expected);
        let number = |pc| cfg.function_at(Pc(pc)).map(|(number, _)| number);
        assert_eq!([0, 7, 9, 10].map(number), [Some(0), Some(0), Some(1), None]);
        // In the middle of an immediate.
        assert_eq!(cfg.graph().block_of(1), 0);
        assert_eq!(cfg.graph().successors(0).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn an_address_of_a_function_begins_one() {
        let cfg = cfg("r1 = f ll\n exit\n f: exit").unwrap();
        let starts: Vec<u32> = cfg.functions().iter().map(|it| it.start.0).collect();
        assert_eq!(starts, [0, 3]);
    }

    #[test]
    fn control_that_goes_nowhere_is_an_error() {
        assert_eq!(cfg("").unwrap_err(), CfgError::Empty);
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

    /// As the kernel does, which accepts such a slot if no path leads to it.
    #[test]
    fn what_is_no_instruction_flows_as_its_opcode_says() {
        // `if r0 == 5 goto +1` with a reserved field in use.
        let code = Code::new(&assemble(".quad 0x000000050001031d\n exit\n exit").unwrap());
        assert!(code.get(Pc(0)).unwrap().is_err());
        assert_eq!(blocks(&Cfg::new(&code).unwrap())[0], (0, vec![1, 2]));
    }

    proptest! {
        /// Short jumps among few instructions: many of these graphs are whole.
        #[test]
        fn control_stays_in_its_function(
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
            for (number, function) in cfg.functions().iter().enumerate() {
                prop_assert_eq!(function.start, end);
                end = function.end;
                for pc in (function.start.0..end.0).map(Pc) {
                    prop_assert_eq!(cfg.function_at(pc), Some((number, *function)));
                    for to in cfg.graph().successors(pc.0) {
                        prop_assert!(function.start.0 <= to && to < function.end.0);
                        prop_assert!(!code.is_second_slot(Pc(to)));
                    }
                }
            }
            prop_assert_eq!(end.index(), code.len());
        }
    }
}
