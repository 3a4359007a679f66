//! Steps with the kernel's objects: typed pointers, their members, calls of kfuncs.

use super::body::Body;
use super::calls::KEPT;
use super::kernel::{KernelTypes, Kfunc, StructIndex};
use super::look_up::null_check;
use super::state::{Area, BUFFER, BUFFER_AT, Holds, MemoryKind};
use super::{maps, packet, scopes};
use crate::isa::{AluOp, CallTarget, Insn, Operand, Reg, Size, Width};
use crate::spec::ContextKind;
use crate::spec::kfuncs::{KfuncFlags, KfuncResult, Parameter, ParameterKind};

impl<'a> Body<'a> {
    /// The kernel, for programs with its types.
    pub(super) fn kernel(&self) -> Option<&'a KernelTypes> {
        self.setting.options.kernel
    }

    /// Whether to make a mistake here.
    pub(super) fn slips(&mut self) -> bool {
        self.setting.options.mistakes && self.choices.chance(2)
    }

    /// The same where a program has few places for it.
    pub(super) fn slips_often(&mut self) -> bool {
        self.setting.options.mistakes && self.choices.chance(20)
    }

    /// Whether a kfunc may be called here: one that sleeps only by a sleepable program, outside
    /// of critical sections.
    pub(super) fn may_call(&mut self, function: Kfunc) -> bool {
        let may_sleep = self.setting.sleeps && self.sections == 0;
        !function.has(KfuncFlags::SLEEPABLE) || may_sleep || self.slips()
    }

    /// A kfunc call; the arguments are already in their registers.
    pub(super) fn call_kernel(&mut self, function: Kfunc, result: Holds) {
        let (id, fd_index) = (function.id, 0);
        self.code
            .emit(Insn::Call(CallTarget::Kfunc { id, fd_index }));
        if let Some(bits) = function.narrow {
            // As a compiler does it.
            self.alu(AluOp::And, Width::W64, Reg::R0, Operand::Imm(bits));
        }
        self.state.after_call(result);
    }

    /// Keeps r0 in a register that calls keep.
    pub(super) fn keep(&mut self, holds: Holds) -> Option<Reg> {
        self.state.set(Reg::R0, holds);
        let kept = self.free_and_kept()?;
        self.mov(kept, Reg::R0);
        Some(kept)
    }

    /// Sets an argument register to something for this parameter; returns whether that was
    /// possible.
    pub(super) fn satisfy(&mut self, dst: Reg, parameter: &Parameter) -> bool {
        if parameter.nullable && self.choices.chance(30) {
            self.mov_imm(dst, 0);
            return true;
        }
        match parameter.kind {
            ParameterKind::Scalar => return self.argument(dst, Holds::Number),
            ParameterKind::Context => return self.argument(dst, Holds::Context),
            ParameterKind::Constant => {
                let imm = i32::try_from(self.choices.below(16)).unwrap_or_default();
                self.mov_imm(dst, imm);
            }
            ParameterKind::Size | ParameterKind::ConstantSize | ParameterKind::BufferSize => {
                let most = i32::from(BUFFER);
                let imm = self.choices.pick(&[8, 4, 1, most, most, 14]);
                let imm = if self.slips() { most + 1 } else { imm };
                self.mov_imm(dst, imm);
            }
            ParameterKind::Ignored | ParameterKind::Memory => self.frame_address(dst, BUFFER_AT),
            ParameterKind::Dynptr => {
                let live = self.dynptrs.clone();
                let Some(off) = self.choices.any(&live) else {
                    return false;
                };
                self.frame_address(dst, off);
            }
            ParameterKind::Object => return self.object_into(dst, parameter.base),
            _ => return false,
        }
        true
    }

    /// Sets a register to a pointer to this structure (`struct task_struct`).
    fn object_into(&mut self, dst: Reg, base: &str) -> bool {
        let Some(kernel) = self.kernel() else {
            return false;
        };
        let wanted = kernel.structure(base);
        // The kernel takes a `struct bpf_cpumask` for the mask at its start.
        let other = match base {
            "struct cpumask" => kernel.structure("struct bpf_cpumask"),
            _ => None,
        };
        let fits = |of: StructIndex| Some(of) == wanted || other.is_some_and(|it| it == of);
        let any = self.slips();
        let is_one = |holds| match holds {
            Holds::Object { of, sure } => any || fits(of) && sure,
            Holds::MaybeObject(_, of) => any && fits(of),
            _ => false,
        };
        let held = self.state.with(is_one);
        let held = held.iter().filter(|reg| KEPT.contains(*reg)).collect();
        let Some(reg) = self.one_of(held) else {
            return false;
        };
        self.mov(dst, reg);
        true
    }

    /// A register that holds an object.
    fn object(&mut self) -> Option<(Reg, StructIndex)> {
        let slips = self.slips();
        let of = |holds| match holds {
            Holds::Object { of, .. } => Some(of),
            Holds::MaybeObject(_, of) if slips => Some(of),
            _ => None,
        };
        let reg = self.one_of(self.state.with(|holds| of(holds).is_some()))?;
        Some((reg, of(self.state.get(reg))?))
    }
}

