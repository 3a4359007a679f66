//! Steps of tracing programs: the current task, and reading any memory.

use super::body::Body;
use super::output::{number, pointer_into};
use super::state::{BUFFER, Holds, MemoryKind};
use crate::isa::{Reg, RegSet, Size};
use crate::util::HelperId;

/// A helper without arguments about the task, or another clock.
pub(super) fn task(body: &mut Body<'_>) {
    const NAMES: [&str; 8] = [
        "get_current_pid_tgid",
        "get_current_uid_gid",
        "get_current_task",
        "get_current_cgroup_id",
        "ktime_get_coarse_ns",
        "ktime_get_tai_ns",
        "ktime_get_ns",
        "get_prandom_u32",
    ];
    number(body, &NAMES);
}

/// The name of the task, whole or truncated.
pub(super) fn comm(body: &mut Body<'_>) {
    let Some(helper) = known(body, "get_current_comm") else {
        return;
    };
    let len = 1 + i16::try_from(body.choices.below(16)).unwrap_or_default();
    room_into(body, Reg::R1, len);
    body.mov_imm(Reg::R2, len.into());
    body.call(helper, Holds::Number);
}

/// Reads any memory: the kernel's, the process's, the program's own, or an invalid address.
pub(super) fn probe_read(body: &mut Body<'_>) {
    const NAMES: [&str; 6] = [
        "probe_read_kernel",
        "probe_read_user",
        "probe_read_kernel_str",
        "probe_read_user_str",
        "probe_read",
        "probe_read_str",
    ];
    let name = body.choices.pick(&NAMES);
    let Some(helper) = known(body, name) else {
        return;
    };
    let len = i16::try_from(body.choices.below(usize::try_from(BUFFER).unwrap_or(1) + 1));
    let len = len.unwrap_or_default();
    if !address_into(body, Reg::R3) {
        return;
    }
    room_into(body, Reg::R1, len);
    body.mov_imm(Reg::R2, len.into());
    body.call(helper, Holds::Number);
}

/// The addresses on the stack, of the kernel or of the process.
pub(super) fn stack(body: &mut Body<'_>) {
    const USER: i32 = 1 << 8;
    let Some(helper) = known(body, "get_stack") else {
        return;
    };
    let held = body.state.with(|holds| holds == Holds::Context);
    let Some(context) = body.one_of(held.minus(RegSet::CALLER_SAVED)) else {
        return;
    };
    let len = 8 * i16::try_from(1 + body.choices.below(4)).unwrap_or(1);
    room_into(body, Reg::R2, len);
    body.mov(Reg::R1, context);
    body.mov_imm(Reg::R3, len.into());
    let skipped = i32::try_from(body.choices.below(3)).unwrap_or_default();
    let from = body.choices.pick(&[0, USER]);
    body.mov_imm(Reg::R4, from | skipped);
    body.call(helper, Holds::Number);
}

/// The helper of this name. Only recorded programs call it, since its results depend on the
/// machine.
fn known(body: &Body<'_>, name: &str) -> Option<HelperId> {
    let may = body.setting.options.recorded || !body.setting.options.defined;
    may.then(|| body.setting.helper(name)).flatten()
}

/// A pointer to at least `len` writable bytes; else to the buffer.
fn room_into(body: &mut Body<'_>, dst: Reg, len: i16) {
    pointer_into(body, dst, |area| {
        !matches!(area.kind, MemoryKind::Key | MemoryKind::Packet) && area.holds(len)
    });
}

/// Sets a register to a possible address: an existing number, an argument of the event, a
/// field of the task's structure, or memory of the program itself. Returns whether that was
/// possible.
fn address_into(body: &mut Body<'_>, dst: Reg) -> bool {
    match body.choices.below(5) {
        1 => {
            let arguments = body.setting.context.reads.iter();
            let words: Vec<_> = arguments
                .filter(|field| field.size == Size::Dw)
                .copied()
                .collect();
            let (Some(field), Some(base)) = (body.choices.any(&words), body.context()) else {
                return false;
            };
            body.load(Size::Dw, dst, base, field.off);
        }
        2 => {
            let Some(task) = body.setting.helper("get_current_task") else {
                return false;
            };
            body.call(task, Holds::Number);
            let off = i32::try_from(8 * body.choices.below(256)).unwrap_or_default();
            body.mov(dst, Reg::R0);
            body.add_imm(dst, off);
        }
        3 => pointer_into(body, dst, |area| area.kind != MemoryKind::Packet),
        4 => body.constant_into(dst),
        _ => {
            let numbers = body.state.with(|holds| holds == Holds::Number);
            match body.one_of(numbers) {
                Some(src) => body.mov(dst, src),
                None => body.constant_into(dst),
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::r#gen::{Choices, Options, make};
    use crate::isa::{CallTarget, Insn, decode_program};
    use crate::spec::ProgType;
    use crate::spec::helpers::helper_by_name;
    use crate::verifier::{self, verify};

    #[test]
    fn recorded_programs_are_accepted_and_ask_for_everything() {
        let mut called = BTreeSet::new();
        let mut accepted = 0;
        for seed in 0..200 {
            let options = Options::recorded(ProgType::Tracepoint);
            let made = make(&mut Choices::seeded(seed, 600), options);
            assert_eq!(made.masked, 0);
            let verdict = verify(&made.program, &verifier::Options::default()).verdict;
            if !verdict.is_accepted() {
                eprintln!("seed {seed}: {}", verdict.message);
                continue;
            }
            accepted += 1;
            for insn in decode_program(&made.program.insns).unwrap() {
                if let Insn::Call(CallTarget::Helper(id)) = insn {
                    called.insert(id);
                }
            }
        }
        assert!(accepted >= 180, "{accepted} of 200");
        for name in [
            "get_current_comm",
            "probe_read_kernel",
            "probe_read_user_str",
            "get_stack",
            "ktime_get_ns",
            "get_prandom_u32",
            "perf_event_output",
            "ringbuf_reserve",
            "map_update_elem",
            "map_push_elem",
            "loop",
        ] {
            let id = helper_by_name(name).unwrap().id;
            assert!(called.contains(&id), "no program calls {name}");
        }
    }
}
