//! What a walk knew when it came to a reject: the material of the report.

use crate::isa::Reg;
use crate::util::Pc;

/// The way to a reject, and what the registers held there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail {
    /// The instructions of the path in the order of the walk, calls and returns of
    /// subprograms included; the last one is at fault. It may begin anywhere: an early
    /// part that nobody needs can be left out.
    pub path: Vec<Pc>,
    /// The registers of the last frame that are known, each in the log's notation:
    /// `map_value_or_null(id=1,map=hist,ks=4,vs=8)`.
    pub registers: Vec<(Reg, String)>,
}

impl Trail {
    /// What a register held, in the log's notation.
    #[must_use]
    pub fn register(&self, reg: Reg) -> Option<&str> {
        let mut known = self.registers.iter();
        let (_, text) = known.find(|(known, _)| *known == reg)?;
        Some(text)
    }
}
