//! The decoder: slots to instructions.
//!
//! Reserved fields follow the kernel (`check_alu_op`, `check_cond_jmp_op`, `do_check`,
//! `check_ld_imm`, `check_ld_abs` and `resolve_pseudo_ldimm64` in `kernel/bpf/verifier.c`,
//! the public table of opcodes in `kernel/bpf/core.c`). As in RFC 9669, an unused field
//! must be zero, with two exceptions that the kernel never checks: the offset of `exit`,
//! and the second slot's immediate when a function's address is loaded. They are ignored
//! here as well, so that verdicts equal the kernel's; encoding writes 0 for them.
//!
//! Not checked by decoding: shifts wider than the register, constant zero divisors, writes
//! to `r10`. The kernel rejects those in the verifier, and interpreters define them. A call
//! through a register decodes although the kernel doesn't support it.

mod error;

pub use error::{DecodeError, Field, Problem};

use super::insn::{CallTarget, Insn, Operand};
use super::opcode::{ADDR_SPACE_CAST, LD_IMM64, SRC_X, call, class, mode, op};
use super::raw::RawInsn;
use super::reg::Reg;
use super::table::{
    AluOp, AtomicOp, EndianOp, EndianSize, JumpOp, LOAD_ACQUIRE, PseudoKind, STORE_RELEASE,
    SignedSize, Size, Width,
};
use crate::util::{HelperId, Pc, TypeId};

/// Decodes the instruction at the start of `slots`; `pc` is its position, used for errors
/// only.
///
/// ```
/// use bpflab::isa::{AluOp, Insn, Operand, RawInsn, Reg, Width, decode};
/// use bpflab::util::Pc;
///
/// let slots = [RawInsn::new(0xb7, 0, 0, 0, 7)];
/// let insn = decode(&slots, Pc(0))?;
/// let (dst, src) = (Reg::R0, Operand::Imm(7));
/// assert_eq!(insn, Insn::Alu { op: AluOp::Mov, width: Width::W64, dst, src });
///
/// let error = decode(&[RawInsn::new(0xb7, 0, 3, 0, 7)], Pc(4)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "instruction 4 (opcode 0xb7): source register 3 is reserved and must be 0"
/// );
/// # Ok::<(), bpflab::isa::DecodeError>(())
/// ```
///
/// # Errors
/// [`DecodeError`] for the first invalid field. For empty `slots`, [`Field::Opcode`] is
/// [missing](Problem::Missing).
pub fn decode(slots: &[RawInsn], pc: Pc) -> Result<Insn, DecodeError> {
    let Some(&raw) = slots.first() else {
        return Err(DecodeError {
            pc,
            raw: RawInsn::default(),
            field: Field::Opcode,
            value: 0,
            problem: Problem::Missing,
        });
    };
    let slot = Slot { raw, pc };
    match raw.opcode & class::MASK {
        class::LD if raw.opcode == LD_IMM64 => slot.imm64(slots.get(1)),
        class::LD => slot.packet(),
        class::LDX => slot.load(),
        class::ST => slot.store_imm(),
        class::STX => slot.store_reg(),
        class::ALU => slot.alu(Width::W32),
        class::ALU64 => slot.alu(Width::W64),
        class::JMP => slot.jump(Width::W64),
        _ => slot.jump(Width::W32),
    }
}

/// Decodes a program in order: each item is the position of an instruction, and the
/// instruction or its error. An invalid instruction takes one slot, or two if it is a
/// 64-bit immediate load.
pub fn decode_all(slots: &[RawInsn]) -> impl Iterator<Item = (Pc, Result<Insn, DecodeError>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = slots.get(at..)?;
        let first = rest.first()?;
        let pc = Pc::from_index(at);
        at += if first.opcode == LD_IMM64 { 2 } else { 1 };
        Some((pc, decode(rest, pc)))
    })
}

/// Decodes a whole program.
///
/// # Errors
/// The first invalid instruction.
pub fn decode_program(slots: &[RawInsn]) -> Result<Vec<Insn>, DecodeError> {
    decode_all(slots).map(|(_, insn)| insn).collect()
}

