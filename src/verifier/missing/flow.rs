//! The types that each register may hold before each instruction, as far as missing
//! features depend on them: a typed kernel pointer, an iterator's buffer, a map, a map
//! value with kptrs.
//!
//! This is a forward analysis over all paths in the graph, a superset of those explored, so
//! it never misses a type that exploration finds. All stack bytes count as one cell: a load
//! that isn't through one of these pointers may return any type stored anywhere.

use bitflags::bitflags;

use crate::btf::SpecialField;
use crate::isa::{AluOp, CallTarget, Code, Insn, Operand, Pseudo, Reg, Size};
use crate::program::{MapDef, Program};
use crate::spec::MapType;
use crate::spec::call::{ArgSpec, Precondition};
use crate::spec::context::{self, Mode, Yield};
use crate::spec::helpers::{Caller, Prototype, RetKind, helper, id};
use crate::util::{HelperId, MapId, Pc};
use crate::verifier::attach_target::AttachTarget;
use crate::verifier::call::signature;
use crate::verifier::context_argument::{self, Argument};
use crate::verifier::maps::Maps;
use crate::verifier::reg::MapRef;

bitflags! {
    /// The types that a register may hold.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Holds: u8 {
        /// The program's context.
        const CONTEXT = 1;
        /// A typed kernel pointer (`PTR_TO_BTF_ID`).
        const TYPED = 1 << 1;
        /// A map (`CONST_PTR_TO_MAP`).
        const MAP = 1 << 2;
        /// A map value with kptrs.
        const KPTR_VALUE = 1 << 3;
        /// One of these after pointer arithmetic.
        const MOVED = 1 << 4;
        /// The buffer of an iterator (`PTR_TO_BUF`).
        const BUFFER = 1 << 5;
    }
}

/// The types of the registers before an instruction.
type Registers = [Holds; Reg::COUNT];

/// The analysis of a program.
pub(super) struct Flow<'p> {
    program: &'p Program,
    caller: &'p Caller<'p>,
    code: Code,
    target: Option<AttachTarget<'p>>,
    /// The kptr fields of all maps.
    kptrs: Vec<SpecialField>,
    has_inner_maps: bool,
    before: Vec<Registers>,
    seen: Vec<bool>,
    /// The types stored to memory.
    stored: Holds,
    /// The types that functions may return.
    returned: Holds,
    /// The types passed to callbacks.
    callback: Holds,
}

impl<'p> Flow<'p> {
    pub(super) fn new(program: &'p Program, caller: &'p Caller<'p>) -> Self {
        let code = Code::new(&program.insns);
        let maps = Maps::new(program);
        let numbers = (0u32..).take(program.maps.len()).map(MapId);
        let both = numbers.flat_map(|id| [false, true].map(|inner| MapRef { id, inner }));
        let kptrs = both.flat_map(|map| maps.fields(map).to_vec());
        let kptrs = kptrs.filter(|field| field.kind.is_pointer()).collect();
        let is_outer =
            |map: &MapDef| matches!(map.map_type, MapType::ArrayOfMaps | MapType::HashOfMaps);
        let mut flow = Self {
            program,
            caller,
            target: AttachTarget::resolve(program).ok().flatten(),
            kptrs,
            has_inner_maps: program.maps.iter().any(is_outer),
            before: vec![Registers::default(); code.len()],
            seen: vec![false; code.len()],
            code,
            stored: Holds::empty(),
            returned: Holds::empty(),
            callback: Holds::empty(),
        };
        flow.solve();
        flow
    }

