//! Programs attached to the running kernel: which run, in which order, what becomes of the
//! events, the programs' outputs, and that nothing stays attached. Programs act only on the
//! threads of these tests, and pass all other events on.

use crate::shared::here;
mod leaving;
mod lo_filter;
mod nesting;
mod outputs;
mod passing;
mod perf;
mod places;
mod rig;
mod user_space;
