//! Matching of register ids between two states.
//!
//! Ids are arbitrary numbers, so two states match if a one-to-one renaming maps the ids of
//! the old state to those of the current one, across all registers, slots and references.
//!
//! ```text
//!    0: call 5                   ; bpf_ktime_get_ns
//!    1: r7 = r0
//!    2: call 5
//!    3: r6 = r0
//!    4: if r6 > r7 goto +1
//!    5: r7 = r6                  ; on this path, r6 and r7 share an id
//!    6: if r7 > 4 goto +4        ; and this bounds r6, too
//!    7: r9 = r10
//!    8: r9 += -8
//!    9: r9 += r6
//!   10: r0 = *(u8 *)(r9 + 0)
//!   11: r0 = 0
//! ```
//!
//! The path through insn 5 is safe. At insn 6 its state must not subsume the state from
//! insn 4, in which `r6` and `r7` have different ids: there, `r6` is unbounded at insn 9.

use crate::verifier::reg::ADD_CONST;

/// The pairs of old and current ids found so far in a comparison (`struct bpf_idmap`).
#[derive(Debug, Default)]
pub(crate) struct IdMap {
    /// (old, current).
    pairs: Vec<(u32, u32)>,
    /// The last temporary id given to a scalar without id.
    stand_in: u32,
}

impl IdMap {
    /// Removes all pairs; `last_id` is the last id assigned by the verifier.
    pub(super) fn reset(&mut self, last_id: u32) {
        self.clear();
        self.stand_in = last_id;
    }

    /// Removes all pairs.
    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Whether the old id matches the current one: both are 0, or they are paired with each
    /// other and with no other id (`check_ids`).
    pub(super) fn same(&mut self, old: u32, current: u32) -> bool {
        if old == 0 || current == 0 {
            return old == current;
        }
        for &(a, b) in &self.pairs {
            if a == old || b == current {
                return (a, b) == (old, current);
            }
        }
        self.pairs.push((old, current));
        true
    }

    /// The same for scalars (`check_scalar_ids` of 6.18.44). An old scalar without id
    /// matches any. A current one without id counts as having a unique id, as it is linked
    /// to no other. Scalars linked at a distance also need matching base ids.
    pub(super) fn same_number(&mut self, old: u32, current: u32) -> bool {
        if old == 0 {
            return true;
        }
        let current = if current == 0 {
            self.stand_in += 1;
            self.stand_in
        } else {
            current
        };
        self.same(old, current)
            && (old & ADD_CONST == 0 || self.same(old & !ADD_CONST, current & !ADD_CONST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::reg::ADD_CONST32;

    #[test]
    fn an_id_has_one_partner() {
        let mut ids = IdMap::default();
        ids.reset(100);
        assert!(ids.same(0, 0) && !ids.same(0, 3) && !ids.same(3, 0));
        assert!(ids.same(3, 7) && ids.same(3, 7));
        assert!(!ids.same(3, 8), "3 is 7");
        assert!(!ids.same(4, 7), "7 is 3");
        ids.reset(100);
        assert!(ids.same(4, 7), "forgotten");
    }

    /// Two linked scalars don't match two independent ones. The reverse is fine: the
    /// current state only knows more.
    #[test]
    fn independent_numbers_are_not_linked_ones() {
        let mut ids = IdMap::default();
        ids.reset(100);
        assert!(ids.same_number(5, 0));
        assert!(!ids.same_number(5, 0));
        ids.reset(100);
        assert!(ids.same_number(0, 5) && ids.same_number(0, 5));
    }

    #[test]
    fn what_is_linked_at_a_distance_has_the_same_base() {
        let mut ids = IdMap::default();
        ids.reset(100);
        assert!(ids.same_number(1, 2));
        assert!(!ids.same_number(1 | ADD_CONST, 3 | ADD_CONST));
        ids.reset(100);
        assert!(ids.same_number(1, 2) && ids.same_number(1 | ADD_CONST, 2 | ADD_CONST));
    }

    /// A scalar without id is linked to no other: it counts as one with an id of its own.
    #[test]
    fn a_number_without_id_is_linked_to_no_other() {
        let mut ids = IdMap::default();
        ids.reset(100);
        assert!(ids.same_number(0, 7) && ids.same_number(0, 0), "any");
        assert!(ids.same_number(3, 0) && ids.same_number(4, 0));
        assert!(!ids.same_number(3, 0), "another one");
        for taken in [99, 100] {
            assert!(ids.same_number(taken, taken), "{taken} is in use");
        }
        // Only an old id with a distance has a base.
        assert!(ids.same_number(5, 8 | ADD_CONST32) && ids.same_number(6, 8));
        assert!(ids.same_number(9 | ADD_CONST32, 10 | ADD_CONST32));
        assert!(
            ids.same_number(9, 10) && !ids.same_number(11, 10),
            "the base"
        );
    }
}
