//! Steps that call helpers: for numbers, on memory, and for output.

use super::body::Body;
use super::maps;
use super::state::{Area, BUFFER, BUFFER_AT, Holds, MemoryKind};
use crate::isa::{Insn, JumpOp, Operand, Reg, RegSet, Size, Width};

/// A helper without arguments, whose result depends on the machine.
pub(super) fn environment(body: &mut Body<'_>) {
    const NAMES: [&str; 7] = [
        "get_smp_processor_id",
        "ktime_get_ns",
        "get_prandom_u32",
        "jiffies64",
        "get_current_pid_tgid",
        "get_numa_node_id",
        "ktime_get_boot_ns",
    ];
    number(body, &NAMES);
}

/// One of these helpers, which have no arguments and a machine-dependent result.
pub(super) fn number(body: &mut Body<'_>, names: &[&str]) {
    let name = body.choices.pick(names);
    if let Some(helper) = body.setting.helper(name) {
        body.call_masked(helper);
    }
}

/// A pointer to at least `len` bytes outside of packets.
fn memory_into(body: &mut Body<'_>, dst: Reg, len: i16) {
    pointer_into(body, dst, |area| {
        area.kind != MemoryKind::Packet && area.holds(len)
    });
}

/// An existing pointer of this kind, if one survives a call; else to the buffer.
pub(super) fn pointer_into(body: &mut Body<'_>, dst: Reg, is: impl Fn(Area) -> bool) {
    match body.pointer(is) {
        Some((reg, _)) if !RegSet::CALLER_SAVED.contains(reg) => body.mov(dst, reg),
        _ => body.frame_address(dst, BUFFER_AT),
    }
}

/// A number of bytes of the buffer, a multiple of four.
fn words(body: &mut Body<'_>) -> i16 {
    i16::try_from(4 * (1 + body.choices.below(8))).unwrap_or(4)
}

/// The difference of two checksums.
pub(super) fn checksum(body: &mut Body<'_>) {
    let Some(helper) = body.setting.helper("csum_diff") else {
        return;
    };
    let len = words(body);
    memory_into(body, Reg::R1, len);
    body.mov_imm(Reg::R2, len.into());
    body.frame_address(Reg::R3, BUFFER_AT);
    body.mov_imm(Reg::R4, BUFFER.into());
    let seed = body.choices.imm();
    body.mov_imm(Reg::R5, seed);
    body.call(helper, Holds::Number);
}

/// A line for the trace pipe: the buffer has the format, the registers two numbers.
pub(super) fn print(body: &mut Body<'_>) {
    let Some(helper) = body.setting.helper("trace_printk") else {
        return;
    };
    // All programs of a kernel print to one pipe.
    if body.setting.options.recorded && !body.choices.chance(5) {
        return;
    }
    let formats = [b"%d %x\n\0\0", b"%llx\n\0\0\0", b"%hhi %u\0"];
    let format = u64::from_le_bytes(*body.choices.pick(&formats));
    let scratch = RegSet::of(&[Reg::R1, Reg::R2, Reg::R3, Reg::R4]);
    let numbers = body.state.with(|holds| holds == Holds::Number);
    for reg in [Reg::R3, Reg::R4] {
        match body.one_of(numbers.minus(scratch)) {
            Some(src) => body.mov(reg, src),
            None => body.mov_imm(reg, 7),
        }
    }
    body.code.emit(Insn::LoadImm64 {
        dst: Reg::R1,
        value: format,
    });
    body.state.set(Reg::R1, Holds::Nothing);
    body.store(Size::Dw, Reg::FP, BUFFER_AT, Operand::Reg(Reg::R1));
    body.frame_address(Reg::R1, BUFFER_AT);
    body.mov_imm(Reg::R2, 8);
    body.call_masked(helper);
}

/// A record for the perf buffer.
pub(super) fn perf(body: &mut Body<'_>) {
    let Some(helper) = body.setting.helper("perf_event_output") else {
        return;
    };
    let Some(context) = body.context() else {
        return;
    };
    if Reg::ARGUMENTS.contains(&context) || !body.setting.has_map(maps::PERF) {
        return;
    }
    let len = words(body);
    memory_into(body, Reg::R4, len);
    body.mov(Reg::R1, context);
    body.map_into(Reg::R2, maps::PERF);
    // BPF_F_CURRENT_CPU.
    body.code.emit(Insn::LoadImm64 {
        dst: Reg::R3,
        value: 0xffff_ffff,
    });
    body.state.set(Reg::R3, Holds::Number);
    body.mov_imm(Reg::R5, len.into());
    body.call_masked(helper);
}

/// A record for the ring buffer, copied.
pub(super) fn ring_output(body: &mut Body<'_>) {
    let Some(helper) = body.setting.helper("ringbuf_output") else {
        return;
    };
    let len = words(body);
    memory_into(body, Reg::R2, len);
    body.map_into(Reg::R1, maps::RING);
    body.mov_imm(Reg::R3, len.into());
    let flags = body.choices.pick(&[0, 1, 2]);
    body.mov_imm(Reg::R4, flags);
    body.call(helper, Holds::Number);
}

/// A query of the ring buffer's state.
pub(super) fn ring_query(body: &mut Body<'_>) {
    let Some(helper) = body.setting.helper("ringbuf_query") else {
        return;
    };
    body.map_into(Reg::R1, maps::RING);
    let what = body.choices.pick(&[0, 1, 2, 3]);
    body.mov_imm(Reg::R2, what);
    body.call(helper, Holds::Number);
}

/// Reserves a ring buffer record, fills it, and submits or discards it; no path returns in
/// between.
pub(super) fn ring_reserve(body: &mut Body<'_>) {
    const NAMES: [&str; 2] = ["ringbuf_submit", "ringbuf_discard"];
    let reserve = body.setting.helper("ringbuf_reserve");
    let name = body.choices.pick(&NAMES);
    let (Some(reserve), Some(release)) = (reserve, body.setting.helper(name)) else {
        return;
    };
    if body.held > 0 || body.function().role.is_callback() {
        return;
    }
    let Some(home) = body.free_and_kept() else {
        return;
    };
    let len = 8 * i16::try_from(1 + body.choices.below(6)).unwrap_or(1);
    body.map_into(Reg::R1, maps::RING);
    body.mov_imm(Reg::R2, len.into());
    body.mov_imm(Reg::R3, 0);
    body.call(reserve, Holds::Nothing);
    body.mov(home, Reg::R0);
    body.state.set(home, Holds::Nothing);
    body.open_jump(JumpOp::Eq, Width::W64, home, Operand::Imm(0));

    let area = Area::new(MemoryKind::Record, len);
    body.state.set(home, Holds::Pointer(area));
    // Unwritten bytes would have their old contents.
    for at in 0..len / 8 {
        let imm = body.choices.imm();
        body.store(Size::Dw, home, 8 * at, Operand::Imm(imm));
    }
    body.inside(RegSet::of(&[home]), 6);
    body.mov(Reg::R1, home);
    body.mov_imm(Reg::R2, 0);
    body.call(release, Holds::Nothing);
    body.forget_records();
}
