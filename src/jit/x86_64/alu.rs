//! Arithmetic.

use dynasmrt::DynasmApi;

use super::emitter::{Emitter, asm};
use super::operand::Digit;
use super::regs::{FIRST, Host, RCX, SECOND, host};
use crate::isa::{AluOp, EndianOp, EndianSize, Operand, Reg, SignedSize, Width};
use crate::lower::Notes;

/// The 64-bit or 32-bit form of an instruction.
macro_rules! by_width {
    (@ add) => { 0x01 };
    (@ or) => { 0x09 };
    (@ and) => { 0x21 };
    (@ sub) => { 0x29 };
    (@ xor) => { 0x31 };
    (@ cmp) => { 0x39 };
    (@ test) => { 0x85 };
    (@ mov) => { 0x89 };
    ($emitter:expr, $width:expr, imul, $a:expr, $b:expr) => {
        $emitter.multiply_both($width, $a, $b)
    };
    ($emitter:expr, $width:expr, $name:ident, $a:expr, $b:expr) => {
        $emitter.with_registers(by_width!(@ $name), $width, $a, $b)
    };
}
pub(super) use by_width;

impl Emitter<'_> {
    /// `dst op= src`.
    pub(super) fn alu(&mut self, op: AluOp, width: Width, dst: Reg, src: Operand, notes: Notes) {
        let Some(dst) = host(dst) else {
            return; // r10 is read-only
        };
        macro_rules! simple {
            ($name:ident, $digit:expr) => {
                match src {
                    Operand::Imm(imm) => self.with_immediate($digit, width, dst, imm),
                    Operand::Reg(src) => {
                        let src = self.source(src, FIRST);
                        by_width!(self, width, $name, dst, src);
                    }
                }
            };
        }
        match op {
            AluOp::Add => simple!(add, Digit::ADD),
            AluOp::Sub => simple!(sub, Digit::SUB),
            AluOp::Or => simple!(or, Digit::OR),
            AluOp::And => simple!(and, Digit::AND),
            AluOp::Xor => simple!(xor, Digit::XOR),
            AluOp::Mov => self.mov(width, dst, src),
            AluOp::Mul => self.mul(width, dst, src),
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => match src {
                Operand::Imm(imm) => self.shift_imm(op, width, dst, imm),
                Operand::Reg(src) => {
                    let src = self.source(src, SECOND);
                    self.shift(op, width, dst, src);
                }
            },
            AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod => {
                self.divide(op, width, dst, src, notes);
            }
        }
    }

    pub(super) fn mov(&mut self, width: Width, dst: Host, src: Operand) {
        match (src, width) {
            (Operand::Imm(imm), Width::W64) => {
                self.constant(dst, crate::isa::sign_extend32(imm));
            }
            (Operand::Imm(imm), Width::W32) => self.constant(dst, imm.cast_unsigned().into()),
            (Operand::Reg(src), _) => {
                let src = self.source(src, FIRST);
                by_width!(self, width, mov, dst, src);
            }
        }
    }

    fn mul(&mut self, width: Width, dst: Host, src: Operand) {
        match (src, width) {
            (Operand::Imm(imm), _) => self.multiply(width, dst, dst, imm),
            (Operand::Reg(src), _) => {
                let src = self.source(src, FIRST);
                by_width!(self, width, imul, dst, src);
            }
        }
    }

    pub(super) fn shift_imm(&mut self, op: AluOp, width: Width, dst: Host, imm: i32) {
        let mask = match width {
            Width::W64 => 63,
            Width::W32 => 31,
        };
        let count = (imm & mask) as i8;
        match (op, width) {
            // This clears the upper half.
            (_, Width::W32) if count == 0 => asm!(self ; mov Rd(dst), Rd(dst)),
            (_, Width::W64) if count == 0 => {}
            (AluOp::Lsh, Width::W64) => asm!(self ; shl Rq(dst), count),
            (AluOp::Lsh, Width::W32) => asm!(self ; shl Rd(dst), count),
            (AluOp::Rsh, Width::W64) => asm!(self ; shr Rq(dst), count),
            (AluOp::Rsh, Width::W32) => asm!(self ; shr Rd(dst), count),
            (_, Width::W64) => asm!(self ; sar Rq(dst), count),
            (_, Width::W32) => asm!(self ; sar Rd(dst), count),
        }
    }

    fn shift(&mut self, op: AluOp, width: Width, dst: Host, src: Host) {
        if self.features.bmi2 {
            self.shift_into(op, width, dst, dst, src);
        } else {
            self.shift_by_cl(op, width, dst, src);
        }
    }

    /// `dst = left op count`, with the count masked as in BPF; needs BMI2.
    pub(super) fn shift_into(
        &mut self,
        op: AluOp,
        width: Width,
        dst: Host,
        left: Host,
        count: Host,
    ) {
        match (op, width) {
            (AluOp::Lsh, Width::W64) => asm!(self ; shlx Rq(dst), Rq(left), Rq(count)),
            (AluOp::Lsh, Width::W32) => asm!(self ; shlx Rd(dst), Rd(left), Rd(count)),
            (AluOp::Rsh, Width::W64) => asm!(self ; shrx Rq(dst), Rq(left), Rq(count)),
            (AluOp::Rsh, Width::W32) => asm!(self ; shrx Rd(dst), Rd(left), Rd(count)),
            (_, Width::W64) => asm!(self ; sarx Rq(dst), Rq(left), Rq(count)),
            (_, Width::W32) => asm!(self ; sarx Rd(dst), Rd(left), Rd(count)),
        }
    }

    /// A shift by `cl`, which the host masks as BPF does.
    fn shift_by_cl(&mut self, op: AluOp, width: Width, dst: Host, src: Host) {
        let work = if dst == RCX { FIRST } else { dst };
        if dst == RCX {
            asm!(self ; mov Rq(FIRST), rcx);
        }
        if src != RCX {
            if dst != RCX {
                asm!(self ; mov Rq(FIRST), rcx);
            }
            asm!(self ; mov rcx, Rq(src));
        }
        if width == Width::W32 {
            asm!(self ; mov Rd(work), Rd(work));
        }
        match (op, width) {
            (AluOp::Lsh, Width::W64) => asm!(self ; shl Rq(work), cl),
            (AluOp::Lsh, Width::W32) => asm!(self ; shl Rd(work), cl),
            (AluOp::Rsh, Width::W64) => asm!(self ; shr Rq(work), cl),
            (AluOp::Rsh, Width::W32) => asm!(self ; shr Rd(work), cl),
            (_, Width::W64) => asm!(self ; sar Rq(work), cl),
            (_, Width::W32) => asm!(self ; sar Rd(work), cl),
        }
        if dst == RCX || src != RCX {
            asm!(self ; mov rcx, Rq(FIRST));
        }
    }

    /// `dst = -dst`.
    pub(super) fn neg(&mut self, width: Width, dst: Reg) {
        let Some(dst) = host(dst) else { return };
        match width {
            Width::W64 => asm!(self ; neg Rq(dst)),
            Width::W32 => asm!(self ; neg Rd(dst)),
        }
    }

    /// `dst = (sN)src`.
    pub(super) fn movsx(&mut self, width: Width, from: SignedSize, dst: Reg, src: Reg) {
        let Some(dst) = host(dst) else { return };
        let src = self.source(src, FIRST);
        match (width, from) {
            (Width::W64, SignedSize::S8) => asm!(self ; movsx Rq(dst), Rb(src)),
            (Width::W64, SignedSize::S16) => asm!(self ; movsx Rq(dst), Rw(src)),
            (Width::W64, SignedSize::S32) => asm!(self ; movsxd Rq(dst), Rd(src)),
            (Width::W32, SignedSize::S8) => asm!(self ; movsx Rd(dst), Rb(src)),
            (Width::W32, SignedSize::S16) => asm!(self ; movsx Rd(dst), Rw(src)),
            (Width::W32, SignedSize::S32) => asm!(self ; mov Rd(dst), Rd(src)),
        }
    }

    /// `dst = op(dst)`: the host is little-endian.
    pub(super) fn endian(&mut self, op: EndianOp, size: EndianSize, dst: Reg) {
        let Some(dst) = host(dst) else { return };
        let swaps = op != EndianOp::ToLe;
        match (size, swaps) {
            (EndianSize::B16, false) => asm!(self ; movzx Rd(dst), Rw(dst)),
            (EndianSize::B16, true) => asm!(self ; ror Rw(dst), 8 ; movzx Rd(dst), Rw(dst)),
            (EndianSize::B32, false) => asm!(self ; mov Rd(dst), Rd(dst)),
            (EndianSize::B32, true) => asm!(self ; bswap Rd(dst)),
            (EndianSize::B64, false) => {}
            (EndianSize::B64, true) => asm!(self ; bswap Rq(dst)),
        }
    }
}
