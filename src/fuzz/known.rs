//! Problems that are explained.

use std::sync::Arc;

use super::candidate::Candidate;
use super::listing::CALL;
use super::oracle::Oracle;
use super::problem::Problem;
use super::sameness::ORDER;
use super::strategy::Strategy;
use crate::isa::{CallTarget, Code, Insn, Pseudo, RawInsn};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::spec::{MapType, ProgFlags};
use crate::util::TypeId;
use crate::verifier::{LogLevel, Options, Verdict, verify};

/// A known problem.
struct Known {
    oracle: Oracle,
    /// How its kind begins.
    kind: &'static str,
    /// Whether a program can have it.
    can_have: fn(&Program) -> bool,
}

/// The known problems.
const KNOWN: &[Known] = &[
    // Linux 6.18: a fill with sign extension keeps the id of the spilled scalar, so that the
    // verifier takes the two numbers for equal (`check_stack_read_fixed_off`,
    // `coerce_reg_to_size_sx`, `kernel/bpf/verifier.c`). bpflab drops the id:
    //
    //     r8 = *(u32 *)(r6 +8)        ; unknown
    //     *(u64 *)(r10 -8) = r8
    //     r1 = *(s32 *)(r10 -8)       ; -1 where r8 is 0xffffffff
    //     if r1 != -1 goto out
    //     r8 += 1                     ; the verifier has 0, it is 0x100000000
    //
    // And arithmetic of a number with a pointer to untrusted memory leaves the number as it was
    // (`adjust_ptr_min_max_vals`). In bpflab the result is any number.
    Known {
        oracle: Oracle::STATE,
        kind: "kernel's log: a register has a value that it excludes",
        can_have: |program| {
            has_signed_fill(program)
                || fetches_from_arena(program)
                || computes_with_untrusted_memory(&verdict_of(program).log)
        },
    },
    // The verifier takes the node of a file of a cgroup for not null (docs/findings.md). Some files
    // are not there.
    Known {
        oracle: Oracle::STATE,
        kind: "R# of frame #",
        can_have: |program| verdict_of(program).log.contains("=rcu_ptr_kernfs_node("),
    },
    // Paths that Linux 6.18 takes for impossible or prunes, and bpflab explores
    // (docs/findings.md): a 32-bit comparison of a pointer with 0 counts as decided
    // (`is_branch_taken`), though the lower half of an address may be 0; precision is not
    // backtracked through an atomic operation that fetches; and the numbers above. bpflab
    // processes more then, rejects the program, or meets another error first.
    Known {
        oracle: Oracle::VERDICT,
        kind: "processed: more",
        can_have: explores_more,
    },
    Known {
        oracle: Oracle::VERDICT,
        kind: "false-reject",
        can_have: explores_more,
    },
    Known {
        oracle: Oracle::VERDICT,
        kind: "errno: ",
        can_have: explores_more,
    },
    Known {
        oracle: Oracle::VERDICT,
        kind: "line: ",
        can_have: explores_more,
    },
    // bpflab gives the slice of a ring buffer's record the record's reference
    // (docs/verifier-differences.md). Without the slice in a register, more states are subsumed.
    // In Linux 6.18 the registers of an atomic operation that fetches stay precise, in bpflab
    // precision is backtracked through it (CVE-2026-43009): fewer states are precise. Without the
    // id of a spilled scalar there is nothing to be linked. The other direction of a 32-bit comparison
    // of a pointer with 0 moves the checkpoints behind it, which depend on the jumps and instructions
    // that were explored (`is_state_visited`).
    Known {
        oracle: Oracle::VERDICT,
        kind: "processed: less",
        can_have: |program| {
            calls_slice(program)
                || fetches(program)
                || has_signed_fill(program)
                || compares_half_of_pointer(program)
        },
    },
    // Without the slice in a register, its half is a number and no part of a pointer.
    Known {
        oracle: Oracle::VERDICT,
        kind: "false-accept: ours [], kernel [invalid size of register spill]",
        can_have: calls_slice,
    },
    // As the last but one, where the error line shows the states.
    Known {
        oracle: Oracle::VERDICT,
        kind: "line: ours [old state",
        can_have: calls_slice,
    },
    // An iterator that is left from an RCU read section is subsumed by one that is not
    // (docs/findings.md). bpflab does the same where the program never sleeps.
    Known {
        oracle: Oracle::SAMENESS,
        kind: "expected an RCU CS when using ",
        can_have: |program| !program.flags.contains(ProgFlags::SLEEPABLE),
    },
    Known {
        oracle: Oracle::VERDICT,
        kind: "false-reject: ours [expected an RCU CS when using ",
        can_have: |program| program.flags.contains(ProgFlags::SLEEPABLE),
    },
    // x86-64 has atomic operations at any address, so Linux does not ask for aligned ones. The
    // checked interpreter has no others than Rust's.
    Known {
        oracle: Oracle::SAFETY,
        kind: "accepted, but faults: atomically changes # bytes at ",
        can_have: |_| true,
    },
    // A callback may store the address of its key in a frame that outlives it (docs/findings.md).
    Known {
        oracle: Oracle::SAFETY,
        kind: "accepted, but faults: reads # bytes at map key of ",
        can_have: has_callback,
    },
    // The verifier accepts an endless loop around a call with a callback (docs/findings.md): it
    // prunes at the call. Without pruning the loop is detected.
    Known {
        oracle: Oracle::SAMENESS,
        kind: "old state",
        can_have: has_callback,
    },
    // A dynptr with a reference must not be overwritten, a clone neither. A loop that clones into
    // a slot which is dead at its head does that the second time, unless that path is pruned:
    // pruning ignores dead slots.
    Known {
        oracle: Oracle::SAMENESS,
        kind: "cannot overwrite referenced dynptr",
        can_have: |_| true,
    },
    // What depends on the order of exploration in Linux 6.18 (docs/findings.md, docs/fuzzing.md):
    //
    // - For a loader that may read uninitialised stack, a slot that the explored state never wrote
    //   subsumes any slot (`stacksafe`). So what a load makes of a spilled pointer is rejected only
    //   if the path with the pointer is explored before one without.
    // - Paths are explored that no run takes, where bounds show it. What it takes the registers for
    //   there may lead to an error, which is not found if an explored state subsumes the one before:
    //
    //       r8 |= 1
    //       if r8 <= 7 goto out         ; else odd, from 8 on
    //       if r8 > 8 goto out          ; else 9, which is the first such number
    //       r1 += r8                    ; too far
    //
    // - So that loops converge, the verifier makes scalars unknown that differ from the iteration
    //   before, unless it has found by then that their values matter (`widen_imprecise_scalars`),
    //   which depends on the paths that were explored before.
    Known {
        oracle: Oracle::SAMENESS,
        kind: ORDER,
        can_have: |_| true,
    },
    // The verifier lets a program pass argument registers that it never wrote, or that a call
    // before left with anything, where it ignores the arguments: those behind the format of
    // `bpf_trace_printk`, and a kfunc's with the suffix `__ign`.
    Known {
        oracle: Oracle::VALUE,
        kind: "",
        can_have: ignores_arguments,
    },
];

