//! Lists and trees of allocated objects: roots, nodes, and non-owning references to elements
//! (`__process_kf_arg_ptr_to_graph_root`, `__process_kf_arg_ptr_to_graph_node`).
//!
//! A list or tree owns its elements. While its lock is held, the program has non-owning
//! references to elements: after an insertion, in the callback that compares two of them, and
//! from functions that look up an element. Unlocking invalidates them.

use super::Call;
use super::argument::is_allocated;
use crate::btf::{FieldKind, SpecialField};
use crate::isa::{CallTarget, Insn, Reg};
use crate::spec::call::TypeFlags;
use crate::util::{Errno, TypeId};
use crate::verifier::env::Verifier;
use crate::verifier::log::type_name;
use crate::verifier::references::LockOwner;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::state::Entry;

/// The kfuncs that work on trees (`is_bpf_rbtree_api_kfunc`).
const TREES: &[&str] = &[
    "bpf_rbtree_add_impl",
    "bpf_rbtree_remove",
    "bpf_rbtree_first",
    "bpf_rbtree_root",
    "bpf_rbtree_left",
    "bpf_rbtree_right",
];

/// The kfuncs that insert the element in the second argument.
const INSERT: &[&str] = &[
    "bpf_list_push_front_impl",
    "bpf_list_push_back_impl",
    "bpf_rbtree_add_impl",
];

impl Call<'_> {
    /// Whether the call inserts an element.
    pub(super) fn inserts(&self) -> bool {
        INSERT.contains(&self.kfunc.name)
    }
}

