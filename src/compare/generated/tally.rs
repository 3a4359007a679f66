//! What came of many programs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::batch::Recipe;
use super::verdict::Replayed;
use crate::compare::replay::Word;
use crate::harness::{EngineKind, Fallback};

/// What came of programs made up, recorded and replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Programs made.
    pub made: u64,
    /// Those that neither the kernel nor we accept, by our message.
    pub refused: BTreeMap<String, u64>,
    /// Those that our verifier does not judge, and those that the kernel's ran out of
    /// memory for.
    pub unjudged: u64,
    /// Those that were not recorded, by the reason, without the place.
    pub unrecordable: BTreeMap<String, u64>,
    /// Those that were.
    pub recorded: u64,
    /// How often these ran in the kernel.
    pub firings: u64,
    /// By engine, what was said of each recorded program.
    pub engines: Vec<EngineTally>,
    /// Maps and outputs of recorded programs that were not compared, by the reason; on the
    /// first engine: the reasons are the recording's.
    pub not_compared: BTreeMap<String, u64>,
    /// Everything that should not be: nothing, if all is well.
    pub findings: Vec<Finding>,
    /// Where the time went.
    pub times: Times,
}

/// What an engine made of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineTally {
    /// The engine.
    pub engine: EngineKind,
    /// How many programs have each verdict.
    pub verdicts: BTreeMap<Word, u64>,
    /// How many programs did not run on it, by the reason: no verdict of its.
    pub elsewhere: BTreeMap<Fallback, u64>,
}

/// A program of which something should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is made from: so it can be run again alone.
    pub recipe: Recipe,
    /// The least of it of which the same is said.
    pub shrunk: Option<Recipe>,
    /// What kind of thing.
    pub kind: FindingKind,
    /// What was found.
    pub detail: Detail,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// What a verifier says.
    Refused(String),
    /// What a replay says.
    Replayed(Box<Replayed>),
}

/// What should not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// The kernel accepts what we refuse.
    OnlyKernelAccepts,
    /// We accept what the kernel refuses.
    OnlyWeAccept,
    /// The kernel accepts the program and refuses its recorded form.
    RecordedFormRefused,
    /// An engine did something else than the kernel.
    Different(EngineKind),
    /// Something of its recording is missing.
    Incomplete(EngineKind),
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Making programs, and our verdicts on them.
    pub making: Duration,
    /// Making maps in the kernel.
    pub maps: Duration,
    /// The kernel's verdicts, on each program and on its recorded form.
    pub loading: Duration,
    /// Attaching.
    pub attaching: Duration,
    /// Firing, and reading what came.
    pub firing: Duration,
    /// Detaching, and giving back what the kernel has.
    pub detaching: Duration,
    /// Replaying, on all engines.
    pub replaying: Duration,
    /// All of it.
    pub total: Duration,
}

impl FindingKind {
    /// In words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::OnlyKernelAccepts => "accepted by the kernel only".to_owned(),
            Self::OnlyWeAccept => "accepted by bpflab only".to_owned(),
            Self::RecordedFormRefused => "recorded form refused".to_owned(),
            Self::Different(engine) => format!("different on {engine}"),
            Self::Incomplete(engine) => format!("incomplete on {engine}"),
        }
    }

    /// The engine, where it is one's.
    #[must_use]
    pub const fn engine(self) -> Option<EngineKind> {
        match self {
            Self::Different(engine) | Self::Incomplete(engine) => Some(engine),
            _ => None,
        }
    }

    /// As JSON has it.
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
    /// Whether nothing was found that should not be, and each engine was asked about each
    /// program.
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
