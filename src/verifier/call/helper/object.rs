//! Typed kernel objects as arguments (the type comparison in `check_reg_type`,
//! `btf_struct_ids_match`).

use super::call_state::Call;
use crate::btf::{Btf, Kind as BtfKind};
use crate::isa::Reg;
use crate::spec::call::ArgSpec;
use crate::spec::helpers::id;
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::reg::Kind;
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

/// The maximum nesting of structs.
const MAX_DEPTH: u32 = 64;

impl Verifier<'_> {
    /// Checks that the register's object has the type that the helper takes, or contains an
    /// object of this type at its offset.
    pub(super) fn check_object(
        &self,
        call: &Call,
        reg: Reg,
        arg: &ArgSpec,
        wanted: Option<&'static str>,
    ) -> VerifyResult {
        let state = self.reg(reg);
        let number = reg.number();
        let Kind::BtfId { id } = state.kind else {
            return Ok(());
        };
        let released = arg.releases();
        if state.maybe_null() && (!arg.nullable || released) {
            reject!(EACCES, "Possibly NULL pointer passed to helper arg{number}");
        }
        let Some(wanted) = wanted else {
            unmodelled!(TypedPointer);
        };
        let Some(btf) = &self.program.kernel_btf else {
            unmodelled!(KernelBtf);
        };
        // A socket can be released through a pointer to its first member.
        let strict = released && call.id != id::sk_release;
        let found = btf.find(wanted, BtfKind::Struct).map(|found| found.id());
        let off = u32::try_from(state.off).ok();
        match (found, off) {
            (Some(found), Some(off)) if holds(btf, id, off, found, strict) => Ok(()),
            _ => reject!(
                EACCES,
                "R{number} is of type {} but {wanted} is expected",
                btf.ty(id).name()
            ),
        }
    }
}

/// Whether an object of type `id` has one of type `wanted` at `off`: itself, a member, or a
/// nested member. With `strict`, only itself.
fn holds(btf: &Btf, mut id: TypeId, mut off: u32, wanted: TypeId, strict: bool) -> bool {
    for _ in 0..MAX_DEPTH {
        if id == wanted && off == 0 {
            return true;
        }
        if strict {
            return false;
        }
        let Some((member, at)) = member_at(btf, id, off) else {
            return false;
        };
        (id, off) = (member, at);
    }
    false
}

/// The struct inside a struct that contains the byte at `off`, and the offset in it.
fn member_at(btf: &Btf, id: TypeId, off: u32) -> Option<(TypeId, u32)> {
    let outer = btf.resolve(id).ok()?;
    // The first member that contains the byte, also in a union.
    let (member, inside) = outer.members().find_map(|member| {
        let inside = off.checked_sub(member.bit_offset / 8)?;
        let within = inside < btf.size_of(member.ty).ok()?;
        (within && member.bitfield.is_none()).then_some((member.ty, inside))
    })?;
    let mut inner = btf.resolve(member).ok()?;
    for _ in 0..MAX_DEPTH {
        match inner.array() {
            Some(array) => inner = btf.resolve(array.element).ok()?,
            None => break,
        }
    }
    let is_struct = matches!(inner.kind(), BtfKind::Struct | BtfKind::Union);
    let size = inner.size().filter(|size| *size > 0 && is_struct)?;
    Some((inner.id(), inside % size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding, Member};

    #[test]
    fn an_object_is_found_in_another() {
        let mut builder = Builder::new();
        let number = builder.int("int", 4, Encoding::Signed);
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        let common = builder.structure("sock_common", 8, &[member("a", number, 0)]);
        let sock = builder.structure("sock", 16, &[member("common", common, 0)]);
        let tcp = builder.structure(
            "tcp_sock",
            32,
            &[member("before", sock, 0), member("sk", sock, 128)],
        );
        let btf = builder.build().unwrap();
        assert!(holds(&btf, tcp, 0, common, false));
        assert!(holds(&btf, tcp, 0, sock, false));
        assert!(holds(&btf, tcp, 16, common, false));
        assert!(!holds(&btf, tcp, 8, common, false));
        assert!(!holds(&btf, tcp, 0, common, true));
        assert!(holds(&btf, sock, 0, sock, true));
        assert!(!holds(&btf, sock, 0, tcp, false));
    }
}
