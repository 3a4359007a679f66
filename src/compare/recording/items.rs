//! The items of a block, one behind the other: how they are written, checked and read.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::block::MAX_ITEM;
use crate::util::{ReadError, Reader};

/// Something that stands in a block. What it borrows is the block's.
pub trait Item<'a>: Sized {
    /// What it is called where it is refused.
    const WHAT: &'static str;

    /// Appends its bytes, of which none is a length above [`MAX_ITEM`].
    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong>;

    /// Takes one.
    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem>;
}

/// More bytes than an item holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// Bytes that are no item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadItem {
    /// The block ends before it.
    Short(ReadError),
    /// A number that stands for nothing.
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
            Self::Number { what, number } => write!(f, "there is no {what} {number}"),
        }
    }
}

/// Appends a length and so many bytes.
pub(super) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TooLong> {
    let len = u32::try_from(bytes.len()).ok();
    let len = len.filter(|_| bytes.len() <= MAX_ITEM);
    let len = len.ok_or(TooLong(bytes.len()))?;
    to.extend_from_slice(&len.to_le_bytes());
    to.extend_from_slice(bytes);
    Ok(())
}

/// Takes a length and so many bytes.
pub(super) fn take_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], ReadError> {
    let len = from.u32()?;
    // More than an address has can't be left.
    from.bytes(usize::try_from(len).unwrap_or(usize::MAX))
}

/// A record as it is: a length, and its bytes.
impl<'a> Item<'a> for &'a [u8] {
    const WHAT: &'static str = "a record";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        put_bytes(to, self)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(take_bytes(from)?)
    }
}

/// The items of a block, first to last; each borrows from it. They were checked when the
/// block was read, so that each is there.
#[derive(Clone)]
pub struct Items<'a, T> {
    rest: Reader<'a>,
    left: u32,
    item: PhantomData<fn() -> T>,
}

impl<'a, T: Item<'a>> Items<'a, T> {
    /// Those of a block that says it has so many; the problem where it has not.
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
            left => Err(format!("{left} bytes behind the last of {count} items")),
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