impl DecodeError {
    /// The instruction with its reserved fields cleared, if that makes it valid: the kernel
    /// prints it in its log before it refuses the slot.
    #[must_use]
    pub fn repaired(&self) -> Option<Insn> {
        let mut error = *self;
        let fields = [Field::Dst, Field::Src, Field::Off, Field::Imm];
        for _ in fields {
            if error.problem != Problem::Reserved || self.has_second_slot() {
                return None;
            }
            let mut raw = error.raw;
            match error.field {
                Field::Dst => raw.regs &= 0xf0,
                Field::Src => raw.regs &= 0x0f,
                Field::Off => raw.off = 0,
                Field::Imm => raw.imm = 0,
                Field::Opcode | Field::SecondSlot | Field::SecondImm => return None,
            }
            match decode(&[raw], self.pc) {
                Ok(insn) => return Some(insn),
                Err(next) => error = next,
            }
        }
        None
    }
}

/// A slot being decoded.
#[derive(Clone, Copy)]
struct Slot {
    raw: RawInsn,
    pc: Pc,
}

type Decoded = Result<Insn, DecodeError>;

impl Slot {
    fn error(self, field: Field, problem: Problem) -> DecodeError {
        let raw = self.raw;
        let value = match field {
            Field::Opcode => i64::from(raw.opcode),
            Field::Dst => i64::from(raw.dst()),
            Field::Src => i64::from(raw.src()),
            Field::Off => i64::from(raw.off),
            Field::Imm => i64::from(raw.imm),
            Field::SecondSlot | Field::SecondImm => 0,
        };
        DecodeError {
            pc: self.pc,
            raw,
            field,
            value,
            problem,
        }
    }

    fn unknown(self, field: Field) -> DecodeError {
        self.error(field, Problem::Unknown)
    }

    /// Checks that these fields are zero.
    fn reserved(self, fields: &[Field]) -> Result<(), DecodeError> {
        for &field in fields {
            let error = self.error(field, Problem::Reserved);
            if error.value != 0 {
                return Err(error);
            }
        }
        Ok(())
    }

    fn dst(self) -> Result<Reg, DecodeError> {
        Reg::from_number(self.raw.dst()).ok_or(self.error(Field::Dst, Problem::NoSuchRegister))
    }

    fn src(self) -> Result<Reg, DecodeError> {
        Reg::from_number(self.raw.src()).ok_or(self.error(Field::Src, Problem::NoSuchRegister))
    }

    fn has_src(self) -> bool {
        self.raw.opcode & SRC_X != 0
    }

    /// The second operand of arithmetic and jumps; the other operand's field is reserved.
    fn operand(self) -> Result<Operand, DecodeError> {
        if self.has_src() {
            self.reserved(&[Field::Imm])?;
            self.src().map(Operand::Reg)
        } else {
            self.reserved(&[Field::Src])?;
            Ok(Operand::Imm(self.raw.imm))
        }
    }

    fn imm64(self, second: Option<&RawInsn>) -> Decoded {
        let Some(&second) = second else {
            return Err(self.error(Field::SecondSlot, Problem::Missing));
        };
        if second.with_imm(0) != RawInsn::default() {
            let value = i64::from_be_bytes(second.to_bytes());
            return Err(DecodeError {
                value,
                ..self.error(Field::SecondSlot, Problem::Reserved)
            });
        }
        let source = match self.raw.src() {
            0 => None,
            src => Some(PseudoKind::from_src(src).ok_or(self.unknown(Field::Src))?),
        };
        let ignored = source == Some(PseudoKind::Func);
        if source.is_some_and(|kind| !kind.has_second()) && !ignored && second.imm != 0 {
            let value = i64::from(second.imm);
            return Err(DecodeError {
                value,
                ..self.error(Field::SecondImm, Problem::Reserved)
            });
        }
        self.reserved(&[Field::Off])?;
        let dst = self.dst()?;
        Ok(match source {
            None => {
                let low = u64::from(self.raw.imm.cast_unsigned());
                let high = u64::from(second.imm.cast_unsigned());
                Insn::LoadImm64 {
                    dst,
                    value: high << 32 | low,
                }
            }
            Some(kind) => Insn::LoadPseudo {
                dst,
                source: kind.with_imms(self.raw.imm, second.imm),
            },
        })
    }

