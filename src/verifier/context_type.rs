//! The C type of a program's context: which parameters are the context
//! (`btf_is_prog_ctx_type`), which types a parameter tagged as context may have
//! (`btf_validate_prog_ctx_type`), and the kernel's own type for it (`kernel/bpf/btf.c`).

use crate::btf::{Btf, Kind, Type};
use crate::program::Program;
use crate::spec::context::{Arch, layout};
use crate::spec::{AttachType, ContextKind, ProgType};
use crate::util::TypeId;
use crate::verifier::reject::{VerifyResult, reject};

/// The typedef of the registers in kprobe programs.
const PROBE_TYPEDEF: &str = "bpf_user_pt_regs_t";
/// The structure behind that typedef.
const REGISTERS: &str = match Arch::HOST {
    Arch::X86_64 => "pt_regs",
    Arch::Arm64 => "user_pt_regs",
};

/// The name of a program type's context structure, if it has one.
fn structure(prog_type: ProgType) -> Option<&'static str> {
    match prog_type.info().context {
        // A plain integer.
        ContextKind::LircMode2 => None,
        ContextKind::PtRegs => Some(REGISTERS),
        kind => layout(kind, Arch::HOST).map(|layout| layout.name),
    }
}

/// Whether a pointer to `pointed` is the context of such programs, by its name.
pub(in crate::verifier) fn is_context(btf: &Btf, pointed: TypeId, prog_type: ProgType) -> bool {
    if prog_type == ProgType::Kprobe && is_probe_typedef(btf, pointed) {
        return true;
    }
    let Ok(ty) = btf.resolve(pointed) else {
        return false;
    };
    if !ty.kind().is_composite() {
        return false;
    }
    match structure(prog_type) {
        // The kernel structure behind the context is accepted, too.
        Some("__sk_buff") => matches!(ty.name(), "__sk_buff" | "sk_buff"),
        Some("xdp_md") => matches!(ty.name(), "xdp_md" | "xdp_buff"),
        Some(REGISTERS) if prog_type == ProgType::Kprobe => {
            matches!(ty.name(), PROBE_TYPEDEF | REGISTERS)
        }
        Some(name) => ty.name() == name,
        None => false,
    }
}

/// The type that the kernel has for the context of such programs, if its BTF names it
/// (`struct sk_buff` for `struct __sk_buff`; `find_kern_ctx_type_id`).
pub(in crate::verifier) fn in_kernel(kernel: &Btf, prog_type: ProgType) -> Option<Type<'_>> {
    let all = kernel.find("bpf_ctx_convert", Kind::Struct)?;
    let name = format!("{}_kern", prog_type.uapi_name());
    let member = all.members().find(|one| one.name == name)?;
    Some(kernel.ty(member.ty))
}

/// Whether this is the typedef of the registers, ignoring qualifiers.
fn is_probe_typedef(btf: &Btf, pointed: TypeId) -> bool {
    btf.unqualified(pointed)
        .is_ok_and(|ty| ty.kind() == Kind::Typedef && ty.name() == PROBE_TYPEDEF)
}

/// Checks the type of parameter `number`, a pointer to `pointed` that is tagged as the
/// context.
pub(in crate::verifier) fn check_tagged(
    program: &Program,
    pointed: TypeId,
    number: usize,
) -> VerifyResult {
    let Some(btf) = &program.btf else {
        return Ok(());
    };
    let prog_type = program.prog_type;
    if matches!(prog_type, ProgType::Kprobe | ProgType::PerfEvent) && is_probe_typedef(btf, pointed)
    {
        return Ok(());
    }
    let ty = btf.resolve(pointed).unwrap_or(btf.ty(pointed));
    if ty.kind() == Kind::Void {
        return Ok(());
    }
    if ty.name().is_empty() {
        reject!(EINVAL, "arg#{number} type doesn't have a name");
    }
    if is_special(program, ty) {
        return Ok(());
    }
    let Some(name) = structure(prog_type) else {
        reject!(EINVAL, "arg#{number} should be void pointer");
    };
    if ty.kind() != Kind::Struct || ty.name() != name {
        reject!(EINVAL, "arg#{number} should be `struct {name} *`");
    }
    Ok(())
}

/// Types that some program types accept besides their context structure.
fn is_special(program: &Program, ty: Type<'_>) -> bool {
    let is_struct = ty.kind() == Kind::Struct;
    let is_word = ty.kind() == Kind::Int && ty.size() == Some(8);
    match program.prog_type {
        ProgType::Kprobe => is_struct && ty.name() == "pt_regs",
        ProgType::PerfEvent => is_struct && ty.name() == REGISTERS,
        ProgType::RawTracepoint | ProgType::RawTracepointWritable => is_word,
        ProgType::Lsm | ProgType::StructOps => is_word,
        ProgType::Tracing => match program.expected_attach_type {
            Some(AttachType::TraceRawTp) => {
                is_word || is_struct && ty.name() == "bpf_raw_tracepoint_args"
            }
            Some(AttachType::TraceIter) => is_struct && ty.name().starts_with("bpf_iter__"),
            Some(AttachType::TraceFentry | AttachType::TraceFexit | AttachType::ModifyReturn) => {
                is_word
            }
            _ => false,
        },
        ProgType::Tracepoint | ProgType::Syscall | ProgType::Ext => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding};

    fn types() -> (Btf, [TypeId; 5]) {
        let mut types = Builder::new();
        let word = types.int("unsigned long", 8, Encoding::Unsigned);
        let packet = types.structure("__sk_buff", 0, &[]);
        let registers = types.structure("pt_regs", 0, &[]);
        let typedef = types.typedef(PROBE_TYPEDEF, registers);
        let qualified = types.constant(typedef);
        let btf = types.build().unwrap();
        (btf, [word, packet, registers, typedef, qualified])
    }

    #[test]
    fn a_context_is_known_by_its_name() {
        let (btf, [word, packet, registers, typedef, qualified]) = types();
        let is = |ty, prog_type| is_context(&btf, ty, prog_type);
        assert!(is(packet, ProgType::SchedCls) && is(packet, ProgType::FlowDissector));
        assert!(!is(packet, ProgType::Xdp) && !is(word, ProgType::Tracepoint));
        assert!(is(typedef, ProgType::Kprobe) && is(qualified, ProgType::Kprobe));
        assert_eq!(is(registers, ProgType::Kprobe), Arch::HOST == Arch::X86_64);
        assert!(!is(typedef, ProgType::PerfEvent));
    }

    #[test]
    fn a_tag_is_held_against_the_type() {
        let (btf, [word, packet, registers, typedef, _]) = types();
        let check = |prog_type, pointed| {
            let mut program = Program::new("p", prog_type, Vec::new());
            program.btf = Some(btf.clone());
            check_tagged(&program, pointed, 2).map_err(|reject| reject.message().to_owned())
        };
        assert_eq!(check(ProgType::SchedCls, packet), Ok(()));
        assert_eq!(check(ProgType::SchedCls, TypeId(0)), Ok(()));
        assert_eq!(
            check(ProgType::Xdp, packet),
            Err("arg#2 should be `struct xdp_md *`".to_owned())
        );
        assert_eq!(check(ProgType::RawTracepoint, word), Ok(()));
        assert_eq!(
            check(ProgType::Tracing, word),
            Err("arg#2 should be void pointer".to_owned())
        );
        assert_eq!(check(ProgType::PerfEvent, typedef), Ok(()));
        assert_eq!(check(ProgType::Tracepoint, registers), Ok(()));
    }
}
