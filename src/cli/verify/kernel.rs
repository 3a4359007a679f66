//! `--vs-kernel`: the running kernel's verdict beside ours.

use std::num::NonZeroU32;

use crate::cli::exit::Failure;
use crate::cli::printer::Printer;
use crate::program::Program;
use crate::report::VerdictRow;
use crate::spec::KernelConfig;
use crate::verifier::LogLevel;

/// The running kernel, asked about the programs that we judge.
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(super) struct Beside {
    judge: crate::cli::kernel::KernelJudge,
    log: bool,
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
impl Beside {
    /// The kernel, with a log that holds this; a failure where there is none to ask.
    pub fn new(log: LogLevel) -> Result<Self, Failure> {
        Ok(Self {
            judge: crate::cli::kernel::KernelJudge::new(log)?,
            log: !log.is_empty(),
        })
    }

    /// How the running kernel was built and locked down, and how many CPUs it may have.
    pub fn meant(&self) -> Result<(KernelConfig, Option<NonZeroU32>), Failure> {
        use crate::cli::exit::Exit;
        use crate::kernel::{possible_cpus, running_config};

        let config = running_config().map_err(|why| Failure::with(Exit::Unavailable, why))?;
        Ok((config, NonZeroU32::new(possible_cpus())))
    }

    /// The row with the kernel's verdict; with a log, where the two logs part.
    pub fn beside(
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

/// A build that can't ask a kernel.
#[cfg(not(all(feature = "kernel", target_os = "linux")))]
pub(super) struct Beside;

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
impl Beside {
    /// Says what is missing.
    pub fn new(_log: LogLevel) -> Result<Self, Failure> {
        Err(Failure::with(
            crate::cli::exit::Exit::Unavailable,
            "--vs-kernel asks the running kernel, for which it takes Linux and a build with the \
             feature 'kernel'",
        ))
    }

    /// There is no kernel to ask.
    pub fn meant(&self) -> Result<(KernelConfig, Option<NonZeroU32>), Failure> {
        Ok(Default::default())
    }

    /// There is no kernel to ask.
    pub fn beside(
        &mut self,
        row: VerdictRow,
        _program: &Program,
        _printer: &mut Printer,
    ) -> Result<VerdictRow, Failure> {
        Ok(row)
    }
}