    fn packet(self) -> Decoded {
        let size = Size::of_opcode(self.raw.opcode);
        let indexed = match self.raw.opcode & mode::MASK {
            mode::ABS => false,
            mode::IND => true,
            _ => return Err(self.unknown(Field::Opcode)),
        };
        if size == Size::Dw {
            return Err(self.unknown(Field::Opcode));
        }
        self.reserved(&[Field::Dst, Field::Off])?;
        let index = if indexed {
            Some(self.src()?)
        } else {
            self.reserved(&[Field::Src])?;
            None
        };
        Ok(Insn::LoadPacket {
            size,
            index,
            off: self.raw.imm,
        })
    }

    fn load(self) -> Decoded {
        let size = Size::of_opcode(self.raw.opcode);
        let signed = match self.raw.opcode & mode::MASK {
            mode::MEM => None,
            mode::MEMSX => Some(SignedSize::from_size(size).ok_or(self.unknown(Field::Opcode))?),
            _ => return Err(self.unknown(Field::Opcode)),
        };
        self.reserved(&[Field::Imm])?;
        let (base, dst, off) = (self.src()?, self.dst()?, self.raw.off);
        Ok(match signed {
            None => Insn::Load {
                size,
                dst,
                base,
                off,
            },
            Some(from) => Insn::LoadSx {
                from,
                dst,
                base,
                off,
            },
        })
    }

    fn store_imm(self) -> Decoded {
        if self.raw.opcode & mode::MASK != mode::MEM {
            return Err(self.unknown(Field::Opcode));
        }
        self.reserved(&[Field::Src])?;
        let (size, src) = (Size::of_opcode(self.raw.opcode), Operand::Imm(self.raw.imm));
        Ok(Insn::Store {
            size,
            base: self.dst()?,
            off: self.raw.off,
            src,
        })
    }

    fn store_reg(self) -> Decoded {
        match self.raw.opcode & mode::MASK {
            mode::MEM => {
                self.reserved(&[Field::Imm])?;
                let (size, src) = (Size::of_opcode(self.raw.opcode), self.src()?);
                let (base, off) = (self.dst()?, self.raw.off);
                Ok(Insn::Store {
                    size,
                    base,
                    off,
                    src: Operand::Reg(src),
                })
            }
            mode::ATOMIC => self.atomic(),
            _ => Err(self.unknown(Field::Opcode)),
        }
    }

    fn atomic(self) -> Decoded {
        let (size, off) = (Size::of_opcode(self.raw.opcode), self.raw.off);
        match self.raw.imm {
            LOAD_ACQUIRE => Ok(Insn::LoadAcquire {
                size,
                base: self.src()?,
                dst: self.dst()?,
                off,
            }),
            STORE_RELEASE => Ok(Insn::StoreRelease {
                size,
                src: self.src()?,
                base: self.dst()?,
                off,
            }),
            imm => {
                let op = AtomicOp::from_imm(imm).ok_or(self.unknown(Field::Imm))?;
                let width = match size {
                    Size::W => Width::W32,
                    Size::Dw => Width::W64,
                    // These opcodes exist only for the immediates above.
                    Size::B | Size::H => return Err(self.unknown(Field::Imm)),
                };
                Ok(Insn::Atomic {
                    op,
                    width,
                    src: self.src()?,
                    base: self.dst()?,
                    off,
                })
            }
        }
    }

