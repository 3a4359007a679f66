//! Doubly linked lists of slots, in two vectors.

/// One or several lists of slots. Untouched pages use no memory.
#[derive(Debug)]
pub(super) struct List {
    /// The first `heads` nodes are the lists' heads: before the first slot and after the last.
    /// Slot `n` is node `heads + n`. So with one list, zeroed vectors are an empty list.
    next: Vec<u32>,
    prev: Vec<u32>,
    heads: u32,
}

impl List {
    /// An empty list for slots below `slots`.
    pub(super) fn new(slots: usize) -> Self {
        Self::several(slots, 1)
    }

    /// `lists` empty lists; a slot can be in one of them.
    pub(super) fn several(slots: usize, lists: usize) -> Self {
        let mut list = Self {
            next: vec![0; slots + lists],
            prev: vec![0; slots + lists],
            heads: u32::try_from(lists).unwrap_or(u32::MAX),
        };
        (1..list.heads).for_each(|head| list.link(head, head));
        list
    }

    /// The first slot.
    pub(super) fn first(&self) -> Option<u32> {
        self.first_of(0)
    }

    /// The first slot of a list.
    pub(super) fn first_of(&self, list: u32) -> Option<u32> {
        self.follow(list)
    }

    /// The slot after this one in its list.
    pub(super) fn after(&self, slot: u32) -> Option<u32> {
        self.follow(self.node(slot))
    }

    const fn node(&self, slot: u32) -> u32 {
        slot + self.heads
    }

    fn follow(&self, node: u32) -> Option<u32> {
        self.next[node as usize].checked_sub(self.heads)
    }

    fn link(&mut self, left: u32, right: u32) {
        self.next[left as usize] = right;
        self.prev[right as usize] = left;
    }

    /// Appends a slot that is not in a list.
    pub(super) fn push(&mut self, slot: u32) {
        self.push_to(0, slot);
    }

    /// Appends a slot that is in no list to a list.
    pub(super) fn push_to(&mut self, list: u32, slot: u32) {
        let (last, node) = (self.prev[list as usize], self.node(slot));
        self.link(last, node);
        self.link(node, list);
    }

    /// Removes a slot from its list.
    pub(super) fn remove(&mut self, slot: u32) {
        let node = self.node(slot) as usize;
        self.link(self.prev[node], self.next[node]);
    }

    /// Replaces a slot in its list by one that is in no list.
    pub(super) fn replace(&mut self, old: u32, new: u32) {
        let node = self.node(old) as usize;
        let (left, right) = (self.prev[node], self.next[node]);
        let new = self.node(new);
        self.link(left, new);
        self.link(new, right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(list: &List) -> Vec<u32> {
        std::iter::successors(list.first(), |slot| list.after(*slot)).collect()
    }

    #[test]
    fn keeps_its_order_through_changes() {
        let mut list = List::new(5);
        assert!(slots(&list).is_empty());
        (0..4).for_each(|slot| list.push(slot));
        list.remove(0);
        list.remove(2);
        assert_eq!(slots(&list), [1, 3]);
        list.replace(1, 4);
        list.push(0);
        assert_eq!(slots(&list), [4, 3, 0]);
        list.replace(0, 0);
        [4, 0, 3].into_iter().for_each(|slot| list.remove(slot));
        assert!(slots(&list).is_empty());
    }

    #[test]
    fn lists_know_nothing_of_one_another() {
        let mut list = List::several(6, 3);
        (0..6u32).for_each(|slot| list.push_to(slot % 3, slot));
        let of = |list: &List, n| {
            std::iter::successors(list.first_of(n), |slot| list.after(*slot)).collect::<Vec<_>>()
        };
        assert_eq!([0, 1, 2].map(|n| of(&list, n)), [[0, 3], [1, 4], [2, 5]]);
        list.remove(1);
        list.push_to(2, 1);
        list.replace(3, 3);
        assert_eq!(of(&list, 1), [4]);
        assert_eq!(of(&list, 2), [2, 5, 1]);
    }
}