    /// The instructions, reachable or not.
    pub(super) fn insns(&self) -> impl Iterator<Item = (Pc, Insn)> + '_ {
        let insns = self.code.iter();
        insns.filter_map(|(pc, insn)| Some((pc, insn.ok()?)))
    }

    /// The types that a register may hold before an instruction.
    pub(super) fn holds(&self, pc: Pc, reg: Reg) -> Holds {
        let before = self.before.get(pc.index());
        before.map_or(Holds::empty(), |before| before[reg.index()])
    }

    /// Whether an access of `size` bytes at `off` may include a kptr in a map value.
    pub(super) fn is_kptr(&self, (off, size): (i64, u64), held: Holds) -> bool {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let touches = |field: &SpecialField| {
            let (start, end) = (
                i64::from(field.off),
                i64::from(field.off) + i64::from(field.size),
            );
            off < end && start < off.saturating_add(size)
        };
        held.contains(Holds::MOVED) || self.kptrs.iter().any(touches)
    }

    /// Iterates to a fixed point: the types stored, returned and passed to callbacks are
    /// complete only after all instructions were visited.
    fn solve(&mut self) {
        let mut first = Registers::default();
        first[Reg::R1.index()] = Holds::CONTEXT;
        loop {
            let summary = (self.stored, self.returned, self.callback);
            let mut pending = Vec::new();
            self.enter(Pc(0), &first, &mut pending);
            let mut called_back = Registers::default();
            for reg in Reg::ARGUMENTS {
                called_back[reg.index()] = self.callback;
            }
            let functions: Vec<_> = self
                .insns()
                .filter_map(|(pc, insn)| {
                    let Insn::LoadPseudo {
                        source: Pseudo::Func { rel },
                        ..
                    } = insn
                    else {
                        return None;
                    };
                    target(pc, rel)
                })
                .collect();
            for start in functions {
                self.enter(start, &called_back, &mut pending);
            }
            // Global functions are explored on their own, too.
            for (start, signature) in global_functions(self.program) {
                let mut entry = Registers::default();
                for (reg, argument) in Reg::ARGUMENTS.into_iter().zip(signature.arguments()) {
                    entry[reg.index()] = match argument {
                        signature::Argument::Object { .. } => Holds::TYPED,
                        signature::Argument::Context => Holds::CONTEXT,
                        _ => Holds::empty(),
                    };
                }
                self.enter(start, &entry, &mut pending);
            }
            // All again: their results may depend on types stored since.
            let seen = (0u32..).zip(&self.seen).filter(|(_, seen)| **seen);
            pending.extend(seen.map(|(pc, _)| Pc(pc)));
            while let Some(pc) = pending.pop() {
                self.step(pc, &mut pending);
            }
            if summary == (self.stored, self.returned, self.callback) {
                return;
            }
        }
    }

    /// Merges these registers into the state before an instruction.
    fn enter(&mut self, pc: Pc, registers: &Registers, pending: &mut Vec<Pc>) {
        let at = pc.index();
        let (Some(before), Some(seen)) = (self.before.get_mut(at), self.seen.get_mut(at)) else {
            return;
        };
        let mut changed = !*seen;
        *seen = true;
        for (known, new) in before.iter_mut().zip(registers) {
            changed |= !known.contains(*new);
            *known |= *new;
        }
        if changed {
            pending.push(pc);
        }
    }

    fn step(&mut self, pc: Pc, pending: &mut Vec<Pc>) {
        let Some(insn) = self.code.insn(pc) else {
            return;
        };
        let mut after = self.before.get(pc.index()).copied().unwrap_or_default();
        if let Some(function) = insn
            .subprogram_target(pc)
            .and_then(|at| u32::try_from(at).ok())
        {
            let mut entry = Registers::default();
            for reg in Reg::ARGUMENTS {
                entry[reg.index()] = after[reg.index()];
            }
            self.enter(Pc(function), &entry, pending);
        }
        self.transfer(&insn, &mut after);
        let next = insn.falls_through().then(|| self.code.next(pc));
        let jump = insn.jump_target(pc);
        let jump = jump.and_then(|to| u32::try_from(to).ok()).map(Pc);
        for to in next.into_iter().chain(jump) {
            self.enter(to, &after, pending);
        }
    }

    /// The types of the registers after an instruction.
    fn transfer(&mut self, insn: &Insn, regs: &mut Registers) {
        let of = |regs: &Registers, src: Operand| {
            src.reg().map_or(Holds::empty(), |reg| regs[reg.index()])
        };
        match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src,
                ..
            } => regs[dst.index()] = of(regs, src),
            Insn::Alu {
                op: AluOp::Add | AluOp::Sub,
                dst,
                src,
                ..
            } => {
                let sum = regs[dst.index()] | of(regs, src);
                let moves = sum.intersects(Holds::KPTR_VALUE | Holds::CONTEXT);
                regs[dst.index()] = if moves { sum | Holds::MOVED } else { sum };
            }
            Insn::LoadPseudo { dst, source } => regs[dst.index()] = self.named(source),
            Insn::Load {
                size,
                dst,
                base,
                off,
            } => {
                regs[dst.index()] = self.loaded(regs[base.index()], off, size);
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                regs[dst.index()] = self.loaded(regs[base.index()], off, size);
            }
            Insn::Store { src, .. } => self.stored |= of(regs, src),
            Insn::StoreRelease { src, .. } => self.stored |= regs[src.index()],
            Insn::Call(callee) => {
                let result = self.called(callee, regs);
                for reg in Reg::ARGUMENTS {
                    regs[reg.index()] = Holds::empty();
                }
                regs[Reg::R0.index()] = result;
            }
            Insn::Exit => self.returned |= regs[Reg::R0.index()],
            _ => {
                for reg in insn.writes().iter() {
                    regs[reg.index()] = Holds::empty();
                }
            }
        }
    }

    /// The type of a 64-bit immediate.
    fn named(&self, source: Pseudo) -> Holds {
        match source {
            Pseudo::MapIdx { .. } => Holds::MAP,
            Pseudo::MapIdxValue { off: 0, .. } => self.value(),
            Pseudo::MapIdxValue { .. } => match self.value() {
                value if value.is_empty() => value,
                value => value | Holds::MOVED,
            },
            Pseudo::BtfId { id, btf_fd: 0 } if super::is_function(self.program, id) => {
                Holds::empty()
            }
            Pseudo::BtfId { .. } => Holds::TYPED,
            _ => Holds::empty(),
        }
    }

    /// The type of a map value.
    fn value(&self) -> Holds {
        if self.kptrs.is_empty() {
            Holds::empty()
        } else {
            Holds::KPTR_VALUE
        }
    }

    fn loaded(&self, base: Holds, off: i16, size: Size) -> Holds {
        if size.bytes() != 8 {
            return Holds::empty();
        }
        let mut loaded = Holds::empty();
        if base.contains(Holds::CONTEXT) {
            loaded |= self.field(base, off);
        }
        if base.intersects(Holds::TYPED | Holds::MAP) {
            loaded |= Holds::TYPED;
        }
        let field = (i64::from(off), 8);
        if base.contains(Holds::KPTR_VALUE) && self.is_kptr(field, base) {
            loaded |= Holds::TYPED;
        }
        if base.is_empty() {
            loaded |= self.stored;
        }
        loaded
    }

    /// The type of 8 bytes of the context.
    fn field(&self, base: Holds, off: i16) -> Holds {
        let any = Holds::TYPED | Holds::BUFFER;
        if base.contains(Holds::MOVED) {
            return any;
        }
        let program = self.program;
        let Ok(off) = u32::try_from(off) else {
            return Holds::empty();
        };
        let (ty, attach) = (program.prog_type, self.caller.attach_type);
        match context::check(ty, attach, program.arch, off, 8, Mode::Read) {
            Some(Yield::Kernel(_)) => Holds::TYPED,
            Some(Yield::Argument(_)) => match &self.target {
                Some(target) => match context_argument::at(target, program, off, 8) {
                    Ok(Argument::Object { .. }) => Holds::TYPED,
                    Ok(Argument::Buffer(_)) => Holds::BUFFER,
                    _ => Holds::empty(),
                },
                None => any,
            },
            _ => Holds::empty(),
        }
    }

    /// The type that a call returns.
    fn called(&mut self, callee: CallTarget, regs: &Registers) -> Holds {
        let passed = Reg::ARGUMENTS.into_iter().map(|reg| regs[reg.index()]);
        let passed = passed.fold(Holds::empty(), |all, one| all | one);
        match callee {
            CallTarget::Kfunc { .. } => {
                self.callback |= passed | Holds::TYPED | Holds::MAP | self.value();
                Holds::TYPED | self.value()
            }
            CallTarget::Helper(id) => {
                let prototype = helper(id).and_then(|helper| helper.prototype(self.caller));
                prototype.map_or(Holds::empty(), |prototype| {
                    self.helper(id, prototype, passed)
                })
            }
            CallTarget::Subprogram { .. } => self.returned,
        }
    }

    fn helper(&mut self, id: HelperId, prototype: &Prototype, passed: Holds) -> Holds {
        let is_callback = |arg: &ArgSpec| arg.demands(Precondition::Callback);
        if prototype.arguments.iter().any(is_callback) {
            self.callback |= passed;
            self.callback |= match id {
                id::for_each_map_elem | id::timer_set_callback => Holds::MAP | self.value(),
                id::find_vma => Holds::TYPED,
                _ => Holds::empty(),
            };
        }
        match prototype.ret.kind {
            RetKind::PtrToMapValue if self.has_inner_maps => Holds::MAP | self.value(),
            RetKind::PtrToMapValue => self.value(),
            RetKind::PtrToBtfId | RetKind::PtrToMemOrBtfId => Holds::TYPED,
            _ => Holds::empty(),
        }
    }
}

/// The global functions of a program by their first instruction, except for its entry.
pub(super) fn global_functions(
    program: &Program,
) -> impl Iterator<Item = (Pc, signature::Signature)> {
    let numbered = (0u32..).zip(&program.subprograms);
    let global = numbered.filter(|(_, function)| function.global && function.start != Pc(0));
    global.filter_map(|(number, function)| {
        let known = signature::of(program, number, function.type_id, true);
        Some((function.start, known.ok()?))
    })
}

/// The target of a relative address.
fn target(pc: Pc, rel: i32) -> Option<Pc> {
    let at = i64::from(pc.0) + 1 + i64::from(rel);
    u32::try_from(at).ok().map(Pc)
}
