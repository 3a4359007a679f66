//! Restricts programs that can't be rewritten to the recorded processes: a few instructions in
//! front of the program look the process up in the map of targets, as the recorded form does.
//! The program itself is unchanged.

use crate::isa::{AsmError, assemble_with};
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::MapId;

/// What a program returns for processes that are not targets. At a perf event 0 would drop the
/// event for other readers.
#[must_use]
pub(super) const fn outside(prog_type: ProgType) -> i32 {
    match prog_type {
        ProgType::Tracepoint | ProgType::Kprobe | ProgType::PerfEvent => 1,
        _ => 0,
    }
}

/// The program with a test in front of it: whether the current process is in the map
/// `targets` (by number, four bytes), which is one of `program.maps`. It uses eight bytes of
/// the stack, which are the program's own afterwards.
///
/// # Errors
/// Only if the text of the test does not assemble, which is a bug in bpflab.
pub(super) fn only_for(mut program: Program, targets: MapId) -> Result<Program, AsmError> {
    let text = format!(
        "   r6 = r1
            call bpf_get_current_pid_tgid
            r0 >>= 32
            *(u32 *)(r10 - 4) = r0
            r1 = map[idx:{targets}]
            r2 = r10
            r2 += -4
            call bpf_map_lookup_elem
            if r0 != 0 goto target
            r0 = {outside}
            exit
         target:
            r1 = r6",
        targets = targets.0,
        outside = outside(program.prog_type),
    );
    let front = assemble_with(&text, &program)?.slots;
    let added = u32::try_from(front.len()).unwrap_or(u32::MAX);
    program.insns.splice(0..0, front);
    // Jumps are relative and need no change. Entries at offset 0 stay at the program's start.
    let moved = |at: &mut u32| {
        if *at > 0 {
            *at += added;
        }
    };
    program
        .subprograms
        .iter_mut()
        .for_each(|sub| moved(&mut sub.start.0));
    program
        .func_info
        .iter_mut()
        .for_each(|info| moved(&mut info.insn_off));
    program
        .lines
        .iter_mut()
        .for_each(|line| moved(&mut line.insn_off));
    program
        .accesses
        .iter_mut()
        .for_each(|access| access.pc.0 += added);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    #[test]
    fn what_stands_behind_is_moved() {
        let object = Object::open("tests/objects/tail_calls.bpf.o").unwrap();
        let before = object.programs().next().unwrap().unwrap();
        let after = only_for(before.clone(), MapId(0)).unwrap();
        let added = after.insns.len() - before.insns.len();
        assert_eq!(&after.insns[added..], before.insns);
        assert_eq!(after.lines[0].insn_off, 0);
        for (before, after) in before.lines.iter().zip(&after.lines).skip(1) {
            assert_eq!(before.insn_off as usize + added, after.insn_off as usize);
        }
        assert_eq!(
            (outside(ProgType::PerfEvent), outside(ProgType::Tracing)),
            (1, 0)
        );
    }
}
