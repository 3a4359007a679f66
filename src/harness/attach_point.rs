//! Attach points: hooks and targets in the kernel.

use std::fmt;

use crate::engine::AttachedFunction;
use crate::program::Program;
use crate::spec::{AttachType, ProgType};
use crate::util::glob;
use crate::vm::ProgramHandle;
use crate::vm::attach::Hook;
use crate::vm::events::{Event, EventKind};

/// What a program is attached to: a hook and, for most hooks, a target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AttachPoint {
    /// The kind of hook.
    pub hook: Hook,
    /// The target: `group/name` of a tracepoint, a function, a hook of a security module,
    /// `PROGRAM:FUNCTION` for a function of another program; a pattern for the hooks that take
    /// one. None for hooks without a target of their own (a packet's, a cgroup's).
    pub target: Option<String>,
    /// The type of its programs.
    pub prog_type: ProgType,
    /// The attach type, for hooks that differ by it.
    pub attach_type: Option<AttachType>,
}

/// An attached program. The list of them is in the order of attachment.
#[derive(Debug, Clone)]
pub(super) struct Attached {
    pub program: ProgramHandle,
    pub point: AttachPoint,
    /// What `bpf_get_attach_cookie` returns in its runs.
    pub cookie: u64,
    /// The loaded program to whose function it is attached, and how.
    pub function: Option<(ProgramHandle, AttachedFunction)>,
}

impl AttachPoint {
    /// The attach point of a program's section name; `None` where the section gives no
    /// target (`SEC("tp")`).
    #[must_use]
    pub fn of(program: &Program) -> Option<Self> {
        let (hook, attach_type) = Hook::place_of(program);
        let target = match (program.attach_prog.known(), program.attach_target.clone()) {
            (Some(other), Some(function)) => Some(format!("{}:{function}", other.program.name)),
            (_, target) => target,
        };
        let target = target.filter(|target| !target.is_empty());
        if hook.rule().needs_target && target.is_none() {
            return None;
        }
        Some(Self {
            hook,
            target,
            prog_type: program.prog_type,
            attach_type,
        })
    }

    /// Whether an event hits this attach point.
    #[must_use]
    pub fn is_hit_by(&self, event: &Event) -> bool {
        let name = event.name();
        let fires = event.kind().fires();
        if !event.accepts(self.prog_type) {
            return false;
        }
        match (event.kind(), self.target.as_deref()) {
            // Plain bytes can be the context of any type, and hit no attach point.
            (EventKind::Bytes, _) => false,
            // A context fits all programs of its type, whatever their hook.
            (EventKind::Context(_) | EventKind::Packet, _) => {
                !matches!(self.hook, Hook::Iterator | Hook::Freplace)
            }
            (EventKind::StructOps, None) => true,
            (_, None) => false,
            (_, Some(target)) => self.hook.is_hit_by(fires) && self.names(target, name),
        }
    }

    /// Whether a target matches an event's name.
    fn names(&self, target: &str, name: &str) -> bool {
        match self.hook {
            Hook::KprobeMulti
            | Hook::KretprobeMulti
            | Hook::KprobeSession
            | Hook::UprobeMulti
            | Hook::UretprobeMulti
            | Hook::UprobeSession => glob(target, name) || is_last_part(target, name),
            Hook::Ksyscall | Hook::Kretsyscall => ["__x64_sys_", "__arm64_sys_"]
                .iter()
                .any(|prefix| name.strip_prefix(prefix) == Some(target)),
            Hook::Lsm | Hook::LsmCgroup => {
                name == target || name.strip_prefix("bpf_lsm_") == Some(target)
            }
            Hook::Uprobe | Hook::Uretprobe | Hook::Usdt => {
                name == target || is_last_part(target, name)
            }
            Hook::StructOps => name == target || name.rsplit('.').next() == Some(target),
            _ => name == target,
        }
    }
}

impl fmt::Display for AttachPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = self
            .hook
            .rule()
            .sections
            .first()
            .copied()
            .unwrap_or_default();
        match &self.target {
            Some(target) => write!(f, "{section}/{target}"),
            None => f.write_str(section),
        }
    }
}

/// Whether a name is a user-space target without its file.
fn is_last_part(target: &str, name: &str) -> bool {
    let file = target.strip_suffix(name);
    file.is_some_and(|file| file.len() > 1 && file.ends_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_leave_out_the_file() {
        assert!(is_last_part("/bin/bash:readline", "readline"));
        assert!(!is_last_part("/bin/bash:readline", "line"));
        assert!(is_last_part("/lib/libc.so:libc:setjmp", "libc:setjmp"));
    }
}
