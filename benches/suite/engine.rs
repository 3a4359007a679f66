//! The interface of an engine in a benchmark.

use std::time::Duration;

use super::programs::Program;

/// Why an engine has no figure for a program.
pub type Absent = String;

/// An engine that runs the programs.
pub trait Engine {
    /// Loads a program from its object.
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent>;
}

/// A program loaded by an engine.
pub trait Loaded {
    /// Runs it this many times, at least once. Returns the total time, and the low 32 bits
    /// of the last run's r0.
    fn run(&mut self, times: u32) -> (Duration, u32);

    /// An empty program whose time is subtracted, if a run includes more than the program.
    fn baseline(&mut self) -> Option<&mut dyn Loaded> {
        None
    }
}

/// The low 32 bits of r0: the program's return value.
pub fn low32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The bytes in 8-byte aligned words, at least one, the last one filled with zeros.
pub fn words(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0_u64; bytes.len().div_ceil(8).max(1)];
    zerocopy::IntoBytes::as_mut_bytes(&mut words[..])[..bytes.len()].copy_from_slice(bytes);
    words
}