/// The current task.
pub(super) fn current(body: &mut Body<'_>) {
    let (Some(helper), Some(kernel)) = (body.setting.helper("get_current_task_btf"), body.kernel())
    else {
        return;
    };
    if let (Some(of), false) = (
        kernel.structure("struct task_struct"),
        body.setting.options.defined,
    ) {
        body.call(helper, Holds::Nothing);
        body.keep(Holds::Object { of, sure: true });
    }
}

/// A typed argument of the program.
pub(super) fn argument(body: &mut Body<'_>) {
    let (Some(hook), Some(base)) = (body.setting.hook, body.context()) else {
        return;
    };
    let Some(argument) = body.choices.any(&hook.arguments) else {
        return;
    };
    // The program has released references at its start.
    if argument.is_reference && !body.slips() {
        return;
    }
    let at = argument.at;
    let dst = match body.free_and_kept() {
        Some(kept) if at.to.is_some() => kept,
        _ => body.free(),
    };
    body.load(at.size, dst, base, at.off);
    let holds = match at.to {
        None => Holds::Number,
        Some(of) if argument.nullable => Holds::MaybeObject(body.new_maybe(), of),
        Some(of) => Holds::Object { of, sure: true },
    };
    body.state.set(dst, holds);
}

/// Releases the references that the program got as arguments.
pub(super) fn release_arguments(body: &mut Body<'_>) {
    let (Some(hook), Some(base), Some(kernel)) = (body.setting.hook, body.context(), body.kernel())
    else {
        return;
    };
    for argument in hook.arguments.iter().filter(|it| it.is_reference) {
        let release = argument.at.to.and_then(|of| {
            let ty = kernel.btf().get(kernel.structs[usize::from(of)].id)?;
            kernel.release(&format!("struct {}", ty.name()))
        });
        let release = release.filter(|it| body.setting.allows(it.row));
        if let (Some(release), false) = (release, body.slips()) {
            body.load(argument.at.size, Reg::R1, base, argument.at.off);
            body.call_kernel(release, Holds::Nothing);
        }
    }
}

/// Writes a member of an object that programs of the attach point may write.
pub(super) fn write_member(body: &mut Body<'_>) {
    let (Some(hook), Some((base, of))) = (body.setting.hook, body.object()) else {
        return;
    };
    let own = hook
        .writable
        .iter()
        .filter(|(structure, _)| *structure == of);
    let own: Vec<_> = own.map(|(_, member)| *member).collect();
    let Some(member) = body.choices.any(&own) else {
        return;
    };
    let by = if body.slips() { 4 } else { 0 };
    let imm = body.choices.imm();
    let numbers = body.state.with(|holds| holds == Holds::Number);
    let src = match body.one_of(numbers) {
        Some(reg) if body.choices.chance(70) => Operand::Reg(reg),
        _ => Operand::Imm(imm),
    };
    body.store(member.size, base, member.off + by, src);
}

/// Loads the pointer in the map, which may be null.
pub(super) fn stored(body: &mut Body<'_>) {
    if body.setting.options.defined {
        return;
    }
    let object = format!("struct {}", maps::KPTR_OBJECT);
    let of = body.kernel().and_then(|kernel| kernel.structure(&object));
    let (Some(of), Some(dst)) = (of, body.free_and_kept()) else {
        return;
    };
    body.value_of(Reg::R1, maps::KPTRS);
    body.load(Size::Dw, dst, Reg::R1, 0);
    let id = body.new_maybe();
    body.state.set(dst, Holds::MaybeObject(id, of));
    null_check(body);
}

