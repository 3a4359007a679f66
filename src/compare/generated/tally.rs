//! Counts and findings of many programs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::batch::Recipe;
use super::verdict::Replayed;
use crate::compare::replay::Word;
use crate::harness::{EngineKind, Fallback};

/// The result of recording and replaying generated programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Programs generated.
    pub made: u64,
    /// Programs that both the kernel and bpflab reject, by bpflab's message.
    pub refused: BTreeMap<String, u64>,
    /// Programs that bpflab's verifier leaves unjudged, or that the kernel's fails on with
    /// ENOMEM.
    pub unjudged: u64,
    /// Accepted programs that were not recorded, by the reason (without the instruction).
    pub unrecordable: BTreeMap<String, u64>,
    /// Programs that were recorded.
    pub recorded: u64,
    /// How often these ran in the kernel.
    pub firings: u64,
    /// The verdicts on recorded programs, by engine.
    pub engines: Vec<EngineTally>,
    /// Maps and outputs of recorded programs that were not compared, by the reason; those of
    /// the first engine, as the reasons don't depend on the engine.
    pub not_compared: BTreeMap<String, u64>,
    /// Differences and disagreements; none if all is well.
    pub findings: Vec<Finding>,
    /// Where the time went.
    pub times: Times,
}

/// The verdicts on an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineTally {
    /// The engine.
    pub engine: EngineKind,
    /// How many programs have each verdict.
    pub verdicts: BTreeMap<Word, u64>,
    /// How many programs did not run on it and have no verdict, by the reason.
    pub elsewhere: BTreeMap<Fallback, u64>,
}

/// A program with a difference or disagreement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its recipe, to run it again alone.
    pub recipe: Recipe,
    /// The smallest recipe with the same finding.
    pub shrunk: Option<Recipe>,
    /// The kind of finding.
    pub kind: FindingKind,
    /// The details.
    pub detail: Detail,
}

/// The details of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// A verifier's message.
    Refused(String),
    /// The report of a replay.
    Replayed(Box<Replayed>),
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The kernel accepts a program that bpflab rejects.
    OnlyKernelAccepts,
    /// bpflab accepts a program that the kernel rejects.
    OnlyWeAccept,
    /// The kernel accepts the program and rejects its recorded form.
    RecordedFormRefused,
    /// A replay on an engine differs from the kernel.
    Different(EngineKind),
    /// Part of its recording is missing.
    Incomplete(EngineKind),
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// Generating programs, and bpflab's verdicts on them.
    pub making: Duration,
    /// Creating maps in the kernel.
    pub maps: Duration,
    /// The kernel's verdicts, on each program and on its recorded form.
    pub loading: Duration,
    /// Attaching.
    pub attaching: Duration,
    /// Firing, and reading the results.
    pub firing: Duration,
    /// Detaching and unloading.
    pub detaching: Duration,
    /// Replaying, on all engines.
    pub replaying: Duration,
    /// All of it.
    pub total: Duration,
}

impl FindingKind {
    /// The kind in words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::OnlyKernelAccepts => "accepted by the kernel only".to_owned(),
            Self::OnlyWeAccept => "accepted by bpflab only".to_owned(),
            Self::RecordedFormRefused => "recorded form rejected".to_owned(),
            Self::Different(engine) => format!("different on {engine}"),
            Self::Incomplete(engine) => format!("incomplete on {engine}"),
        }
    }

    /// The engine; none for verdicts.
    #[must_use]
    pub const fn engine(self) -> Option<EngineKind> {
        match self {
            Self::Different(engine) | Self::Incomplete(engine) => Some(engine),
            _ => None,
        }
    }

    /// The kind in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::OnlyKernelAccepts => "only_kernel_accepts",
            Self::OnlyWeAccept => "only_we_accept",
            Self::RecordedFormRefused => "recorded_form_refused",
            Self::Different(_) => "different",
            Self::Incomplete(_) => "incomplete",
        }
    }
}

impl Tally {
    /// Whether there are no findings, and each engine ran each program.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        let is_asked = |engine: &EngineTally| engine.elsewhere.is_empty();
        self.findings.is_empty() && self.engines.iter().all(is_asked)
    }

    /// Counts a reason.
    pub(super) fn count(counts: &mut BTreeMap<String, u64>, reason: impl Into<String>) {
        *counts.entry(reason.into()).or_default() += 1;
    }

    /// The tally of an engine.
    pub(super) fn engine(&mut self, engine: EngineKind) -> &mut EngineTally {
        let at = self.engines.iter().position(|tally| tally.engine == engine);
        let at = at.unwrap_or_else(|| {
            self.engines.push(EngineTally {
                engine,
                verdicts: BTreeMap::new(),
                elsewhere: BTreeMap::new(),
            });
            self.engines.len() - 1
        });
        &mut self.engines[at]
    }
}
