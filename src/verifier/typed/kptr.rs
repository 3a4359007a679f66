//! Kernel pointers in map values and in allocated objects: kptrs, and pointers to user memory
//! (`check_map_kptr_access`, `map_kptr_match_type`, `process_kptr_func`).

use super::access::btf_of;
use super::walk;
use crate::btf::{FieldKind, SpecialField, SpecialFields};
use crate::isa::Reg;
use crate::spec::helpers::TypeFlags;
use crate::spec::object::is_rcu_protected;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::log::type_name;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};

impl Verifier<'_> {
    /// The type that a kptr points to: the kernel's of the same name and kind, if there is
    /// one, otherwise the program's own (`btf_parse_kptr`).
    pub(crate) fn kptr_target(&self, field: &SpecialField) -> VerifyResult<ObjectType> {
        let (Some(own), Some(kernel)) = (&self.program.btf, &self.program.kernel_btf) else {
            unmodelled!(KernelBtf);
        };
        let target = own.ty(field.target);
        Ok(match kernel.find(target.name(), target.kind()) {
            Some(found) => ObjectType::kernel(found.id()),
            None => ObjectType {
                id: field.target,
                own: true,
            },
        })
    }

    /// The register after a load of a kptr or a pointer to user memory.
    pub(crate) fn load_kptr(&mut self, field: &SpecialField) -> VerifyResult<RegState> {
        if field.kind == FieldKind::Uptr {
            return self.load_uptr(field);
        }
        let ty = self.kptr_target(field)?;
        let flags = self.kptr_flags(field, ty)?;
        Ok(self.loaded_object(ty, flags))
    }

    /// The register after a load of a pointer to user memory, whose page the kernel pins
    /// (`mark_uptr_ld_reg`).
    fn load_uptr(&mut self, field: &SpecialField) -> VerifyResult<RegState> {
        let own = self.program.btf.as_ref();
        let Some(size) = own.and_then(|btf| btf.ty(field.target).size()) else {
            reject!(EFAULT, "a user pointer to a type without a size");
        };
        self.facts.see_user_pointer();
        let mut reg = RegState::pointer(Kind::Mem { size }, TypeFlags::PTR_MAYBE_NULL);
        reg.id = self.new_id();
        Ok(reg)
    }

    /// The flags of a loaded kptr (`btf_ld_kptr_type`).
    fn kptr_flags(&self, field: &SpecialField, ty: ObjectType) -> VerifyResult<TypeFlags> {
        let kept = match field.kind {
            FieldKind::KptrPercpu => true,
            FieldKind::KptrRef => ty.own || is_rcu_protected(type_name(self.program, ty)),
            _ => false,
        };
        if !kept || !self.in_rcu_section() {
            return Ok(TypeFlags::PTR_MAYBE_NULL | TypeFlags::PTR_UNTRUSTED);
        }
        let mut flags = TypeFlags::PTR_MAYBE_NULL | TypeFlags::MEM_RCU;
        if field.kind == FieldKind::KptrPercpu {
            flags |= TypeFlags::MEM_PERCPU;
        } else if ty.own {
            flags |= TypeFlags::MEM_ALLOC;
        }
        if ty.own {
            let fields = SpecialFields::of(btf_of(self.program, ty)?, ty.id);
            // A non-owning reference, as lists and trees have them.
            if fields.iter().any(|field| field.kind.is_node()) {
                flags |= TypeFlags::NON_OWN_REF;
            }
        }
        Ok(flags)
    }

    /// Checks that a register may be stored in a kptr.
    pub(crate) fn check_kptr_match(&mut self, field: &SpecialField, reg: Reg) -> VerifyResult {
        let state = *self.reg(reg);
        let target = self.kptr_target(field)?;
        let weak = field.kind == FieldKind::KptrUnref;
        let program = self.program;
        let bad = |name: &str| {
            let wanted = type_name(program, target);
            let (number, held) = (reg.number(), state.reg_type());
            let mut line =
                format!("invalid kptr access, R{number} type={held}{name} expected=ptr_{wanted}");
            if weak {
                line += &format!(" or untrusted_ptr_{wanted}");
            }
            Reject::new(Errno::EACCES, line)
        };
        let Kind::BtfId { ty } = state.kind else {
            return Err(bad(""));
        };
        let mut allowed = TypeFlags::PTR_MAYBE_NULL;
        if ty.own {
            allowed |= TypeFlags::MEM_ALLOC;
            if field.kind == FieldKind::KptrPercpu {
                allowed |= TypeFlags::MEM_PERCPU;
            }
        } else {
            allowed |= TypeFlags::PTR_TRUSTED | TypeFlags::MEM_RCU;
            if weak {
                allowed |= TypeFlags::PTR_UNTRUSTED;
            }
        }
        if !allowed.contains(state.flags) {
            return Err(bad(""));
        }
        if let Err(why) = self.check_pointer_offset(&state, reg, true) {
            return Err(why.with_errno(Errno::EACCES));
        }
        let name = type_name(program, ty);
        if ty.own != target.own {
            return Err(bad(name));
        }
        let btf = btf_of(program, ty)?;
        // The offset is not negative.
        let off = state.off.cast_unsigned();
        match walk::holds(btf, ty.id, off, target.id, !weak, !ty.own) {
            Ok(()) => Ok(()),
            Err(why) if why.text().is_empty() => Err(bad(name)),
            Err(why) => Err(why.and(bad(name).message()).with_errno(Errno::EACCES)),
        }
    }

    /// The kptr that the first argument of `bpf_kptr_xchg` points to (`process_kptr_func`).
    pub(crate) fn kptr_argument(&self, reg: Reg) -> VerifyResult<SpecialField> {
        let (state, number) = (self.reg(reg), reg.number());
        let fields = match state.kind {
            Kind::MapValue { map, .. } => {
                if !self.maps.is_typed(map) {
                    reject!(
                        EINVAL,
                        "map '{}' has to have BTF in order to use bpf_kptr_xchg",
                        self.maps.name(map)
                    );
                }
                self.maps.fields(map).iter().copied().collect()
            }
            _ => self.maps.fields_of(state),
        };
        let Some(var) = state.var.value() else {
            reject!(
                EINVAL,
                "R{number} doesn't have constant offset. kptr has to be at the constant offset"
            );
        };
        let is_kptr = |field: &&SpecialField| {
            matches!(
                field.kind,
                FieldKind::KptrUnref | FieldKind::KptrRef | FieldKind::KptrPercpu
            )
        };
        if !fields.iter().any(|field| is_kptr(&field)) {
            reject!(EINVAL, "R{number} has no valid kptr");
        }
        // The kernel computes in 32 bits.
        let off = crate::isa::low32(var).wrapping_add(state.off.cast_unsigned());
        let field = fields.iter().filter(is_kptr).find(|field| field.off == off);
        let off = off.cast_signed();
        let Some(field) = field else {
            reject!(EACCES, "off={off} doesn't point to kptr");
        };
        if field.kind == FieldKind::KptrUnref {
            reject!(EACCES, "off={off} kptr isn't referenced kptr");
        }
        Ok(*field)
    }

    /// The type and flags of the pointer that `bpf_kptr_xchg` returns.
    pub(crate) fn exchanged(&self, field: &SpecialField) -> VerifyResult<(Kind, TypeFlags)> {
        let ty = self.kptr_target(field)?;
        let mut flags = TypeFlags::empty();
        if ty.own {
            flags |= TypeFlags::MEM_ALLOC;
            if field.kind == FieldKind::KptrPercpu {
                flags |= TypeFlags::MEM_PERCPU;
            }
        }
        Ok((Kind::BtfId { ty }, flags))
    }
}
