//! What a campaign finds.

use std::time::Duration;

use super::candidate::Candidate;
use super::problem::Problem;

/// A program that an oracle objects to, reduced.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The program with its inputs.
    pub candidate: Candidate,
    /// The problem that it has.
    pub problem: Problem,
    /// The campaign's seed.
    pub seed: u64,
    /// The options of `bpflab fuzz` that the oracle needs, each after a space.
    pub options: String,
    /// Instructions before it was reduced.
    pub insns_before: usize,
    /// Programs judged before it was found.
    pub programs: u64,
    /// The time until it was found.
    pub elapsed: Duration,
}
