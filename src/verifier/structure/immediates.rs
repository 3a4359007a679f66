//! 64-bit immediates and unknown opcodes (`resolve_pseudo_ldimm64`,
//! `kernel/bpf/verifier.c`). These faults are errors in dead code, too.

use super::maps::UsedMaps;
use super::raw;
use crate::btf::Kind;
use crate::isa::{Code, Field, Insn, Problem, PseudoKind, RawInsn};
use crate::program::{MapDef, Program};
use crate::spec::helpers::Caller;
use crate::spec::limits::MAX_VAR_OFFSET;
use crate::spec::{BuildOptions, MapType};
use crate::util::{Errno, MapId, TypeId};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// Checks every slot, for the kernel and the loader of `caller`.
pub(super) fn check(program: &Program, caller: &Caller<'_>, code: &Code) -> VerifyResult {
    let build = caller.kernel.build;
    let mut maps = UsedMaps::new(program, caller.capabilities);
    for (pc, insn) in code.iter() {
        let slot = program.insns.get(pc.index()).copied().unwrap_or_default();
        let checked = if slot.is_wide() {
            let second = program.insns.get(pc.index() + 1).copied();
            check_imm64(program, build, &mut maps, slot, second)
        } else {
            check_opcode(slot, insn.map_err(|error| (error.field, error.problem)))
        };
        checked.map_err(|reject| reject.at(pc))?;
    }
    Ok(())
}

fn check_opcode(slot: RawInsn, insn: Result<Insn, (Field, Problem)>) -> VerifyResult {
    if raw::is_load(slot) && (!raw::is_plain_load(slot) || slot.imm != 0) {
        reject!(EINVAL, "BPF_LDX uses reserved fields");
    }
    match insn {
        Err((Field::Opcode, _)) => reject!(EINVAL, "unknown opcode {:02x}", slot.opcode),
        _ if raw::is_call_of_register(slot) => {
            reject!(EINVAL, "unknown opcode {:02x}", slot.opcode)
        }
        _ => Ok(()),
    }
}

fn check_imm64(
    program: &Program,
    build: BuildOptions,
    maps: &mut UsedMaps<'_>,
    first: RawInsn,
    second: Option<RawInsn>,
) -> VerifyResult {
    let Some(second) = second.filter(|second| second.with_imm(0) == RawInsn::default()) else {
        reject!(EINVAL, "invalid bpf_ld_imm64 insn");
    };
    if first.src() == 0 {
        return Ok(());
    }
    let kind = PseudoKind::from_src(first.src());
    let place = match kind {
        Some(PseudoKind::Func) => return Ok(()),
        Some(PseudoKind::BtfId) => {
            let id = TypeId(first.imm.cast_unsigned());
            return check_kernel_symbol(program, build, id, second.imm);
        }
        Some(PseudoKind::MapFd | PseudoKind::MapIdx) if second.imm == 0 => None,
        Some(PseudoKind::MapValue | PseudoKind::MapIdxValue) => Some(second.imm.cast_unsigned()),
        _ => reject!(EINVAL, "unrecognized bpf_ld_imm64 insn"),
    };
    if matches!(kind, Some(PseudoKind::MapFd | PseudoKind::MapValue)) {
        return Err(no_map(first.imm));
    }
    let map = maps.add(MapId(first.imm.cast_unsigned()))?;
    match place {
        Some(off) => check_value_offset(map, off),
        None => Ok(()),
    }
}

/// The reject for a file descriptor that is not a map. The first three are open in any
/// loader, but aren't maps.
fn no_map(fd: i32) -> Reject {
    let errno = match fd {
        0..=2 => Errno::EINVAL,
        _ => Errno::EBADF,
    };
    Reject::new(errno, format!("fd {fd} is not pointing to valid bpf_map"))
}

/// Checks an offset into a map's single value, whose address is known at load time
/// (`map_direct_value_addr` of each map type).
fn check_value_offset(map: &MapDef, off: u32) -> VerifyResult {
    if i64::from(off) >= MAX_VAR_OFFSET {
        reject!(EINVAL, "direct value offset of {off} is not allowed");
    }
    if !map.map_type.info().direct_value {
        reject!(EINVAL, "no direct value access support for this map type");
    }
    let errno = match map.map_type {
        MapType::Array if map.max_entries != 1 => Errno::ENOTSUPP,
        MapType::Array if off >= map.value_size => Errno::EINVAL,
        _ => return Ok(()),
    };
    let size = map.value_size;
    let text = format!("invalid access to map value pointer, value_size={size} off={off}");
    Err(Reject::new(errno, text))
}

/// Checks a kernel variable or function, if the kernel's BTF is available.
fn check_kernel_symbol(
    program: &Program,
    build: BuildOptions,
    id: TypeId,
    btf_fd: i32,
) -> VerifyResult {
    // There is no module BTF with such a descriptor.
    if btf_fd != 0 {
        reject!(EINVAL, "invalid module BTF object FD specified.");
    }
    let Some(btf) = &program.kernel_btf else {
        return Ok(());
    };
    let number = id.0.cast_signed();
    let symbol = btf.get(id);
    match symbol.map(|ty| ty.kind()) {
        Some(Kind::Var) if !build.contains(BuildOptions::KALLSYMS_ALL) => reject!(
            ENOENT,
            "ldimm64 failed to find the address for kernel symbol '{}'.",
            symbol.map_or("", |ty| ty.name())
        ),
        Some(Kind::Var | Kind::Func) => Ok(()),
        Some(_) => reject!(
            EINVAL,
            "pseudo btf_id {number} in ldimm64 isn't KIND_VAR or KIND_FUNC"
        ),
        None => reject!(ENOENT, "ldimm64 insn specifies invalid btf_id {number}."),
    }
}
