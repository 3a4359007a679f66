//! A difference in words.

use std::fmt;

/// A difference in words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What differs: `map hist`, `output events, record 0`.
    pub part: String,
    /// The fields that differ, at most 8.
    pub fields: Vec<FieldDifference>,
}

/// A field with two values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldDifference {
    /// The field, by its C path: ``field `comm` of struct event``; the padding after one.
    pub name: String,
    /// Its value in the kernel, decoded with BTF.
    pub expected: String,
    /// Its value in the replay.
    pub got: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.part)?;
        for FieldDifference {
            name,
            expected,
            got,
        } in &self.fields
        {
            writeln!(f, "  {name}: {expected} in the kernel, {got} in the replay")?;
        }
        Ok(())
    }
}
