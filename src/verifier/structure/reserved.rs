//! Errors for invalid slots and for constants that their instruction doesn't accept,
//! reported during exploration (`do_check_insn`, `check_alu_op`, `check_cond_jmp_op`,
//! `check_atomic`, `check_ld_abs`, `check_ld_imm`, `kernel/bpf/verifier.c`).

use super::raw::{self, Family};
use crate::isa::{AluOp, AtomicOp, DecodeError, Field, Problem, Reg, Width};
use crate::util::Errno;
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// The kernel's error for an invalid slot on an explored path.
pub(crate) fn reserved(error: &DecodeError) -> Reject {
    let raw = error.raw;
    let text = if error.problem == Problem::NoSuchRegister {
        format!("R{} is invalid", error.value)
    } else {
        match raw::family(raw) {
            Family::Mov if raw::is_address_cast(raw) => {
                "addr_space_cast insn can only convert between address space 1 and 0".to_owned()
            }
            Family::Atomic if AtomicOp::from_imm(raw.imm).is_some() => {
                "invalid atomic operand size".to_owned()
            }
            Family::Atomic => {
                format!("BPF_ATOMIC uses invalid atomic opcode {:02x}", raw.imm)
            }
            Family::MayGoto => format!("invalid may_goto imm {}", raw.imm),
            Family::Unknown => format!("unknown opcode {:02x}", raw.opcode),
            family => format!("{} uses reserved fields", name(family)),
        }
    };
    Reject::new(Errno::EINVAL, text).at(error.pc)
}

/// The kernel's name for the instructions of a family.
fn name(family: Family) -> &'static str {
    match family {
        Family::Alu => "BPF_ALU",
        Family::Mov => "BPF_MOV",
        Family::Neg => "BPF_NEG",
        Family::End => "BPF_END",
        Family::Imm64 => "BPF_LD_IMM64",
        Family::Packet => "BPF_LD_[ABS|IND]",
        Family::Load => "BPF_LDX",
        Family::Store => "BPF_ST",
        Family::StoreReg | Family::Atomic => "BPF_STX",
        Family::Call => "BPF_CALL",
        Family::Goto => "BPF_JA",
        Family::Exit => "BPF_EXIT",
        Family::Branch | Family::MayGoto | Family::Unknown => "BPF_JMP/JMP32",
    }
}

/// The register that the kernel requires to be readable before it reports this fault: the
/// first operand of a comparison, or the source of a write to an invalid register.
///
/// # Errors
/// The kernel's error, if the register is invalid.
pub(crate) fn read_before(error: &DecodeError) -> VerifyResult<Option<Reg>> {
    let raw = error.raw;
    let number = match (raw::family(raw), error.field) {
        (Family::Branch, _) => raw.dst(),
        (
            Family::Alu | Family::Mov | Family::Load | Family::StoreReg | Family::Atomic,
            Field::Dst,
        ) if error.problem == Problem::NoSuchRegister && raw::reads_source(raw) => raw.src(),
        _ => return Ok(None),
    };
    match Reg::from_number(number) {
        Some(reg) => Ok(Some(reg)),
        None => reject!(EINVAL, "R{number} is invalid"),
    }
}

/// The checks before the fault, if the fault is an invalid register in a packet load or an
/// address cast: the kernel first checks whether the program may use such an instruction.
pub(crate) fn prior_check(error: &DecodeError) -> Option<PriorCheck> {
    let raw = error.raw;
    if error.problem != Problem::NoSuchRegister {
        return raw::is_packet_load(raw).then_some(PriorCheck::LegacyLoads);
    }
    match raw::family(raw) {
        Family::Packet => Some(PriorCheck::PacketContext),
        Family::Mov if raw::is_address_cast(raw) => Some(PriorCheck::Arena),
        _ => None,
    }
}

/// A check that the kernel makes before it reports an invalid slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriorCheck {
    /// Whether programs of this type may load packet bytes.
    LegacyLoads,
    /// The same, and the checks of the context in r6.
    PacketContext,
    /// Whether the program has an arena.
    Arena,
}

