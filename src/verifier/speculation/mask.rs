//! Masks of pointer arithmetic (`sanitize_ptr_alu`, `sanitize_val_alu`).
//!
//! In `pointer += number`, speculation may use a number that a bounds check has ruled out. The
//! kernel masks the number at run time: one that would move the pointer further than the
//! checked path did becomes 0. One instruction has one mask, so all paths must agree on it. The
//! path with the number 0 is explored as a speculative one.

use super::mitigations::{Distance, Mask};
use crate::isa::{AluOp, Operand, Reg, low32};
use crate::spec::limits::STACK_SIZE;
use crate::util::{Errno, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// An addition or subtraction of a pointer and a number.
#[derive(Debug, Clone, Copy)]
pub(in crate::verifier) struct PointerSum {
    pub op: AluOp,
    pub dst: Reg,
    pub src: Operand,
    /// Whether the pointer is the source.
    pub swapped: bool,
}

/// Why an instruction can't be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    Bounds,
    Type,
    Paths,
    Limit,
}

const PROHIBITED: &str = "pointer arithmetic with it prohibited for !root";

impl PointerSum {
    /// The kernel's error (`sanitize_err`).
    fn refused(&self, why: Obstacle) -> Reject {
        let dst = self.dst.number();
        let src = self.src.reg().map_or(dst, Reg::number);
        let (pointer, number) = if self.swapped { (src, dst) } else { (dst, src) };
        let name = if self.op == AluOp::Add { "add" } else { "sub" };
        let what = match why {
            Obstacle::Bounds => format!("R{number} has unknown scalar with mixed signed bounds"),
            Obstacle::Type => format!("R{pointer} has pointer with unsupported alu operation"),
            Obstacle::Paths => {
                format!("R{dst} tried to {name} from different maps, paths or scalars")
            }
            Obstacle::Limit => format!("R{dst} tried to {name} beyond pointer bounds"),
        };
        Reject::new(Errno::EACCES, format!("{what}, {PROHIBITED}"))
    }
}

