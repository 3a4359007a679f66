//! Recording in the running kernel: whose events are recorded, that none is missing, how a
//! recording ends, and that nothing stays behind.

#![cfg(all(feature = "kernel", target_os = "linux"))]

mod bare;
#[cfg(feature = "cli")]
use crate::shared::command;
#[cfg(feature = "cli")]
mod command_line;
mod elsewhere;
#[cfg(feature = "cli")]
mod ending;
use crate::shared::here;
mod nested;
mod outputs;
mod recorded;
mod whose;
