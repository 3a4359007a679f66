//! The running kernel's verdicts, one program after the other.

use std::sync::Arc;

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::kernel::{Availability, LoadOptions, LoadedMaps, Loader, NoVerdict, load, why_refused};
use crate::program::{MapDef, Program};
use crate::spec::Holds;
use crate::util::Errno;
use crate::verifier::{LogLevel, Verdict};

/// Loads programs for their verdicts and unloads them.
pub(in crate::cli) struct KernelJudge {
    options: LoadOptions,
    /// The maps of the last program, which the object's other programs share if they can.
    maps: Option<(Arc<[MapDef]>, LoadedMaps)>,
}

impl KernelJudge {
    /// Creates a judge with this log level, for this loader; fails if no program can be loaded.
    pub fn new(log: LogLevel, loader: Loader) -> Result<Self, Failure> {
        let kernel = Availability::probe();
        if !kernel.usable() {
            let text = kernel.missing().join("; ");
            return Err(Failure::with(Exit::Unavailable, text));
        }
        if let Some(why) = why_refused(&loader) {
            return Err(Failure::with(Exit::Unavailable, why));
        }
        let options = LoadOptions::default().with_log(log);
        Ok(Self {
            options: options.with_loader(loader),
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
        let kept = kept.filter(|(definitions, _)| Arc::ptr_eq(definitions, &program.maps));
        if let Some((definitions, maps)) = kept {
            let verdict = self.load(program, &maps, printer)?;
            if !of_another_kind(program, &verdict) {
                self.maps = Some((definitions, maps));
                return Ok(verdict);
            }
        }
        let loader = &self.options.loader;
        // Another program's map may be the one that the loader must not create.
        let definitions = match loader.is_complete() {
            true => program.maps.clone(),
            false => program.needed_maps(),
        };
        let maps = match LoadedMaps::create_as(&definitions, program.btf.as_ref(), loader) {
            Ok(maps) => maps,
            Err(none) => return Ok(none.as_verdict(loader).ok_or(none)),
        };
        let verdict = self.load(program, &maps, printer)?;
        self.maps = Some((definitions, maps));
        Ok(verdict)
    }

    /// The log of the path to the error of the program that was judged last, whose verdict is
    /// a reject. `None` if the kernel did not reject it a second time.
    pub fn path_log(&self, program: &Program, verdict: &Verdict) -> Option<String> {
        if self.options.log - LogLevel::STATISTICS == LogLevel::PATH {
            return Some(verdict.log.clone());
        }
        let (_, maps) = self.maps.as_ref()?;
        let options = self.options.clone().with_log(LogLevel::PATH);
        let again = load(program, maps, &options).ok()?.verdict;
        (again.decision == verdict.decision).then_some(again.log)
    }

    fn load(
        &self,
        program: &Program,
        maps: &LoadedMaps,
        printer: &mut Printer,
    ) -> Result<Result<Verdict, NoVerdict>, Failure> {
        let may_load_btf = self.options.loader.may_load_btf();
        if let Some(refused) = maps.btf_refused().filter(|_| may_load_btf) {
            printer.warn(&refused.to_string())?;
        }
        Ok(load(program, maps, &self.options).map(|loaded| loaded.verdict))
    }
}

/// Whether the kernel may have refused the program for the programs loaded before it: the first
/// one that uses a map of programs decides which kind all others must be
/// (`__bpf_prog_map_compatible`, `kernel/bpf/core.c`). Some objects have a prog array for each
/// of several program types, and their tool loads every program once for each.
fn of_another_kind(program: &Program, verdict: &Result<Verdict, NoVerdict>) -> bool {
    let claimed = program.maps.iter().any(|map| {
        let holds = map.map_type.info().holds;
        matches!(holds, Holds::Program | Holds::Device | Holds::Cpu)
    });
    claimed && matches!(verdict, Ok(verdict) if verdict.errno == Some(Errno::EINVAL))
}
