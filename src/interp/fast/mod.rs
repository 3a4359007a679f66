//! The fast interpreter: [`Lowered`](crate::lower::Lowered) programs, with the checks
//! left out that the verifier proved to hold. What comes of a run is what comes of it
//! in the checked interpreter, bit by bit, the count of instructions included.
//!
//! | file | what |
//! |---|---|
//! | `context` | the packet and the context's pointers, for machine code |
//! | `frames` | entering and leaving functions |
//! | `look_up` | look-ups of keys by their host addresses |
//! | `memory` | the bytes behind an address that was proved to be in bounds |
//! | `native` | entering machine code, which a layer above makes |
//! | `rest` | what machine code leaves to the interpreters |
//! | `run` | a run: what it holds, how it starts, helpers and their callbacks |
//! | `step` | the loop over operations |
//! | `tail` | tail calls, and the way over to the checked interpreter |
//! | `threaded` | the same by functions that call one another, in optimised builds |

mod context;
mod frames;
#[cfg(feature = "jit")]
mod look_up;
mod memory;
mod native;
#[cfg(feature = "jit")]
mod rest;
mod run;
mod step;
mod tail;
pub(super) mod threaded;

use std::sync::Arc;

use super::image::Image;
use crate::lower::{Bindings, Passes, lower};
use crate::verifier::Verified;
use crate::vm::memory::SpaceFull;
use crate::vm::{Machine, MapHandle};
#[cfg(feature = "jit")]
pub(crate) use look_up::look_up_at;
#[cfg(feature = "jit")]
pub(crate) use run::POINTERS;
pub(crate) use run::Run;
#[cfg(feature = "jit")]
pub(crate) use run::{End, Next, Stop};
#[cfg(feature = "jit")]
pub(crate) use tail::Tail;
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