/// Loads a member of an object.
pub(super) fn load_member(body: &mut Body<'_>) {
    let (Some((base, of)), Some(kernel)) = (body.object(), body.kernel()) else {
        return;
    };
    // Half of the loaded members are pointers.
    let members = &kernel.structs[usize::from(of)].members;
    let found = if body.choices.chance(50) {
        let pointers = members.iter().copied();
        let pointers: Vec<_> = pointers.filter(|it| it.to.is_some()).collect();
        body.choices.any(&pointers)
    } else {
        let pages: Vec<_> = members.chunks(256).collect();
        let page = body.choices.any(&pages).unwrap_or_default();
        body.choices.any(page)
    };
    let Some(member) = found else {
        return;
    };
    let dst = match body.free_and_kept() {
        Some(kept) if member.to.is_some() => kept,
        _ => body.free(),
    };
    let by = if body.slips() { 4 } else { 0 };
    body.load(member.size, dst, base, member.off + by);
    let holds = match member.to {
        None => Holds::Number,
        // Whether the kernel trusts such a pointer depends on the member.
        Some(of) => Holds::Object {
            of,
            sure: body.choices.chance(10),
        },
    };
    body.state.set(dst, holds);
}

/// A call of one of the kernel's functions that programs of the type may call.
pub(super) fn any_call(body: &mut Body<'_>) {
    let setting = body.setting;
    // Most functions take objects that are not at hand.
    for _ in 0..4 {
        let Some(function) = body.choices.any(&setting.kfuncs) else {
            return;
        };
        if body.may_call(function) && call(body, function) {
            return;
        }
    }
}

/// The function that makes a pointer to a structure out of any number.
const CAST: &str = "bpf_rdonly_cast";

/// Calls a function; returns whether there were arguments.
fn call(body: &mut Body<'_>, function: Kfunc) -> bool {
    let (row, Some(kernel)) = (function.row, body.kernel()) else {
        return false;
    };
    if function.has(KfuncFlags::ACQUIRE) && !scopes::may_hold(body) {
        return false;
    }
    let mut cast = None;
    let mut size = 0;
    for (dst, parameter) in Reg::ARGUMENTS.into_iter().zip(row.parameters) {
        body.state.set(dst, Holds::Nothing);
        if row.name == CAST && parameter.kind == ParameterKind::Ignored {
            // Near other memory than the kernel's, loads are faults; no such address has 32
            // bits.
            match body.object() {
                Some((reg, _)) if KEPT.contains(reg) => body.mov(dst, reg),
                _ => {
                    let imm = body.choices.imm();
                    body.mov_imm(dst, imm);
                }
            }
        } else if parameter.name == "btf_id__k" {
            let at = body.choices.below(kernel.structs.len());
            let id = kernel.structs[at].id;
            cast = StructIndex::try_from(at).ok();
            body.mov_imm(dst, id.0.cast_signed());
        } else if parameter.kind == ParameterKind::ConstantSize {
            let most = usize::try_from(BUFFER).unwrap_or(1);
            size = i16::try_from(1 + body.choices.below(most)).unwrap_or(1);
            body.mov_imm(dst, size.into());
        } else if !body.satisfy(dst, parameter) {
            return false;
        }
    }
    let holds = match row.result {
        _ if cast.is_some() => object(cast),
        KfuncResult::Void => Holds::Nothing,
        KfuncResult::Signed | KfuncResult::Unsigned => Holds::Number,
        KfuncResult::Pointer("void") if size > 0 => {
            Holds::Pointer(Area::new(MemoryKind::Record, size))
        }
        KfuncResult::Pointer("void") => object(kernel_context(body, kernel)),
        KfuncResult::Pointer(base) => object(kernel.structure(base)),
    };
    body.call_kernel(function, holds);
    if row.name.contains("dynptr") {
        packet::forget_packets(body);
    }
    if function.has(KfuncFlags::ACQUIRE) {
        scopes::hold(body, function, holds);
    } else if function.has(KfuncFlags::RET_NULL) {
        let id = body.new_maybe();
        let holds = match holds {
            Holds::Pointer(area) => Holds::Maybe(id, area),
            Holds::Object { of, .. } => Holds::MaybeObject(id, of),
            other => other,
        };
        body.keep(holds);
        null_check(body);
    } else if matches!(holds, Holds::Object { .. }) {
        body.keep(holds);
    }
    true
}

fn object(of: Option<StructIndex>) -> Holds {
    let sure = true;
    of.map_or(Holds::Nothing, |of| Holds::Object { of, sure })
}

/// The structure of the kernel's own context of a program.
fn kernel_context(body: &Body<'_>, kernel: &KernelTypes) -> Option<StructIndex> {
    kernel.structure(match body.setting.prog_type.info().context {
        ContextKind::SkBuff => "struct sk_buff",
        ContextKind::XdpMd => "struct xdp_buff",
        _ => return None,
    })
}
