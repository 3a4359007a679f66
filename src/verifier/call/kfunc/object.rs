//! Kernel objects as arguments (`process_kf_arg_ptr_to_btf_id`).

use super::Call;
use crate::btf::{Btf, Kind as BtfKind, Type};
use crate::isa::Reg;
use crate::spec::call::{RegType, TypeFlags};
use crate::spec::kfuncs::KfuncFlags;
use crate::util::Errno;
use crate::verifier::attach_target::kind_name;
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};
use crate::verifier::typed::{TRUSTED, holds};

/// The suffix of a type that must not be cast to the one without it, and vice versa
/// (`NOCAST_ALIAS_SUFFIX`).
const NO_CAST: &str = "___init";

impl Verifier<'_> {
    /// Checks that the object is known to be alive, if the kfunc requires this.
    pub(super) fn check_kfunc_trusted(&self, call: &Call<'_>, reg: Reg) -> VerifyResult {
        let rcu = call.has(KfuncFlags::RCU);
        let state = self.reg(reg);
        if !self.trusts(call) && !rcu || state.is_trusted() {
            return Ok(());
        }
        let number = reg.number();
        if !rcu {
            reject!(EINVAL, "R{number} must be referenced or trusted");
        }
        if !state.flags.contains(TypeFlags::MEM_RCU) {
            reject!(EINVAL, "R{number} must be a rcu pointer");
        }
        Ok(())
    }

    /// Checks that the object has the type `wanted`, or begins with one of this type.
    pub(super) fn check_kfunc_object(
        &mut self,
        call: &Call<'_>,
        at: usize,
        reg: Reg,
        wanted: Type<'_>,
    ) -> VerifyResult {
        let state = *self.reg(reg);
        let rcu = state.flags.contains(TypeFlags::MEM_RCU);
        let unsafe_type =
            !matches!(state.kind, Kind::BtfId { .. }) || state.has_unsafe_flags() && !rcu;
        if unsafe_type && !state.has_btf_type() {
            let plain = RegType::new(state.kind.reg_kind(), state.flags & TRUSTED);
            reject!(
                EINVAL,
                "arg#{at} is {} expected {plain} or socket",
                state.reg_type()
            );
        }
        let (held, is_own) = match state.kind {
            Kind::BtfId { ty } => (
                ty.btf(self.program).and_then(|btf| btf.resolve(ty.id).ok()),
                ty.own,
            ),
            _ => (named_type(call.btf, &state), false),
        };
        let Some(held) = held else {
            unmodelled!(KernelBtf);
        };
        let releases = call.has(KfuncFlags::RELEASE) && state.ref_id != 0;
        let strict = releases || are_no_cast_aliases(held.name(), wanted.name());
        // The kernel passes the offset as 32 bits, also a negative one.
        let off = state.off.cast_unsigned();
        let found = if is_own {
            // No type of the program is one of the kernel.
            Err(Reject::new(Errno::EINVAL, ""))
        } else {
            holds(call.btf, held.id(), off, wanted.id(), strict, true)
        };
        let Err(why) = found else {
            return Ok(());
        };
        if !is_own && is_projection(wanted.name(), held.name()) {
            // What the kernel logs about the search.
            if !why.text().is_empty() {
                log!(self, "{}\n", why.text());
            }
            return Ok(());
        }
        Err(why.with_errno(Errno::EINVAL).and(format_args!(
            "kernel function {} args#{at} expected pointer to {} {} but R{} has a pointer to {} {}",
            call.kfunc.name,
            kind_name(wanted.kind()),
            wanted.name(),
            reg.number(),
            kind_name(held.kind()),
            held.name()
        )))
    }
}

/// The type in the kernel's BTF that a register's kind stands for.
fn named_type<'b>(btf: &'b Btf, reg: &RegState) -> Option<Type<'b>> {
    let named = |name| btf.find(name, BtfKind::Struct);
    match reg.kind {
        Kind::Socket => named("sock"),
        Kind::SockCommon => named("sock_common"),
        Kind::TcpSock => named("tcp_sock"),
        Kind::MapPtr { .. } => named("bpf_map"),
        _ => None,
    }
}

/// Whether exactly one of the names has the suffix, and they are equal otherwise
/// (`btf_type_ids_nocast_alias`).
fn are_no_cast_aliases(a: &str, b: &str) -> bool {
    a.strip_suffix(NO_CAST) == Some(b) || b.strip_suffix(NO_CAST) == Some(a)
}

/// Whether `name` is what programs see of the kernel's structure `of`
/// (`btf_is_projection_of`).
fn is_projection(name: &str, of: &str) -> bool {
    matches!(
        (name, of),
        ("__sk_buff", "sk_buff") | ("xdp_md", "xdp_buff")
    )
}
