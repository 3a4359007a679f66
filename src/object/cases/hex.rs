//! Bytes as hexadecimal digits in JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// Bytes that are a string of hexadecimal digits in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hex(pub Vec<u8>);

impl Hex {
    /// Parses digits of either case, two per byte, without separators.
    ///
    /// # Errors
    /// An odd number of digits, or an invalid digit.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.len().is_multiple_of(2) {
            return Err(format!("{} hexadecimal digits, an odd number", text.len()));
        }
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let pairs = text.as_bytes().as_chunks::<2>().0.iter().enumerate();
        let bytes = pairs.map(|(index, &[high, low])| {
            let byte = digit(high)
                .zip(digit(low))
                .map(|(high, low)| high << 4 | low);
            byte.ok_or_else(|| format!("digits {}: not hexadecimal", index * 2))
        });
        bytes.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes_and_back() {
        assert_eq!(Hex::parse("00ffA1"), Ok(Hex(vec![0, 255, 0xa1])));
        assert_eq!(Hex(vec![0, 255, 0xa1]).to_string(), "00ffa1");
        assert!(Hex::parse("0").is_err());
        assert!(Hex::parse("0g").unwrap_err().contains("digits 0"));
        assert!(Hex::parse("+1").is_err());
        assert!(Hex::parse("ä").is_err());
    }
}
