//! Calls that failed because somebody wanted them to.

use std::fmt;

use serde::Serialize;

use crate::vm::Injected;

/// A call that was made to fail. Its fields are keys of `bpflab run --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename = "injected")]
pub struct InjectedRow {
    /// The function, as in C.
    pub function: String,
    /// The map that the call was about.
    pub map: Option<String>,
    /// Which of the calls that were asked for, from 1.
    pub call: u64,
    /// What the program was told; null where it was a null pointer.
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
