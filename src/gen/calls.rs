//! Steps that call functions of the program, and tail calls.

use super::body::Body;
use super::code::Label;
use super::maps;
use super::setting::{Function, Role};
use super::state::{BUFFER_AT, Holds, MemoryKind};
use crate::isa::{AluOp, CallTarget, Insn, JumpOp, Operand, Pseudo, Reg, RegSet, Size, Width};

/// The end of the main program: the whole result is stored in a map, for a kernel returns
/// only its lower half.
pub(super) fn keep_result(body: &mut Body<'_>) {
    body.value_of(Reg::R1, maps::RESULTS);
    body.store(Size::Dw, Reg::R1, 0, Operand::Reg(Reg::R0));
}

/// Registers that calls keep, and that do not change while arguments are set up.
pub(super) const KEPT: RegSet = RegSet::of(&[Reg::R6, Reg::R7, Reg::R8, Reg::R9]);

impl Body<'_> {
    /// The functions of a role that may be called from here: only later ones, so that calls
    /// terminate.
    fn callees(&self, is: impl Fn(&Function) -> bool) -> Vec<usize> {
        let behind = self.setting.functions.iter().enumerate();
        let behind = behind.skip(self.number + 1);
        behind.filter(|(_, f)| is(f)).map(|(at, _)| at).collect()
    }

    /// Sets an argument register to something of this kind; returns whether that was
    /// possible.
    pub(super) fn argument(&mut self, dst: Reg, wanted: Holds) -> bool {
        match wanted {
            Holds::Number => {
                let numbers = self.state.with(|holds| holds == Holds::Number);
                let kept = RegSet::of(&[Reg::R0]).union(KEPT);
                let usable: RegSet = numbers.iter().filter(|reg| kept.contains(*reg)).collect();
                match self.one_of(usable) {
                    Some(reg) => self.mov(dst, reg),
                    None => {
                        let imm = self.choices.imm();
                        self.mov_imm(dst, imm);
                    }
                }
            }
            Holds::Pointer(area) if area.kind == MemoryKind::Stack => {
                self.frame_address(dst, BUFFER_AT);
            }
            Holds::Context => {
                let held = self.state.with(|holds| holds == Holds::Context);
                let kept: RegSet = held.iter().filter(|reg| KEPT.contains(*reg)).collect();
                let Some(reg) = self.one_of(kept) else {
                    return false;
                };
                self.mov(dst, reg);
            }
            Holds::Pointer(area) => {
                let found = self.pointer(|has| {
                    has.kind == area.kind
                        && has.low <= area.low
                        && has.high >= area.high
                        && has.align >= area.align
                });
                let Some((reg, _)) = found.filter(|(reg, _)| KEPT.contains(*reg)) else {
                    return false;
                };
                self.mov(dst, reg);
            }
            Holds::Nothing
            | Holds::PacketEnd
            | Holds::Maybe(..)
            | Holds::Object { .. }
            | Holds::MaybeObject(..) => return false,
        }
        true
    }
}

/// A call of a function of the program.
pub(super) fn function(body: &mut Body<'_>) {
    let callees = body.callees(|f| matches!(f.role, Role::Static | Role::Global));
    let Some(at) = body.choices.any(&callees) else {
        return;
    };
    let function = &body.setting.functions[at];
    for (dst, wanted) in Reg::ARGUMENTS.into_iter().zip(&function.arguments) {
        // Already set arguments are overwritten.
        body.state.set(dst, Holds::Nothing);
        if !body.argument(dst, *wanted) {
            return;
        }
    }
    let call = Insn::Call(CallTarget::Subprogram { rel: 0 });
    body.code.aim(call, function.label);
    body.called.push(at);
    body.state.after_call(Holds::Number);
}

/// A helper that calls a function of the program repeatedly.
pub(super) fn callback(body: &mut Body<'_>) {
    if body.loops > 1 || body.function().role.is_callback() {
        return;
    }
    let callees = body.callees(|f| f.role.is_callback());
    let Some(at) = body.choices.any(&callees) else {
        return;
    };
    let Function { role, label, .. } = &body.setting.functions[at];
    let (role, label) = (*role, *label);
    let name = match role {
        Role::Loop => "loop",
        _ => "for_each_map_elem",
    };
    let Some(helper) = body.setting.helper(name) else {
        return;
    };
    match role {
        Role::Element(map) => body.map_into(Reg::R1, map),
        _ => {
            // For a function that is never called, the kernel's JIT reports a verifier bug.
            let rounds = i32::try_from(1 + body.choices.below(8)).unwrap_or(1);
            body.mov_imm(Reg::R1, rounds);
        }
    }
    let source = Pseudo::Func { rel: 0 };
    let dst = Reg::R2;
    body.code.aim(Insn::LoadPseudo { dst, source }, label);
    body.called.push(at);
    body.frame_address(Reg::R3, BUFFER_AT);
    body.mov_imm(Reg::R4, 0);
    body.call(helper, Holds::Number);
}

/// A tail call, by an index that may have no program.
pub(super) fn tail(body: &mut Body<'_>) {
    let Some(helper) = body.setting.helper("tail_call") else {
        return;
    };
    let role = body.function().role;
    if role.is_callback() || body.held > 0 || !body.setting.has_map(maps::JUMPS) {
        return;
    }
    let held = body.state.with(|holds| holds == Holds::Context);
    let kept: RegSet = held.iter().filter(|reg| KEPT.contains(*reg)).collect();
    let Some(context) = body.one_of(kept) else {
        return;
    };
    let again = body.setting.options.tail_calls;
    let last = again.then(|| body.code.label());
    if let Some(last) = last {
        wait(body, last);
    }
    // One past the end, too.
    let index = i32::try_from(body.choices.below(if again { 5 } else { 4 })).unwrap_or_default();
    let numbers = body.state.with(|holds| holds == Holds::Number);
    let numbers = numbers.iter().filter(|reg| KEPT.contains(*reg)).collect();
    match body.one_of(numbers).filter(|_| again && index == 4) {
        Some(number) => {
            body.mov(Reg::R3, number);
            body.alu(AluOp::And, Width::W32, Reg::R3, Operand::Imm(3));
        }
        None => body.mov_imm(Reg::R3, index),
    }
    body.mov(Reg::R1, context);
    body.map_into(Reg::R2, maps::JUMPS);
    body.call(helper, Holds::Nothing);
    if let Some(last) = last {
        body.code.bind(last);
    }
}

/// The most frames that may wait below the targets of tail calls: more would be too much
/// for a kernel thread's stack (16 KiB on x86-64), which the kernel does not check. A frame
/// has at most 136 bytes: eight slots, and the caller's saved registers.
const MOST_WAITING: i32 = 50;

/// Counts the frames that wait for this function, and skips to `last` if there are too
/// many. The n-th function has at most n callers.
fn wait(body: &mut Body<'_>, last: Label) {
    let frames = i32::try_from(body.number).unwrap_or(MOST_WAITING);
    if frames == 0 {
        return;
    }
    body.value_of(Reg::R1, maps::WAITING);
    body.load(Size::Dw, Reg::R2, Reg::R1, 0);
    let insn = Insn::JumpIf {
        op: JumpOp::Gt,
        width: Width::W64,
        dst: Reg::R2,
        src: Operand::Imm(MOST_WAITING - frames),
        off: 0,
    };
    body.code.aim(insn, last);
    body.alu(AluOp::Add, Width::W64, Reg::R2, Operand::Imm(frames));
    body.store(Size::Dw, Reg::R1, 0, Operand::Reg(Reg::R2));
}
