//! Whether a program may call a helper at all at this instruction.

use super::call_state::Named;
use crate::spec::helpers::{Attributes, COUNT, Prototype, helper, id};
use crate::spec::{AttachType, ProgType, lsm};
use crate::util::HelperId;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::structure::is_gpl_compatible;

/// The functions in which `bpf_d_path` may be called (`btf_allowlist_d_path`,
/// `kernel/trace/bpf_trace.c`).
const D_PATH_CALLERS: [&str; 9] = [
    "security_file_permission",
    "security_inode_getattr",
    "security_file_open",
    "security_path_truncate",
    "vfs_truncate",
    "vfs_fallocate",
    "dentry_open",
    "vfs_getattr",
    "filp_close",
];

impl Verifier<'_> {
    /// The helper's prototype for this program, if it may call the helper.
    pub(super) fn helper_prototype(&self, id: HelperId) -> VerifyResult<&'static Prototype> {
        if id.0 > COUNT {
            reject!(EINVAL, "invalid func {}", Named(id));
        }
        let prototype = helper(id).and_then(|helper| helper.prototype(self.caller));
        let Some(prototype) = prototype.filter(|_| !self.lacks_operations()) else {
            reject!(
                EINVAL,
                "program of this type cannot use helper {}",
                Named(id)
            );
        };
        let is = |attribute| prototype.attributes.contains(attribute);
        if is(Attributes::GPL_ONLY) && !is_gpl_compatible(&self.program.license) {
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
        if is(Attributes::MIGHT_SLEEP)
            && let Some(section) = self.section_without_sleep()
        {
            reject!(EINVAL, "sleepable helper {} in {section}", Named(id));
        }
        Ok(prototype)
    }

    /// Whether the kernel allows this helper for the attach target.
    fn is_listed(&self, id: HelperId) -> bool {
        let attach_type = self.caller.attach_type;
        let name = self.attach.map_or("", |target| target.name);
        let sleeps = self.caller.prog_type == ProgType::Lsm && lsm::is_sleepable(name);
        match id {
            id::sk_storage_get | id::sk_storage_delete => match attach_type {
                Some(AttachType::TraceIter | AttachType::TraceRawTp) => true,
                // Socket storage functions must not be traced by programs that use them.
                Some(AttachType::TraceFentry | AttachType::TraceFexit) => {
                    !name.starts_with("bpf_sk_storage")
                }
                _ => false,
            },
            id::d_path => match self.caller.prog_type {
                ProgType::Tracing if attach_type == Some(AttachType::TraceIter) => true,
                ProgType::Lsm => sleeps,
                _ => D_PATH_CALLERS.contains(&name),
            },
            _ => sleeps,
        }
    }

    /// Checks requirements on the program that the kernel tests only after the arguments.
    pub(super) fn check_program_fits(&self, id: HelperId) -> VerifyResult {
        if id != id::get_func_ip {
            return Ok(());
        }
        let caller = self.caller;
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
