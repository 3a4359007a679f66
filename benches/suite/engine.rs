//! What an engine is to a benchmark.

use std::time::Duration;

use super::programs::Program;

/// Why an engine has no figure for a program.
pub type Absent = String;

/// Something that runs the programs.
pub trait Engine {
    /// What the table calls it.
    fn name(&self) -> &'static str;

    /// Whether it looks at each access to memory while it runs.
    fn memory(&self) -> &'static str;

    /// Makes a program ready, from its bytes on.
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent>;
}

/// A program that an engine has made ready.
pub trait Loaded {
    /// Runs it this often, at least once: the time that this took, and the low half of
    /// what the last run returned.
    fn run(&mut self, times: u32) -> (Duration, u32);
}
