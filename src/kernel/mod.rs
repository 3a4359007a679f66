//! The running kernel as an engine: loads the same [`Program`](crate::program::Program) as the
//! other engines through `bpf(2)`. The verifier and the engines are tested against it.
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
//! Only the folder `sys` makes system calls. Dropping a value closes everything that the kernel
//! holds for it; nothing is pinned, and programs ([`attach`]) are detached. Programs and BTF
//! are assumed to be little-endian, as on x86-64, arm64 and RISC-V.

pub mod attach;
mod availability;
mod btf_folder;
mod config;
mod cpus;
mod error;
mod foreign;
pub(crate) mod functions;
mod here;
mod kernel_map;
mod keys;
mod load;
mod loaded_program;
mod loader;
mod log;
mod machine;
mod maps;
mod multi;
pub mod outputs;
pub mod perf;
mod probe;
pub mod process;
mod sys;
mod target;
mod test_run;
pub mod tracefs;
pub mod tracepoints;
mod typed;
mod usdt_specs;

pub use availability::{Availability, Capability, Privilege, TypeSupport};
pub use config::running_config;
pub use error::{Command, KernelError, NoVerdict, NoVerdictKind};
pub use foreign::loaded_target;
pub use here::{Kernel, Missing, RunError, Running};
pub use kernel_map::KernelMap;
pub use load::{LoadOptions, Loaded, load};
pub use loaded_program::LoadedProgram;
pub(crate) use loaded_program::Replacement;
pub use loader::Loader;
#[cfg(feature = "cli")]
pub(crate) use loader::{UNPRIVILEGED, why_refused};
#[cfg(feature = "cli")]
pub(crate) use machine::VM;
pub(crate) use machine::vm_image;
pub use machine::{Clocks, Uname, possible_cpus};
pub use maps::LoadedMaps;
pub use outputs::KernelRing;
pub use sys::UnusedCall;
pub(crate) use sys::init;
#[cfg(feature = "cli")]
pub(crate) use sys::set_device_up;
pub use sys::{KernelBatch, ProgramInfo, RunStatistics, program_ids};
pub use target::running_btf;
pub use test_run::{TestRun, TestRunResult};
pub use usdt_specs::MAP as USDT_SPECS;