/// Rejects a constant that divides by zero or shifts by the width or more. The kernel
/// checks it once the operands are known to be readable.
#[inline]
pub(crate) fn constant_operand(op: AluOp, width: Width, imm: i32) -> VerifyResult {
    match op {
        AluOp::Div | AluOp::Sdiv | AluOp::Mod | AluOp::Smod if imm == 0 => {
            reject!(EINVAL, "div by zero")
        }
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh if !(0..i32::from(width.bits())).contains(&imm) => {
            reject!(EINVAL, "invalid shift {imm}")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Insn, Operand, RawInsn, assemble, decode};
    use crate::util::Pc;

    /// Opcode, dst, src, off, imm, and the kernel's error. Each line was seen on Linux
    /// 6.18.
    #[test]
    fn faults_have_the_kernels_words() {
        let cases = [
            (0x07, 0, 1, 0, 1, "BPF_ALU uses reserved fields"),
            (0x0f, 0, 0, 0, 1, "BPF_ALU uses reserved fields"),
            (0x37, 0, 0, 2, 1, "BPF_ALU uses reserved fields"),
            (0x07, 11, 0, 0, 1, "R11 is invalid"),
            (0x0f, 0, 12, 0, 0, "R12 is invalid"),
            (0xbf, 0, 1, 3, 0, "BPF_MOV uses reserved fields"),
            (0xb7, 0, 1, 0, 0, "BPF_MOV uses reserved fields"),
            (0xbc, 0, 1, 32, 0, "BPF_MOV uses reserved fields"),
            (
                0xbf,
                0,
                1,
                1,
                5,
                "addr_space_cast insn can only convert between address space 1 and 0",
            ),
            (0x87, 0, 1, 0, 0, "BPF_NEG uses reserved fields"),
            (0xd4, 0, 0, 0, 8, "BPF_END uses reserved fields"),
            (0x20, 1, 0, 0, 0, "BPF_LD_[ABS|IND] uses reserved fields"),
            (0x7b, 10, 0, -8, 1, "BPF_STX uses reserved fields"),
            (0x7a, 10, 1, -8, 1, "BPF_ST uses reserved fields"),
            (
                0xdb,
                10,
                0,
                -8,
                2,
                "BPF_ATOMIC uses invalid atomic opcode 02",
            ),
            (0xd3, 10, 0, -8, 1, "invalid atomic operand size"),
            (0x85, 1, 0, 0, 7, "BPF_CALL uses reserved fields"),
            (0x85, 0, 5, 0, 7, "BPF_CALL uses reserved fields"),
            (0x05, 1, 0, 0, 0, "BPF_JA uses reserved fields"),
            (0x06, 0, 0, 1, 0, "BPF_JA uses reserved fields"),
            (0x95, 0, 0, 0, 1, "BPF_EXIT uses reserved fields"),
            (0xe5, 0, 1, 0, 0, "invalid may_goto imm 0"),
            (0x15, 0, 1, 0, 0, "BPF_JMP/JMP32 uses reserved fields"),
            (0x1e, 0, 0, 0, 1, "BPF_JMP/JMP32 uses reserved fields"),
        ];
        for (opcode, dst, src, off, imm, message) in cases {
            let raw = RawInsn::new(opcode, dst, src, off, imm);
            let error = decode(&[raw], Pc(4)).unwrap_err();
            let reject = reserved(&error);
            assert_eq!(reject.message(), message, "{raw:?}");
            assert_eq!((reject.errno(), reject.pc()), (Errno::EINVAL, Some(Pc(4))));
        }
    }

    #[test]
    fn an_operand_may_come_before_the_fault() {
        let first = |opcode, dst, src, imm| {
            let raw = RawInsn::new(opcode, dst, src, 0, imm);
            let checked = read_before(&decode(&[raw], Pc(0)).unwrap_err());
            checked.map_err(|reject| reject.message().to_owned())
        };
        assert_eq!(first(0x1d, 3, 4, 1), Ok(Some(Reg::R3)));
        assert_eq!(first(0x1d, 12, 4, 1), Err("R12 is invalid".to_owned()));
        assert_eq!(first(0x0f, 12, 4, 0), Ok(Some(Reg::R4)));
        assert_eq!(first(0x07, 12, 0, 0), Ok(None));
        assert_eq!(first(0x0f, 3, 4, 1), Ok(None));
    }

    #[test]
    fn constants_have_a_range() {
        let message = |text: &str| {
            let insn = decode(&assemble(text).unwrap(), Pc(0)).unwrap();
            let Insn::Alu {
                op,
                width,
                src: Operand::Imm(imm),
                ..
            } = insn
            else {
                panic!("{text}");
            };
            constant_operand(op, width, imm)
                .err()
                .map(|reject| reject.message().to_owned())
        };
        assert_eq!(message("r1 /= 0").as_deref(), Some("div by zero"));
        assert_eq!(message("w1 s%= 0").as_deref(), Some("div by zero"));
        assert_eq!(message("r1 <<= 64").as_deref(), Some("invalid shift 64"));
        assert_eq!(message("w1 s>>= 32").as_deref(), Some("invalid shift 32"));
        assert_eq!(message("r1 >>= -1").as_deref(), Some("invalid shift -1"));
        assert_eq!(message("r1 >>= 63"), None);
        assert_eq!(message("r1 -= 0"), None);
    }
}
