//! User memory of the current task.

use std::collections::BTreeMap;

/// Mapped ranges of a user address space. All other addresses are unmapped: reading them fails
/// with `EFAULT`.
#[derive(Debug, Clone, Default)]
pub struct UserMemory {
    /// Address of the first byte of each range; ranges don't overlap.
    pieces: BTreeMap<u64, Vec<u8>>,
}

/// First address of ranges that are not placed by the test: the usual start of the heap.
const FIRST: u64 = 0x5555_0000_0000;
/// Unmapped bytes between two such ranges.
const GAP: u64 = 64;
/// End of user addresses (`TASK_SIZE_MAX` on x86-64 with four-level paging).
const END: u64 = 0x7fff_ffff_f000;

impl UserMemory {
    /// Maps bytes at the next free address and returns it, a multiple of 16.
    pub fn add(&mut self, bytes: &[u8]) -> u64 {
        let end = self.pieces.range(FIRST..).next_back();
        let free = end.map_or(FIRST, |(at, piece)| at + piece.len() as u64 + GAP);
        let at = free.next_multiple_of(16);
        self.pieces.insert(at, bytes.to_vec());
        at
    }

    /// Maps bytes at an address, replacing what was mapped there. False if the range is not in
    /// user space.
    pub fn map(&mut self, at: u64, bytes: &[u8]) -> bool {
        let Some(end) = at.checked_add(bytes.len() as u64) else {
            return false;
        };
        if at == 0 || end > END {
            return false;
        }
        self.cut(at, end);
        if !bytes.is_empty() {
            self.pieces.insert(at, bytes.to_vec());
        }
        true
    }

    /// Unmaps everything in `at..end`.
    fn cut(&mut self, at: u64, end: u64) {
        let Some(first) = self
            .pieces
            .range(..end)
            .next_back()
            .map(|(start, _)| *start)
        else {
            return;
        };
        let mut touched = vec![first];
        touched.extend(self.pieces.range(at..end).map(|(start, _)| *start));
        // The range that begins before `at` may overlap.
        touched.extend(self.pieces.range(..at).next_back().map(|(start, _)| *start));
        for start in touched {
            let Some(piece) = self.pieces.remove(&start) else {
                continue;
            };
            let split = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(piece.len());
            let (head, tail) = (
                split(at.saturating_sub(start)),
                split(end.saturating_sub(start)),
            );
            if head > 0 {
                self.pieces.insert(start, piece[..head].to_vec());
            }
            if tail < piece.len() {
                self.pieces
                    .insert(start + tail as u64, piece[tail..].to_vec());
            }
        }
    }

    /// Copies out `len` bytes; `None` if any of them is unmapped.
    #[must_use]
    pub fn read(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut next = at;
        while bytes.len() < len {
            let run = self.run(next)?;
            let taken = run.len().min(len - bytes.len());
            bytes.extend_from_slice(run.get(..taken)?);
            next += taken as u64;
        }
        Some(bytes)
    }

    /// Overwrites mapped bytes. If any of them is unmapped, changes nothing and returns false.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        if self.read(at, bytes.len()).is_none() {
            return false;
        }
        for (address, byte) in (at..).zip(bytes) {
            if let Some((start, piece)) = self.pieces.range_mut(..=address).next_back()
                && let Ok(index) = usize::try_from(address - start)
                && let Some(to) = piece.get_mut(index)
            {
                *to = *byte;
            }
        }
        true
    }

    /// The mapped bytes from `at` to the end of its range.
    #[must_use]
    pub fn run(&self, at: u64) -> Option<&[u8]> {
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        let run = piece.get(usize::try_from(at - start).ok()?..)?;
        (!run.is_empty()).then_some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_end_in_nothing() {
        let mut user = UserMemory::default();
        let (a, b) = (user.add(b"abc\0"), user.add(b"xyz"));
        assert_eq!(user.read(a, 4).as_deref(), Some(&b"abc\0"[..]));
        assert_eq!(user.read(b, 3).as_deref(), Some(&b"xyz"[..]));
        assert_eq!(user.read(a, 5), None);
        assert_eq!(user.read(a + 4, 1), None);
        assert_eq!(user.read(0, 1), None);
        assert_eq!(user.read(u64::MAX, 4), None);
    }

    #[test]
    fn mapping_over_something_replaces_only_that_part() {
        let mut user = UserMemory::default();
        assert!(user.map(0x1000, &[1; 8]));
        assert!(user.map(0x1002, &[2; 2]));
        assert_eq!(user.read(0x1000, 8), Some(vec![1, 1, 2, 2, 1, 1, 1, 1]));
        assert!(user.map(0x0ffe, &[3; 12]));
        assert_eq!(user.read(0x0ffe, 12), Some(vec![3; 12]));
        assert!(!user.map(0, &[1]));
        assert!(!user.map(END, &[1]));
    }

    #[test]
    fn writes_are_all_or_nothing() {
        let mut user = UserMemory::default();
        let at = user.add(&[0; 4]);
        assert!(user.write(at + 1, &[7, 8]));
        assert!(!user.write(at + 3, &[9, 9]));
        assert_eq!(user.read(at, 4), Some(vec![0, 7, 8, 0]));
    }
}
