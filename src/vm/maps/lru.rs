//! Which element of a full map has to go.

use std::collections::BTreeMap;

/// The order in which elements were used. The kernel keeps an approximation
/// (`kernel/bpf/bpf_lru_list.c`: active and inactive lists, a reference bit, lists
/// per CPU), so which element it evicts is not promised; this is the exact order.
#[derive(Debug, Default)]
pub(super) struct Recency {
    clock: u64,
    by_time: BTreeMap<u64, u32>,
    times: Vec<u64>,
}

impl Recency {
    /// The element was used now.
    pub fn touch(&mut self, element: u32) {
        self.forget(element);
        self.clock += 1;
        if let Some(time) = self.times.get_mut(element as usize) {
            *time = self.clock;
        } else {
            self.times.resize(element as usize, 0);
            self.times.push(self.clock);
        }
        self.by_time.insert(self.clock, element);
    }

    /// The element is gone.
    pub fn forget(&mut self, element: u32) {
        if let Some(time) = self.times.get_mut(element as usize) {
            self.by_time.remove(&std::mem::take(time));
        }
    }

    /// The element that was not used for the longest time.
    pub fn oldest(&self) -> Option<u32> {
        self.by_time.first_key_value().map(|(_, element)| *element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_the_oldest() {
        let mut recency = Recency::default();
        [0, 1, 2, 0]
            .into_iter()
            .for_each(|element| recency.touch(element));
        assert_eq!(recency.oldest(), Some(1));
        recency.forget(1);
        assert_eq!(recency.oldest(), Some(2));
        recency.forget(2);
        recency.forget(0);
        recency.forget(7);
        assert_eq!(recency.oldest(), None);
    }
}
