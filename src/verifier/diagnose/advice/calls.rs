//! Calls with invalid arguments, and operations that a program may not use.

use super::row::{Advice, When, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "expected prog array map for tail call" => CallType {
        problem: "tail call through a map of another type",
        reason: "bpf_tail_call() takes a map whose entries are programs.",
        here: "the map is no array of programs",
        expected: "a map of type BPF_MAP_TYPE_PROG_ARRAY",
        help: "change the map's definition: type BPF_MAP_TYPE_PROG_ARRAY, with keys and values of four bytes",
    }
    "arg#{number} reference type('{type}') size cannot be determined: {errno}", When::CallsFunction => CallType {
        problem: "parameter of a type without a size",
        reason: "{helper}() is a global function, which is verified on its own, by the types of its parameters. The pointer in parameter {number} (from 0) is to a type of unknown size, such as void.",
        here: "calls {helper}()",
        expected: "pointers to types of known size, or to the context of the program type",
        help: "declare the parameter with its own type (`struct __sk_buff *ctx`, not `void *ctx`), or make the function static: a static function is verified with its callers",
    }
    "R{reg} type={type}_or_null expected={wanted}" => CallType {
        problem: "argument that may be NULL",
        reason: "R{reg} may be NULL here, and {helper}() does not take NULL.",
        here: "R{reg} may be NULL",
        expected: "a test for NULL between {made} and this call; then {demand}",
        help: "test it first: `if (!pointer) return 0;`",
    }
    "R{reg} type=scalar expected={wanted}" => CallType {
        problem: "number where a pointer is needed",
        reason: "R{reg} holds a number, which {helper}() does not take there.",
        here: "R{reg} is a number",
        expected: "{demand}",
        help: "pass the address of a variable, not its value (`&key`, not `key`), and compare the call with the helper's declaration",
    }
    "R{reg} type={type} expected={wanted}" => CallType {
        problem: "argument of the wrong type",
        reason: "R{reg} holds {kind}, which {helper}() does not take there.",
        here: "R{reg} is {kind}",
        expected: "{demand}",
        help: "compare the call with the helper's declaration: the order of its arguments, and what each points to",
    }
    "cannot pass map_type {type} into func {helper}#{id}" => CallType {
        problem: "map of the wrong type",
        reason: "{helper}() doesn't work on maps of type {type}.",
        here: "the map's type does not fit",
        expected: "a map of a type that this helper takes",
        help: "change the map's type in its definition, or use the helper for this map type",
    }
    "program of this type cannot use helper {helper}#{id}" => Policy {
        problem: "helper that this program type may not call",
        reason: "{helper}() is not available to {prog_type} programs.",
        here: "not for {prog_type} programs",
        expected: "a helper that this program type may call",
        help: "attach the program where the helper is allowed (the section name decides the type), or use another helper; `bpftool feature probe` lists them by type",
    }
    "cannot call GPL-restricted function from non-GPL compatible program" => Policy {
        problem: "helper for GPL-compatible programs only",
        reason: "{helper}() may be called only by programs under a license that is compatible with the GPL.",
        here: "{helper}() is GPL-only",
        expected: "a compatible license in the section \"license\"",
        help: "declare it: `char LICENSE[] SEC(\"license\") = \"GPL\";` (or \"Dual MIT/GPL\", \"Dual BSD/GPL\"), or do without the helper",
    }
    "invalid func {name}#{id}", When::Poison(195_896_080..=195_896_080) => Policy {
        problem: "access to a field that the kernel does not have",
        reason: "The loader did not find {access} in the kernel's BTF and replaced the instruction by an invalid call (poison).",
        here: "the field or type isn't in the kernel's BTF",
        expected: "a field that exists, or a check that keeps this path from being reached",
        help: "check first: `if (bpf_core_field_exists(task->field))`; `bpflab disasm` names the access",
    }
    "invalid func {name}#{id}", When::Poison(2_002_000_000..=2_002_999_999) => Policy {
        problem: "kfunc that the kernel does not have",
        reason: "The loader found no kfunc of this name and replaced the call by an invalid one (poison).",
        here: "there is no such kfunc",
        expected: "a kfunc of the running kernel, or a check that keeps this path from being reached",
        help: "check first: `if (bpf_ksym_exists(function))`; kfuncs come and go between releases",
    }
    "invalid func {name}#{id}", When::Poison(2_001_000_000..=2_001_999_999) => Policy {
        problem: "map that is not created",
        reason: "The map's creation is disabled, and the loader replaced its address by an invalid call (poison).",
        here: "the map does not exist",
        expected: "the map, or a check that keeps this path from being reached",
        help: "enable the map's creation (autocreate)",
    }
    "invalid func {name}#{id}" => Policy {
        problem: "helper that does not exist",
        reason: "This kernel has no helper number {id}.",
        here: "there is no helper number {id}",
        expected: "a helper that the kernel has",
        help: "include the header of the target kernel, or do without the helper",
    }
    "calling kernel function {name} is not allowed" => Policy {
        problem: "kfunc that this program type may not call",
        reason: "{name} is not available to {prog_type} programs.",
        here: "not for {prog_type} programs",
        expected: "a kfunc that this program type may call",
        help: "attach the program where the kfunc is allowed",
    }
    "tail_calls are not allowed when call stack of previous frames is {size} bytes. Too large" => Policy {
        problem: "tail call with too much on the stack",
        reason: "A subprogram makes a tail call, and its callers hold {size} bytes of stack, which would stay in use.",
        here: "a tail call here may leave {size} bytes in use",
        expected: "at most 256 bytes of stack in the callers of a function that makes tail calls",
        help: "make the tail call in the main program, or move the callers' buffers into a per-CPU array map",
    }
};
