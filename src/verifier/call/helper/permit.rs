//! Whether a program may call a helper at all, at this place.

use super::under_way::Named;
use crate::spec::helpers::{Attributes, COUNT, Caller, Prototype, helper, id};
use crate::spec::{AttachType, ProgType};
use crate::util::HelperId;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Checked, reject};

/// The licenses that are as good as the GPL (`license_is_gpl_compatible`,
/// `include/linux/license.h`).
const GPL_COMPATIBLE: [&str; 6] = [
    "GPL",
    "GPL v2",
    "GPL and additional rights",
    "Dual BSD/GPL",
    "Dual MIT/GPL",
    "Dual MPL/GPL",
];
/// What the kernel puts before the name of what a program attaches to.
const TARGET_PREFIXES: [&str; 2] = ["bpf_iter_", "bpf_lsm_"];

impl Verifier<'_> {
    /// The program as one that asks for helpers.
    pub(super) fn caller(&self) -> Caller<'_> {
        let prog_type = self.program.prog_type;
        Caller {
            prog_type,
            attach_type: prog_type.attach_type(self.program.expected_attach_type),
            target: self.attach_name().map(|name| {
                let bare = |prefix: &&str| name.strip_prefix(*prefix);
                TARGET_PREFIXES.iter().find_map(bare).unwrap_or(name)
            }),
        }
    }

    /// The name of what the program attaches to, in the kernel's BTF.
    fn attach_name(&self) -> Option<&str> {
        let program = self.program;
        let btf = program.kernel_btf.as_ref();
        let typed = btf.and_then(|btf| btf.get(program.attach_btf_id?));
        let name = typed.map(|found| found.name());
        name.or(program.attach_target.as_deref())
    }

    /// How the program may call a helper, if it may.
    pub(super) fn helper_prototype(&self, id: HelperId) -> Checked<&'static Prototype> {
        if id.0 > COUNT {
            reject!(EINVAL, "invalid func {}", Named(id));
        }
        let Some(prototype) = helper(id).and_then(|helper| helper.prototype(&self.caller())) else {
            reject!(
                EINVAL,
                "program of this type cannot use helper {}",
                Named(id)
            );
        };
        let is = |attribute| prototype.attributes.contains(attribute);
        if is(Attributes::GPL_ONLY) && !GPL_COMPATIBLE.contains(&&*self.program.license) {
            reject!(
                EINVAL,
                "cannot call GPL-restricted function from non-GPL compatible program"
            );
        }
        if is(Attributes::ALLOW_LIST) && !self.is_listed(id) {
            reject!(EINVAL, "helper call is not allowed in probe");
        }
        if is(Attributes::MIGHT_SLEEP) && !self.state.sleepable {
            reject!(EINVAL, "helper call might sleep in a non-sleepable prog");
        }
        Ok(prototype)
    }

    /// Whether the kernel lists what the program attaches to for this helper. (The
    /// others with a list want a typed kernel pointer, which is judged by itself.)
    fn is_listed(&self, id: HelperId) -> bool {
        if !matches!(id, id::sk_storage_get | id::sk_storage_delete) {
            return true;
        }
        match self.caller().attach_type {
            Some(AttachType::TraceIter | AttachType::TraceRawTp) => true,
            Some(AttachType::TraceFentry | AttachType::TraceFexit) => {
                // What stores for a socket must not call itself.
                self.attach_name()
                    .is_some_and(|name| !name.starts_with("bpf_sk_storage"))
            }
            _ => false,
        }
    }

    /// What a helper asks of the program that is known only after its call was checked.
    pub(super) fn check_program_fits(&self, id: HelperId) -> Checked {
        if id != id::get_func_ip {
            return Ok(());
        }
        let caller = self.caller();
        let trampoline = matches!(
            caller.attach_type,
            Some(AttachType::TraceFentry | AttachType::TraceFexit | AttachType::ModifyReturn)
        );
        match caller.prog_type {
            ProgType::Kprobe => Ok(()),
            ProgType::Tracing if trampoline => Ok(()),
            ProgType::Tracing => reject!(
                ENOTSUPP,
                "func {} supported only for fentry/fexit/fmod_ret programs",
                Named(id)
            ),
            other => reject!(
                ENOTSUPP,
                "func {} not supported for program type {}",
                Named(id),
                other.number()
            ),
        }
    }
}