impl Verifier<'_> {
    /// Checks a pointer to a list head or a tree root, whose lock must be held.
    pub(super) fn check_graph_root(
        &mut self,
        call: &mut Call<'_>,
        at: usize,
        reg: Reg,
        kind: FieldKind,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        let is_value = matches!(state.kind, Kind::MapValue { .. }) && state.flags.is_empty();
        if !is_value && !is_allocated(&state) {
            reject!(
                EINVAL,
                "arg#{at} expected pointer to map value or allocated object"
            );
        }
        if !is_value && state.ref_id == 0 {
            reject!(EINVAL, "allocated object must be referenced");
        }
        let name = kind.name();
        let off = graph_offset(&state, reg, kind)?;
        let fields = self.maps.fields_of(&state);
        let root = fields
            .iter()
            .find(|field| field.kind == kind && field.off == off);
        let Some(root) = root else {
            reject!(EINVAL, "{name} not found at offset={off}");
        };
        if !self.holds_lock_of(&state) {
            let lock = fields.find(FieldKind::SpinLock);
            let lock = lock.map_or(Errno::EINVAL.to_ret().cast_signed(), |lock| lock.off.into());
            let mut line = format!("bpf_spin_lock at off={lock} must be held for {name}");
            if self.held_lock().is_some() {
                line.insert_str(0, "held lock and object are not in the same allocation\n");
            }
            reject!(EINVAL, "{line}");
        }
        call.root = Some(*root);
        Ok(())
    }

    /// Whether a lock beside the field that a register points to is held
    /// (`check_reg_allocation_locked`).
    fn holds_lock_of(&self, state: &RegState) -> bool {
        let owner = match state.kind {
            Kind::MapValue { map, .. } => LockOwner::Map(map),
            _ => LockOwner::Object,
        };
        let mut held = self.state.refs.newest_first();
        held.any(|held| held.id == state.id && held.lock().is_some_and(|lock| lock.owner == owner))
    }

    /// Checks a pointer to the node of an element.
    pub(super) fn check_graph_node(
        &self,
        call: &mut Call<'_>,
        at: usize,
        reg: Reg,
        kind: FieldKind,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        if call.inserts() {
            if !is_allocated(&state) {
                reject!(EINVAL, "arg#{at} expected pointer to allocated object");
            }
            if state.ref_id == 0 {
                reject!(EINVAL, "allocated object must be referenced");
            }
        } else {
            let name = call.kfunc.name;
            let borrowed = TypeFlags::MEM_ALLOC | TypeFlags::NON_OWN_REF;
            let is_object = matches!(state.kind, Kind::BtfId { .. });
            if !(is_object && state.flags.contains(borrowed)) && state.ref_id == 0 {
                reject!(
                    EINVAL,
                    "{name} can only take non-owning or refcounted bpf_rb_node pointer"
                );
            }
            if self.in_tree_callback() {
                reject!(EINVAL, "{name} not allowed in rbtree cb");
            }
        }
        let name = kind.name();
        let off = graph_offset(&state, reg, kind)?;
        let fields = self.maps.fields_of(&state);
        let is_it = |field: &&SpecialField| field.kind == kind && field.off == off;
        let (Some(_), Kind::BtfId { ty }) = (fields.iter().find(is_it), state.kind) else {
            reject!(EINVAL, "{name} not found at offset={off}");
        };
        let Some(root) = call.root else {
            reject!(EFAULT, "{call} has no root before its node");
        };
        let element = element(root.target);
        let structure = type_name(self.program, element);
        if ty != element {
            reject!(
                EINVAL,
                "operation on {} expects arg#1 {name} at offset={} in struct {structure}, but \
                 arg is at offset={off} in struct {}",
                root.kind.name(),
                root.node,
                type_name(self.program, ty)
            );
        }
        if off != root.node {
            reject!(
                EINVAL,
                "arg#1 offset={off}, but expected {name} at offset={} in struct {structure}",
                root.node
            );
        }
        Ok(())
    }

    /// Makes the program's references to an inserted element non-owning: the list or tree
    /// owns it now.
    pub(super) fn lend_inserted(&mut self, call: &Call<'_>) -> VerifyResult {
        let id = self.reg(Reg::R2).ref_id;
        let refcounted = self.is_refcounted(call);
        for reg in self.state.all_regs_mut() {
            if reg.ref_id == id {
                reg.ref_id = 0;
                reg.flags |= borrowed(refcounted);
            }
        }
        if !self.release(id) {
            reject!(
                EINVAL,
                "kfunc {call} reference has not been acquired before"
            );
        }
        Ok(())
    }

    /// A pointer to the node of an element of the call's list or tree, which the result or a
    /// callback's argument is.
    pub(super) fn graph_node(&self, call: &Call<'_>) -> VerifyResult<RegState> {
        let Some(root) = call.root else {
            reject!(EFAULT, "{call} returns a node without a root");
        };
        let ty = element(root.target);
        let mut node = RegState::pointer(Kind::BtfId { ty }, TypeFlags::MEM_ALLOC);
        node.off = root.node.cast_signed();
        Ok(node)
    }

    /// The same, as a non-owning reference.
    pub(super) fn borrowed_node(&self, call: &Call<'_>) -> VerifyResult<RegState> {
        let mut node = self.graph_node(call)?;
        node.flags |= borrowed(self.is_refcounted(call));
        Ok(node)
    }

    /// Whether the elements of the call's list or tree have a reference count.
    fn is_refcounted(&self, call: &Call<'_>) -> bool {
        self.graph_node(call).is_ok_and(|node| {
            let fields = self.maps.fields_of(&node);
            fields.find(FieldKind::Refcount).is_some()
        })
    }

    /// Whether the current function is called by a kfunc that works on a tree, to compare two
    /// elements (`in_rbtree_lock_required_cb`).
    pub(in crate::verifier) fn in_tree_callback(&self) -> bool {
        let frame = self.frame();
        let called = frame.callsite.and_then(|pc| self.code().insn(pc));
        let (Entry::Callback, Some(Insn::Call(CallTarget::Kfunc { id, fd_index: 0 }))) =
            (frame.entry, called)
        else {
            return false;
        };
        let btf = self.program.kernel_btf.as_ref();
        let callee = btf.and_then(|btf| btf.get(id));
        callee.is_some_and(|callee| TREES.contains(&callee.name()))
    }
}

/// The flags of a non-owning reference. An object with a reference count is freed only after an
/// RCU grace period.
fn borrowed(refcounted: bool) -> TypeFlags {
    let mut flags = TypeFlags::NON_OWN_REF;
    flags.set(TypeFlags::MEM_RCU, refcounted);
    flags
}

/// The type of the elements of a list or tree, in the program's BTF.
const fn element(id: TypeId) -> ObjectType {
    ObjectType { id, own: true }
}

/// The offset of a root or a node in its object.
fn graph_offset(state: &RegState, reg: Reg, kind: FieldKind) -> VerifyResult<u32> {
    let Some(var) = state.var.value() else {
        let name = kind.name();
        reject!(
            EINVAL,
            "R{} doesn't have constant offset. {name} has to be at the constant offset",
            reg.number()
        );
    };
    // The kernel computes in 32 bits.
    Ok(crate::isa::low32(var).wrapping_add(state.off.cast_unsigned()))
}
