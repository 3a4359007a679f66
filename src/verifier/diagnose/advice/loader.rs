//! What the loader's capabilities don't allow.

use super::row::{Advice, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "R{reg} leaks addr as return value" => Policy {
        problem: "pointer returned",
        reason: "R{reg} holds a pointer, and a loader without CAP_PERFMON must not see where the kernel's memory is.",
        here: "returns a pointer",
        expected: "a number",
        help: "return a number; or load the program with CAP_PERFMON",
    }
    "R{reg} leaks addr into {to}" => Policy {
        problem: "pointer given away",
        reason: "R{reg} holds a pointer, and a loader without CAP_PERFMON must not see where the kernel's memory is.",
        here: "gives a pointer away",
        expected: "a number",
        help: "store or pass on what the pointer points to; or load the program with CAP_PERFMON",
    }
    "R{reg} pointer comparison prohibited" => Policy {
        problem: "comparison of a pointer",
        reason: "R{reg} holds a pointer; the result of the comparison says something about its address, which a loader without CAP_PERFMON must not learn.",
        here: "compares a pointer",
        expected: "a comparison of numbers, with the end of the packet, or of a pointer with NULL",
        help: "compare offsets instead; or load the program with CAP_PERFMON",
    }
    "R{reg} partial copy of pointer" => Policy {
        problem: "part of a pointer used as a number",
        reason: "R{reg} holds a pointer, and a loader without CAP_PERFMON must not see where the kernel's memory is.",
        here: "takes half of a pointer",
        expected: "a number",
        help: "copy all 64 bits of a pointer; or load the program with CAP_PERFMON",
    }
    "attempt to corrupt spilled pointer on stack" => Policy {
        problem: "part of a pointer overwritten",
        reason: "The stack slot holds a pointer, and a loader without CAP_PERFMON must not change a part of it.",
        here: "overwrites a part of a pointer",
        expected: "a store of eight bytes, or to another slot",
        help: "overwrite the whole variable; or load the program with CAP_PERFMON",
    }
    "R{reg} {what}, pointer arithmetic with it prohibited for !root" => Policy {
        problem: "pointer arithmetic that can't be made safe against speculation",
        reason: "R{reg} {what}. For a loader without CAP_PERFMON the kernel masks the number that is added, and has one mask for the instruction.",
        here: "adds to a pointer",
        expected: "a pointer to a map's value or the stack, moved in one direction, by as much on every path",
        help: "bound the index once, before it is added (`index &= SIZE - 1`); or load the program with CAP_PERFMON",
    }
    "R{reg} pointer arithmetic of map value goes out of range, prohibited for !root" => Policy {
        problem: "pointer that leaves the map's value",
        reason: "R{reg} may point outside of the value here, which a loader without CAP_PERFMON may not even compute.",
        here: "may leave the value",
        expected: "an offset that is bounded before it is added",
        help: "compare or mask the offset before it is added to the pointer; or load the program with CAP_PERFMON",
    }
    "R{reg} stack pointer arithmetic goes out of range, prohibited for !root; off={off}" => Policy {
        problem: "pointer that leaves the stack",
        reason: "R{reg} points to {off} of the frame pointer here, which a loader without CAP_PERFMON may not even compute.",
        here: "leaves the frame",
        expected: "an offset of -512 to -1",
        help: "add the offsets before they are added to the pointer; or load the program with CAP_PERFMON",
    }
    "loading/calling other bpf or kernel functions are allowed for CAP_BPF and CAP_SYS_ADMIN" => Policy {
        problem: "more than one function",
        reason: "A loader without CAP_BPF may load programs of one function, without callbacks and kfuncs.",
        here: "refers to another function",
        expected: "a program of one function",
        help: "have the functions inlined (`static __always_inline`); or load the program with CAP_BPF",
    }
    "'struct {name}' access is allowed only to CAP_PERFMON and CAP_SYS_ADMIN" => Policy {
        problem: "access to a kernel object",
        reason: "A loader without CAP_PERFMON must not read the kernel's objects, such as `struct {name}`.",
        here: "reads a kernel object",
        expected: "a helper that returns the field",
        help: "load the program with CAP_PERFMON",
    }
};
