//! The running kernel's verdicts, one program after the other.

use std::sync::Arc;

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::kernel::{Availability, LoadOptions, LoadedMaps, NoVerdict, load};
use crate::program::{MapDef, Program};
use crate::verifier::{LogLevel, Verdict};

/// Loads programs for their verdicts and unloads them.
pub(in crate::cli) struct KernelJudge {
    options: LoadOptions,
    /// The maps of the last program, which the object's other programs share.
    maps: Option<(Arc<[MapDef]>, LoadedMaps)>,
}

impl KernelJudge {
    /// Creates a judge with this log level; fails if no program can be loaded.
    pub fn new(log: LogLevel) -> Result<Self, Failure> {
        let kernel = Availability::probe();
        if !kernel.usable() {
            let text = kernel.missing().join("; ");
            return Err(Failure::with(Exit::Unavailable, text));
        }
        Ok(Self {
            options: LoadOptions { log },
            maps: None,
        })
    }

    /// The kernel's verdict. BTF that the kernel refused is a warning.
    pub fn judge(
        &mut self,
        program: &Program,
        printer: &mut Printer,
    ) -> Result<Result<Verdict, NoVerdict>, Failure> {
        let kept = self.maps.take();
        let maps = match kept.filter(|(definitions, _)| Arc::ptr_eq(definitions, &program.maps)) {
            Some((_, maps)) => maps,
            None => match LoadedMaps::create(&program.maps, program.btf.as_ref()) {
                Ok(maps) => maps,
                Err(none) => return Ok(Err(none)),
            },
        };
        if let Some(refused) = maps.btf_refused() {
            printer.warn(&refused.to_string())?;
        }
        let verdict = load(program, &maps, &self.options).map(|loaded| loaded.verdict);
        self.maps = Some((program.maps.clone(), maps));
        Ok(verdict)
    }
}
