//! The values that a program may return (`check_return_code`).

use std::fmt::Write;

use crate::isa::Reg;
use crate::spec::lsm;
use crate::spec::{AttachType, ProgType, ReturnRule};
use crate::util::Errno;
use crate::verifier::attach_target::AttachTarget;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject};
use crate::verifier::state::{Entry, ReturnRange};
use crate::verifier::tnum::Tnum;

/// The rule for `r0` at an exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// `r0` is ignored; it need not even be written.
    Void,
    /// Any value, including a pointer.
    Any,
    /// A scalar in this range.
    Within(Range),
    /// The kernel rejects such a program.
    Refused,
}

/// A range for `r0`, and how it is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    allowed: ReturnRange,
    /// Whether only the lower half is compared.
    low_half: bool,
    /// A value range that requires the declared attach type.
    binds_attach_type: Option<(i32, i32)>,
    /// A line after the message.
    note: Option<&'static str>,
}

impl Range {
    const fn new(min: i32, max: i32) -> Self {
        Self {
            allowed: ReturnRange { min, max },
            low_half: false,
            binds_attach_type: None,
            note: None,
        }
    }

    fn contains(&self, reg: &RegState) -> bool {
        if self.low_half {
            self.allowed.min <= reg.var.smin32 && reg.var.smax32 <= self.allowed.max
        } else {
            self.allowed.contains(reg)
        }
    }
}

impl ReturnRange {
    /// Whether every value of the register is in the range (`retval_range_within` for whole
    /// registers).
    pub(crate) fn contains(self, reg: &RegState) -> bool {
        i64::from(self.min) <= reg.var.smin && reg.var.smax <= i64::from(self.max)
    }

    /// The reject for a register that is not in the range (`verbose_invalid_scalar`).
    /// `place` is "At program exit" or the like.
    pub(crate) fn violation(self, reg: &RegState, place: &str, number: Reg) -> Reject {
        let mut text = format!("{place} the register R{} has", number.number());
        // Writing to a string can't fail.
        if reg.var.smin > i64::MIN {
            let _ = write!(text, " smin={}", reg.var.smin);
        }
        if reg.var.smax < i64::MAX {
            let _ = write!(text, " smax={}", reg.var.smax);
        }
        if reg.var.smin == i64::MIN && reg.var.smax == i64::MAX {
            text.push_str(" unknown scalar value");
        }
        let _ = write!(text, " should have been in [{}, {}]", self.min, self.max);
        Reject::new(Errno::EINVAL, text)
    }
}

const AT_EXIT: &str = "At program exit";
const AT_ASYNC_RETURN: &str = "At async callback return";
const VOID_HOOK: &str =
    "Note, BPF_LSM_CGROUP that attach to void LSM hooks can't modify return value!";

