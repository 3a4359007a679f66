//! Which engine runs a program, and why another one ran than was chosen.

use std::fmt;

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineKind {
    /// The checked interpreter: runs any program and judges every access.
    Checked,
    /// The fast interpreter: runs verified programs, without the checks that the
    /// verifier proved to hold. What can't run on it runs on the checked one.
    Interp,
    /// Machine code for verified programs: the fast interpreter where the host has none.
    Jit,
}

impl EngineKind {
    /// The name that `bpflab run --engine` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Interp => "interp",
            Self::Jit => "jit",
        }
    }
}

impl EngineKind {
    /// The checked interpreter with `why` as the fallback reason. No reason if it was chosen.
    #[doc(hidden)]
    #[must_use]
    pub const fn unless(self, why: Fallback) -> RanOn {
        match self {
            Self::Checked => RanOn::chosen(self),
            _ => RanOn::checked(why),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The engine that executed a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RanOn {
    /// The engine. The checked interpreter if a tail call switched to it in the middle.
    pub engine: EngineKind,
    /// Why the run did not use the chosen engine; `None` if it did.
    pub fallback: Option<Fallback>,
}

impl RanOn {
    /// The engine that was chosen.
    #[doc(hidden)]
    #[must_use]
    pub const fn chosen(engine: EngineKind) -> Self {
        Self {
            engine,
            fallback: None,
        }
    }

    /// The checked interpreter, used in place of the chosen engine.
    #[doc(hidden)]
    #[must_use]
    pub const fn checked(why: Fallback) -> Self {
        Self {
            engine: EngineKind::Checked,
            fallback: Some(why),
        }
    }
}

impl fmt::Display for RanOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.engine)?;
        self.fallback.map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// Why a run did not use the chosen engine. Lists every reason.
///
/// Not a fallback: machine code always leaves rare operations, and the last instructions of
/// a budget, to the fast interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The verifier rejects the program.
    Rejected,
    /// The verifier did not judge the program.
    Unjudged,
    /// The program could not be lowered.
    Unlowered,
    /// The program has no machine code on this host.
    NoCode,
    /// A helper that the program calls is mocked.
    Mocked,
    /// An [`Injection`](crate::vm::Injection) makes calls fail.
    Injected,
    /// The context is not that of an event of the program's type.
    Event,
    /// The context is smaller than what the program may read, or lacks pointers.
    Context,
    /// The program was loaded for another machine or number of CPUs.
    Machine,
    /// A callback watches each instruction, or events fire in the middle of the run.
    Watched,
    /// Coverage is measured, which the checked interpreter does.
    Measured,
    /// Uninitialised bytes are looked for, which the checked interpreter does.
    Uninit,
    /// The run is a timer, a work queue or another deferred call.
    Deferred,
    /// A function of the program is replaced by a program that can't run on the chosen engine.
    Attached,
    /// A tail call reached a program that can't run on the chosen engine.
    TailCall,
}

impl Fallback {
    /// The reason's name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Unjudged => "unjudged",
            Self::Unlowered => "not lowered",
            Self::NoCode => "no machine code",
            Self::Mocked => "mocked helper",
            Self::Injected => "injected failure",
            Self::Event => "no event",
            Self::Context => "smaller context",
            Self::Machine => "other machine",
            Self::Watched => "watched",
            Self::Measured => "coverage",
            Self::Uninit => "uninitialised bytes",
            Self::Deferred => "deferred call",
            Self::Attached => "extension",
            Self::TailCall => "tail call",
        }
    }

    /// Whether the verifier is the reason: it rejects the program, or has not judged it.
    #[must_use]
    pub const fn is_unverified(self) -> bool {
        matches!(self, Self::Rejected | Self::Unjudged)
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rejected => "the verifier rejects the program",
            Self::Unjudged => "the verifier did not judge the program",
            Self::Unlowered => "the program could not be lowered",
            Self::NoCode => "there is no machine code for the program on this host",
            Self::Mocked => "a helper that the program calls is mocked",
            Self::Injected => "calls of the program are to fail",
            Self::Event => "the context is not that of an event of the program's type",
            Self::Context => "the context is smaller than what the program may read",
            Self::Machine => "the program was loaded for another machine or number of CPUs",
            Self::Watched => "the run is watched",
            Self::Measured => "coverage is measured (BPFLAB_COVERAGE)",
            Self::Uninit => "uninitialised bytes are looked for",
            Self::Deferred => "it is a deferred call",
            Self::Attached => {
                "a function is replaced by a program that only the checked engine runs"
            }
            Self::TailCall => "a tail call led to a program that only the checked engine runs",
        })
    }
}
