//! The transfer function of instructions other than calls.

use super::kind::{Kind, MapRef};
use super::state::State;
use crate::instrument::context::is_changing;
use crate::isa::{AluOp, Insn, Operand, Pseudo, Reg, RegSet, Size, Width};
use crate::program::Program;
use crate::spec::ContextKind;
use crate::spec::context::{self, Mode, Yield};
use crate::util::{MapId, Pc};

impl State {
    /// Executes an instruction that is not a call.
    pub(super) fn step(&mut self, program: &Program, insn: Insn, pc: Pc) {
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let kind = self.alu(op, width, self.reg(dst), self.operand(src));
                self.set(dst, kind);
            }
            Insn::MovSx { dst, .. } | Insn::Neg { dst, .. } | Insn::Endian { dst, .. } => {
                self.set(dst, Kind::NUMBER);
            }
            Insn::AddrSpaceCast { dst, .. } => self.set(dst, Kind::Arena),
            Insn::LoadImm64 { dst, value } => {
                let number = i32::try_from(value.cast_signed()).ok();
                self.set(dst, Kind::Scalar(number));
            }
            Insn::LoadPseudo { dst, source } => {
                let kind = pseudo(program, source, insn, pc);
                self.set(dst, kind);
            }
            Insn::Load {
                size,
                dst,
                base,
                off,
            }
            | Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                let kind = self.loaded(program, base, off, size);
                self.set(dst, kind);
            }
            Insn::LoadSx { dst, .. } => self.set(dst, Kind::NUMBER),
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let kind = self.operand(src);
                self.stored(base, off, size, kind);
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => self.stored(base, off, size, self.reg(src)),
            Insn::Atomic {
                op,
                width,
                base,
                off,
                src,
            } => {
                self.stored(base, off, width.size(), Kind::NUMBER);
                if op.compares() {
                    self.set(Reg::R0, Kind::NUMBER);
                } else if op.fetches() {
                    self.set(src, Kind::NUMBER);
                }
            }
            Insn::LoadPacket { .. } => {
                self.forget(RegSet::CALLER_SAVED);
                self.set(Reg::R0, Kind::NUMBER);
            }
            Insn::Jump { .. }
            | Insn::JumpLong { .. }
            | Insn::JumpIf { .. }
            | Insn::MayGoto { .. }
            | Insn::Call(_)
            | Insn::CallReg { .. }
            | Insn::Exit => {}
        }
    }

    fn operand(&self, src: Operand) -> Kind {
        match src {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(imm) => Kind::Scalar(Some(imm)),
        }
    }

    fn alu(&self, op: AluOp, width: Width, dst: Kind, src: Kind) -> Kind {
        let number = |kind: Kind| match kind {
            Kind::Scalar(number) => number,
            _ => None,
        };
        match (op, width) {
            (AluOp::Mov, Width::W64) => src,
            // The upper half is zero, so a negative number is no longer known.
            (AluOp::Mov, Width::W32) => Kind::Scalar(number(src).filter(|number| *number >= 0)),
            (AluOp::Add, Width::W64) => match (dst.is_pointer(), src.is_pointer()) {
                (_, false) => dst.moved(number(src)),
                (false, true) => src.moved(number(dst)),
                (true, true) => Kind::NUMBER,
            },
            (AluOp::Sub, Width::W64) if !src.is_pointer() => {
                dst.moved(number(src).and_then(i32::checked_neg))
            }
            _ => Kind::NUMBER,
        }
    }

    /// The kind that a load yields.
    fn loaded(&self, program: &Program, base: Reg, off: i16, size: Size) -> Kind {
        let wide = |kind: Kind| if size == Size::Dw { kind } else { Kind::NUMBER };
        match self.reg(base).moved(Some(off.into())) {
            Kind::Frame { owner, off } => self.load(owner, off, size),
            Kind::Context(at) if is_changing(program.prog_type) => {
                // Pointers to packets, in fields of four bytes, and to sockets.
                let at = at.and_then(|at| u32::try_from(at).ok());
                match at.map(|at| yields(program, at, size)) {
                    Some(Some(Yield::Scalar)) => Kind::NUMBER,
                    _ => Kind::Kernel,
                }
            }
            Kind::Context(_) => match program.prog_type.info().context {
                ContextKind::Tracepoint | ContextKind::PtRegs | ContextKind::PerfEvent => {
                    Kind::NUMBER
                }
                // Numbers, unless BTF types them as pointers.
                ContextKind::RawTracepoint => Kind::NUMBER,
                ContextKind::BtfArgs => wide(Kind::Kernel),
                _ => wide(Kind::Unknown),
            },
            // A special field, such as a kptr.
            Kind::Value(map) => match map.definition(program) {
                Some(map) if map.special.is_empty() => Kind::NUMBER,
                _ => wide(Kind::Unknown),
            },
            Kind::Kernel => wide(Kind::Kernel),
            Kind::Own | Kind::Unknown | Kind::Arena => wide(Kind::Unknown),
            _ => Kind::NUMBER,
        }
    }

    fn stored(&mut self, base: Reg, off: i16, size: Size, kind: Kind) {
        match self.reg(base).moved(Some(off.into())) {
            Kind::Frame { owner, off } => {
                self.store(owner, off, Some(size.bytes().into()), kind);
            }
            // The pointer may lead anywhere on the stack.
            Kind::Own | Kind::Unknown => {
                for owner in [super::kind::Owner::Own, super::kind::Owner::Caller] {
                    self.store(owner, None, None, kind);
                }
            }
            _ => {}
        }
    }
}

/// The kind of a 64-bit pseudo immediate.
fn pseudo(program: &Program, source: Pseudo, insn: Insn, pc: Pc) -> Kind {
    let map = |index| MapRef {
        id: MapId(index),
        inner: false,
    };
    match source {
        Pseudo::MapIdx { index } => Kind::Map(map(index)),
        Pseudo::MapIdxValue { index, .. } => Kind::value(program, map(index)),
        Pseudo::BtfId { .. } => Kind::Kernel,
        Pseudo::Func { .. } => {
            let target = insn
                .subprogram_target(pc)
                .and_then(|to| u32::try_from(to).ok());
            target.map_or(Kind::Unknown, |to| Kind::Function(Pc(to)))
        }
        Pseudo::MapFd { .. } | Pseudo::MapValue { .. } => Kind::Unknown,
    }
}

/// What a load from the context yields.
fn yields(program: &Program, off: u32, size: Size) -> Option<Yield> {
    let attach = program.prog_type.attach_type(program.expected_attach_type);
    let size = u32::from(size.bytes());
    context::check(
        program.prog_type,
        attach,
        program.arch,
        off,
        size,
        Mode::Read,
    )
}
