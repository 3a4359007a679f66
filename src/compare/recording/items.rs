//! Writing, checking and reading the items of a block.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::block::MAX_ITEM;
use crate::util::{ReadError, Reader};

/// An item of a block; it borrows from the block.
pub trait Item<'a>: Sized {
    /// Its name in errors.
    const WHAT: &'static str;

    /// Appends its bytes.
    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong>;

    /// Reads one.
    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem>;
}

/// A length in bytes above [`MAX_ITEM`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// Why bytes are not an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadItem {
    /// The block ends within it.
    Short(ReadError),
    /// A number without a meaning.
    Number {
        /// Of what.
        what: &'static str,
        /// The number.
        number: u32,
    },
}

impl From<ReadError> for BadItem {
    fn from(error: ReadError) -> Self {
        Self::Short(error)
    }
}

impl fmt::Display for BadItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(error) => write!(f, "{} bytes wanted, {} left", error.wanted, error.left),
            Self::Number { what, number } => write!(f, "unknown {what}: {number}"),
        }
    }
}

/// Appends a length and the bytes.
pub(super) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TooLong> {
    let len = u32::try_from(bytes.len()).ok();
    let len = len.filter(|_| bytes.len() <= MAX_ITEM);
    let len = len.ok_or(TooLong(bytes.len()))?;
    to.extend_from_slice(&len.to_le_bytes());
    to.extend_from_slice(bytes);
    Ok(())
}

/// Reads a length and as many bytes.
pub(super) fn take_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], ReadError> {
    let len = from.u32()?;
    // No more bytes than `usize` counts can be left.
    from.bytes(usize::try_from(len).unwrap_or(usize::MAX))
}

/// A record: its length and its bytes.
impl<'a> Item<'a> for &'a [u8] {
    const WHAT: &'static str = "a record";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        put_bytes(to, self)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(take_bytes(from)?)
    }
}

/// The items of a block, in order; each borrows from the block. All were checked when the
/// block was read.
#[derive(Clone)]
pub struct Items<'a, T> {
    rest: Reader<'a>,
    left: u32,
    item: PhantomData<fn() -> T>,
}

impl<'a, T: Item<'a>> Items<'a, T> {
    /// The items of a block that has `count` of them by its head; an error if it has not.
    pub(super) fn check(plain: &'a [u8], count: u32) -> Result<Self, String> {
        let items = Self {
            rest: Reader::new(plain),
            left: count,
            item: PhantomData,
        };
        let mut reader = items.rest.clone();
        for number in 0..count {
            let at = reader.offset();
            T::read(&mut reader).map_err(|bad| {
                let what = T::WHAT;
                format!("item {number} ({what}) at byte {at} of the block's contents: {bad}")
            })?;
        }
        match reader.left() {
            0 => Ok(items),
            left => Err(format!("{left} bytes follow the last of {count} items")),
        }
    }
}

impl<'a, T: Item<'a>> Iterator for Items<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        T::read(&mut self.rest).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left as usize;
        (left, Some(left))
    }
}

impl<'a, T: Item<'a>> ExactSizeIterator for Items<'a, T> {}
impl<'a, T: Item<'a>> FusedIterator for Items<'a, T> {}

impl<T> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Items({} left)", self.left)
    }
}
