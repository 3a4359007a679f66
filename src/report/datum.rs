//! Shows bytes: decoded with BTF if their type is known, as a number if they have the size of
//! one, otherwise in hexadecimal.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use crate::btf::Btf;
use crate::util::TypeId;

/// Bytes as text in C syntax (`Display`) and as JSON (`Serialize`).
#[derive(Debug, Clone, PartialEq)]
pub struct Datum {
    json: Json,
    text: String,
}

impl Datum {
    /// The value of type `ty` in `bytes`; as [`plain`](Self::plain) if the type does not fit.
    #[must_use]
    pub fn new(btf: Option<&Btf>, ty: Option<TypeId>, bytes: &[u8]) -> Self {
        let typed = btf.zip(ty).and_then(|(btf, ty)| btf.decode(ty, bytes).ok());
        match typed {
            Some(value) => Self {
                json: value.to_json(),
                text: value.to_string(),
            },
            None => Self::plain(bytes),
        }
    }

    /// Bytes of no known type.
    #[must_use]
    pub fn plain(bytes: &[u8]) -> Self {
        match number(bytes) {
            Some(number) => Self {
                json: number.into(),
                text: number.to_string(),
            },
            None => {
                let text = hex(bytes);
                Self {
                    json: text.clone().into(),
                    text,
                }
            }
        }
    }

    /// A stack: addresses of 8 bytes each, without zeros at the end.
    #[must_use]
    pub fn addresses(bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(8).map(|word| number(word).unwrap_or(0));
        let mut words: Vec<_> = words.collect();
        let used = words.iter().rposition(|word| *word != 0);
        words.truncate(used.map_or(0, |last| last + 1));
        let texts: Vec<_> = words.iter().map(|word| format!("{word:#x}")).collect();
        Self {
            json: words.into(),
            text: format!("[{}]", texts.join(", ")),
        }
    }

    /// One value for each CPU, CPU 0 first.
    #[must_use]
    pub fn per_cpu(values: &[Self]) -> Self {
        let texts: Vec<_> = values.iter().map(|value| value.text.as_str()).collect();
        Self {
            json: values.iter().map(|value| value.json.clone()).collect(),
            text: format!("[{}]", texts.join(", ")),
        }
    }

    /// The name of something without bytes to show: a program, a map.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self {
            json: name.into(),
            text: name.to_owned(),
        }
    }

    /// The value as JSON.
    #[must_use]
    pub const fn json(&self) -> &Json {
        &self.json
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// 1, 2, 4 or 8 bytes as a little-endian number.
#[must_use]
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    matches!(bytes.len(), 1 | 2 | 4 | 8).then(|| {
        let high_first = bytes.iter().rev();
        high_first.fold(0, |number, byte| number << 8 | u64::from(*byte))
    })
}

/// Bytes in hexadecimal, without separators.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding};

    #[test]
    fn bytes_are_typed_numbers_or_hexadecimal() {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        let btf = builder.build().unwrap();
        let shown = |ty, bytes: &[u8]| {
            let datum = Datum::new(Some(&btf), ty, bytes);
            (datum.to_string(), serde_json::to_string(&datum).unwrap())
        };
        let minus_one = [0xff; 4];
        assert_eq!(shown(Some(int), &minus_one), ("-1".into(), "-1".into()));
        assert_eq!(shown(None, &minus_one).0, "4294967295");
        // Too short for its type: shown plainly.
        assert_eq!(shown(Some(int), &[7, 0]).0, "7");
        assert_eq!(
            shown(None, &[1, 2, 3]),
            ("010203".into(), "\"010203\"".into())
        );
    }

    #[test]
    fn a_stack_ends_where_zeros_begin() {
        let words = [0xffff_ffff_8100_0000u64, 0, 0x40_1000, 0, 0];
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = Datum::addresses(&bytes);
        assert_eq!(stack.to_string(), "[0xffffffff81000000, 0x0, 0x401000]");
        assert_eq!(stack.json().to_string(), "[18446744071578845184,0,4198400]");
        assert_eq!(Datum::addresses(&[0; 16]).to_string(), "[]");
    }

    #[test]
    fn values_of_cpus_are_a_list() {
        let values = [Datum::plain(&[1]), Datum::plain(&[2])];
        let all = Datum::per_cpu(&values);
        assert_eq!(all.to_string(), "[1, 2]");
        assert_eq!(all.json().to_string(), "[1,2]");
    }
}
