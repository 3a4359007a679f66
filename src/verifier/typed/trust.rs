//! Which pointers to kernel objects are trusted (`is_trusted_reg`, `in_rcu_cs`).

use crate::btf::Btf;
use crate::spec::helpers::TypeFlags;
use crate::spec::object::{MemberTrust, member_trust};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::stack::{SLOT, SlotKind};

/// Flags that make an object trusted (`BPF_REG_TRUSTED_MODIFIERS`).
pub(crate) const TRUSTED: TypeFlags = TypeFlags::MEM_ALLOC
    .union(TypeFlags::PTR_TRUSTED)
    .union(TypeFlags::NON_OWN_REF);

impl RegState {
    /// Whether the object is known to be alive (`is_trusted_reg`).
    pub(crate) fn is_trusted(&self) -> bool {
        let trusted = self.flags.intersects(TRUSTED) || self.has_btf_type();
        self.ref_id != 0 || trusted && !self.has_unsafe_flags()
    }

    /// Whether it has flags that make it unsafe to pass (`bpf_type_has_unsafe_modifiers`).
    pub(crate) const fn has_unsafe_flags(&self) -> bool {
        !TRUSTED.contains(self.flags)
    }

    /// Whether the register's kind stands for a type of the kernel's BTF (`reg2btf_ids`).
    pub(crate) const fn has_btf_type(&self) -> bool {
        matches!(
            self.kind,
            Kind::Socket | Kind::SockCommon | Kind::TcpSock | Kind::MapPtr { .. }
        )
    }
}

impl Verifier<'_> {
    /// Whether objects stay alive here that RCU protects (`in_rcu_cs`): in a read section,
    /// under a lock, and in programs that don't sleep.
    pub(crate) fn in_rcu_section(&self) -> bool {
        self.state.rcu_locks > 0 || self.held_lock().is_some() || !self.state.sleepable
    }

    /// Makes the pointers untrusted that were valid only in the RCU read section that ends
    /// here (`bpf_rcu_read_unlock` in `check_kfunc_call`).
    pub(crate) fn invalidate_rcu_pointers(&mut self) {
        let invalidate = |reg: &mut RegState| {
            if reg.flags.contains(TypeFlags::MEM_RCU) {
                reg.flags -= TypeFlags::MEM_RCU | TypeFlags::PTR_MAYBE_NULL;
                reg.flags |= TypeFlags::PTR_UNTRUSTED;
            }
        };
        for frame in &mut self.state.frames {
            frame.regs.iter_mut().for_each(invalidate);
            for slot in &mut frame.stack {
                if matches!(slot.bytes[SLOT - 1], SlotKind::Spill | SlotKind::Iter) {
                    invalidate(&mut slot.reg);
                }
            }
        }
    }

    /// The flags of a pointer that was loaded from `member` of this object; `flags` are those
    /// of the member's own type. `target` is the structure that it points to.
    pub(super) fn loaded_flags(
        &self,
        object: &RegState,
        (member, target): (&str, &str),
        mut flags: TypeFlags,
    ) -> TypeFlags {
        if object.flags.contains(TypeFlags::PTR_UNTRUSTED) {
            return TypeFlags::PTR_UNTRUSTED;
        }
        let old = TRUSTED | TypeFlags::MEM_RCU;
        if !object.is_trusted() && !object.flags.contains(TypeFlags::MEM_RCU) {
            return flags - old;
        }
        let trust = self
            .structure_name(object)
            .and_then(|structure| member_trust(structure, member, target));
        match trust {
            Some(MemberTrust::Trusted) => return flags | TypeFlags::PTR_TRUSTED,
            Some(MemberTrust::TrustedOrNull) => {
                return flags | TypeFlags::PTR_TRUSTED | TypeFlags::PTR_MAYBE_NULL;
            }
            _ => {}
        }
        if !self.in_rcu_section() || object.maybe_null() {
            return TypeFlags::PTR_UNTRUSTED;
        }
        match trust {
            Some(MemberTrust::Rcu) => flags | TypeFlags::MEM_RCU,
            Some(MemberTrust::RcuOrNull) => {
                flags -= TypeFlags::PTR_UNTRUSTED;
                flags | TypeFlags::MEM_RCU | TypeFlags::PTR_MAYBE_NULL
            }
            _ if flags.contains(TypeFlags::MEM_RCU) => flags | TypeFlags::PTR_MAYBE_NULL,
            _ if flags.intersects(TypeFlags::MEM_PERCPU | TypeFlags::MEM_USER) => flags,
            // The structure is known, but not whether the object is alive.
            _ => flags - old,
        }
    }

    /// The name of a kernel object's structure.
    fn structure_name(&self, object: &RegState) -> Option<&str> {
        let Kind::BtfId { ty } = object.kind else {
            return None;
        };
        let btf: &Btf = self.program.kernel_btf.as_ref().filter(|_| !ty.own)?;
        Some(btf.get(ty.id)?.name())
    }
}
