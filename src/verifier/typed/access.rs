//! Loads and stores through pointers to objects (`check_ptr_to_btf_access`,
//! `check_ptr_to_map_access`).

use super::walk::{self, Reached};
use crate::btf::{Btf, Kind as BtfKind, SpecialFields};
use crate::isa::Reg;
use crate::program::Program;
use crate::spec::ProgType;
use crate::spec::helpers::TypeFlags;
use crate::spec::object::map_structure;
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::memory::Access;
use crate::verifier::reg::{Kind, MapRef, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject, unmodelled};
use crate::verifier::structure::is_gpl_compatible;

/// An access to an object; `off` includes the pointer's fixed offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectAccess {
    /// The register that holds the address.
    pub base: Reg,
    pub off: i32,
    pub size: u32,
    pub access: Access,
    /// Whether a register gets the loaded value.
    pub loads: bool,
}

/// The BTF that has this type.
pub(super) fn btf_of(program: &Program, ty: ObjectType) -> VerifyResult<&Btf> {
    match ty.btf(program) {
        Some(btf) => Ok(btf),
        None => unmodelled!(KernelBtf),
    }
}

impl Verifier<'_> {
    /// Checks an access to an object, and returns the loaded register.
    pub(crate) fn check_object_access(&mut self, a: &ObjectAccess) -> VerifyResult<RegState> {
        let reg = *self.reg(a.base);
        let Kind::BtfId { ty } = reg.kind else {
            return Ok(RegState::UNKNOWN);
        };
        let program = self.program;
        let btf = btf_of(program, ty)?;
        let name = btf.ty(ty.id).name();
        let (at, off) = (a.base.number(), a.off);
        self.check_may_look(name)?;
        if !ty.own && !is_gpl_compatible(&program.license) {
            reject!(
                EINVAL,
                "Cannot access kernel 'struct {name}' from non-GPL compatible program"
            );
        }
        let Ok(place) = u32::try_from(off) else {
            reject!(
                EACCES,
                "R{at} is ptr_{name} invalid negative access: off={off}"
            );
        };
        if reg.var.value() != Some(0) {
            reject!(
                EACCES,
                "R{at} is ptr_{name} invalid variable offset: off={off}, var_off={}",
                reg.var.bits
            );
        }
        if reg.flags.contains(TypeFlags::MEM_USER) {
            reject!(EACCES, "R{at} is ptr_{name} access user memory: off={off}");
        }
        if reg.flags.contains(TypeFlags::MEM_PERCPU) {
            reject!(
                EACCES,
                "R{at} is ptr_{name} access percpu memory: off={off}"
            );
        }
        let allocated = reg.flags.contains(TypeFlags::MEM_ALLOC);
        let writes = a.access == Access::Write;
        if writes && reg.flags.contains(TypeFlags::PTR_UNTRUSTED) {
            reject!(EACCES, "only read is supported");
        }
        if writes && !allocated && self.program.prog_type == ProgType::StructOps {
            self.check_operations_write(btf, ty.id, place, a.size)?;
            return Ok(RegState::UNKNOWN);
        }
        if writes && !allocated {
            self.check_object_write(btf, ty.id, place, a.size)?;
            return Ok(RegState::UNKNOWN);
        }
        let alive = TypeFlags::NON_OWN_REF | TypeFlags::MEM_RCU;
        if allocated && !reg.flags.intersects(alive) && reg.ref_id == 0 {
            reject!(
                EFAULT,
                "verifier bug: ref_obj_id for allocated object must be non-zero"
            );
        }
        if allocated {
            check_plain_bytes(btf, ty.id, place, a.size)?;
        }
        match walk::access(btf, ty.id, place, a.size, !allocated)? {
            Reached::Pointer { id, flags, member } if !allocated && a.loads => {
                let target = btf.ty(id).name();
                let flags = self.loaded_flags(&reg, (member, target), flags);
                let ty = ObjectType { id, own: ty.own };
                Ok(self.loaded_object(ty, flags))
            }
            Reached::Untyped => Ok(untyped()),
            _ => Ok(RegState::UNKNOWN),
        }
    }

    /// Checks that the loader may see what kernel objects contain.
    fn check_may_look(&self, name: &str) -> VerifyResult {
        if self.privileges.allow_ptr_leaks {
            return Ok(());
        }
        reject!(
            EPERM,
            "'struct {name}' access is allowed only to CAP_PERFMON and CAP_SYS_ADMIN"
        )
    }

    /// A pointer to an object after a load (`mark_btf_ld_reg`). A nullable one gets a new id.
    pub(super) fn loaded_object(&mut self, ty: ObjectType, flags: TypeFlags) -> RegState {
        let mut reg = RegState::pointer(Kind::BtfId { ty }, flags);
        if reg.maybe_null() {
            reg.id = self.new_id();
        }
        reg
    }

    /// Checks a store to a kernel object. Packet programs may set the mark of a connection
    /// (`tc_cls_act_btf_struct_access`, `nf_conntrack_btf_struct_access`).
    fn check_object_write(&self, btf: &Btf, id: TypeId, off: u32, size: u32) -> VerifyResult {
        let packets = matches!(
            self.program.prog_type,
            ProgType::SchedCls | ProgType::SchedAct | ProgType::Xdp
        );
        let connection = btf.find("nf_conn", BtfKind::Struct);
        let Some(connection) = connection.filter(|_| packets) else {
            if packets {
                reject!(EACCES, "");
            }
            reject!(EACCES, "only read is supported");
        };
        if !matches!(btf.ty(id).name(), "nf_conn" | "nf_conn___init") {
            reject!(EACCES, "only read is supported");
        }
        let mark = connection.members().find(|member| member.name == "mark");
        let Some(mark) = mark.filter(|mark| mark.bit_offset / 8 == off) else {
            reject!(EACCES, "no write support to nf_conn at off {off}");
        };
        let end = off.saturating_add(btf.size_of(mark.ty).unwrap_or(0));
        if off.saturating_add(size) > end {
            reject!(
                EACCES,
                "write access at off {off} with size {size} beyond the member of nf_conn ended \
                 at {end}"
            );
        }
        Ok(())
    }

    /// Checks a load from `struct bpf_map` or the structure around it, and returns the loaded
    /// register.
    pub(crate) fn check_map_field(
        &mut self,
        map: MapRef,
        a: &ObjectAccess,
    ) -> VerifyResult<RegState> {
        let (Some(def), Some(btf)) = (self.map(map), &self.program.kernel_btf) else {
            unmodelled!(KernelBtf);
        };
        let found = btf.find(map_structure(def.map_type), BtfKind::Struct);
        let Some(structure) = found else {
            reject!(
                ENOTSUPP,
                "map_ptr access not supported for map type {}",
                def.map_type.number()
            );
        };
        let (at, off, name) = (a.base.number(), a.off, structure.name());
        self.check_may_look(name)?;
        let Ok(place) = u32::try_from(off) else {
            reject!(EACCES, "R{at} is {name} invalid negative access: off={off}");
        };
        if a.access == Access::Write {
            reject!(EACCES, "only read from {name} is supported");
        }
        match walk::access(btf, structure.id(), place, a.size, true)? {
            Reached::Pointer { id, flags, .. } if a.loads => {
                Ok(self.loaded_object(ObjectType::kernel(id), flags))
            }
            Reached::Untyped => Ok(untyped()),
            _ => Ok(RegState::UNKNOWN),
        }
    }
}

/// A pointer to memory of an unknown type: loads through it are checked at run time.
const fn untyped() -> RegState {
    let flags = TypeFlags::MEM_RDONLY.union(TypeFlags::PTR_UNTRUSTED);
    RegState::pointer(Kind::Mem { size: 0 }, flags)
}

/// Checks that an access to an allocated object touches no special field.
fn check_plain_bytes(btf: &Btf, id: TypeId, off: u32, size: u32) -> VerifyResult {
    let end = off.wrapping_add(size);
    for field in SpecialFields::of(btf, id).iter() {
        if off < field.off + field.size && field.off < end {
            reject!(
                EACCES,
                "direct access to {} is disallowed",
                field.kind.name()
            );
        }
    }
    Ok(())
}
