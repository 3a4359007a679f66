//! Look-up of types by name: a flat hash over the type table, no allocation per type.

use std::hash::{BuildHasher, RandomState};

/// The name without its flavor: the part before the last `___` that has text on both sides.
/// CO-RE treats `task_struct___v2` and `task_struct` as one type (libbpf,
/// `bpf_core_essential_name_len`).
#[must_use]
pub fn essential_name(name: &str) -> &str {
    let bytes = name.as_bytes();
    if !may_have_flavor(bytes) {
        return name;
    }
    let is_cut =
        |window: &[u8]| matches!(window, [x, b'_', b'_', b'_', y] if *x != b'_' && *y != b'_');
    let cut = bytes.windows(5).rposition(is_cut);
    cut.and_then(|at| name.get(..=at)).unwrap_or(name)
}

/// Quickly rejects most names: of three consecutive bytes, one is at index 2, 5, 8 and so
/// on, and has a neighbour among the other two.
fn may_have_flavor(bytes: &[u8]) -> bool {
    let is_underscore = |at: usize| bytes.get(at) == Some(&b'_');
    (2..bytes.len())
        .step_by(3)
        .any(|at| is_underscore(at) && (is_underscore(at - 1) || is_underscore(at + 1)))
}

/// Types by essential name: hash buckets with chains in ascending order of id.
#[derive(Debug)]
pub(super) struct NameIndex {
    /// First entry + 1 of each bucket, 0 where there is none; a power of two long.
    heads: Box<[u32]>,
    /// Next entry + 1 of the same bucket, by entry.
    next: Box<[u32]>,
    /// Randomly keyed, so that no file can force its names into one bucket.
    hash: RandomState,
}

impl NameIndex {
    /// Indexes `count` entries; `name` returns the name of each. Entries without a name are
    /// omitted.
    pub fn new<'a>(count: usize, name: impl Fn(usize) -> &'a str) -> Self {
        let mut heads = vec![0u32; count.next_power_of_two()].into_boxed_slice();
        let mut next = vec![0u32; count].into_boxed_slice();
        let hash = RandomState::new();
        // From the last to the first, so that chains are in order of id.
        for entry in (0..count).rev() {
            let name = name(entry);
            let Ok(number) = u32::try_from(entry + 1) else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            let bucket = bucket(&hash, name, heads.len());
            if let (Some(head), Some(link)) = (heads.get_mut(bucket), next.get_mut(entry)) {
                *link = std::mem::replace(head, number);
            }
        }
        Self { heads, next, hash }
    }

    /// Entries whose essential name may equal that of `name`, in ascending order; the
    /// caller compares the names.
    pub fn candidates(&self, name: &str) -> impl Iterator<Item = usize> + use<'_> {
        let step = |number: u32| (number as usize).checked_sub(1);
        let head = self
            .heads
            .get(bucket(&self.hash, name, self.heads.len()))
            .copied();
        std::iter::successors(head.and_then(step), move |&entry| {
            self.next.get(entry).copied().and_then(step)
        })
    }
}

/// The bucket of a name's essential part; `buckets` is a power of two.
fn bucket(hash: &RandomState, name: &str, buckets: usize) -> usize {
    // The mask keeps the index below the number of buckets.
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
    let hash = hash.hash_one(essential_name(name).as_bytes()) as usize;
    hash & buckets.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flavor_is_stripped_as_libbpf_strips_it() {
        for (name, essential) in [
            ("task_struct", "task_struct"),
            ("task_struct___v2", "task_struct"),
            ("a___b___c", "a___b"),
            ("___a", "___a"),
            ("a___", "a___"),
            ("a____b", "a____b"),
            ("a___b____", "a"),
            ("", ""),
        ] {
            assert_eq!(essential_name(name), essential, "{name}");
        }
    }

    #[test]
    fn chains_are_in_order_and_hold_every_flavor() {
        let names = ["a", "b", "a___x", "", "a"];
        let index = NameIndex::new(names.len(), |i| names[i]);
        let found: Vec<_> = index
            .candidates("a")
            .filter(|&i| essential_name(names[i]) == "a")
            .collect();
        assert_eq!(found, [0, 2, 4]);
        let empty = NameIndex::new(0, |_| "");
        assert_eq!(empty.candidates("a").count(), 0);
    }
}
