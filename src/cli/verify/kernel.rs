//! `--vs-kernel`: compares bpflab's verdicts with the running kernel's.

use std::num::NonZeroU32;

use crate::cli::exit::Failure;
use crate::cli::printer::Printer;
use crate::program::Program;
use crate::report::VerdictRow;
use crate::spec::{Capabilities, KernelConfig, Token};
use crate::verifier::LogLevel;

/// The running kernel, which judges the same programs.
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(super) struct KernelVerdicts {
    judge: crate::cli::kernel::KernelJudge,
    log: bool,
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
impl KernelVerdicts {
    /// Creates it with this log level, for a loader with these capabilities or this token; fails if
    /// no program can be loaded.
    pub fn new(
        log: LogLevel,
        capabilities: Capabilities,
        token: Option<&Token>,
    ) -> Result<Self, Failure> {
        use crate::cli::exit::Exit;
        use crate::kernel::Loader;

        let loader = match token {
            None => capabilities.into(),
            Some(token) => Loader::with_token(token)
                .map_err(|error| Failure::with(Exit::Unavailable, error))?,
        };
        Ok(Self {
            judge: crate::cli::kernel::KernelJudge::new(log, loader)?,
            log: !log.is_empty(),
        })
    }

    /// The running kernel's configuration and lockdown, and its number of possible CPUs.
    pub fn config(&self) -> Result<(KernelConfig, Option<NonZeroU32>), Failure> {
        use crate::cli::exit::Exit;
        use crate::kernel::{possible_cpus, running_config};

        let config = running_config().map_err(|why| Failure::with(Exit::Unavailable, why))?;
        Ok((config, NonZeroU32::new(possible_cpus())))
    }

    /// Adds the kernel's verdict to a row; with a log also the first line in which the logs
    /// differ.
    pub fn compare(
        &mut self,
        mut row: VerdictRow,
        program: &Program,
        printer: &mut Printer,
    ) -> Result<VerdictRow, Failure> {
        use crate::report::{KernelSaid, LogDifference};

        let said = match self.judge.judge(program, printer)? {
            Ok(verdict) => {
                if self.log
                    && !printer.is_json()
                    && let Some(ours) = row.log.take()
                    && let Some(difference) = LogDifference::between(&ours, &verdict.log)
                {
                    printer.text(format_args!("{}: {difference}", row.subject.name()))?;
                }
                KernelSaid::judged(&verdict)
            }
            Err(none) => KernelSaid::not_judged(&none),
        };
        Ok(row.beside(said))
    }
}

/// A build without access to the running kernel.
#[cfg(not(all(feature = "kernel", target_os = "linux")))]
pub(super) struct KernelVerdicts;

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
impl KernelVerdicts {
    /// Fails with what is missing.
    pub fn new(_: LogLevel, _: Capabilities, _: Option<&Token>) -> Result<Self, Failure> {
        Err(Failure::with(
            crate::cli::exit::Exit::Unavailable,
            "--vs-kernel needs Linux and a build with the feature 'kernel'",
        ))
    }

    /// The default: there is no kernel.
    pub fn config(&self) -> Result<(KernelConfig, Option<NonZeroU32>), Failure> {
        Ok(Default::default())
    }

    /// Returns the row unchanged.
    pub fn compare(
        &mut self,
        row: VerdictRow,
        _program: &Program,
        _printer: &mut Printer,
    ) -> Result<VerdictRow, Failure> {
        Ok(row)
    }
}
