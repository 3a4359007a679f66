//! The bytes of code, written several at a time.

/// Code that grows at its end. An instruction, or most of it, is written as one number, so that
/// only one check for room is needed.
#[derive(Debug)]
pub(super) struct Bytes {
    /// The code, and room behind it.
    room: Vec<u8>,
    len: usize,
}

/// How many bytes are written at a time, of which some may be behind the end.
const AT_ONCE: usize = size_of::<u64>();

impl Bytes {
    /// No code, with room for this many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            room: vec![0; bytes + AT_ONCE],
            len: 0,
        }
    }

    /// Appends the `len` low bytes of a number, at most 8, the lowest first.
    #[inline]
    pub(super) fn put(&mut self, bytes: u64, len: usize) {
        let rest = self.room.get_mut(self.len..).unwrap_or_default();
        match rest.first_chunk_mut() {
            Some(room) => *room = bytes.to_le_bytes(),
            None => self.put_in_more_room(bytes),
        }
        self.len += len;
    }

    #[cold]
    fn put_in_more_room(&mut self, bytes: u64) {
        self.room.truncate(self.len);
        self.room.extend_from_slice(&bytes.to_le_bytes());
        self.room.resize(2 * self.room.len(), 0);
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }
}

impl<'a> Extend<&'a u8> for Bytes {
    #[inline]
    fn extend<T: IntoIterator<Item = &'a u8>>(&mut self, bytes: T) {
        let (mut number, mut len) = (0, 0);
        for byte in bytes {
            number |= u64::from(*byte) << (8 * len);
            len += 1;
            if len == AT_ONCE {
                self.put(number, len);
                (number, len) = (0, 0);
            }
        }
        self.put(number, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_there() {
        let mut bytes = Bytes::with_capacity(3);
        let mut expected = Vec::new();
        for len in 0..=8 {
            let number = 0x0807_0605_0403_0201_u64;
            bytes.put(number, len);
            expected.extend_from_slice(&number.to_le_bytes()[..len]);
        }
        let long: Vec<u8> = (0..100).collect();
        bytes.extend(&long);
        expected.extend_from_slice(&long);
        assert_eq!(bytes.as_slice(), expected);
        assert_eq!(bytes.len(), expected.len());
    }
}
