//! The schema of a program's logs: its sites as a recording describes them, for versions of bpflab
//! that would log other data. `docs/recording-format.md` documents the JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::site::{AccessedState, Field, FieldLocation, Flow, Length, Moment, Site, What};
use crate::isa::Reg;

/// A site of a schema. The site's number is its index in the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SchemaSite {
    /// A site that this version of bpflab can read.
    Known(LoggedSite),
    /// A site with keys or names that this version does not know.
    Other(Value),
}

/// A site as it is in a schema. The rest of a [`Site`] follows from the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedSite {
    /// The instruction in the original program.
    pub pc: u32,
    /// Whether the entry is written before or after the instruction.
    pub moment: Moment,
    /// The state that the instruction accesses.
    pub accesses: AccessedState,
    /// The fields of the entry, in this order, packed.
    pub fields: Vec<LoggedField>,
}

/// A field as it is in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedField {
    /// Input or output.
    pub flow: Flow,
    /// Its meaning.
    pub what: What,
    /// Where its bytes were.
    pub location: LoggedLocation,
    /// Its size in bytes.
    pub length: Length,
}

/// The location of a field, as it is in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggedLocation {
    /// The low bytes of a register.
    Register(Reg),
    /// The low bytes of a constant.
    Constant(i32),
    /// One byte: 0 if the register is zero, else 1.
    NonNull(Reg),
    /// Memory at the pointer that the register has before the instruction.
    Memory(Reg),
}

impl From<&Site> for SchemaSite {
    fn from(site: &Site) -> Self {
        Self::Known(LoggedSite {
            pc: site.pc.0,
            moment: site.moment,
            accesses: site.accesses,
            fields: site.fields.iter().map(LoggedField::from).collect(),
        })
    }
}

impl From<&Field> for LoggedField {
    fn from(field: &Field) -> Self {
        Self {
            flow: field.flow,
            what: field.what,
            location: match field.location {
                FieldLocation::Register(reg) => LoggedLocation::Register(reg),
                FieldLocation::Constant(imm) => LoggedLocation::Constant(imm),
                FieldLocation::NonNull(reg) => LoggedLocation::NonNull(reg),
                FieldLocation::Memory { pointer, .. } => LoggedLocation::Memory(pointer),
            },
            length: field.length,
        }
    }
}

impl SchemaSite {
    /// The site.
    ///
    /// # Errors
    /// What this version does not know.
    pub fn known(&self) -> Result<&LoggedSite, String> {
        match self {
            Self::Known(site) => Ok(site),
            Self::Other(value) => Err(match LoggedSite::deserialize(value) {
                Ok(_) => "not a site".to_owned(),
                Err(error) => error.to_string(),
            }),
        }
    }
}
