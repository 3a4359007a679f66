//! Kernel objects, kfuncs, dynptrs and iterators.

use super::row::{Advice, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "R{reg} invalid mem access '{type}_or_null_'" => RegisterType {
        problem: "pointer used without a test for NULL",
        reason: "R{reg} may be NULL here, and nothing on this path has ruled that out.",
        here: "R{reg} may be NULL",
        expected: "a test for NULL between {made} and this access",
        help: "test it first: `if (!pointer) return 0;`",
    }
    "Possibly NULL pointer passed to {callee} arg{number}" => CallType {
        problem: "argument that may be NULL",
        reason: "The argument may be NULL here, and {helper}() does not take NULL.",
        here: "the argument may be NULL",
        expected: "a test for NULL before this call",
        help: "test it first: `if (!pointer) return 0;`",
    }
    "R{reg} must be referenced or trusted" => CallType {
        problem: "object that may be gone",
        reason: "R{reg} was read from another object, and nothing keeps what it points to alive. {helper}() needs a valid object.",
        here: "R{reg} may point to an object that is gone",
        expected: "an argument of the tracepoint, or an object that was acquired",
        help: "pass the program's own argument, or acquire the object first, for example bpf_task_from_pid(task->pid); to read only, use BPF_CORE_READ()",
    }
    "R{reg} must be a rcu pointer" => CallType {
        problem: "object that may be gone",
        reason: "R{reg} was read from another object, and nothing keeps what it points to alive. {helper}() needs an object that is valid, or that RCU protects.",
        here: "R{reg} may point to an object that is gone",
        expected: "an argument of the tracepoint, an acquired object, or a field that RCU protects, read in an RCU read section",
        help: "pass the program's own argument, or acquire the object first, for example bpf_task_from_pid(task->pid); to read only, use BPF_CORE_READ()",
    }
    "R{reg} must be referenced" => Resource {
        problem: "release of an object that was not acquired",
        reason: "{helper}() releases a reference, and R{reg} has none.",
        here: "R{reg} is not an acquired reference",
        expected: "an object that the program acquired and has not released",
        help: "release only what bpf_…_acquire(), bpf_…_from_…() or bpf_kptr_xchg() returned",
    }
    "release kernel function {name} expects refcounted PTR_TO_BTF_ID" => Resource {
        problem: "release of an object that was not acquired",
        reason: "{name}() releases a reference, and the argument has none.",
        here: "the argument is not an acquired reference",
        expected: "an object that the program acquired and has not released",
        help: "release only what bpf_…_acquire(), bpf_…_from_…() or bpf_kptr_xchg() returned",
    }
    "kernel function {name} args#{number} expected pointer to {kind_of} {wanted} but R{reg} has a pointer to {kind_held} {type}" => CallType {
        problem: "object of the wrong type",
        reason: "R{reg} points to a {type}, and {name}() takes a {wanted}.",
        here: "R{reg} points to a {type}",
        expected: "a pointer to a {wanted}",
        help: "compare the call with the declaration of {name}(): the order of its arguments, and what each points to",
    }
    "arg#{number} expected pointer to ctx, but got {type}" => CallType {
        problem: "something else than the context",
        reason: "{helper}() takes the program's context, not {type}.",
        here: "not the program's context",
        expected: "the pointer that the program got as its argument, without an offset",
        help: "pass `ctx` itself",
    }
    "kernel func {name} is sleepable within {section} region" => Policy {
        problem: "call that may sleep where nothing may sleep",
        reason: "{name}() may sleep, and the program is in a section ({section}) in which it must not.",
        here: "{name}() may sleep",
        expected: "a call outside of the section",
        help: "leave the section first (bpf_rcu_read_unlock(), bpf_preempt_enable(), bpf_local_irq_restore()), or use a function that does not sleep",
    }
    "program must be sleepable to call sleepable kfunc {name}" => Policy {
        problem: "call that may sleep in a program that must not",
        reason: "{name}() may sleep, and this program may not.",
        here: "{name}() may sleep",
        expected: "a sleepable program, or a function that does not sleep",
        help: "make the program sleepable if its type allows it: a section like `fentry.s/…`, `lsm.s/…`, `uprobe.s/…`, `iter.s/…`",
    }
    "helper call might sleep in a non-sleepable prog" => Policy {
        problem: "call that may sleep in a program that must not",
        reason: "{helper}() may sleep, and this program may not, or not here.",
        here: "{helper}() may sleep",
        expected: "a sleepable program outside of RCU read sections, or a helper that does not sleep",
        help: "make the program sleepable if its type allows it: a section like `fentry.s/…`, `lsm.s/…`, `uprobe.s/…`, `iter.s/…`",
    }
    "kernel func {name} requires RCU critical section protection" => Policy {
        problem: "call outside of an RCU read section",
        reason: "{name}() works on objects that only RCU protects.",
        here: "no RCU read section is entered here",
        expected: "an RCU read section around the call",
        help: "call bpf_rcu_read_lock() before it, and bpf_rcu_read_unlock() after the last use",
    }
    "{what} cannot be used inside bpf_rcu_read_lock-ed region" => Resource {
        problem: "RCU read section that is not left",
        reason: "bpf_rcu_read_lock() has no matching bpf_rcu_read_unlock() on this path.",
        here: "still in an RCU read section",
        expected: "a call of bpf_rcu_read_unlock() on every path before this",
        help: "call bpf_rcu_read_unlock() before each return",
    }
    "{what} cannot be used inside bpf_preempt_disable-ed region" => Resource {
        problem: "preemption that is not enabled again",
        reason: "bpf_preempt_disable() has no matching bpf_preempt_enable() on this path.",
        here: "preemption is still disabled",
        expected: "a call of bpf_preempt_enable() on every path before this",
        help: "call bpf_preempt_enable() before each return",
    }
    "{what} cannot be used inside bpf_local_irq_save-ed region" => Resource {
        problem: "interrupts that are not enabled again",
        reason: "bpf_local_irq_save() has no matching bpf_local_irq_restore() on this path.",
        here: "interrupts are still disabled",
        expected: "a call of bpf_local_irq_restore() on every path before this",
        help: "call bpf_local_irq_restore() with the same flags before each return",
    }
    "only read is supported" => Policy {
        problem: "write to a field of the kernel",
        reason: "The pointer is to an object of the kernel, which programs of this type can only read.",
        here: "writes to an object of the kernel",
        expected: "a write to the program's own memory: the stack, a map's value",
        help: "keep the value in a map (bpf_task_storage_get() keeps one for each task), or call a kfunc that changes the field",
    }
    "access beyond struct {type} at off {off} size {size}" => Memory {
        problem: "access outside of a structure",
        reason: "struct {type} has no bytes at offset {off}.",
        here: "{size} bytes at offset {off}",
        expected: "an access to one of its members",
        help: "compare the type with the one that the kernel passes; a cast to another structure does not change what is there",
    }
    "cannot access ptr member {member} with moff {moff} in struct {type} with off {off} size {size}" => Memory {
        problem: "part of a pointer read",
        reason: "The member {member} of struct {type} is a pointer, which has to be read whole.",
        here: "{size} bytes at offset {off}",
        expected: "a load of 8 bytes at offset {moff}",
        help: "read the pointer with one load: `p = object->{member};`",
    }
    "R{reg} is {type} access user memory: off={off}" => Memory {
        problem: "user memory read directly",
        reason: "R{reg} points to memory of user space, which may not be there.",
        here: "reads user memory",
        expected: "a call that may fail",
        help: "read it with bpf_probe_read_user() or, in a sleepable program, bpf_copy_from_user()",
    }
    "R{reg} is {type} access percpu memory: off={off}" => Memory {
        problem: "per-CPU memory read directly",
        reason: "R{reg} is an offset in each CPU's memory, not an address.",
        here: "reads per-CPU memory",
        expected: "the address of one CPU's copy",
        help: "get it with bpf_per_cpu_ptr() or bpf_this_cpu_ptr()",
    }
    "Expected an initialized dynptr as arg #{number}" => Resource {
        problem: "dynptr that is not valid",
        reason: "The dynptr was never initialised on this path, or a call has ended it (submit, discard), or the program has overwritten it.",
        here: "no valid dynptr here",
        expected: "a dynptr between the call that initialises it and the one that ends it",
        help: "use the dynptr before bpf_ringbuf_submit_dynptr() or bpf_ringbuf_discard_dynptr(), and end it once on each path",
    }
    "Dynptr has to be an uninitialized dynptr" => Resource {
        problem: "dynptr initialised twice",
        reason: "The variable holds a dynptr already, and overwriting it would lose what it refers to.",
        here: "already a dynptr",
        expected: "a variable that is not initialised",
        help: "use a second variable, or end the first dynptr before",
    }
    "expected an initialized {type} as arg #{number}" => Resource {
        problem: "iterator that does not exist",
        reason: "On this path the iterator was not created, or it was destroyed.",
        here: "no iterator here",
        expected: "an iterator between its creation and its destruction",
        help: "create the iterator on every path that uses it, also if creating it returns an error, and destroy it after the loop",
    }
    "expected uninitialized {type} as arg #{number}" => Resource {
        problem: "iterator created twice",
        reason: "The variable holds an iterator already.",
        here: "already an iterator",
        expected: "a variable that holds no iterator",
        help: "destroy the first one before, or use a second variable",
    }
    "store to referenced kptr disallowed" => Resource {
        problem: "kernel pointer assigned to a map's value",
        reason: "The field keeps a reference to a kernel object. A plain store would lose the old one and share the new one.",
        here: "stores to a `__kptr` field",
        expected: "an exchange, which moves the reference into the map",
        help: "`old = bpf_kptr_xchg(&value->field, object);`, and release `old` if it is not NULL",
    }
    "unmatched rcu read unlock (kernel function {name})" => Resource {
        problem: "RCU read section left without being entered",
        reason: "On this path no bpf_rcu_read_lock() comes before.",
        here: "no RCU read section is entered here",
        expected: "a call of bpf_rcu_read_lock() before this",
        help: "pair the calls on every path",
    }
};