/// Whether a program makes a call that may pass arguments which the verifier ignores.
fn ignores_arguments(program: &Program) -> bool {
    let code = Code::new(&program.insns);
    code.insns().any(|(_, insn)| match insn {
        Insn::Call(CallTarget::Helper(helper)) => helper == id::trace_printk,
        Insn::Call(CallTarget::Kfunc { .. }) => true,
        _ => false,
    })
}

/// Whether a program takes slices of dynptrs.
fn calls_slice(program: &Program) -> bool {
    let Some(btf) = &program.kernel_btf else {
        return false;
    };
    let name = |insn: &RawInsn| {
        let id = u32::try_from(insn.imm)
            .ok()
            .filter(|_| insn.opcode == CALL)?;
        Some(btf.get(TypeId(id))?.name().to_owned())
    };
    let kfuncs = program.insns.iter().filter(|insn| insn.src() == 2);
    let mut names = kfuncs.filter_map(name);
    names.any(|name| name.starts_with("bpf_dynptr_slice"))
}

/// Whether bpflab may explore paths of a program that Linux 6.18 prunes or takes for impossible.
fn explores_more(program: &Program) -> bool {
    has_signed_fill(program)
        || tests_half_for_null(program)
        || fetches(program)
        || fetches_from_arena(program)
        || computes_with_untrusted_memory(&verdict_of(program).log)
}

/// Whether a program has an atomic operation that fetches (`BPF_FETCH`).
fn fetches(program: &Program) -> bool {
    let mut insns = program.insns.iter();
    insns.any(|insn| matches!(insn.opcode, 0xc3 | 0xdb) && insn.imm & 1 != 0)
}

/// Whether a program may have an atomic operation that fetches from an arena: of a missing page it
/// fetches nothing, and the register keeps its number, which Linux's verifier does not know
/// (docs/findings.md).
fn fetches_from_arena(program: &Program) -> bool {
    let has_arena = program
        .maps
        .iter()
        .any(|map| map.map_type == MapType::Arena);
    let mut insns = program.insns.iter();
    has_arena
        && insns.any(|insn| insn.opcode & 0xe7 == 0xc3 && (insn.imm & 1 != 0 || insn.imm == 0x100))
}

/// Whether a program takes the address of one of its functions.
fn has_callback(program: &Program) -> bool {
    let is_function = |insn| {
        matches!(
            insn,
            Insn::LoadPseudo {
                source: Pseudo::Func { .. },
                ..
            }
        )
    };
    Code::new(&program.insns)
        .insns()
        .any(|(_, insn)| is_function(insn))
}

/// Whether a program loads from its stack with sign extension.
fn has_signed_fill(program: &Program) -> bool {
    let is_signed_load = |opcode: u8| opcode & 7 == 1 && opcode & 0xe0 == 0x80;
    let mut insns = program.insns.iter();
    insns.any(|insn| is_signed_load(insn.opcode) && insn.src() == 10)
}

