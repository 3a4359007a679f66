//! What a campaign has done.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use super::strategy::Strategy;

/// What a campaign has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Programs.
    pub programs: u64,
    /// Accepted ones.
    pub accepted: u64,
    /// Rejected ones.
    pub rejected: u64,
    /// Those that the verifier gives no verdict on.
    pub unjudged: u64,
    /// Instructions that the verifier processed.
    pub processed: u64,
    /// Runs in the checked engine.
    pub runs: u64,
    /// Steps of these runs that lay in an explored state.
    pub held: u64,
    /// Steps compared with the kernel's log.
    pub claims: u64,
    /// Programs whose exploration for the state oracle was not complete.
    pub incomplete: u64,
    /// Runs on other engines.
    pub engine_runs: u64,
    /// Runs on the engines of another build.
    pub other_runs: u64,
    /// Test runs in the kernel.
    pub kernel_runs: u64,
    /// Verdicts of the kernel.
    pub kernel_verdicts: u64,
    /// Programs that the kernel gave no verdict on.
    pub no_kernel_verdict: u64,
    /// Problems that are known to be Linux's.
    pub known: u64,
    /// Rejected programs without loops that never fault on the inputs tried.
    pub precision: u64,
    /// Rejected programs without loops that were run.
    pub rejected_run: u64,
    /// The error lines of rejects, without their numbers: the rules that were reached.
    pub rules: BTreeSet<String>,
    /// Programs made and accepted by strategy.
    pub strategies: BTreeMap<Strategy, (u64, u64)>,
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        self.programs += other.programs;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.unjudged += other.unjudged;
        self.processed += other.processed;
        self.runs += other.runs;
        self.held += other.held;
        self.claims += other.claims;
        self.incomplete += other.incomplete;
        self.engine_runs += other.engine_runs;
        self.other_runs += other.other_runs;
        self.kernel_runs += other.kernel_runs;
        self.kernel_verdicts += other.kernel_verdicts;
        self.no_kernel_verdict += other.no_kernel_verdict;
        self.known += other.known;
        self.precision += other.precision;
        self.rejected_run += other.rejected_run;
        for rule in other.rules.difference(&self.rules.clone()) {
            self.rules.insert(rule.clone());
        }
        for (strategy, (made, accepted)) in &other.strategies {
            let sum = self.strategies.entry(*strategy).or_default();
            sum.0 += made;
            sum.1 += accepted;
        }
    }
}
