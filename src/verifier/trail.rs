//! The path to a reject and the registers there, for the report.

use crate::isa::Reg;
use crate::util::Pc;

/// The path to a reject and the registers at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trail {
    /// The instructions of the path in the order of execution, including calls and returns
    /// of subprograms; the last one is at fault. The beginning of a long path may be
    /// missing.
    pub path: Vec<Pc>,
    /// The initialised registers of the last frame, each in the log's notation:
    /// `map_value_or_null(id=1,map=hist,ks=4,vs=8)`.
    pub registers: Vec<(Reg, String)>,
    /// The first instruction on the path that left no number to some register, as far as the
    /// bounds show it: no run takes the path. The kernel explores such a path on.
    pub contradiction: Option<Pc>,
}

impl Trail {
    /// The state of a register, in the log's notation.
    #[must_use]
    pub fn register(&self, reg: Reg) -> Option<&str> {
        let mut known = self.registers.iter();
        let (_, text) = known.find(|(known, _)| *known == reg)?;
        Some(text)
    }
}
