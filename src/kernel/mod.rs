//! The real kernel: the same [`Program`](crate::program::Program) that the other
//! engines run, given to `bpf(2)`. It is the judge of the verifier and of the
//! engines.
//!
//! ```no_run
//! use bpflab::Object;
//! use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let object = Object::open("tests/objects/contexts.bpf.o")?;
//! let program = object.program("xdp_length")?;
//! let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
//! let loaded = load(&program, &maps, &LoadOptions::default())?;
//! match &loaded.program {
//!     Some(accepted) => {
//!         let run = accepted.test_run(&TestRun::packet(&[0; 64]))?;
//!         println!("returned {}", run.retval);
//!     }
//!     None => println!("rejected: {}", loaded.verdict.message),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! System calls are made in one folder, `sys`. Everything that the kernel holds for
//! us is closed when its value is dropped; nothing is pinned, and what is attached
//! ([`attach`]) is detached then. Programs and BTF are taken to be little-endian, as on x86-64, arm64 and RISC-V.

pub mod attach;
mod availability;
mod config;
mod cpus;
mod error;
mod here;
mod kernel_map;
mod load;
mod loaded_program;
mod log;
mod machine;
mod maps;
pub mod outputs;
pub mod perf;
mod probe;
pub mod process;
mod sys;
mod target;
mod test_run;
pub mod tracefs;
pub mod tracepoints;
mod usdt_specs;
mod walk;

pub use availability::{Availability, Capability, Privilege, TypeSupport};
pub use config::running_config;
pub use error::{Command, KernelError, NoVerdict, NoVerdictKind};
pub use here::{Kernel, Missing, RunError, Running};
pub use kernel_map::KernelMap;
pub use load::{LoadOptions, Loaded, load};
pub use loaded_program::LoadedProgram;
pub use machine::{Clocks, Uname, possible_cpus};
pub use maps::LoadedMaps;
pub use outputs::KernelRing;
pub use sys::UnusedCall;
pub use sys::{KernelBatch, ProgramInfo, RunStatistics, program_ids};
pub use target::running_btf;
pub use test_run::{TestRun, TestRunResult};
pub use usdt_specs::MAP as USDT_SPECS;
