//! LRU lists of a map: one for all CPUs, or one for each (`BPF_F_NO_COMMON_LRU`).

use super::list::List;

/// Used slots, by last use. A slot is in the list of the CPU that inserted its key.
#[derive(Debug)]
pub(super) struct LruLists {
    lists: List,
    /// The list of each slot.
    list_of: Vec<u32>,
    /// Number of slots in each list.
    len: Vec<u32>,
}

impl LruLists {
    /// Empty lists for slots below `slots`.
    pub(super) fn new(slots: usize, lists: usize) -> Self {
        Self {
            lists: List::several(slots, lists),
            list_of: vec![0; slots],
            len: vec![0; lists],
        }
    }

    /// Number of slots in a list.
    pub(super) fn len(&self, list: u32) -> u32 {
        self.len.get(list as usize).copied().unwrap_or_default()
    }

    /// The least recently used slot of a list.
    pub(super) fn oldest(&self, list: u32) -> Option<u32> {
        self.lists.first_of(list)
    }

    /// The list that a slot is in.
    pub(super) fn list_of(&self, slot: u32) -> u32 {
        self.list_of[slot as usize]
    }

    /// Adds a slot to a list.
    pub(super) fn enter(&mut self, slot: u32, list: u32) {
        self.list_of[slot as usize] = list;
        self.len[list as usize] += 1;
        self.lists.push_to(list, slot);
    }

    /// Removes a slot from its list.
    pub(super) fn leave(&mut self, slot: u32) {
        let list = self.list_of(slot);
        self.len[list as usize] -= 1;
        self.lists.remove(slot);
    }

    /// Records a use of a slot.
    pub(super) fn touch(&mut self, slot: u32) {
        self.lists.remove(slot);
        self.lists.push_to(self.list_of(slot), slot);
    }
}
