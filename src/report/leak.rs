//! Uninitialised bytes that left a program.

use std::fmt;

use serde::Serialize;

use crate::vm::Leak;

/// Uninitialised bytes that left a program. Its fields are keys of `bpflab run --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename = "uninit")]
pub struct LeakRow {
    /// The program.
    pub program: String,
    /// The instruction that sent them.
    pub pc: u32,
    /// The file and line of C of that instruction.
    pub source: Option<String>,
    /// The function that sent them; null for a store.
    pub by: Option<String>,
    /// Where they went: `ring buffer`, `map key`.
    pub to: &'static str,
    /// The map that they went to.
    pub map: Option<String>,
    /// How many bytes were sent, the initialised ones included.
    pub size: usize,
    /// The uninitialised ones.
    pub bytes: Vec<LeakedBytesRow>,
    #[serde(skip)]
    text: String,
}

/// Consecutive uninitialised bytes.
#[derive(Debug, Clone, Serialize)]
pub struct LeakedBytesRow {
    /// The first one's offset.
    pub offset: usize,
    /// Their number.
    pub len: usize,
    /// What they are in C, if their type is known.
    pub name: Option<String>,
}

impl From<&Leak> for LeakRow {
    fn from(leak: &Leak) -> Self {
        let source = leak.source.as_ref();
        let bytes = leak.bytes.iter().map(|bytes| LeakedBytesRow {
            offset: bytes.offset,
            len: bytes.len,
            name: bytes.name.clone(),
        });
        Self {
            program: leak.program.clone(),
            pc: leak.pc.0,
            source: source.map(|line| format!("{}:{}", line.file, line.line)),
            by: leak.by.clone(),
            to: leak.to.name(),
            map: leak.map.clone(),
            size: leak.size,
            bytes: bytes.collect(),
            text: leak.to_string(),
        }
    }
}

impl fmt::Display for LeakRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)
    }
}
