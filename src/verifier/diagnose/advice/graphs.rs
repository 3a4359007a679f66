//! Objects that a program allocates, lists and trees of them, locks that may fail, exceptions.

use super::row::{Advice, rows};

#[rustfmt::skip]
pub(super) const ADVICE: &[Advice] = rows! {
    "bpf_spin_lock at off={off} must be held for {what}" => Resource {
        problem: "list or tree used without its lock",
        reason: "The lock beside this {what} protects it, and {helper}() is called without it.",
        here: "the lock is not held here",
        expected: "the lock in the same map value or object, taken before this call",
        help: "call bpf_spin_lock() before it, and bpf_spin_unlock() after the last use of the elements",
    }
    "arg#{number} expected pointer to allocated object" => CallType {
        problem: "something else than an object of the program",
        reason: "{helper}() takes an object that the program owns. This one belongs to a list or tree, or is none.",
        here: "no object that the program owns",
        expected: "what bpf_obj_new() returned, or what was removed from a list or tree",
        help: "after an insertion the list or tree owns the object: to use it elsewhere, insert another reference (bpf_refcount_acquire()), or remove it first",
    }
    "allocated object must be referenced" => CallType {
        problem: "object that the program does not own",
        reason: "{helper}() takes an object that the program owns, and this one was not acquired.",
        here: "no reference to this object",
        expected: "what bpf_obj_new() returned, or what was removed from a list or tree",
        help: "exchange it out of its map (bpf_kptr_xchg()), or acquire a reference (bpf_refcount_acquire())",
    }
    "{callee} can only take non-owning or refcounted bpf_rb_node pointer" => CallType {
        problem: "element that is no longer known to be there",
        reason: "References to elements end when the lock is released: another CPU may remove them.",
        here: "not an element of the tree, or not any more",
        expected: "what bpf_rbtree_first(), _root(), _left() or _right() returned, under the same lock",
        help: "look the element up again after locking",
    }
    "{callee} not allowed in rbtree cb" => Policy {
        problem: "tree changed while it is searched",
        reason: "The function compares two elements for bpf_rbtree_add(), and must not change the tree.",
        here: "changes the tree",
        expected: "a comparison of the two elements",
        help: "make the call before or after bpf_rbtree_add()",
    }
    "can't spin_{what} in rbtree cb" => Policy {
        problem: "lock taken or released while a tree is searched",
        reason: "The function compares two elements for bpf_rbtree_add(), which needs the lock.",
        here: "changes the lock",
        expected: "a comparison of the two elements",
        help: "lock before bpf_rbtree_add() and unlock after it",
    }
    "direct access to {what} is disallowed" => Memory {
        problem: "special field accessed directly",
        reason: "Only kfuncs may access a {what}.",
        here: "accesses the {what}",
        expected: "an access to the other members",
        help: "pass the field's address to the kfunc that works on it; assign members one by one, not the whole struct",
    }
    "{what} not found at offset={off}" => CallType {
        problem: "pointer to another member",
        reason: "The object has no {what} at offset {off}.",
        here: "no {what} here",
        expected: "the address of the member",
        help: "pass `&object->member`; for a map's value, its declaration needs __contains(type, member)",
    }
    "arg#1 offset={off}, but expected {what} at offset={wanted} in struct {type}" => CallType {
        problem: "wrong node of the object",
        reason: "The list or tree holds its elements by the node at offset {wanted} of struct {type}.",
        here: "the node at offset {off}",
        expected: "the member that the declaration names: __contains({type}, member)",
        help: "pass the address of that member",
    }
    "operation on {root} expects arg#1 {node} at offset={wanted} in struct {type}, but arg is at offset={off} in struct {held}" => CallType {
        problem: "object of the wrong type",
        reason: "The {root} holds objects of struct {type}, and this is a struct {held}.",
        here: "a struct {held}",
        expected: "a struct {type}",
        help: "compare the list or tree with its declaration: __contains({type}, member)",
    }
    "R{reg} must have zero offset when passed to release func or trusted arg to kfunc" => CallType {
        problem: "pointer into an object instead of the object",
        reason: "R{reg} points behind the object's start, and {helper}() takes the object itself.",
        here: "points to a member of the object",
        expected: "the pointer to the object's start",
        help: "get the object from its node: `container_of(node, struct type, member)`",
    }
    "{name}_unlock cannot be out of order" => Resource {
        problem: "locks released in the wrong order",
        reason: "Another lock was taken after this one, and is still held.",
        here: "not the lock that was taken last",
        expected: "the locks released in the reverse order",
        help: "release the lock that was taken last first",
    }
    "Acquiring the same lock again, AA deadlock detected" => Resource {
        problem: "lock taken twice",
        reason: "The program holds this lock already.",
        here: "the same lock",
        expected: "a lock that is not held",
        help: "release it first",
    }
    "{name}_unlock of different lock" => Resource {
        problem: "another lock released than was taken",
        reason: "On this path no lock of this kind in this map value or object is held.",
        here: "not a lock that is held",
        expected: "the lock that was taken",
        help: "keep the pointer that was locked, and pass the same one",
    }
    "irq flag acquired by {saved} kfuncs cannot be restored with {used} kfuncs" => Resource {
        problem: "interrupts restored by the wrong function",
        reason: "A lock's interrupt state is restored by unlocking, any other by bpf_local_irq_restore().",
        here: "saved by another function",
        expected: "the counterpart of the function that saved it",
        help: "pair bpf_res_spin_lock_irqsave() with bpf_res_spin_unlock_irqrestore(), and bpf_local_irq_save() with bpf_local_irq_restore()",
    }
    "bpf_throw kfunc (insn {insn}) cannot be called from callback subprog {number}" => Policy {
        problem: "exception in a callback",
        reason: "Function {number} is called back by the kernel, or calls one that throws. An exception can't end the kernel's function in between.",
        here: "throws in a callback",
        expected: "exceptions in the program and its functions only",
        help: "let the callback return a value that stops the iteration, and throw after the call",
    }
    "bpf_throw would lead to reference leak" => Resource {
        problem: "exception while a reference is held",
        reason: "An exception ends the program at once, and would not release the reference.",
        here: "a reference is held here",
        expected: "everything released before the exception",
        help: "release it first; also in the functions that call this one",
    }
};
