//! What an engine is to a benchmark.

use std::time::Duration;

use super::programs::Program;

/// Why an engine has no figure for a program.
pub type Absent = String;

/// Something that runs the programs.
pub trait Engine {
    /// Makes a program ready, from its object on.
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent>;
}

/// A program that an engine has made ready.
pub trait Loaded {
    /// Runs it this often, at least once: the time that this took, and the low half of
    /// what the last run returned.
    fn run(&mut self, times: u32) -> (Duration, u32);

    /// What takes the time that isn't the program's: an empty one, where programs can't
    /// be run without more around them.
    fn baseline(&mut self) -> Option<&mut dyn Loaded> {
        None
    }
}

/// What a program returned, of r0 its low half.
pub fn low32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
