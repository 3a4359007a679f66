//! What a program may return (`check_return_code`).

use std::fmt::Write;

use crate::isa::Reg;
use crate::spec::lsm;
use crate::spec::{AttachType, ProgType, ReturnRule};
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::log::name::type_name;
use crate::verifier::reg::RegState;
use crate::verifier::reject::{Checked, Reject, reject};
use crate::verifier::state::{Entry, ReturnRange};
use crate::verifier::tnum::Tnum;

/// What is asked of the number in `r0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// Nothing, not even that it is written: the caller doesn't look at it.
    Void,
    /// It may be anything, a pointer too.
    Any,
    /// It lies in this range.
    Within(Range),
    /// The kernel takes no such program.
    Refused,
}

/// A range for `r0`, and how it is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    allowed: ReturnRange,
    /// Whether only the low half counts.
    low_half: bool,
    /// Values that only the declared attach type understands.
    binds_attach_type: Option<(i32, i32)>,
    /// A line behind the message.
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

    fn covers(&self, reg: &RegState) -> bool {
        if self.low_half {
            self.allowed.min <= reg.var.smin32 && reg.var.smax32 <= self.allowed.max
        } else {
            self.allowed.covers(reg)
        }
    }
}

impl ReturnRange {
    /// Whether every number that the register may hold is in the range
    /// (`retval_range_within` for whole registers).
    pub(crate) fn covers(self, reg: &RegState) -> bool {
        i64::from(self.min) <= reg.var.smin && reg.var.smax <= i64::from(self.max)
    }

    /// What is said of a register that is not (`verbose_invalid_scalar`): `place` is
    /// "At program exit" or the like.
    pub(crate) fn violation(self, reg: &RegState, place: &str, number: Reg) -> Reject {
        let mut text = format!("{place} the register R{} has", number.number());
        // Writing to a string does not fail.
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
    /// The exit of the outermost frame: `r0` is what the program type allows.
    pub(crate) fn check_return_code(&mut self) -> Checked {
        let (is_main, later) = match self.state.frames.first() {
            Some(frame) => (
                // What exceptions end in returns for the program.
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
        self.check_read(Reg::R0)?;
        let range = match rule {
            Rule::Within(range) => range,
            // In silence.
            Rule::Refused => reject!(ENOTSUPP, ""),
            _ if is_main => return Ok(()),
            _ => return self.check_subprogram_result(),
        };
        let place = if later.is_some() {
            AT_ASYNC_RETURN
        } else {
            AT_EXIT
        };
        if !self.reg(Reg::R0).is_scalar() {
            reject!(
                EINVAL,
                "{place} the register R0 is not a known value ({})",
                type_name(self.reg(Reg::R0))
            );
        }
        self.mark_precise(Reg::R0)?;
        let reg = self.reg(Reg::R0);
        if !range.covers(reg) {
            let violation = range.allowed.violation(reg, place, Reg::R0);
            return Err(match range.note {
                Some(note) => violation.and(note),
                None => violation,
            });
        }
        if let Some((min, max)) = range.binds_attach_type
            && let (Ok(min), Ok(max)) = (u64::try_from(min), u64::try_from(max))
            && reg.var.bits.is_subset_of(Tnum::range(min, max))
        {
            self.requires.attach_type = true;
        }
        Ok(())
    }

    /// The exit of a function that a helper calls before it returns: `r0`, a number, is
    /// in the range that the helper understands.
    pub(crate) fn check_callback_return(&self, r0: &RegState, range: ReturnRange) -> Checked {
        if range.covers(r0) {
            Ok(())
        } else {
            Err(range.violation(r0, "At callback return", Reg::R0))
        }
    }

    /// The exit of a global function that is verified on its own.
    fn check_subprogram_result(&self) -> Checked {
        let reg = self.reg(Reg::R0);
        if !reg.is_scalar() {
            reject!(
                EINVAL,
                "At subprogram exit the register R0 is not a scalar value ({})",
                type_name(reg)
            );
        }
        Ok(())
    }

    /// What the main program may return.
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

    /// What the hook's prototype says.
    fn hook_rule(&self) -> Rule {
        let Some(hook) = &self.attach else {
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
            (ProgType::Lsm, Some(AttachType::LsmMac)) => {
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
        assert!(errno.covers(&minus_one));
        assert!(!Range::new(-4095, 0).covers(&minus_one));
        assert!(Range::new(0, 1).covers(&number(0, 1)));
        assert!(!Range::new(0, 1).covers(&number(-1, 1)));
    }
}
