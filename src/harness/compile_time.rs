//! How long verifying and compiling a program takes.

use std::time::{Duration, Instant};

use super::error::Result;
use super::programs::WhichProgram;
use super::vm::Vm;
#[cfg(feature = "jit")]
use crate::engine::Counting;
use crate::lower::{Bindings, lower};
use crate::verifier::{Options, verify};

/// How long each stage from program to engine takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileTime {
    /// Verifying it.
    pub verify: Duration,
    /// Lowering it to operations; none for a program that is not verified or can't be
    /// lowered.
    pub lower: Option<Duration>,
    /// Generating machine code in executable memory; none where the host has no JIT.
    pub code: Option<Duration>,
}

impl CompileTime {
    /// The shorter time of two measurements, stage by stage.
    #[must_use]
    pub fn shortest(self, other: Self) -> Self {
        let shorter = |a: Option<Duration>, b: Option<Duration>| Some(a?.min(b?));
        Self {
            verify: self.verify.min(other.verify),
            lower: shorter(self.lower, other.lower),
            code: shorter(self.code, other.code),
        }
    }
}

impl Vm {
    /// Verifies and compiles a loaded program again and returns the times; the result is
    /// dropped.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
    /// let time = vm.compile_time("count_write")?;
    /// assert!(time.lower.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoProgram`](super::Error::NoProgram).
    pub fn compile_time(&self, program: impl WhichProgram) -> Result<CompileTime> {
        let image = self.programs.image(program.handle(&self.programs)?)?;
        let start = Instant::now();
        let verification = verify(image.program(), &Options::default());
        let mut time = CompileTime {
            verify: start.elapsed(),
            lower: None,
            code: None,
        };
        let Ok(verified) = &verification.outcome else {
            return Ok(time);
        };
        let bindings = Bindings {
            machine: &self.machine,
            maps: image.maps(),
            functions: image.functions(),
            escaping: image.escaping(),
        };
        let start = Instant::now();
        let Ok(lowered) = lower(verified, bindings, self.passes) else {
            return Ok(time);
        };
        time.lower = Some(start.elapsed());
        #[cfg(feature = "jit")]
        {
            let start = Instant::now();
            let code = crate::jit::compile(&lowered, Counting::Exact);
            let elapsed = start.elapsed();
            time.code = code.map(|_| elapsed);
        }
        #[cfg(not(feature = "jit"))]
        drop(lowered);
        Ok(time)
    }
}
