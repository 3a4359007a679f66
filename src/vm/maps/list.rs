//! A doubly linked list of slots, as numbers in two vectors.

/// Slots in an order that is cheap to change. Memory is zeroed pages until used.
#[derive(Debug)]
pub(super) struct List {
    /// Slot `n` is node `n + 1`; node 0 stands before the first and after the
    /// last, so that zeroed vectors are an empty list.
    next: Vec<u32>,
    prev: Vec<u32>,
}

impl List {
    /// An empty list for slots below `slots`.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            next: vec![0; slots + 1],
            prev: vec![0; slots + 1],
        }
    }

    /// The first slot.
    pub(super) fn first(&self) -> Option<u32> {
        self.follow(0)
    }

    /// The slot after one that is in the list.
    pub(super) fn after(&self, slot: u32) -> Option<u32> {
        self.follow(slot + 1)
    }

    fn follow(&self, node: u32) -> Option<u32> {
        self.next[node as usize].checked_sub(1)
    }

    fn link(&mut self, left: u32, right: u32) {
        self.next[left as usize] = right;
        self.prev[right as usize] = left;
    }

    /// Appends a slot that is not in the list.
    pub(super) fn push(&mut self, slot: u32) {
        let last = self.prev[0];
        self.link(last, slot + 1);
        self.link(slot + 1, 0);
    }

    /// Takes a slot out of the list.
    pub(super) fn remove(&mut self, slot: u32) {
        let node = slot as usize + 1;
        self.link(self.prev[node], self.next[node]);
    }

    /// Puts a slot that is not in the list in the place of one that is.
    pub(super) fn replace(&mut self, old: u32, new: u32) {
        let node = old as usize + 1;
        let (left, right) = (self.prev[node], self.next[node]);
        self.link(left, new + 1);
        self.link(new + 1, right);
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
}
