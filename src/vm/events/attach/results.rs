//! How the kernel combines the return values of several programs.

use super::hook::Results;
use crate::util::Errno;

/// `XDP_PASS`, `include/uapi/linux/bpf.h`.
const XDP_PASS: u32 = 2;
/// `TC_ACT_UNSPEC`, `include/uapi/linux/pkt_cls.h`.
const TC_ACT_UNSPEC: i32 = -1;
/// `TC_ACT_OK`, `TC_ACT_RECLASSIFY`, `TC_ACT_PIPE`: the packet continues.
const TC_GOES_ON: [i32; 3] = [0, 1, 3];

/// The combined results of a list's programs that have run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    results: Results,
    /// The combined value so far.
    value: i64,
    /// Whether a program has run.
    any: bool,
    /// Whether a program that passed the packet selected a socket for it.
    selected: bool,
}

/// Whether the list continues after a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The next program runs.
    Next,
    /// The list ends.
    End,
}

impl Tally {
    /// The state before any program has run.
    #[must_use]
    pub const fn new(results: Results) -> Self {
        let value = match results {
            Results::And | Results::Select | Results::Accept => 1,
            Results::Action => XDP_PASS as i64,
            _ => 0,
        };
        Self {
            results,
            value,
            any: false,
            selected: false,
        }
    }

    /// Adds a program's r0. `retval` is the value last set by `bpf_set_retval`, for cgroup hooks.
    /// `selects` is whether a socket is selected (`bpf_sk_assign`).
    pub fn add(&mut self, r0: u64, retval: &mut i32, selects: bool) -> Then {
        let returned = crate::isa::low32(r0);
        let signed = i64::from(returned.cast_signed());
        self.any = true;
        match self.results {
            Results::Ignored => {}
            Results::And => self.value &= i64::from(returned),
            Results::Value | Results::Session => self.value = signed,
            Results::Action => self.value = i64::from(returned),
            Results::FirstNonZero => {
                self.value = signed;
                if signed != 0 {
                    return Then::End;
                }
            }
            Results::Allow => {
                // Bits above bit 0 are flags (`bpf_prog_run_array_cg`).
                if returned & 1 == 0 && !is_error(*retval) {
                    *retval = -i32::from(Errno::EPERM.0);
                }
                self.value = i64::from(*retval);
            }
            Results::Next => {
                self.value = signed;
                if returned.cast_signed() != TC_ACT_UNSPEC {
                    return Then::End;
                }
            }
            // Passes if no program drops it, or one that passes it has selected a socket.
            Results::Select => {
                self.selected |= returned == 1 && selects;
                self.value &= i64::from(returned != 0);
                if self.selected {
                    self.value = 1;
                }
            }
            Results::Accept => {
                self.value = signed;
                if returned == 0 {
                    return Then::End;
                }
            }
        }
        Then::Next
    }

    /// The list was skipped, and the event dropped (`trace_call_bpf` returns 0).
    pub const fn skip(&mut self) {
        self.value = match self.results {
            Results::And => 0,
            _ => self.value,
        };
    }

    /// The combined value: the ANDed results, the function's return value, an action, 0 or a
    /// negative error. `None` if the kernel ignores results, or if no program ran and the
    /// result is optional.
    #[must_use]
    pub const fn verdict(&self) -> Option<i64> {
        match self.results {
            Results::Ignored | Results::Session => None,
            Results::And => Some(self.value),
            _ if self.any => Some(self.value),
            _ => None,
        }
    }

    /// Whether the event continues: to the perf buffer, up the network stack, or as an allowed
    /// operation.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self.results {
            Results::Ignored | Results::Session | Results::Value => true,
            Results::And | Results::Select | Results::Accept => self.value != 0,
            Results::FirstNonZero | Results::Allow => self.value == 0,
            Results::Action => self.value == i64::from(XDP_PASS),
            Results::Next => {
                self.value == i64::from(TC_ACT_UNSPEC)
                    || TC_GOES_ON
                        .iter()
                        .any(|action| i64::from(*action) == self.value)
            }
        }
    }
}

/// Whether a value is one of the kernel's negative errors (`IS_ERR_VALUE`).
const fn is_error(value: i32) -> bool {
    value < 0 && value >= -4095
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict, and whether the event passes.
    fn run(results: Results, returned: &[i32]) -> (Option<i64>, bool, usize) {
        let (mut tally, mut retval, mut ran) = (Tally::new(results), 0, 0);
        for value in returned {
            ran += 1;
            let r0 = u64::from(value.cast_unsigned());
            if tally.add(r0, &mut retval, false) == Then::End {
                break;
            }
        }
        (tally.verdict(), tally.passes(), ran)
    }

    #[test]
    fn results_are_anded_bitwise_from_one() {
        for (returned, value) in [
            (&[][..], 1),
            (&[0], 0),
            (&[2], 0),
            (&[3], 1),
            (&[3, 1], 1),
            (&[1, 2], 0),
            (&[-1, 3], 1),
        ] {
            let expected = (Some(value), value != 0, returned.len());
            assert_eq!(run(Results::And, returned), expected, "{returned:?}");
        }
    }

    #[test]
    fn the_first_that_is_not_zero_decides() {
        assert_eq!(
            run(Results::FirstNonZero, &[0, -1, 0]),
            (Some(-1), false, 2)
        );
        assert_eq!(run(Results::FirstNonZero, &[0, 0]), (Some(0), true, 2));
        assert_eq!(run(Results::FirstNonZero, &[]), (None, true, 0));
    }

    #[test]
    fn all_of_a_cgroup_run_and_all_must_allow() {
        assert_eq!(run(Results::Allow, &[1, 1]), (Some(0), true, 2));
        assert_eq!(run(Results::Allow, &[0, 1]), (Some(-1), false, 2));
        // Flags besides the permission bit: the port is checked by the program.
        assert_eq!(run(Results::Allow, &[3]), (Some(0), true, 1));
        // An error that a program set is kept.
        let (mut tally, mut retval) = (Tally::new(Results::Allow), -22);
        tally.add(0, &mut retval, false);
        assert_eq!(tally.verdict(), Some(-22));
    }

    #[test]
    fn a_packets_programs_go_on_where_one_says_so() {
        assert_eq!(run(Results::Next, &[-1, 2, 0]), (Some(2), false, 2));
        assert_eq!(run(Results::Next, &[-1, -1]), (Some(-1), true, 2));
        assert_eq!(run(Results::Next, &[3, 2]), (Some(3), true, 1));
        assert_eq!(run(Results::Action, &[1]), (Some(1), false, 1));
        assert_eq!(run(Results::Action, &[2]), (Some(2), true, 1));
        assert_eq!(run(Results::Accept, &[1, 0, 1]), (Some(0), false, 2));
        assert_eq!(run(Results::Select, &[0, 1]), (Some(0), false, 2));
        let (mut tally, mut retval) = (Tally::new(Results::Select), 0);
        for (r0, selects) in [(0, true), (1, true), (0, false)] {
            tally.add(r0, &mut retval, selects);
        }
        assert_eq!(
            tally.verdict(),
            Some(1),
            "the one that let it pass chose a socket"
        );
    }
}
