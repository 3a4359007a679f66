//! Whether the BTF target of a program exists, told before the kernel is asked: its own message
//! is `Tracing programs must provide btf_id`, whatever is missing.

use super::error::AttachError;
use super::point::AttachPoint;
use crate::program::Program;
use crate::spec::AttachType;

/// The kernel's symbols.
const SYMBOLS: &str = "/proc/kallsyms";

impl AttachPoint {
    /// Checks that the kernel's BTF has what this program attaches to.
    ///
    /// # Errors
    /// [`AttachError::Unavailable`] without the kernel's BTF, and [`AttachError::NoSuchPlace`] if
    /// it lacks the function, tracepoint, LSM hook or iterator.
    pub fn has_target(&self, program: &Program) -> Result<(), AttachError> {
        let (Some(attach_type), Some(target)) = (
            program.expected_attach_type,
            program.attach_target.as_deref(),
        ) else {
            return Ok(());
        };
        if program.attach_btf_id.is_some() || program.attach_prog.is_some() || !by_btf(attach_type)
        {
            return Ok(());
        }
        if program.kernel_btf.is_none() {
            let why = "the kernel's types are missing, by which such programs are attached: there \
                       is no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF). A kprobe or a \
                       tracepoint needs none";
            return Err(AttachError::unavailable(self, why));
        }
        let symbols = std::fs::read_to_string(SYMBOLS).unwrap_or_default();
        let why = absent(attach_type, target, &symbols);
        Err(AttachError::no_such_place(self, why))
    }
}

/// Whether the attach target of such programs is a BTF id.
const fn by_btf(attach_type: AttachType) -> bool {
    use AttachType::{LsmMac, ModifyReturn, TraceFentry, TraceFexit, TraceIter, TraceRawTp};
    matches!(
        attach_type,
        TraceRawTp | TraceFentry | TraceFexit | ModifyReturn | LsmMac | TraceIter
    )
}

/// What to say about a target that the kernel's BTF does not have.
fn absent(attach_type: AttachType, target: &str, symbols: &str) -> String {
    match attach_type {
        AttachType::TraceRawTp => format!(
            "the kernel's BTF has no tracepoint `{target}` (btf_trace_{target}); `bpflab kernel \
             tracepoints` lists them"
        ),
        AttachType::LsmMac => format!(
            "the kernel's BTF has no LSM hook `{target}` (bpf_lsm_{target}): this kernel has no \
             such hook, or was built without CONFIG_BPF_LSM"
        ),
        AttachType::TraceIter => {
            format!("the kernel's BTF has no iterator `{target}` (bpf_iter_{target})")
        }
        _ if is_function(symbols, target) => format!(
            "the kernel has the function `{target}`, but no BTF of it, as for functions that the \
             compiler changed; a kprobe needs none: `kprobe/{target}`"
        ),
        _ => format!(
            "the kernel has no function `{target}`: neither its BTF nor {SYMBOLS} names it. It \
             may be inlined, or have another name in this version"
        ),
    }
}

/// Whether the symbols have a function of this name, in the kernel or a module.
fn is_function(symbols: &str, name: &str) -> bool {
    symbols.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_code = matches!(words.next(), Some("t" | "T" | "w" | "W"));
        is_code && words.next() == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use crate::spec::ProgType;

    const LISTED: &str = "0000000000000000 T vfs_read\n0000000000000000 d vfs_data\n\
                          0000000000000000 t in_module\t[some]\n";

    #[test]
    fn the_reason_for_a_missing_function_is_told() {
        let of = |target| absent(AttachType::TraceFentry, target, LISTED);
        assert!(of("vfs_read").contains("`kprobe/vfs_read`"));
        assert!(of("in_module").contains("but no BTF of it"));
        assert!(of("vfs_data").contains("no function `vfs_data`"));
        let hook = absent(AttachType::LsmMac, "file_opened", LISTED);
        assert!(hook.contains("no LSM hook `file_opened`"), "{hook}");
    }

    #[test]
    fn a_kernel_without_types_is_told() {
        let mut program = Program::new("p", ProgType::Tracing, Vec::new());
        program.section = "fentry/vfs_read".to_owned();
        program.attach_target = Some("vfs_read".to_owned());
        program.expected_attach_type = Some(AttachType::TraceFentry);
        let point = AttachPoint::of(&program).unwrap();
        let error = point.has_target(&program).unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        assert!(
            error.to_string().contains("/sys/kernel/btf/vmlinux"),
            "{error}"
        );
        program.attach_btf_id = Some(crate::util::TypeId(1));
        assert_eq!(point.has_target(&program), Ok(()));
    }
}
