//! Which elements of a map that evicts were used last: one list for all CPUs, or one for
//! each (`BPF_F_NO_COMMON_LRU`).

use super::list::List;

/// Slots in use, by last use. A slot is in the list of the CPU that put its key in.
#[derive(Debug)]
pub(super) struct Uses {
    lists: List,
    /// For each slot its list.
    list_of: Vec<u32>,
    /// How many slots each list has.
    len: Vec<u32>,
}

impl Uses {
    /// No slots below `slots`, in so many lists.
    pub(super) fn new(slots: usize, lists: usize) -> Self {
        Self {
            lists: List::several(slots, lists),
            list_of: vec![0; slots],
            len: vec![0; lists],
        }
    }

    /// How many slots a list has.
    pub(super) fn len(&self, list: u32) -> u32 {
        self.len.get(list as usize).copied().unwrap_or_default()
    }

    /// The slot of a list that was not used for the longest.
    pub(super) fn oldest(&self, list: u32) -> Option<u32> {
        self.lists.first_of(list)
    }

    /// The list that a slot is in.
    pub(super) fn list_of(&self, slot: u32) -> u32 {
        self.list_of[slot as usize]
    }

    /// A slot comes into use, by the list's CPU.
    pub(super) fn enter(&mut self, slot: u32, list: u32) {
        self.list_of[slot as usize] = list;
        self.len[list as usize] += 1;
        self.lists.push_to(list, slot);
    }

    /// A slot is not in use any more.
    pub(super) fn leave(&mut self, slot: u32) {
        let list = self.list_of(slot);
        self.len[list as usize] -= 1;
        self.lists.remove(slot);
    }

    /// A slot was used.
    pub(super) fn touch(&mut self, slot: u32) {
        self.lists.remove(slot);
        self.lists.push_to(self.list_of(slot), slot);
    }
}
