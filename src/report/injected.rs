//! Injected failures of calls.

use std::fmt;

use serde::Serialize;

use crate::vm::Injected;

/// An injected failure. Its fields are keys of `bpflab run --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename = "injected")]
pub struct InjectedRow {
    /// The function, as in C.
    pub function: String,
    /// The map of the call, if it has one.
    pub map: Option<String>,
    /// The number of the call among those that match, from 1.
    pub call: u64,
    /// The error that the call returned; null if it returned a null pointer.
    pub errno: Option<String>,
    #[serde(skip)]
    text: String,
}

impl From<&Injected> for InjectedRow {
    fn from(injected: &Injected) -> Self {
        Self {
            function: injected.function.clone(),
            map: injected.map.clone(),
            call: injected.call,
            errno: injected.errno.map(|errno| errno.to_string()),
            text: injected.to_string(),
        }
    }
}

impl fmt::Display for InjectedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "injected: {}", self.text)
    }
}
