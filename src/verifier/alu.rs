//! Arithmetic: on scalars by [`Scalar`], on pointers by the rules here (`check_alu_op`,
//! `adjust_reg_min_max_vals`, `adjust_ptr_min_max_vals`).
//!
//! A pointer plus or minus a scalar is a pointer: a constant goes into the fixed offset, an
//! unknown scalar into the variable one. The difference of two pointers is an unknown
//! scalar. Other operations on pointers are rejected.

use super::env::Verifier;
use super::log::log;
use super::reg::{ADD_CONST, ADD_CONST32, ADD_CONST64, Kind, RegState};
use super::reject::{VerifyResult, reject};
use super::scalar::Scalar;
use super::speculation::PointerSum;
use super::tnum::Tnum;
use crate::isa::{AluOp, EndianOp, EndianSize, Operand, Reg, SignedSize, Width, low32};
use crate::spec::ProgFlags;
use crate::spec::helpers::TypeFlags;
use crate::spec::limits::MAX_VAR_OFFSET;
use crate::util::Errno;

impl Verifier<'_> {
    /// `dst op= src`, and moves.
    pub(super) fn check_alu(
        &mut self,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> VerifyResult {
        if let Operand::Reg(src) = src {
            self.check_read(src)?;
        }
        if op == AluOp::Mov {
            self.check_write(dst)?;
            return self.check_mov(width, dst, src);
        }
        self.check_read(dst)?;
        if let Operand::Imm(imm) = src {
            super::structure::constant_operand(op, width, imm)?;
        }
        self.check_write(dst)?;
        self.check_arithmetic(op, width, dst, src)?;
        self.keep_consistent(dst, "alu")
    }

    /// `dst = -dst`.
    pub(super) fn check_neg(&mut self, width: Width, dst: Reg) -> VerifyResult {
        self.check_unary(dst, |number| number.neg(width))
    }

    /// `dst = be16 dst` and its like.
    pub(super) fn check_endian(
        &mut self,
        op: EndianOp,
        size: EndianSize,
        dst: Reg,
    ) -> VerifyResult {
        if (op, size) == (EndianOp::ToLe, EndianSize::B64) && self.reg(dst).is_scalar() {
            // The CPU's own byte order: the value and its links stay.
            self.check_read(dst)?;
            self.check_write(dst)?;
            return self.keep_consistent(dst, "alu");
        }
        self.check_unary(dst, |number| Scalar::endian(op, size, number))
    }

    fn check_unary(&mut self, dst: Reg, apply: impl FnOnce(&Scalar) -> Scalar) -> VerifyResult {
        self.check_read(dst)?;
        if self.is_pointer_value(self.reg(dst)) {
            reject!(EACCES, "R{} pointer arithmetic prohibited", dst.number());
        }
        self.check_write(dst)?;
        let reg = self.reg_mut(dst);
        if reg.is_scalar() {
            reg.var = apply(&reg.var);
            reg.unlink();
        } else {
            *reg = RegState::UNKNOWN;
        }
        self.keep_consistent(dst, "alu")
    }

    /// A copy shares the id of its source, so that a bound on one holds for the other.
    fn check_mov(&mut self, width: Width, dst: Reg, src: Operand) -> VerifyResult {
        let result = match (src, width) {
            (Operand::Imm(value), Width::W64) => {
                RegState::constant(i64::from(value).cast_unsigned())
            }
            (Operand::Imm(value), Width::W32) => RegState::constant(value.cast_unsigned().into()),
            (Operand::Reg(src), Width::W64) => {
                self.link_before_move(src);
                *self.reg(src)
            }
            (Operand::Reg(src), Width::W32) => {
                let fits = self.reg(src).var.umax <= u32::MAX.into();
                self.narrow_copy(width, src, fits, |number| number.zext32().synced())?
            }
        };
        *self.reg_mut(dst) = result;
        Ok(())
    }

    /// `dst = (sN)src`.
    pub(super) fn check_movsx(
        &mut self,
        width: Width,
        from: SignedSize,
        dst: Reg,
        src: Reg,
    ) -> VerifyResult {
        self.check_read(src)?;
        self.check_write(dst)?;
        // A value without a sign bit to extend stays the same.
        let bits = 8 * from.size().bytes();
        let unchanged = self.reg(src).var.umax < 1 << (bits - 1);
        let result = self.narrow_copy(width, src, unchanged, |number| number.movsx(width, from))?;
        *self.reg_mut(dst) = result;
        self.keep_consistent(dst, "alu")
    }

    /// A copy that may lose bits: it shares the id only if it doesn't. A pointer becomes an
    /// unknown scalar, if pointers may leak.
    fn narrow_copy(
        &mut self,
        width: Width,
        src: Reg,
        same: bool,
        apply: impl FnOnce(&Scalar) -> Scalar,
    ) -> VerifyResult<RegState> {
        if self.is_pointer_value(self.reg(src)) {
            let what = match width {
                Width::W64 => "sign-extension part",
                Width::W32 => "partial copy",
            };
            reject!(EACCES, "R{} {what} of pointer", src.number());
        }
        if !self.reg(src).is_scalar() {
            return Ok(match width {
                Width::W64 => RegState::UNKNOWN,
                // Only the upper half is known: it is zero.
                Width::W32 => RegState::scalar(Scalar::UNKNOWN.zext32().synced()),
            });
        }
        if same {
            self.link_before_move(src);
        }
        let mut copy = *self.reg(src);
        if !same {
            copy.unlink();
        }
        copy.var = apply(&copy.var);
        Ok(copy)
    }

    /// Assigns an id to a scalar that is not constant, for its copies to share.
    pub(super) fn link_before_move(&mut self, src: Reg) {
        let reg = self.state.reg_mut(src);
        self.ids.offer(|id| reg.link(id));
    }

    fn check_arithmetic(
        &mut self,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> VerifyResult {
        // An arena's address has 32 bits, and every one of them may be accessed.
        let is_arena = |reg: &RegState| matches!(reg.kind, Kind::Arena);
        if is_arena(self.reg(dst)) {
            return Ok(());
        }
        let by_scalar = match src {
            Operand::Reg(src) if is_arena(self.reg(src)) => {
                *self.reg_mut(dst) = *self.reg(src);
                return Ok(());
            }
            Operand::Reg(src) => self.reg(src).is_scalar(),
            Operand::Imm(_) => true,
        };
        match (self.reg(dst).is_scalar(), by_scalar, src) {
            (false, false, _) => {
                if op != AluOp::Sub || !self.privileges.allow_ptr_leaks {
                    reject!(
                        EACCES,
                        "R{} pointer {} pointer prohibited",
                        dst.number(),
                        operator(op)
                    );
                }
                self.set_unknown(dst);
                return Ok(());
            }
            (true, false, _) => {
                self.mark_precise(dst)?;
                let sum = PointerSum {
                    op,
                    dst,
                    src,
                    swapped: true,
                };
                return self.check_pointer_arithmetic(width, &sum);
            }
            (false, true, src) => {
                if let Operand::Reg(src) = src {
                    self.mark_precise(src)?;
                }
                let sum = PointerSum {
                    op,
                    dst,
                    src,
                    swapped: false,
                };
                return self.check_pointer_arithmetic(width, &sum);
            }
            (true, true, Operand::Reg(src)) if self.reg(dst).precise => self.mark_precise(src)?,
            (true, true, _) => {}
        }
        self.mask_numbers(op, dst, src)?;
        let by = match src {
            Operand::Reg(src) => self.reg(src).var,
            Operand::Imm(value) => Scalar::constant(i64::from(value).cast_unsigned()),
        };
        if let Some((later, now)) = Scalar::fork(op, &self.reg(dst).var, &by) {
            // The value is 0 or -1: both are explored, the other one from this instruction
            // again.
            let pc = self.pc();
            self.push_branch(pc, pc, Errno::ENOMEM)?.reg_mut(dst).var = later;
            self.reg_mut(dst).var = now;
        }
        let same_register = src == Operand::Reg(dst);
        let links = self.privileges.bpf_capable;
        let reg = self.reg_mut(dst);
        let delta = added(op, width, &reg.var, &by);
        if !reg.var.apply(op, width, &by) {
            // Nothing of what the register was is left (`__mark_reg_unknown`).
            *reg = RegState::UNKNOWN;
            return Ok(());
        }
        // `r2 = r1; r2 += 4`: both stay linked, at a distance of 4.
        match delta {
            Some(delta) if links && !same_register && reg.id != 0 && reg.id & ADD_CONST == 0 => {
                reg.id |= match width {
                    Width::W64 => ADD_CONST64,
                    Width::W32 => ADD_CONST32,
                };
                reg.off = delta;
            }
            _ => reg.unlink(),
        }
        Ok(())
    }

    /// `pointer ± scalar`, or `scalar + pointer` if the operands are swapped; the result
    /// is in `dst` (`adjust_ptr_min_max_vals`).
    fn check_pointer_arithmetic(&mut self, width: Width, sum: &PointerSum) -> VerifyResult {
        let PointerSum {
            op,
            dst,
            src,
            swapped,
        } = *sum;
        let operands = (*self.reg(dst), self.operand(src));
        let (pointer, number) = match operands {
            (number, pointer) if swapped => (pointer, number),
            operands => operands,
        };
        let (pointer, number) = (&pointer, &number);
        let (at, by) = (dst.number(), &number.var);
        let known = by.value().map(u64::cast_signed);
        let impossible = by.smin > by.smax || by.umin > by.umax;
        if impossible || known.is_some() && (by.smin != by.smax || by.umin != by.umax) {
            self.set_unknown(dst);
            return Ok(());
        }
        if width == Width::W32 {
            if op == AluOp::Sub && self.privileges.allow_ptr_leaks {
                self.set_unknown(dst);
                return Ok(());
            }
            reject!(EACCES, "R{at} 32-bit pointer arithmetic prohibited");
        }
        let name = pointer.reg_type();
        if pointer.maybe_null() {
            reject!(
                EACCES,
                "R{at} pointer arithmetic on {name} prohibited, null-check it first"
            );
        }
        let untrusted = pointer.flags.contains(TypeFlags::PTR_UNTRUSTED);
        let allowed = match pointer.kind {
            Kind::Mem { .. } if untrusted => {
                // Linux 6.18 leaves the number as it was (docs/findings.md).
                if swapped {
                    self.set_unknown(dst);
                }
                return Ok(());
            }
            Kind::Ctx
            | Kind::MapValue { .. }
            | Kind::MapKey { .. }
            | Kind::Stack { .. }
            | Kind::PacketMeta { .. }
            | Kind::Packet { .. }
            | Kind::TpBuffer
            | Kind::BtfId { .. }
            | Kind::Mem { .. }
            | Kind::Buf
            | Kind::Func { .. }
            | Kind::Dynptr { .. }
            | Kind::Iter { .. }
            | Kind::IrqFlag { .. } => true,
            Kind::FlowKeys if known.is_some() => true,
            Kind::FlowKeys | Kind::MapPtr { .. } => known == Some(0) && op == AluOp::Add,
            _ => false,
        };
        if !allowed {
            reject!(EACCES, "R{at} pointer arithmetic on {name} prohibited");
        }
        check_sane_offset(number, pointer)?;
        check_sane_offset(pointer, pointer)?;
        let distance = self.mask_pointer(sum, pointer, number)?;

        let mut result = *pointer;
        let fixed = known.and_then(|known| {
            let off = i64::from(pointer.off);
            i32::try_from(match op {
                AluOp::Sub => off.wrapping_sub(known),
                _ => off.wrapping_add(known),
            })
            .ok()
        });
        match op {
            AluOp::Add => match fixed {
                Some(off) => result.off = off,
                None => {
                    result.var = add_offsets(&pointer.var, by);
                    self.move_packet_base(&mut result, true);
                }
            },
            AluOp::Sub => {
                if swapped {
                    reject!(EACCES, "R{at} tried to subtract pointer from scalar");
                }
                if matches!(pointer.kind, Kind::Stack { .. }) {
                    reject!(EACCES, "R{at} subtraction from stack pointer prohibited");
                }
                match fixed {
                    Some(off) => result.off = off,
                    None => {
                        result.var = subtract_offsets(&pointer.var, by);
                        self.move_packet_base(&mut result, by.smin < 0);
                    }
                }
            }
            AluOp::And | AluOp::Or | AluOp::Xor => reject!(
                EACCES,
                "R{at} bitwise operator {} on pointer prohibited",
                operator(op)
            ),
            _ => reject!(
                EACCES,
                "R{at} pointer arithmetic with {} operator prohibited",
                operator(op)
            ),
        }
        result.forget_halves();
        check_sane_offset(&result, pointer)?;
        result.var = result.var.synced();
        *self.reg_mut(dst) = result;
        self.check_moved(sum, distance)
    }

    /// Gives a packet pointer with a new variable offset a new id. With `lose_range`, its
    /// range is reset: it may have moved towards the end.
    fn move_packet_base(&mut self, result: &mut RegState, lose_range: bool) {
        if result.is_packet() {
            result.id = self.new_id();
            if lose_range {
                result.set_range(0);
            }
        }
    }

    /// Resets bounds that contradict the known bits, which happens on paths that are never
    /// taken. `context` names the operation in the log.
    pub(super) fn keep_consistent(&mut self, dst: Reg, context: &str) -> VerifyResult {
        let var = &self.reg(dst).var;
        if !var.is_consistent() {
            self.reg_mut(dst).var = self.sanitized(*var, context)?;
            let pc = self.pc();
            self.state.contradiction.get_or_insert(pc);
        }
        Ok(())
    }

    /// Resets the bounds of a scalar if they contradict its bits
    /// (`reg_bounds_sanity_check`).
    ///
    /// # Errors
    /// With `BPF_F_TEST_REG_INVARIANTS`, such a scalar is a reject: it is a verifier bug.
    pub(super) fn consistent(&mut self, number: Scalar, context: &str) -> VerifyResult<Scalar> {
        if number.is_consistent() {
            Ok(number)
        } else {
            self.sanitized(number, context)
        }
    }

    /// Resets the bounds of an inconsistent scalar.
    #[cold]
    fn sanitized(&mut self, number: Scalar, context: &str) -> VerifyResult<Scalar> {
        let violation = number.violation(context).unwrap_or_default();
        if self.program.flags.contains(ProgFlags::TEST_REG_INVARIANTS) {
            reject!(EFAULT, "{violation}");
        }
        log!(self, "{violation}\n");
        Ok(number.sanitized())
    }
}

impl RegState {
    /// Gives a non-constant scalar without id this id; returns whether it was used
    /// (`assign_scalar_id_before_mov`).
    pub(super) fn link(&mut self, id: u32) -> bool {
        if !self.is_scalar() {
            return false;
        }
        if self.id & ADD_CONST != 0 {
            self.unlink();
        }
        let linked = self.id == 0 && !self.var.is_const();
        if linked {
            self.id = id;
        }
        linked
    }

    /// Resets the 32-bit bounds, which pointers don't have.
    pub(in crate::verifier) fn forget_halves(&mut self) {
        (self.var.umin32, self.var.umax32) = (0, u32::MAX);
        (self.var.smin32, self.var.smax32) = (i32::MIN, i32::MAX);
    }

    /// Clears the id (`clear_scalar_id`).
    pub(in crate::verifier) fn unlink(&mut self) {
        self.id = 0;
        self.off = 0;
    }
}

/// The constant that an addition or subtraction adds, if the operand can be computed from
/// the result: a 32-bit one must not have truncated anything.
fn added(op: AluOp, width: Width, dst: &Scalar, src: &Scalar) -> Option<i32> {
    let by = match width {
        Width::W64 => i32::try_from(src.value()?.cast_signed()).ok()?,
        Width::W32 if dst.umax > u64::from(u32::MAX) || !src.bits.low().is_const() => return None,
        Width::W32 => low32(src.bits.low().min()).cast_signed(),
    };
    match op {
        AluOp::Add => Some(by),
        AluOp::Sub => by.checked_neg(),
        _ => None,
    }
}

/// The sum of two variable offsets; each bound is added separately.
fn add_offsets(a: &Scalar, b: &Scalar) -> Scalar {
    let signed = a.smin.checked_add(b.smin).zip(a.smax.checked_add(b.smax));
    let unsigned = a.umin.checked_add(b.umin).zip(a.umax.checked_add(b.umax));
    offset(a.bits.add(b.bits), signed, unsigned)
}

/// The difference of two variable offsets.
fn subtract_offsets(a: &Scalar, b: &Scalar) -> Scalar {
    let signed = a.smin.checked_sub(b.smax).zip(a.smax.checked_sub(b.smin));
    let unsigned = a.umin.checked_sub(b.umax).zip(a.umax.checked_sub(b.umin));
    offset(a.bits.sub(b.bits), signed, unsigned)
}

/// A variable offset with these bounds; a bound that overflowed is unknown.
fn offset(bits: Tnum, signed: Option<(i64, i64)>, unsigned: Option<(u64, u64)>) -> Scalar {
    let (smin, smax) = signed.unwrap_or((i64::MIN, i64::MAX));
    let (umin, umax) = unsigned.unwrap_or((0, u64::MAX));
    Scalar {
        bits,
        umin,
        umax,
        smin,
        smax,
        ..Scalar::UNKNOWN
    }
}

/// Checks that offsets stay in a range in which no sum can wrap (`check_reg_sane_offset`).
/// The message names the type of `pointer`.
fn check_sane_offset(reg: &RegState, pointer: &RegState) -> VerifyResult {
    let sane = |value: i64| -MAX_VAR_OFFSET < value && value < MAX_VAR_OFFSET;
    let name = pointer.reg_type();
    if let Some(value) = reg.var.value().map(u64::cast_signed)
        && !sane(value)
    {
        reject!(
            EINVAL,
            "math between {name} pointer and {value} is not allowed"
        );
    }
    if !sane(reg.off.into()) {
        reject!(EINVAL, "{name} pointer offset {} is not allowed", reg.off);
    }
    let min = reg.var.smin;
    if min == i64::MIN {
        reject!(
            EINVAL,
            "math between {name} pointer and register with unbounded min value is not allowed"
        );
    }
    if !sane(min) {
        reject!(EINVAL, "value {min} makes {name} pointer be out of bounds");
    }
    Ok(())
}

/// The operator as messages name it, by the opcode's bits: signed division prints like
/// unsigned.
const fn operator(op: AluOp) -> &'static str {
    match op {
        AluOp::Sdiv => AluOp::Div.symbol(),
        AluOp::Smod => AluOp::Mod.symbol(),
        op => op.symbol(),
    }
}
