//! Iterates over the keys of a map that programs change at the same time.

use std::collections::HashSet;

use crate::util::Errno;

/// Repeated keys, in multiples of the map's capacity, after which the iteration ends.
const ROUNDS: usize = 8;

/// Calls `each` once for each key that `next` returns (`BPF_MAP_GET_NEXT_KEY` of a map with
/// room for `most`).
///
/// A hash map restarts at its first key if the given key has been deleted, so keys repeat; if
/// programs delete keys faster than this reads them, that would never end.
pub(super) fn for_each_key(
    most: u32,
    mut next: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, Errno>,
    mut each: impl FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut seen = HashSet::new();
    let mut again = (most as usize).saturating_mul(ROUNDS);
    let mut last: Option<Vec<u8>> = None;
    loop {
        let key = match next(last.as_deref()) {
            Ok(key) => key,
            Err(Errno::ENOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        if seen.insert(key.clone()) {
            each(&key)?;
        } else if again == 0 {
            return Ok(());
        } else {
            again -= 1;
        }
        last = Some(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys read from a hash map of four, from which `gone` is deleted after the key before
    /// it.
    fn keys(gone: Option<u8>) -> Vec<u8> {
        let mut there = vec![1, 2, 3, 4];
        let mut told = Vec::new();
        let next = |last: Option<&[u8]>| {
            let at = last.and_then(|last| there.iter().position(|key| *key == last[0]));
            let key = there.get(at.map_or(0, |at| at + 1)).copied();
            there.retain(|key| Some(*key) != gone || last != Some(&[*key - 1]));
            key.map(|key| vec![key]).ok_or(Errno::ENOENT)
        };
        let each = |key: &[u8]| {
            told.push(key[0]);
            Ok(())
        };
        for_each_key(4, next, each).unwrap();
        told
    }

    #[test]
    fn each_key_comes_once_also_when_the_walk_begins_anew() {
        assert_eq!(keys(None), [1, 2, 3, 4]);
        assert_eq!(keys(Some(3)), [1, 2, 3, 4]);
    }

    #[test]
    fn keys_that_go_faster_than_they_are_walked_end_it() {
        let mut asked = 0;
        let next = |_: Option<&[u8]>| {
            asked += 1;
            Ok(vec![7])
        };
        assert_eq!(for_each_key(4, next, |_| Ok(())), Ok(()));
        assert_eq!(asked, 4 * ROUNDS + 2);
        let failed = for_each_key(4, |_| Err(Errno::ENOTSUPP), |_| Ok(()));
        assert_eq!(failed, Err(Errno::ENOTSUPP));
        let failed = for_each_key(4, |_| Ok(vec![1]), |_| Err(Errno::EINVAL));
        assert_eq!(failed, Err(Errno::EINVAL));
    }
}
