//! Recording in the running kernel: whose events are in, that none is missing, how it
//! ends, and that nothing stays behind.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "live_record/bare.rs"]
mod bare;
#[cfg(feature = "cli")]
#[path = "cli/command.rs"]
mod command;
#[cfg(feature = "cli")]
#[path = "live_record/command_line.rs"]
mod command_line;
#[path = "live_record/elsewhere.rs"]
mod elsewhere;
#[cfg(feature = "cli")]
#[path = "live_record/ending.rs"]
mod ending;
#[path = "kernel/here.rs"]
mod here;
#[path = "live_record/nested.rs"]
mod nested;
#[path = "live_record/outputs.rs"]
mod outputs;
#[path = "live_record/recorded.rs"]
mod recorded;
mod shared;
#[path = "live_record/whose.rs"]
mod whose;