    fn alu(self, width: Width) -> Decoded {
        let raw = self.raw;
        match raw.opcode & op::MASK {
            op::NEG => {
                if self.has_src() {
                    return Err(self.unknown(Field::Opcode));
                }
                self.reserved(&[Field::Src, Field::Off, Field::Imm])?;
                Ok(Insn::Neg {
                    width,
                    dst: self.dst()?,
                })
            }
            op::END => {
                let op = EndianOp::from_code(raw.opcode & !op::MASK)
                    .ok_or(self.unknown(Field::Opcode))?;
                self.reserved(&[Field::Src, Field::Off])?;
                let size = EndianSize::from_bits(raw.imm).ok_or(self.unknown(Field::Imm))?;
                Ok(Insn::Endian {
                    op,
                    size,
                    dst: self.dst()?,
                })
            }
            op::MOV if self.has_src() && raw.off != 0 => self.mov_variant(width),
            code => {
                // Only some operations have a second variant; in the others the offset is
                // reserved.
                let op = match AluOp::from_code(code, raw.off) {
                    Some(op) => op,
                    None if AluOp::from_code(code, 0).is_none() => {
                        return Err(self.unknown(Field::Opcode));
                    }
                    None if AluOp::from_code(code, 1).is_none() => {
                        return Err(self.error(Field::Off, Problem::Reserved));
                    }
                    None => return Err(self.unknown(Field::Off)),
                };
                let src = self.operand()?;
                Ok(Insn::Alu {
                    op,
                    width,
                    dst: self.dst()?,
                    src,
                })
            }
        }
    }

    /// A move between registers with an offset: sign extension or a cast.
    fn mov_variant(self, width: Width) -> Decoded {
        let raw = self.raw;
        if width == Width::W64 && raw.off == ADDR_SPACE_CAST {
            let (to, from) = match raw.imm {
                0x0000_0001 => (0, 1),
                0x0001_0000 => (1, 0),
                _ => return Err(self.unknown(Field::Imm)),
            };
            return Ok(Insn::AddrSpaceCast {
                src: self.src()?,
                dst: self.dst()?,
                to,
                from,
            });
        }
        let from = SignedSize::ALL
            .iter()
            .copied()
            .filter(|from| from.bits() < width.bits())
            .find(|from| i16::from(from.bits()) == raw.off)
            .ok_or(self.unknown(Field::Off))?;
        self.reserved(&[Field::Imm])?;
        Ok(Insn::MovSx {
            width,
            from,
            src: self.src()?,
            dst: self.dst()?,
        })
    }

    fn jump(self, width: Width) -> Decoded {
        let raw = self.raw;
        let (off, wide) = (raw.off, width == Width::W64);
        match (raw.opcode & op::MASK, self.has_src()) {
            (op::JA, false) if wide => {
                self.reserved(&[Field::Src, Field::Dst, Field::Imm])?;
                Ok(Insn::Jump { off })
            }
            (op::JA, false) => {
                self.reserved(&[Field::Src, Field::Dst, Field::Off])?;
                Ok(Insn::JumpLong { off: raw.imm })
            }
            (op::CALL, false) if wide => self.call(),
            (op::CALL, true) if wide => {
                self.reserved(&[Field::Src, Field::Off, Field::Imm])?;
                Ok(Insn::CallReg {
                    target: self.dst()?,
                })
            }
            (op::EXIT, false) if wide => {
                self.reserved(&[Field::Imm, Field::Src, Field::Dst])?;
                Ok(Insn::Exit)
            }
            (op::JCOND, false) if wide => {
                // The source field selects the kind of conditional jump; only may_goto, 0,
                // exists.
                if raw.src() != 0 {
                    return Err(self.unknown(Field::Src));
                }
                self.reserved(&[Field::Dst, Field::Imm])?;
                Ok(Insn::MayGoto { off })
            }
            (code, _) => {
                let op = JumpOp::from_code(code).ok_or(self.unknown(Field::Opcode))?;
                let src = self.operand()?;
                Ok(Insn::JumpIf {
                    op,
                    width,
                    dst: self.dst()?,
                    src,
                    off,
                })
            }
        }
    }

    fn call(self) -> Decoded {
        let RawInsn { off, imm, .. } = self.raw;
        self.reserved(&[Field::Dst])?;
        let target = match self.raw.src() {
            call::HELPER => {
                self.reserved(&[Field::Off])?;
                CallTarget::Helper(HelperId(imm.cast_unsigned()))
            }
            call::SUBPROGRAM => {
                self.reserved(&[Field::Off])?;
                CallTarget::Subprogram { rel: imm }
            }
            call::KFUNC => CallTarget::Kfunc {
                id: TypeId(imm.cast_unsigned()),
                fd_index: off,
            },
            _ => return Err(self.unknown(Field::Src)),
        };
        Ok(Insn::Call(target))
    }
}

#[cfg(test)]
mod tests;
