//! The fast interpreter: runs [`Lowered`](crate::lower::Lowered) programs without the
//! checks that the verifier proved unnecessary. The results of a run are exactly those of
//! the checked interpreter, including the instruction count.
//!
//! | file | what |
//! |---|---|
//! | `context` | the packet and the context's pointers, for machine code |
//! | `frames` | entering and leaving functions |
//! | `look_up` | look-ups of keys by their host addresses |
//! | `native` | entering machine code, which a layer above generates |
//! | `rest` | functions and programs that machine code hands over to the interpreters |
//! | `run` | the state of a run, its start, helpers and their callbacks |
//! | `step` | the loop over operations |
//! | `tail` | tail calls, and the switch to the checked interpreter |
//! | `threaded` | threaded code instead of the loop, in optimised builds |

mod context;
mod frames;
#[cfg(feature = "jit")]
mod look_up;
mod native;
#[cfg(feature = "jit")]
mod rest;
mod run;
mod step;
mod tail;
// Builds with debug assertions have no threaded code: its handlers are a third of all
// machine code of such a build, and without optimisation calls in tail position use stack.
#[cfg_attr(debug_assertions, allow(dead_code, reason = "release builds use it"))]
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
#[cfg(not(debug_assertions))]
use threaded::{compile::compile, drive::holds};

impl Image {
    /// Prepares a verified program to run on `machine`, also on the fast engines if it can
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
        #[cfg(not(debug_assertions))]
        let threaded = holds().then(|| compile(&lowered));
        #[cfg(debug_assertions)]
        let threaded = None;
        Ok(image.with_operations(Arc::new(lowered), threaded))
    }
}
