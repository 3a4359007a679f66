//! The fast interpreter: [`Lowered`](crate::lower::Lowered) programs, with the checks
//! left out that the verifier proved to hold. What comes of a run is what comes of it
//! in the checked interpreter, bit by bit, the count of instructions included.
//!
//! | file | what |
//! |---|---|
//! | `context` | the packet and the context's pointers, for machine code |
//! | `memory` | the bytes behind an address that was proved to be in bounds |
//! | `native` | entering machine code, which a layer above makes |
//! | `run` | frames, calls, tail calls, callbacks, and the way over to the checked one |
//! | `step` | the loop over operations |
//! | `threaded` | the same by functions that call one another, in optimised builds |

mod context;
mod memory;
mod native;
mod run;
mod step;
pub(super) mod threaded;

use std::sync::Arc;

use super::checked::{Budget, Checked, Finished};
use super::image::Image;
use crate::lower::{Bindings, Passes, lower};
use crate::verifier::Verified;
use crate::vm::memory::SpaceFull;
use crate::vm::{Fault, Machine, MapHandle};
#[cfg(feature = "jit")]
pub(crate) use context::POINTERS;
pub(crate) use run::Run;
#[cfg(feature = "jit")]
pub(crate) use run::{End, Next, Stop};
use threaded::compile::compile;
use threaded::drive::holds;

impl Image {
    /// Makes a verified program ready to run on `machine`, and to run fast if it can
    /// be lowered.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn verified(
        verified: &Verified,
        maps: Vec<MapHandle>,
        machine: &mut Machine,
        passes: Passes,
    ) -> Result<Self, SpaceFull> {
        let image = Self::new(Arc::clone(verified.program()), maps, machine)?;
        let bindings = Bindings {
            machine,
            maps: image.maps(),
            functions: image.functions(),
        };
        let Ok(lowered) = lower(verified, bindings, passes) else {
            return Ok(image);
        };
        let threaded = holds().then(|| compile(&lowered));
        Ok(image.with_operations(Arc::new(lowered), threaded))
    }
}

impl Checked {
    /// Runs `entry` as [`run`](Self::run) does, and does so in the fast interpreter if
    /// the program is [lowered](Image::lowered) and the run
    /// [may start](crate::lower::Lowered::may_start) on the machine's current event; in
    /// machine code where that is wanted and the program has it.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub(crate) fn run_fast(
        &mut self,
        machine: &mut Machine,
        images: &[Arc<Image>],
        entry: &Image,
        args: [u64; 5],
        budget: Budget,
        is_native: bool,
    ) -> Result<Finished, Box<Fault>> {
        let lowered = entry.lowered();
        let start = lowered.and_then(|lowered| {
            let context = lowered.may_start(machine, args[0])?;
            Some((lowered, context.host_address()))
        });
        let Some((lowered, context)) = start else {
            return self.run(machine, images, entry, args, budget);
        };
        let deltas = machine.space.deltas().host_address();
        let mut run = Run::new(
            self,
            images,
            (entry, lowered),
            (context, deltas),
            args,
            budget,
        );
        run.is_native = is_native;
        run.see_packet(machine);
        if is_native {
            run.see_pointers(machine);
        }
        run.finish(machine, args)
    }
}
