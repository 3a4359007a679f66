//! Values of fields.

use std::fmt;

/// A value for a field. Integers, strings, byte slices and lists convert to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue {
    /// A number.
    Int(i128),
    /// Text, stored with a terminating NUL.
    Text(String),
    /// Bytes in memory order.
    Bytes(Vec<u8>),
    /// The elements of an array.
    Ints(Vec<i128>),
}

/// Conversions from all integers, and from slices, arrays and vectors of integers wider than
/// a byte.
macro_rules! from_ints {
    (numbers $($int:ty)*; lists $($item:ty)*) => {
        $(impl From<$int> for FieldValue {
            fn from(value: $int) -> Self {
                Self::Int(i128::from(value))
            }
        })*
        $(
            impl From<&[$item]> for FieldValue {
                fn from(values: &[$item]) -> Self {
                    Self::Ints(values.iter().map(|value| i128::from(*value)).collect())
                }
            }
            impl<const N: usize> From<[$item; N]> for FieldValue {
                fn from(values: [$item; N]) -> Self {
                    Self::from(&values[..])
                }
            }
            impl<const N: usize> From<&[$item; N]> for FieldValue {
                fn from(values: &[$item; N]) -> Self {
                    Self::from(&values[..])
                }
            }
            impl From<Vec<$item>> for FieldValue {
                fn from(values: Vec<$item>) -> Self {
                    Self::from(&values[..])
                }
            }
        )*
    };
}

from_ints! {
    numbers bool u8 u16 u32 u64 i8 i16 i32 i64;
    lists i8 u16 u32 u64 i16 i32 i64
}

impl From<usize> for FieldValue {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl From<isize> for FieldValue {
    fn from(value: isize) -> Self {
        Self::from(value as i64)
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for FieldValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for FieldValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Vec<u8>> for FieldValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&Vec<u8>> for FieldValue {
    fn from(bytes: &Vec<u8>) -> Self {
        Self::Bytes(bytes.clone())
    }
}

impl<const N: usize> From<[u8; N]> for FieldValue {
    fn from(bytes: [u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for FieldValue {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Ints(values) => write!(f, "{} numbers", values.len()),
        }
    }
}
