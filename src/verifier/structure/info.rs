//! The program's debug information: functions (`func_info`) and lines (`line_info`)
//! (`check_btf_info_early` and `check_btf_info`, `kernel/bpf/verifier.c`). Only `func_info`
//! says whether a function is global.

use super::functions::SubprogramInfo;
use crate::btf::{Btf, Kind, Linkage, Type};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::reject::{VerifyResult, reject};

/// Checks the function records on their own, before the functions are known.
pub(super) fn check_functions_early(program: &Program) -> VerifyResult {
    if program.func_info.is_empty() && program.lines.is_empty() {
        return Ok(());
    }
    let Some(btf) = &program.btf else {
        reject!(EINVAL, "");
    };
    let mut previous = None;
    for record in &program.func_info {
        let off = record.insn_off;
        match previous {
            None if off != 0 => {
                reject!(
                    EINVAL,
                    "nonzero insn_off {off} for the first func info record"
                )
            }
            Some(previous) if off <= previous => reject!(
                EINVAL,
                "same or smaller insn offset ({off}) than previous func info record ({previous})"
            ),
            _ => previous = Some(off),
        }
        if btf.get(record.ty).is_none_or(|ty| ty.kind() != Kind::Func) {
            let id = record.ty.0.cast_signed();
            reject!(EINVAL, "invalid type id {id} in func info");
        }
    }
    Ok(())
}

/// Checks the records against the functions, and stores names, types and linkage.
pub(super) fn check(program: &Program, subprograms: &mut [SubprogramInfo]) -> VerifyResult {
    check_functions(program, subprograms)?;
    check_lines(program, subprograms)
}

fn check_functions(program: &Program, subprograms: &mut [SubprogramInfo]) -> VerifyResult {
    let (Some(btf), false) = (&program.btf, program.func_info.is_empty()) else {
        for sub in subprograms.iter_mut() {
            let known = program.subprograms.iter().find(|it| it.start == sub.start);
            sub.name = known.map(|it| it.name.clone()).unwrap_or_default();
        }
        return check_untyped(subprograms);
    };
    if program.func_info.len() != subprograms.len() {
        reject!(
            EINVAL,
            "number of funcs in func_info doesn't match number of subprogs"
        );
    }
    for (number, (sub, record)) in subprograms.iter_mut().zip(&program.func_info).enumerate() {
        if sub.start != Pc(record.insn_off) {
            reject!(
                EINVAL,
                "func_info BTF section doesn't match subprog layout in BPF program"
            );
        }
        let Some(function) = btf.get(record.ty) else {
            continue;
        };
        sub.name = function.name().to_owned();
        sub.type_id = Some(record.ty);
        sub.global = function.linkage() == Some(Linkage::Global);
        if number == 0 || returns_number(btf, function) {
            continue;
        }
        if sub.has_ld_abs {
            reject!(
                EINVAL,
                "LD_ABS is only allowed in functions that return 'int'."
            );
        }
        if sub.has_tail_call {
            reject!(
                EINVAL,
                "tail_call is only allowed in functions that return 'int'."
            );
        }
    }
    Ok(())
}

/// Functions that may return early (by tail calls or legacy packet loads) must be known to
/// return a scalar (`check_abnormal_return`).
fn check_untyped(subprograms: &[SubprogramInfo]) -> VerifyResult {
    for sub in subprograms.iter().skip(1) {
        if sub.has_ld_abs {
            reject!(EINVAL, "LD_ABS is not allowed in subprogs without BTF");
        }
        if sub.has_tail_call {
            reject!(EINVAL, "tail_call is not allowed in subprogs without BTF");
        }
    }
    Ok(())
}

/// Whether the function returns an integer of eight bytes at most, or an enum.
fn returns_number(btf: &Btf, function: Type<'_>) -> bool {
    let result = function.target().and_then(|proto| proto.target_id());
    let Some(Ok(result)) = result.map(|id| btf.resolve(id)) else {
        return false;
    };
    match result.kind() {
        Kind::Int => result.size().is_some_and(|size| size <= 8),
        kind => matches!(kind, Kind::Enum | Kind::Enum64),
    }
}

/// Checks that lines are in ascending order, with one at the start of each function.
fn check_lines(program: &Program, subprograms: &[SubprogramInfo]) -> VerifyResult {
    let Some(btf) = &program.btf else {
        return Ok(());
    };
    if program.lines.is_empty() {
        return Ok(());
    }
    let mut previous = 0;
    let mut functions = (0..).zip(subprograms).peekable();
    for (number, line) in program.lines.iter().enumerate() {
        let off = line.insn_off;
        let slot = program.insns.get(Pc(off).index());
        let Some(slot) = slot.filter(|_| number == 0 || off > previous) else {
            let len = program.insns.len();
            reject!(
                EINVAL,
                "Invalid line_info[{number}].insn_off:{off} (prev_offset:{previous} prog->len:{len})"
            );
        };
        if slot.opcode == 0 {
            reject!(EINVAL, "Invalid insn code at line_info[{number}].insn_off");
        }
        if btf.string(line.text).is_none() || btf.string(line.file).is_none() {
            reject!(
                EINVAL,
                "Invalid line_info[{number}].line_off or .file_name_off"
            );
        }
        if let Some((function, sub)) = functions.peek() {
            if sub.start.0 == off {
                functions.next();
            } else if sub.start.0 < off {
                reject!(EINVAL, "missing bpf_line_info for func#{function}");
            }
        }
        previous = off;
    }
    if let Some((first, _)) = functions.peek() {
        let left = subprograms.len() - first;
        reject!(
            EINVAL,
            "missing bpf_line_info for {left} funcs starting from func#{first}"
        );
    }
    Ok(())
}
