//! Ids in two states: equal up to their names.

use crate::verifier::reg::ADD_CONST;

/// Which id of an old state stands for which of the current one, as far as the
/// comparison of the two has come (`struct bpf_idmap`).
#[derive(Debug, Default)]
pub(crate) struct IdMap {
    /// Old and current.
    pairs: Vec<(u32, u32)>,
    /// The last id that stands in for none.
    stand_in: u32,
}

impl IdMap {
    /// Forgets all pairs; `last_id` is the last id that the walk gave out.
    pub(super) fn reset(&mut self, last_id: u32) {
        self.forget();
        self.stand_in = last_id;
    }

    /// Forgets all pairs.
    pub(super) fn forget(&mut self) {
        self.pairs.clear();
    }

    /// Whether the old id can stand for the current one: both are none, or they are
    /// paired with each other and with no other (`check_ids`).
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

    /// The same for numbers (`check_scalar_ids` of 6.18.44). An old number without id
    /// asks for nothing. A current one without id is linked to no other, and so is like
    /// one with an id of its own. What is linked at a distance has to be so to the same
    /// base.
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

    /// Two numbers that were linked are not two that are not, but the other way round
    /// the current state only knows more.
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
}
