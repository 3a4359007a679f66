//! Which functions may let the address of their stack frame escape.

use std::collections::BTreeMap;

use crate::isa::{AluOp, CallTarget, Code, Insn, Operand, Reg, RegSet, Width};
use crate::spec::call::{ArgSpec, Precondition};
use crate::spec::helpers::helper;
use crate::util::{HelperId, Pc};

/// The functions of a program, each with whether its frame *escapes*: the function uses r10
/// other than to access its own stack, or to pass parts of that to helpers that only read
/// or write the bytes. Nothing outside a function has the address of a frame that does not
/// escape, so an engine need not give that frame a new address in each call. The result
/// depends on the instructions alone, reachable or not, so that all engines agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscapingFrames {
    /// By first instruction: whether the frame escapes.
    functions: BTreeMap<Pc, bool>,
}

impl EscapingFrames {
    /// Analyzes the functions of a program: those at 0, those called, and those whose
    /// address is taken.
    #[must_use]
    pub fn of(code: &Code) -> Self {
        let mut functions = BTreeMap::from([(Pc(0), false)]);
        for (pc, insn) in code.insns() {
            let start = insn.subprogram_target(pc);
            if let Some(start) = start.and_then(|at| u32::try_from(at).ok()) {
                functions.insert(Pc(start), false);
            }
        }
        let end = i64::try_from(code.len()).unwrap_or(i64::MAX);
        let ends: Vec<_> = functions.keys().skip(1).map(|pc| i64::from(pc.0)).collect();
        let ends = ends.into_iter().chain([end]);
        for ((start, frame_escapes), end) in functions.iter_mut().zip(ends) {
            let own = i64::from(start.0)..end;
            let first = start.index();
            let last = usize::try_from(end).unwrap_or(usize::MAX);
            *frame_escapes = (first..last)
                .map(Pc::from_index)
                .filter_map(|pc| Some((pc, code.insn(pc)?)))
                .any(|(pc, insn)| {
                    // Code that leaves the function otherwise may let the frame escape
                    // elsewhere.
                    let next = pc.0.saturating_add(insn.slots());
                    let falls_out = insn.falls_through() && !own.contains(&i64::from(next));
                    let strays = insn.jump_target(pc).is_some_and(|to| !own.contains(&to));
                    falls_out || strays || lets_frame_escape(code, pc, &insn)
                });
        }
        Self { functions }
    }

    /// Whether the frame of the function at `start` escapes; true if no function is known
    /// to begin there.
    #[must_use]
    pub fn frame_escapes(&self, start: Pc) -> bool {
        self.functions.get(&start).copied().unwrap_or(true)
    }
}

/// Whether the instruction at `pc` lets the function's frame escape.
fn lets_frame_escape(code: &Code, pc: Pc, insn: &Insn) -> bool {
    let used = match *insn {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst,
            src: Operand::Reg(Reg::FP),
        } if dst != Reg::FP => return !is_argument(code, code.next(pc), dst),
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

/// Whether a register that holds a stack address before `pc` is used only as an argument of
/// the next call, to a helper that takes the bytes there. Calls clobber argument registers.
fn is_argument(code: &Code, pc: Pc, reg: Reg) -> bool {
    let mut at = pc;
    while let Some(insn) = code.insn(at) {
        match insn {
            Insn::Call(CallTarget::Helper(id)) => return takes_bytes(id, reg),
            Insn::Alu {
                op: AluOp::Add | AluOp::Sub,
                width: Width::W64,
                dst,
                src: Operand::Imm(_),
            } if dst == reg => {}
            insn if insn.reads().contains(reg) => return false,
            insn if insn.writes().contains(reg) => return true,
            insn if !insn.falls_through() || insn.is_call() || insn.jump_off().is_some() => {
                return false;
            }
            _ => {}
        }
        at = code.next(at);
    }
    false
}

/// Whether a helper only accesses the bytes that an argument points to, and does not keep
/// the pointer.
fn takes_bytes(id: HelperId, reg: Reg) -> bool {
    let argument = Reg::ARGUMENTS.iter().position(|known| *known == reg);
    let (Some(number), Some(helper)) = (argument, helper(id)) else {
        return false;
    };
    helper.prototypes.iter().all(|prototype| {
        let keeps = |argument: &ArgSpec| {
            let keeps = |one: &Precondition| {
                matches!(one, Precondition::Dynptr(_) | Precondition::Callback)
            };
            argument.preconditions.iter().any(keeps)
        };
        let argument = prototype.arguments.get(number);
        argument.is_some_and(|argument| argument.region().is_some())
            && !prototype.arguments.iter().any(keeps)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;

    fn frame_escapes(text: &str, start: u32) -> bool {
        EscapingFrames::of(&Code::new(&assemble(text).unwrap())).frame_escapes(Pc(start))
    }

    #[test]
    fn reaching_the_own_stack_tells_nobody() {
        let text = "*(u64 *)(r10 -8) = r1\n r2 = *(u32 *)(r10 -8)\n r0 = 0\n exit";
        assert!(!frame_escapes(text, 0));
        let text = "*(u64 *)(r10 -8) = 1\n lock *(u64 *)(r10 -8) += r1\n r0 = 0\n exit";
        assert!(!frame_escapes(text, 0));
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
            assert!(frame_escapes(text, 0), "{text}");
        }
    }

    /// Passing the frame to helpers is no escape, except for callbacks, dynptrs and text.
    #[test]
    fn what_helpers_get() {
        let call = |text: &str, id: u32| frame_escapes(&format!("{text}\ncall {id}\n exit"), 0);
        let key = "r2 = r10\n r2 += -4\n r1 = 7";
        assert!(
            !call(key, 1) && !call(key, 2),
            "bpf_map_lookup_elem, …_update_elem"
        );
        assert!(call(key, 181), "bpf_loop");
        assert!(call("r3 = r10", 6), "bpf_trace_printk");
        assert!(call("r1 = r10", 197), "bpf_dynptr_from_mem");
        assert!(call(key, 999) && call("r6 = r10", 1));
        assert!(call("r2 = r10\n r3 = r2", 1));
        assert!(call("r2 = r10\n if r1 == 0 goto +0", 1));
        assert!(!call("r2 = r10\n r2 = 0", 181), "nobody sees it");
    }

    #[test]
    fn functions_are_judged_one_by_one() {
        let text = "call pc+2\n r0 = r10\n exit\n r0 = 1\n exit";
        assert!(frame_escapes(text, 0));
        assert!(!frame_escapes(text, 3));
        // No function is known to begin there.
        assert!(frame_escapes(text, 4));
    }

    #[test]
    fn who_leaves_its_function_is_not_known() {
        assert!(frame_escapes("call pc+1\n exit\n goto -3\n exit", 2));
        assert!(frame_escapes("r0 = 0\n if r0 == 1 goto +100\n exit", 0));
        assert!(frame_escapes("r0 = 0", 0));
    }
}
