//! Errors about what a program attaches to: members of structures of operations, functions of
//! other programs.

use super::row::{Advice, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "attach to unsupported member {member} of struct {type}" => Policy {
        problem: "operation that programs can't implement",
        reason: "The kernel calls no program for {member} of struct {type}, or none that may sleep.",
        here: "implements {member}",
        expected: "a member that programs may implement",
        help: "leave the member out; if the section is `struct_ops.s/…`, use `struct_ops/…`",
    }
    "invalid bpf_context access off={off}. Reference may already be released" => Resource {
        problem: "argument used after its release",
        reason: "The argument at offset {off} of the context is a reference, which this path has given back.",
        here: "loads the argument again",
        expected: "no use of the argument after the call that releases it",
        help: "release it last; a global function does not know what its callers have released: make it static",
    }
    "program with __ref argument cannot tail call" => Structure {
        problem: "tail call with a reference",
        reason: "The kernel hands the program a reference, which the target of a tail call would not get.",
        here: "a tail call",
        expected: "no tail call in a program with such an argument",
        help: "call a function instead",
    }
    "{own}() has {count} args while {other}() has {others} args" => Structure {
        problem: "extension of another type",
        reason: "{own}() has {count} parameters, and {other}(), which it replaces, has {others}.",
        here: "{count} parameters",
        expected: "the prototype of {other}()",
        help: "declare {own}() as {other}() is declared",
    }
    "arg{number} in {own}() has size {size} while {other}() has {wanted}" => Structure {
        problem: "extension of another type",
        reason: "Parameter {number} of {own}() has {size} bytes, that of {other}(), which it replaces, {wanted}.",
        here: "another type than in {other}()",
        expected: "the prototype of {other}()",
        help: "declare {own}() as {other}() is declared",
    }
    "arg{number} in {own}() is {kind} while {other}() has {wanted}" => Structure {
        problem: "extension of another type",
        reason: "Parameter {number} of {own}() is {kind} in BTF, that of {other}(), which it replaces, {wanted}.",
        here: "another type than in {other}()",
        expected: "the prototype of {other}()",
        help: "declare {own}() as {other}() is declared",
    }
    "arg{number} in {own}() relies on more than callers of {other}() pass" => Structure {
        problem: "extension of another type",
        reason: "The memory of parameter {number} of {own}() is larger than in {other}(), which it replaces, is tagged as never null, or is of another kind. Linux accepts that, though callers pass what {other}() takes.",
        here: "relies on memory that may not be there",
        expected: "the prototype of {other}()",
        help: "declare {own}() as {other}() is declared, with the same structures and tags",
    }
    "Extension program changes packet data, while original does not" => Structure {
        problem: "extension that changes the packet",
        reason: "Callers of the function keep pointers to the packet, since the function that they were verified with does not move it.",
        here: "may move the packet",
        expected: "no helper that changes packet data, or a target that calls one",
        help: "call such a helper in the original function, too",
    }
    "Subprog {name} doesn't exist" => Structure {
        problem: "function that the target does not have",
        reason: "{name}() is in the BTF of the target program, but not among its functions.",
        here: "replaces {name}()",
        expected: "a function that the target program calls",
        help: "extend the program that calls {name}(); declare the function `__noinline` and use its result",
    }
    "Cannot replace static functions" => Structure {
        problem: "function whose type is not certain",
        reason: "The verifier checked the function with other arguments than its type says.",
        here: "can't be replaced",
        expected: "a global function that takes what its type says",
        help: "remove `static`; a main program can be replaced if it takes its context only",
    }
    "{name}() is not a global function" => Structure {
        problem: "static function",
        reason: "Extensions replace global functions, which are verified on their own, and are such themselves.",
        here: "{name}() is static",
        expected: "two global functions",
        help: "remove `static` from {name}(), and add `__noinline`",
    }
};
