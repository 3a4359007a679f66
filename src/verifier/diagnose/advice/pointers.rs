//! Registers of the wrong type for an instruction.

use super::row::{Advice, When, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "R{reg} invalid mem access '{type}_or_null'" => RegisterType {
        problem: "pointer used without a test for NULL",
        reason: "R{reg} may be NULL here, and nothing on this path has ruled that out.",
        here: "R{reg} may be NULL",
        expected: "a test for NULL between {made} and this access",
        help: "test it first: `if (!pointer) return 0;`",
    }
    "R{reg} invalid mem access 'scalar'", When::Released => Resource {
        problem: "pointer used after a call that invalidated it",
        reason: "R{reg} was a pointer until {cause}, which invalidated it.",
        here: "the pointer is invalid since {cause}",
        expected: "a pointer that is still valid",
        help: "move the access before the call; a packet's pointers must be loaded from the context and compared again after it",
    }
    "R{reg} invalid mem access 'scalar'", When::NarrowLoad => RegisterType {
        problem: "number used as a pointer",
        reason: "R{reg} was read from fewer than eight bytes, so it can't be an address. Fields such as data and data_end are pointers in the context of packet programs only.",
        here: "reads or writes through a number",
        expected: "a pointer from the context that this program type has ({prog_type})",
        help: "declare the context as this program type has it, or make it a program of the type that has this field (its section name); a tracepoint's or kprobe's packet is read by bpf_probe_read_kernel()",
    }
    "R{reg} invalid mem access 'scalar'", When::Unwritten => RegisterType {
        problem: "pointer variable that was never set",
        reason: "R{reg} was read from a variable on the stack that nothing on this path wrote.",
        here: "reads or writes through what the stack held",
        expected: "a variable that every path sets before it is read",
        help: "initialise the variable where it is declared (`= NULL`), and test it before it is used",
    }
    "R{reg} invalid mem access 'scalar'" => RegisterType {
        problem: "number used as a pointer",
        reason: "R{reg} holds a number. It may be an address, but the verifier can't know what is there.",
        here: "reads or writes through a number",
        expected: "a pointer that the verifier knows: context, stack, map value, packet, or what a helper returned",
        help: "read it with a helper that may fail: bpf_probe_read_kernel() for addresses of the kernel (BPF_CORE_READ), bpf_probe_read_user() for those of user space",
    }
    "R{reg} invalid mem access 'map_ptr'" => RegisterType {
        problem: "access through a map",
        reason: "R{reg} holds the map itself, not a pointer to an element.",
        here: "reads or writes through a map",
        expected: "a pointer to an element",
        help: "use bpf_map_lookup_elem() to get a pointer to the element",
    }
    "R{reg} invalid mem access '{type}'" => RegisterType {
        problem: "access through a pointer that is not memory",
        reason: "R{reg} holds {kind}, which can't be read or written through.",
        here: "not accessible memory",
        expected: "a pointer to memory: context, stack, map value, packet, or what a helper returned",
        help: "pass it to a helper that takes it",
    }
    "R{reg} !read_ok", When::LostByCall => RegisterType {
        problem: "register used after a call clobbered it",
        reason: "R{reg} held a value before {cause}; calls leave R1 to R5 undefined.",
        here: "R{reg} is undefined since {cause}",
        expected: "a value written to R{reg} after the call",
        help: "keep what is needed later in a variable (R6 to R9 survive calls); in inline assembly, name R1 to R5 as clobbered",
    }
    "R{reg} !read_ok" => RegisterType {
        problem: "register used before it was written",
        reason: "On this path nothing has written to R{reg}.",
        here: "R{reg} is uninitialised",
        expected: "a value in R{reg} on every path; at the start only R1 (the context) and R10 (the frame pointer) have one",
        help: "initialise the variable where it is declared; a function that returns a value must do so on every path (R0)",
    }
    "frame pointer is read only" => RegisterType {
        problem: "frame pointer written",
        reason: "R10 always points to the frame, and nothing may write to it.",
        here: "writes to R10",
        expected: "another register as the destination",
        help: "copy it first: `r2 = r10; r2 += -8`",
    }
    "dereference of modified {what} ptr R{reg} off={off} disallowed" => RegisterType {
        problem: "modified pointer where the original is needed",
        reason: "R{reg} is a pointer to {what} to which {off} was added.",
        here: "R{reg} has been moved by {off}",
        expected: "the pointer as the program was given it",
        help: "pass the pointer itself (`ctx`, not `ctx + 8` or `&ctx->field`); where a field's value is wanted, copy it to the stack and pass that",
    }
    "R{reg} pointer arithmetic with {op} operator prohibited" => RegisterType {
        problem: "arithmetic whose result is not a pointer",
        reason: "{op} is applied to R{reg}, a pointer; only adding or subtracting a number keeps it one.",
        here: "{op} on a pointer",
        expected: "+= or -= of a bounded number",
        help: "compute the offset as a number first, then add it to a pointer; for a hash of an address, copy it through bpf_probe_read_kernel()",
    }
    "R{reg} bitwise operator {op} on pointer prohibited" => RegisterType {
        problem: "bitwise arithmetic on a pointer",
        reason: "{op} is applied to R{reg}, a pointer.",
        here: "{op} on a pointer",
        expected: "+= or -= of a bounded number",
        help: "mask the index before it is added to the pointer",
    }
    "R{reg} 32-bit pointer arithmetic prohibited" => RegisterType {
        problem: "32-bit arithmetic on a pointer",
        reason: "The upper half of the pointer in R{reg} would be lost.",
        here: "32 bits of a pointer",
        expected: "64-bit arithmetic on pointers",
        help: "use `unsigned long` or `__u64` for offsets that are added to pointers",
    }
    "R{reg} pointer arithmetic on {type} prohibited, null-check it first" => RegisterType {
        problem: "arithmetic on a pointer that may be NULL",
        reason: "R{reg} may be NULL here; after the addition it could no longer be tested for NULL.",
        here: "R{reg} may be NULL",
        expected: "a test for NULL between {made} and this instruction",
        help: "test it first: `if (!pointer) return 0;`",
    }
    "R{reg} pointer arithmetic on map_ptr prohibited" => RegisterType {
        problem: "arithmetic on a map",
        reason: "R{reg} holds the map itself, not a pointer to an element.",
        here: "this pointer can't be moved",
        expected: "a pointer to an element",
        help: "get one with bpf_map_lookup_elem(), test it for NULL and move that",
    }
    "R{reg} pointer arithmetic on pkt_end prohibited" => RegisterType {
        problem: "arithmetic on the packet's end",
        reason: "R{reg} holds the packet's end, which can only be compared.",
        here: "this pointer can't be moved",
        expected: "the packet's end as it is",
        help: "move the other side of the comparison: `if (pointer + length > data_end)`",
    }
    "R{reg} pointer arithmetic on {type} prohibited" => RegisterType {
        problem: "arithmetic on a pointer that can't be moved",
        reason: "R{reg} holds {kind}, and no offset may be added to it.",
        here: "this pointer can't be moved",
        expected: "the pointer as the program was given it",
        help: "read the fields through the pointer itself (`pointer->field`), and pass it on unchanged",
    }
    "R{reg} pointer comparison prohibited" => RegisterType {
        problem: "comparison of pointers of different kinds",
        reason: "R{reg} is compared with a pointer to something else.",
        here: "these pointers can't be compared",
        expected: "pointers into the same object, or a test for NULL",
        help: "compare packet pointers with data_end, others only with NULL",
    }
    "{what} cannot be used inside bpf_spin_lock-ed region", When::Inside("bpf_spin_lock") => Resource {
        problem: "lock that is still held",
        reason: "bpf_spin_lock() has locked on this path, and no bpf_spin_unlock() follows.",
        here: "the lock is still held",
        expected: "one bpf_spin_unlock() on every path that locks, before it ends",
        help: "unlock before this return, too; a single exit (`goto unlock`) makes that easy",
    }
    "function calls are not allowed while holding a lock", When::Calls("bpf_spin_lock") => Resource {
        problem: "second lock under a lock",
        reason: "A lock is held, and a program may hold one bpf_spin_lock at a time.",
        here: "takes a second lock",
        expected: "one lock at a time",
        help: "copy what is needed of the first object into variables, unlock it, and then lock the second",
    }
    "function calls are not allowed while holding a lock", When::Inside("bpf_spin_lock") => Resource {
        problem: "call under a lock",
        reason: "Between bpf_spin_lock() and bpf_spin_unlock() no other helper may be called.",
        here: "the lock is still held",
        expected: "plain loads, stores and arithmetic only, until bpf_spin_unlock()",
        help: "make the call before locking or after unlocking, and keep its result in a variable",
    }
    "Unreleased reference id={id} alloc_insn={insn}" => Resource {
        problem: "reference that is not released",
        reason: "The reference acquired by instruction {insn} is not released on this path.",
        here: "the path ends here without a release",
        expected: "one release on every path: bpf_ringbuf_submit() or bpf_ringbuf_discard() for records, bpf_sk_release() for sockets, bpf_…_release() for what a kfunc acquired, bpf_iter_…_destroy() for iterators",
        help: "release what this call returned on every path that leaves the program or function; a single exit (`goto out`) makes that easy",
    }
    "arg {arg} is an unacquired reference" => Resource {
        problem: "release of something that was not acquired",
        reason: "Argument {arg} was not acquired, or has been released already.",
        here: "nothing to release",
        expected: "what an acquiring helper returned, once",
        help: "release it only once",
    }
    "release helper {helper} expects referenced PTR_TO_BTF_ID passed to {func}" => Resource {
        problem: "release of something that was not acquired",
        reason: "The argument was not acquired by this program.",
        here: "nothing to release",
        expected: "what an acquiring helper returned, once",
        help: "release only what the program has acquired itself",
    }
    "At {when} return the register R{reg} has {range} should have been in [0, 1]", When::CalledBack => RegisterType {
        problem: "return value of a callback out of range",
        reason: "The callback of {cause} returns a value for which R{reg} has {range}. It may return 0 to continue or 1 to stop.",
        here: "returns neither 0 nor 1",
        expected: "0 or 1 on every path of the callback",
        help: "`return 0;` to continue, `return 1;` to stop; pass results through the callback's context or a global variable",
    }
    "At {when} return the register R{reg} has {range} should have been in {allowed}" => RegisterType {
        problem: "return value of a callback out of range",
        reason: "The callback returns a value for which R{reg} has {range}, and it must be in {allowed}.",
        here: "returns a value outside of {allowed}",
        expected: "a value in {allowed} on every path of the callback",
        help: "return a constant from {allowed}; pass results through the callback's context or a global variable",
    }
    "R0 not a scalar value", When::CalledBack => RegisterType {
        problem: "return value of a callback that is not a number",
        reason: "The callback of {cause} returns a pointer, or nothing. It must return a number.",
        here: "does not return a number",
        expected: "0 to continue or 1 to stop, on every path of the callback",
        help: "`return 0;` to continue, `return 1;` to stop; pass results through the callback's context or a global variable",
    }
    "At program exit the register R{reg} is not a known value ({type})" => RegisterType {
        problem: "return value that is not a number",
        reason: "The program returns {kind}, and a {prog_type} program must return a number from its range.",
        here: "returns {kind}",
        expected: "a number that this program type may return",
        help: "return a constant",
    }
    "At program exit the register R{reg} has {range} should have been in {allowed}" => RegisterType {
        problem: "return value out of range",
        reason: "R{reg} has {range}, and a {prog_type} program must return a value in {allowed}.",
        here: "returns a value outside of {allowed}",
        expected: "a value in {allowed} on every path",
        help: "return one of the constants of this program type; a value that is computed must be bounded first",
    }
};
