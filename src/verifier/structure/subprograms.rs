//! The functions of a program, and a check that no jump leaves its function
//! (`add_subprog_and_kfunc` and `check_subprogs`, `kernel/bpf/verifier.c`).
//!
//! A function begins at the target of a call or at the address of a callback, and ends
//! where the next one begins. Its last instruction must not fall through into the next one.

use super::functions::SubprogramInfo;
use super::kfuncs::Kfuncs;
use super::raw::{self, Callee};
use crate::btf::{Kind, Linkage};
use crate::isa::RawInsn;
use crate::program::{Program, exception_callbacks};
use crate::spec::Capabilities;
use crate::spec::helpers::id;
use crate::spec::limits::MAX_SUBPROGS;
use crate::util::{Errno, Pc};
use crate::verifier::log::Log;
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// The message for a loader without the right to more than one function.
const ONE_FUNCTION: &str = "loading/calling other bpf or kernel functions are allowed for CAP_BPF \
     and CAP_SYS_ADMIN";

/// The functions of a program, and the number of the exception callback.
pub(super) fn find(
    program: &Program,
    loader: Capabilities,
) -> VerifyResult<(Vec<SubprogramInfo>, Option<usize>)> {
    let slots = &program.insns;
    let mut starts = vec![Pc(0)];
    let mut kfuncs = Kfuncs::new(program);
    for (pc, &slot) in (0..).map(Pc).zip(slots) {
        if refers_to_function(slot, pc) && !loader.allow(Capabilities::BPF) {
            return Err(Reject::new(Errno::EPERM, ONE_FUNCTION).at(pc));
        }
        let target = match raw::callee(slot, pc) {
            Some(Callee::Subprogram(target)) => Some(target),
            Some(Callee::Kfunc { id, fd_index }) => {
                kfuncs.add(id, fd_index).map_err(|reject| reject.at(pc))?;
                None
            }
            _ => raw::callback(slot, pc),
        };
        if let Some(target) = target {
            add(&mut starts, slots, target).map_err(|reject| reject.at(pc))?;
        }
    }
    let exceptions = match exception_callback(program)? {
        Some(start) => Some(add(&mut starts, slots, i64::from(start))?),
        None => None,
    };
    let ends = starts.iter().skip(1).copied();
    let ends = ends.chain([Pc::from_index(slots.len())]);
    let mut subprograms: Vec<SubprogramInfo> = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| SubprogramInfo::new(*start, end))
        .collect();
    if let Some(sub) = exceptions.and_then(|at| subprograms.get_mut(at)) {
        sub.is_exception_cb = true;
    }
    Ok((subprograms, exceptions))
}

/// Whether a slot calls a subprogram or a kfunc, or loads the address of a callback.
fn refers_to_function(slot: RawInsn, pc: Pc) -> bool {
    let calls = matches!(
        raw::callee(slot, pc),
        Some(Callee::Subprogram(_) | Callee::Kfunc { .. })
    );
    calls || raw::callback(slot, pc).is_some()
}

/// Logs the start of each function at level 2: `func#1 @9`.
pub(super) fn log(log: &mut Log, subprograms: &[SubprogramInfo]) {
    if !log.is_full() {
        return;
    }
    for (number, sub) in subprograms.iter().enumerate() {
        log.write(format_args!("func#{number} @{}\n", sub.start));
    }
}

/// Adds the function that begins at `target`, unless it exists; returns its number.
fn add(starts: &mut Vec<Pc>, slots: &[RawInsn], target: i64) -> VerifyResult<usize> {
    let start = u32::try_from(target).map(Pc);
    let Some(start) = start.ok().filter(|start| start.index() < slots.len()) else {
        reject!(EINVAL, "call to invalid destination");
    };
    match starts.binary_search(&start) {
        Ok(at) => Ok(at),
        Err(_) if starts.len() >= MAX_SUBPROGS => reject!(E2BIG, "too many subprograms"),
        Err(at) => {
            starts.insert(at, start);
            Ok(at)
        }
    }
}

/// The start of the exception callback that the main program names
/// (`bpf_find_exception_callback_insn_off`).
fn exception_callback(program: &Program) -> VerifyResult<Option<u32>> {
    let (Some(btf), Some(main)) = (&program.btf, program.func_info.first()) else {
        return Ok(None);
    };
    let mut names = exception_callbacks(btf, main.ty);
    let Some(name) = names.next() else {
        return Ok(None);
    };
    if names.next().is_some() {
        reject!(EEXIST, "multiple exception callback tags for main subprog");
    }
    let Some(function) = btf.find(name, Kind::Func) else {
        reject!(
            ENOENT,
            "exception callback '{name}' could not be found in BTF"
        );
    };
    if function.linkage() != Some(Linkage::Global) {
        reject!(
            EINVAL,
            "exception callback '{name}' must have global linkage"
        );
    }
    let records = program.func_info.iter();
    let mut found = None;
    for record in records.filter(|record| record.ty == function.id()) {
        if record.insn_off == 0 {
            reject!(
                EINVAL,
                "invalid exception callback insn_off in func_info: 0"
            );
        }
        found = Some(record.insn_off);
    }
    if found.is_none() {
        reject!(EINVAL, "exception callback type id not found in func_info");
    }
    Ok(found)
}

/// Checks jumps and last instructions, and records the properties of each function.
pub(super) fn check(slots: &[RawInsn], subprograms: &mut [SubprogramInfo]) -> VerifyResult {
    for sub in subprograms {
        let body = slots.get(sub.range()).unwrap_or_default();
        for (pc, &slot) in (sub.start.0..).map(Pc).zip(body) {
            if raw::callee(slot, pc) == Some(Callee::Helper(id::tail_call)) {
                sub.has_tail_call = true;
            }
            sub.has_ld_abs |= raw::is_packet_load(slot);
            if let Some(to) = raw::jump(slot, pc)
                && !(i64::from(sub.start.0)..i64::from(sub.end.0)).contains(&to)
            {
                let text = format!("jump out of range from insn {pc} to {to}");
                return Err(Reject::new(Errno::EINVAL, text).at(pc));
            }
        }
        if body.last().is_some_and(|last| !raw::ends_function(*last)) {
            let last = Pc(sub.end.0.saturating_sub(1));
            return Err(Reject::new(Errno::EINVAL, "last insn is not an exit or jmp").at(last));
        }
    }
    Ok(())
}