impl Verifier<'_> {
    /// Whether an addition or subtraction needs no mask (`can_skip_alu_sanitation`).
    fn needs_no_mask(&self, op: AluOp, src: Operand) -> bool {
        self.privileges.bypass_spec_v1
            || !matches!(op, AluOp::Add | AluOp::Sub)
            || src.reg().is_none()
            || self.speculation.has_barrier_before(self.pc())
    }

    /// Records that an instruction adds or subtracts numbers.
    pub(in crate::verifier) fn mask_numbers(
        &mut self,
        op: AluOp,
        dst: Reg,
        src: Operand,
    ) -> VerifyResult {
        if self.needs_no_mask(op, src) {
            return Ok(());
        }
        let sum = PointerSum {
            op,
            dst,
            src,
            swapped: false,
        };
        let pc = self.pc();
        self.speculation
            .set_mask(pc, Mask::Number)
            .map_err(|_| sum.refused(Obstacle::Paths))
    }

    /// Before a pointer is moved by a number: returns how far it may move, if the number has to
    /// be masked, and pushes the path on which the mask makes the number 0.
    pub(in crate::verifier) fn mask_pointer(
        &mut self,
        sum: &PointerSum,
        pointer: &RegState,
        number: &RegState,
    ) -> VerifyResult<Option<Distance>> {
        if self.needs_no_mask(sum.op, sum.src) {
            return Ok(None);
        }
        let constant = number.var.is_const();
        // Other paths found the mask; here only bad accesses are looked for.
        let distance = if self.state.speculative {
            None
        } else {
            let distance = self.distance(sum, pointer, number);
            let distance = distance.map_err(|why| sum.refused(why))?;
            if !constant {
                self.speculation.compare_scalars_exactly();
            }
            Some(distance)
        };
        if constant {
            return Ok(distance);
        }
        let next = Pc(self.pc().0 + 1);
        let mut unmoved = *pointer;
        if !sum.swapped {
            unmoved.forget_halves();
        }
        let at = sum.dst.number();
        let path = self.push_speculative(next, Errno::ENOMEM).map_err(|why| {
            let text = format!("R{at} could not be pushed for speculative verification");
            why.and(format_args!("{text}, {PROHIBITED}"))
        })?;
        *path.reg_mut(sum.dst) = unmoved;
        Ok(distance)
    }

    /// After a pointer was moved: checks that it still points into its object, and records the
    /// mask (`sanitize_check_bounds`).
    pub(in crate::verifier) fn check_moved(
        &mut self,
        sum: &PointerSum,
        distance: Option<Distance>,
    ) -> VerifyResult {
        if self.privileges.bypass_spec_v1 {
            return Ok(());
        }
        self.check_inside(sum.dst)?;
        let Some(mut distance) = distance else {
            return Ok(());
        };
        // The mask is as narrow as the move.
        let moved = *self.reg(sum.dst);
        let limit = self.limit(&moved, distance.to_left);
        let limit = limit.map_err(|why| sum.refused(why))?;
        distance.limit = distance.limit.abs_diff(limit);
        let pc = self.pc();
        self.speculation
            .set_mask(pc, Mask::Distance(distance))
            .map_err(|_| sum.refused(Obstacle::Paths))
    }

    /// The distance before the move.
    fn distance(
        &self,
        sum: &PointerSum,
        pointer: &RegState,
        number: &RegState,
    ) -> Result<Distance, Obstacle> {
        let (negative, constant) = (number.var.smin < 0, number.var.is_const());
        if !constant && negative != (number.var.smax < 0) {
            return Err(Obstacle::Bounds);
        }
        let to_left = (sum.op == AluOp::Add) == negative;
        Ok(Distance {
            negative,
            constant,
            masks_source: !sum.swapped,
            limit: self.limit(pointer, to_left)?,
            to_left,
        })
    }

    /// How far a pointer is from the start of its object (`retrieve_ptr_limit`).
    fn limit(&self, pointer: &RegState, to_left: bool) -> Result<u32, Obstacle> {
        if !pointer.flags.is_empty() {
            return Err(Obstacle::Type);
        }
        let off = i64::from(pointer.off);
        let (limit, end) = match pointer.kind {
            Kind::Stack { .. } => {
                let from_top = pointer.var.bits.min().cast_signed().wrapping_add(off);
                // The frame pointer itself may move to the left.
                let end = STACK_SIZE + usize::from(to_left);
                (from_top.wrapping_neg(), end as u64)
            }
            Kind::MapValue { map, .. } => {
                let place = if to_left {
                    pointer.var.smin
                } else {
                    pointer.var.umax.cast_signed()
                };
                let end = self.map(map).map_or(0, |def| def.value_size);
                (place.wrapping_add(off), end.into())
            }
            _ => return Err(Obstacle::Type),
        };
        // The kernel keeps 32 bits.
        let limit = low32(limit.cast_unsigned());
        if u64::from(limit) >= end {
            return Err(Obstacle::Limit);
        }
        Ok(limit)
    }

    /// Checks that a pointer to the stack or to a map value points into it, for every number
    /// that was added.
    fn check_inside(&mut self, dst: Reg) -> VerifyResult {
        let reg = *self.reg(dst);
        let at = dst.number();
        match reg.kind {
            Kind::Stack { .. } if reg.flags.is_empty() => {
                let var = reg.var.bits.min().cast_signed();
                let off = low32(var.wrapping_add(reg.off.into()).cast_unsigned()).cast_signed();
                let inside = -(STACK_SIZE as i64)..0;
                if !reg.var.is_const() {
                    let bits = reg.var.bits;
                    reject!(
                        EACCES,
                        "R{at} variable stack access prohibited for !root, var_off={bits} off={off}"
                    );
                }
                if !inside.contains(&i64::from(off)) {
                    reject!(
                        EACCES,
                        "R{at} stack pointer arithmetic goes out of range, prohibited for !root; \
                         off={off}"
                    );
                }
                Ok(())
            }
            Kind::MapValue { .. } if reg.flags.is_empty() => self
                .check_map_access(dst, reg.off, 1, false)
                .map_err(|why| {
                    let line = format!(
                        "R{at} pointer arithmetic of map value goes out of range, prohibited for \
                         !root"
                    );
                    why.and(line).with_errno(Errno::EACCES)
                }),
            _ => Ok(()),
        }
    }
}
