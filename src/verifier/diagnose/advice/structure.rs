//! Errors in the structure of the program.

use super::row::{Advice, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "infinite loop detected at insn {insn}" => Structure {
        problem: "loop that does not end",
        reason: "The verifier has reached instruction {insn} again in the same state.",
        here: "loops in the same state",
        expected: "a loop with a variable that changes in each iteration and ends it",
        help: "count: `for (int i = 0; i < LIMIT; i++)`; bpf_loop() or bpf_for() for many iterations",
    }
    "back-edge from insn {from} to {to}" => Structure {
        problem: "loop",
        reason: "Instruction {from} jumps back to {to}, and this program may not have loops.",
        here: "jumps back",
        expected: "a program without backward jumps",
        help: "unroll the loop (`#pragma unroll`), or use bpf_loop()",
    }
    "BPF program is too large. Processed {count} insn" => Structure {
        problem: "program too complex",
        reason: "The verifier explores every path and every iteration of a loop, and gave up after {count} instructions.",
        here: "{place}",
        expected: "at most a million instructions along all paths",
        help: "loop with bpf_loop() or bpf_for(), whose body is verified once; lower the bound; split the program by functions with global linkage (verified on their own) or tail calls",
    }
    "The sequence of {count} jumps is too complex." => Structure {
        problem: "program too complex",
        reason: "{count} branches are waiting to be explored.",
        here: "{place}",
        expected: "at most 8192 branches at one time",
        help: "loop with bpf_loop() or bpf_for(); split the program by functions with global linkage",
    }
    "combined stack size of {count} calls is {size}. Too large" => Structure {
        problem: "stack too large",
        reason: "The frames of {count} functions that call one another take {size} bytes together.",
        here: "{size} bytes of stack",
        expected: "at most 512 bytes, each frame rounded up to 32",
        help: "move large buffers into a per-CPU array map of one element, or into global variables",
    }
    "the call stack of {count} frames is too deep !" => Structure {
        problem: "calls nested too deeply",
        reason: "{count} functions call one another.",
        here: "one call too many",
        expected: "at most 8 frames",
        help: "have some of the functions inlined (`static __always_inline`)",
    }
    "div by zero" => Structure {
        problem: "division by zero",
        reason: "The divisor is the constant 0.",
        here: "divides by 0",
        expected: "a divisor that is not 0",
        help: "correct the constant; a division by a register that holds 0 gives 0 and is allowed",
    }
    "unreachable insn {insn}" => Structure {
        problem: "unreachable code",
        reason: "No jump and no instruction before it leads to instruction {insn}.",
        here: "nothing leads here",
        expected: "every instruction on some path",
        help: "remove the code after `exit` or `goto` in inline assembly; compilers remove it automatically",
    }
    "last insn is not an exit or jmp" => Structure {
        problem: "program that runs past its end",
        reason: "The last instruction of the function is neither `exit` nor a jump.",
        here: "continues past the end",
        expected: "`exit` or a jump as the last instruction of each function",
        help: "end the function with `exit` (a naked function must do so itself); clang ends a function at undefined behaviour: see its warnings",
    }
    "jump out of range from insn {from} to {to}" => Structure {
        problem: "jump out of its function",
        reason: "Instruction {from} jumps to {to}, which is outside of its function.",
        here: "jumps out of the function",
        expected: "a target within the function",
        help: "correct the offset; functions are left by `exit` and entered by `call`",
    }
};
