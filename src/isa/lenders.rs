//! Which functions may tell others where their stack frame is.

use std::collections::BTreeMap;

use super::code::Code;
use super::insn::{Insn, Operand};
use super::reg::{Reg, RegSet};
use crate::util::Pc;

/// The functions of a program, each with whether it *lends* its frame: an instruction of
/// it uses the number in r10 for more than reaching its own stack. Nobody knows the
/// address of another function's frame, so an engine need not give that a new address
/// each time. It is judged by the instructions alone, reachable or not, so that all
/// engines judge alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lenders {
    /// By first instruction.
    functions: BTreeMap<Pc, bool>,
}

impl Lenders {
    /// Judges the functions of a program: what begins at 0, is called, or has its
    /// address taken.
    #[must_use]
    pub fn of(code: &Code) -> Self {
        let mut functions = BTreeMap::from([(Pc(0), false)]);
        let insns = || code.iter().filter_map(|(pc, insn)| Some((pc, insn.ok()?)));
        for (pc, insn) in insns() {
            let start = insn.subprogram_target(pc);
            if let Some(start) = start.and_then(|at| u32::try_from(at).ok()) {
                functions.insert(Pc(start), false);
            }
        }
        let end = i64::try_from(code.len()).unwrap_or(i64::MAX);
        let ends: Vec<_> = functions.keys().skip(1).map(|pc| i64::from(pc.0)).collect();
        let ends = ends.into_iter().chain([end]);
        for ((start, lends), end) in functions.iter_mut().zip(ends) {
            let own = i64::from(start.0)..end;
            let first = start.index();
            let last = usize::try_from(end).unwrap_or(usize::MAX);
            *lends = (first..last)
                .map(Pc::from_index)
                .filter_map(|pc| Some((pc, code.insn(pc)?)))
                .any(|(pc, insn)| {
                    // Who leaves its function some other way does what another does.
                    let next = pc.0.saturating_add(insn.slots());
                    let falls_out = insn.falls_through() && !own.contains(&i64::from(next));
                    let strays = insn.jump_target(pc).is_some_and(|to| !own.contains(&to));
                    falls_out || strays || uses_number(&insn)
                });
        }
        Self { functions }
    }

    /// Whether the function that begins at `start` lends its frame; true where none is
    /// known to begin.
    #[must_use]
    pub fn lends(&self, start: Pc) -> bool {
        self.functions.get(&start).copied().unwrap_or(true)
    }
}

/// Whether an instruction uses the number in r10 other than to reach the stack.
fn uses_number(insn: &Insn) -> bool {
    let used = match *insn {
        Insn::Store {
            src: Operand::Reg(src),
            ..
        }
        | Insn::StoreRelease { src, .. }
        | Insn::Atomic { src, .. } => RegSet::of(&[src]),
        insn if insn.memory().is_some() => RegSet::EMPTY,
        insn => insn.reads(),
    };
    used.union(insn.writes()).contains(Reg::FP)
}

#[cfg(test)]
mod tests {
    use super::super::asm::assemble;
    use super::*;

    fn lends(text: &str, start: u32) -> bool {
        Lenders::of(&Code::new(&assemble(text).unwrap())).lends(Pc(start))
    }

    #[test]
    fn reaching_the_own_stack_tells_nobody() {
        let text = "*(u64 *)(r10 -8) = r1\n r2 = *(u32 *)(r10 -8)\n r0 = 0\n exit";
        assert!(!lends(text, 0));
        let text = "*(u64 *)(r10 -8) = 1\n lock *(u64 *)(r10 -8) += r1\n r0 = 0\n exit";
        assert!(!lends(text, 0));
    }

    #[test]
    fn the_number_itself_does() {
        for text in [
            "r2 = r10\n exit",
            "*(u64 *)(r10 -8) = r10\n exit",
            "lock *(u64 *)(r1 +0) += r10\n exit",
            "if r1 == r10 goto +0\n exit",
            "r1 += r10\n exit",
        ] {
            assert!(lends(text, 0), "{text}");
        }
    }

    #[test]
    fn functions_are_judged_one_by_one() {
        let text = "call pc+2\n r0 = r10\n exit\n r0 = 1\n exit";
        assert!(lends(text, 0));
        assert!(!lends(text, 3));
        // Nothing is known to begin there.
        assert!(lends(text, 4));
    }

    #[test]
    fn who_leaves_its_function_is_not_known() {
        assert!(lends("call pc+1\n exit\n goto -3\n exit", 2));
        assert!(lends("r0 = 0\n if r0 == 1 goto +100\n exit", 0));
        assert!(lends("r0 = 0", 0));
    }
}