impl Verifier<'_> {
    /// At an exception: without a callback for exceptions, its cookie is the program's result.
    pub(super) fn check_thrown(&mut self) -> VerifyResult {
        match self.structure.exception_callback {
            Some(_) => Ok(()),
            None => self.check_return_code(Reg::R1),
        }
    }

    /// At the exit of the outermost frame: checks that the program type allows the value of
    /// `reg` as its result.
    pub(crate) fn check_return_code(&mut self, reg: Reg) -> VerifyResult {
        let (is_main, later) = match self.state.frames.first() {
            Some(frame) => (
                // The exception callback returns for the program.
                frame.subprogram == 0 || self.subprogram(frame.subprogram).is_exception_cb,
                matches!(frame.entry, Entry::AsyncCallback(_)).then_some(frame.callback_range),
            ),
            None => (true, None),
        };
        let rule = match later {
            Some(range) => Rule::Within(Range::new(range.min, range.max)),
            None if is_main => self.return_rule(),
            None => Rule::Any,
        };
        if rule == Rule::Void {
            return Ok(());
        }
        if later.is_none() && is_main && self.returns_reference(reg) {
            let state = *self.reg(reg);
            return self.check_pointer_offset(&state, reg, false);
        }
        self.check_read(reg)?;
        if self.is_pointer_value(self.reg(reg)) {
            reject!(EACCES, "R{} leaks addr as return value", reg.number());
        }
        let range = match rule {
            Rule::Within(range) => range,
            // Without a message.
            Rule::Refused => reject!(ENOTSUPP, ""),
            _ if is_main => return Ok(()),
            _ => return self.check_subprogram_result(reg),
        };
        let place = if later.is_some() {
            AT_ASYNC_RETURN
        } else {
            AT_EXIT
        };
        if !self.reg(reg).is_scalar() {
            reject!(
                EINVAL,
                "{place} the register R{} is not a known value ({})",
                reg.number(),
                self.reg(reg).reg_type()
            );
        }
        self.mark_precise(reg)?;
        let state = self.reg(reg);
        if !range.contains(state) {
            let violation = range.allowed.violation(state, place, reg);
            return Err(match range.note {
                Some(note) => violation.and(note),
                None => violation,
            });
        }
        if let Some((min, max)) = range.binds_attach_type
            && let (Ok(min), Ok(max)) = (u64::try_from(min), u64::try_from(max))
            && state.var.bits.is_subset_of(Tnum::range(min, max))
        {
            self.requires.attach_type();
        }
        Ok(())
    }

    /// Whether the register is a reference that a struct_ops program hands to the kernel as its
    /// result.
    fn returns_reference(&self, reg: Reg) -> bool {
        let result = self.attach.and_then(AttachTarget::returned_pointer);
        let state = self.reg(reg);
        let throws = (self.state.frames.first())
            .is_some_and(|frame| self.subprogram(frame.subprogram).is_exception_cb);
        match (result, state.kind) {
            (Some(id), Kind::BtfId { ty }) => {
                ty == ObjectType::kernel(id) && state.ref_id != 0 && !throws
            }
            _ => false,
        }
    }

    /// At the exit of a synchronous callback: checks that the scalar in `r0` is in the
    /// range that the helper allows.
    pub(crate) fn check_callback_return(&self, r0: &RegState, range: ReturnRange) -> VerifyResult {
        if range.contains(r0) {
            Ok(())
        } else {
            Err(range.violation(r0, "At callback return", Reg::R0))
        }
    }

    /// At the exit of a global function that is verified on its own.
    fn check_subprogram_result(&self, reg: Reg) -> VerifyResult {
        let state = self.reg(reg);
        if !state.is_scalar() {
            reject!(
                EINVAL,
                "At subprogram exit the register R{} is not a scalar value ({})",
                reg.number(),
                state.reg_type()
            );
        }
        Ok(())
    }

    /// The rule for the main program.
    fn return_rule(&self) -> Rule {
        let prog_type = self.program.prog_type;
        match prog_type.return_rule(self.attach_type()) {
            ReturnRule::Any => Rule::Any,
            ReturnRule::Within {
                min,
                max,
                binds_attach_type,
            } => Rule::Within(Range {
                binds_attach_type,
                ..Range::new(min, max)
            }),
            ReturnRule::Hook => self.hook_rule(),
            ReturnRule::Refused => Rule::Refused,
        }
    }

    /// The rule from the hook's prototype.
    fn hook_rule(&self) -> Rule {
        let Some(hook) = self.attach else {
            return Rule::Any;
        };
        match (self.program.prog_type, self.attach_type()) {
            (ProgType::Lsm, Some(AttachType::LsmCgroup)) if hook.returns_nothing() => {
                Rule::Within(Range {
                    note: Some(VOID_HOOK),
                    ..Range::new(1, 1)
                })
            }
            (ProgType::Lsm, Some(AttachType::LsmCgroup)) => Rule::Within(Range::new(0, 1)),
            _ if hook.returns_nothing() => Rule::Void,
            // Other than a reference, only a null pointer.
            _ if hook.returned_pointer().is_some() => Rule::Within(Range::new(0, 0)),
            // An extension has the function's prototype, which says nothing of a range.
            (ProgType::Lsm, Some(AttachType::LsmMac)) if !self.is_extension() => {
                let (min, max) = lsm::return_range(hook.name);
                Rule::Within(Range {
                    low_half: true,
                    ..Range::new(min, max)
                })
            }
            _ => Rule::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::scalar::Scalar;

    fn number(smin: i64, smax: i64) -> RegState {
        let mut var = Scalar::UNKNOWN;
        (var.smin, var.smax) = (smin, smax);
        RegState::scalar(var)
    }

    #[test]
    fn a_violation_says_what_is_known() {
        let range = ReturnRange { min: 0, max: 1 };
        let said = |reg| range.violation(&reg, AT_EXIT, Reg::R0).message().to_owned();
        assert_eq!(
            said(number(2, 2)),
            "At program exit the register R0 has smin=2 smax=2 should have been in [0, 1]"
        );
        assert_eq!(
            said(number(1001, i64::MAX)),
            "At program exit the register R0 has smin=1001 should have been in [0, 1]"
        );
        assert_eq!(
            said(RegState::UNKNOWN),
            "At program exit the register R0 has unknown scalar value should have been in [0, 1]"
        );
    }

    #[test]
    fn a_range_covers_whole_registers_or_low_halves() {
        let errno = Range {
            low_half: true,
            ..Range::new(-4095, 0)
        };
        let minus_one = RegState::constant(0xffff_ffff);
        assert!(errno.contains(&minus_one));
        assert!(!Range::new(-4095, 0).contains(&minus_one));
        assert!(Range::new(0, 1).contains(&number(0, 1)));
        assert!(!Range::new(0, 1).contains(&number(-1, 1)));
    }
}
