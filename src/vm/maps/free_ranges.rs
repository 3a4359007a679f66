//! Free pages of an arena (`kernel/bpf/range_tree.c`).

/// Ranges of free pages, in the order in which they were created; no two of them touch.
///
/// Like the kernel, allocates the first pages of the smallest range that is large enough; of
/// several, the latest one.
#[derive(Debug)]
pub(super) struct FreeRanges(Vec<Range>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u32,
    /// The page after the last one.
    end: u32,
}

impl Range {
    const fn len(self) -> u32 {
        self.end - self.first
    }
}

impl FreeRanges {
    /// `count` free pages.
    pub(super) fn new(count: u32) -> Self {
        Self(vec![Range {
            first: 0,
            end: count,
        }])
    }

    /// Finds `count` free pages to allocate.
    pub(super) fn find(&self, count: u32) -> Option<u32> {
        let mut best: Option<Range> = None;
        for range in self.0.iter().filter(|range| range.len() >= count) {
            if best.is_none_or(|best| range.len() <= best.len()) {
                best = Some(*range);
            }
        }
        best.map(|range| range.first)
    }

    /// Whether all of these pages are free.
    pub(super) fn contains(&self, first: u32, count: u32) -> bool {
        let end = u64::from(first) + u64::from(count);
        self.0
            .iter()
            .any(|range| range.first <= first && end <= u64::from(range.end))
    }

    /// Marks pages as used; pages that are not free are ignored.
    pub(super) fn take(&mut self, first: u32, count: u32) {
        let end = first.saturating_add(count);
        let mut pieces = Vec::new();
        self.0.retain(|range| {
            if range.end <= first || range.first >= end {
                return true;
            }
            pieces.push((range.first, first));
            pieces.push((end, range.end));
            false
        });
        let pieces = pieces.into_iter().filter(|(first, end)| first < end);
        self.0
            .extend(pieces.map(|(first, end)| Range { first, end }));
    }

    /// Marks pages as free; pages that are free already are ignored.
    pub(super) fn give(&mut self, first: u32, count: u32) {
        let mut whole = Range {
            first,
            end: first.saturating_add(count),
        };
        if self.contains(first, count) {
            return;
        }
        self.0.retain(|range| {
            let apart = range.end < whole.first || range.first > whole.end;
            if !apart {
                whole.first = whole.first.min(range.first);
                whole.end = whole.end.max(range.end);
            }
            apart
        });
        self.0.push(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_range_that_is_large_enough_is_taken_first() {
        let mut free = FreeRanges::new(100);
        free.take(10, 5);
        free.take(20, 70);
        // 0..10, 15..20, 90..100
        assert_eq!(free.find(5), Some(15));
        assert_eq!(free.find(6), Some(90));
        assert_eq!(free.find(11), None);
        assert!(free.contains(0, 10) && !free.contains(9, 2));
        free.give(10, 5);
        assert_eq!(free.find(20), Some(0));
        assert_eq!(free.find(15), Some(0));
        assert_eq!(free.find(10), Some(90));
    }

    #[test]
    fn what_is_given_or_taken_twice_is_once() {
        let mut free = FreeRanges::new(8);
        free.take(2, 4);
        free.take(0, 8);
        assert_eq!(free.find(1), None);
        free.give(3, 1);
        free.give(3, 1);
        free.give(2, 4);
        assert!(free.contains(2, 4) && !free.contains(1, 2));
        free.give(0, 8);
        assert_eq!(free.find(8), Some(0));
    }
}
