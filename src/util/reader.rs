//! A cursor over little-endian bytes; errors carry the offset.

use thiserror::Error;

/// The bytes ended inside a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("offset {offset:#x}: {wanted} bytes wanted, {left} left")]
pub struct ReadError {
    /// Where the read began, in bytes from the start of the blob.
    pub offset: usize,
    /// Number of bytes to read.
    pub wanted: usize,
    /// Number of bytes left.
    pub left: usize,
}

/// Reads little-endian numbers and slices from a blob, front to back.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Defines a method that reads one little-endian number.
macro_rules! number {
    ($name:ident, $type:ty) => {
        #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
        ///
        /// # Errors
        /// [`ReadError`] when the bytes end first.
        pub fn $name(&mut self) -> Result<$type, ReadError> {
            self.array().map(<$type>::from_le_bytes)
        }
    };
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A reader that starts at `at`; at or past the end it is empty.
    #[must_use]
    pub const fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where the next read begins.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// [`ReadError`] when fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        let error = ReadError {
            offset: self.at,
            wanted: len,
            left: self.left(),
        };
        let end = self.at.checked_add(len).ok_or(error)?;
        let taken = self.bytes.get(self.at..end).ok_or(error)?;
        self.at = end;
        Ok(taken)
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`ReadError`] when fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    number!(u8, u8);
    number!(u16, u16);
    number!(u32, u32);
    number!(i16, i16);
    number!(i32, i32);
    number!(u64, u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_in_order() {
        let mut reader = Reader::new(&[1, 2, 0, 3, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.u32(), Ok(3));
        assert_eq!(reader.i16(), Ok(-1));
        assert!(reader.is_empty());
    }

    #[test]
    fn an_error_says_where_and_how_much() {
        let mut reader = Reader::at(&[0; 6], 4);
        let error = reader.u32().unwrap_err();
        assert_eq!(error.to_string(), "offset 0x4: 4 bytes wanted, 2 left");
        assert_eq!(reader.offset(), 4, "a failed read takes nothing");
        assert!(Reader::at(&[0; 6], 40).u8().is_err());
        assert!(Reader::new(&[0; 6]).bytes(usize::MAX).is_err());
    }
}