/// Whether a program compares the lower half of a register with 0, or with another register.
fn tests_half_for_null(program: &Program) -> bool {
    // `jeq32` and `jne32`, with a constant and with a register.
    let mut insns = program.insns.iter();
    insns.any(|insn| match insn.opcode {
        0x16 | 0x56 => insn.imm == 0,
        0x1e | 0x5e => true,
        _ => false,
    })
}

/// bpflab's verdict on a program, with its log.
fn verdict_of(program: &Program) -> Verdict {
    let options = Options::default().with_log(LogLevel::ALL);
    verify(&Arc::new(program.clone()), &options).verdict
}

/// Whether the program of a log computes with a pointer to untrusted memory. The log has the pointer on
/// the line of the operation, or on the next one behind those about precision:
///
/// ```text
/// 6: (3f) r0 s/= r2
/// mark_precise: frame0: last_idx 6 first_idx 0 subseq_idx -1
/// 7: R0=scalar() R2=rdonly_untrusted_mem(sz=0)
/// ```
fn computes_with_untrusted_memory(log: &str) -> bool {
    let lines = log.lines().filter(|line| !line.starts_with("mark_precise"));
    let lines: Vec<_> = lines.collect();
    let computes = |line: &str| {
        let operation = line.split_once("= r");
        operation.is_some_and(|(before, _)| !before.ends_with(' ') && !before.contains(" if "))
    };
    let is_untrusted = |line: &&str| line.contains("=rdonly_untrusted_mem(");
    let mut pairs = lines.windows(2);
    pairs.any(|pair| computes(pair[0]) && pair.iter().any(is_untrusted))
}

/// Whether a program compares the lower half of a pointer with 0 or with another register, by
/// bpflab's log:
///
/// ```text
/// 16: (16) if w0 == 0x0 goto pc+1       ; R0=map_value(map=values,ks=4,vs=64)
/// ```
fn compares_half_of_pointer(program: &Program) -> bool {
    if !tests_half_for_null(program) {
        return false;
    }
    let compares = |insn: &str| {
        let equality = insn.contains(" == ") || insn.contains(" != ");
        equality && insn.contains(" if w")
    };
    verdict_of(program).log.lines().any(|line| {
        let parts = line.split_once("; ");
        parts.is_some_and(|(insn, states)| compares(insn) && states.split(' ').any(is_pointer))
    })
}

/// Whether a register of the log holds a pointer (`R0=fp-8`), and no number (`R0=5`,
/// `R0=scalar(...)`, `R0=Pscalar()`).
fn is_pointer(state: &str) -> bool {
    let register = state.starts_with('R').then(|| state.split_once('='));
    register.flatten().is_some_and(|(_, value)| {
        let value = value.trim_start_matches('P');
        !value.starts_with("scalar") && !value.starts_with(|c: char| c == '-' || c.is_ascii_digit())
    })
}

/// Whether a problem is a known one.
pub(super) fn is_known(problem: &Problem, candidate: &Candidate) -> bool {
    KNOWN.iter().any(|known| {
        known.oracle == problem.oracle
            && problem.kind.starts_with(known.kind)
            // Only changed programs ignore what the generator knows.
            && (known.oracle != Oracle::VALUE || candidate.strategy == Some(Strategy::Mutants))
            && candidate.programs().any(|program| (known.can_have)(program))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::spec::ProgType;

    #[test]
    fn a_comparison_of_half_a_pointer_is_found() {
        let found = |first: &str| {
            let text = format!("r0 = 0\n{first}\nif w2 == 0 goto +0\nexit");
            let insns = assemble(&text).expect("a program");
            compares_half_of_pointer(&Program::new("half", ProgType::SocketFilter, insns))
        };
        assert!(found("r2 = r10"));
        assert!(!found("r2 = -5"));
        assert!(!found("r2 = *(u32 *)(r1 +0)"));
        assert!(!found("r2 = 3\nif r10 == r2 goto +0"));
    }

    #[test]
    fn arithmetic_with_untrusted_memory_is_found() {
        let pointer = "R2=rdonly_untrusted_mem(sz=0)";
        let found = |insn: &str, states: &str| {
            computes_with_untrusted_memory(&format!("6: (0f) {insn}{states}\n8: (95) exit"))
        };
        let precision = "\nmark_precise: frame0: regs=r0 stack= before 5: (b7) r0 = 1";
        assert!(found("r0 += r2", &format!(" ; R0=1 {pointer}")));
        assert!(found(
            "r0 s/= r2",
            &format!("{precision}\n7: R0=scalar() {pointer}")
        ));
        assert!(!found("r0 += r2", " ; R0=1 R2=2"));
        assert!(!found("r0 = r2", &format!(" ; R0=scalar() {pointer}")));
        assert!(!found(
            "if r0 >= r2 goto pc+1",
            &format!(" ; R0=1 {pointer}")
        ));
    }
}
