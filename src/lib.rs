//! Run and unit-test eBPF programs in user space: no kernel, no root.
//!
//! bpflab opens and relocates an object built by clang as libbpf does, runs its programs in
//! user space on the events that a test describes, and the test asserts on the outcome:
//!
//! ```
//! use bpflab::{Object, Vm};
//!
//! # fn main() -> bpflab::Result<()> {
//! let object = Object::open("examples/bpf/write_hist.bpf.o")?;
//! let mut vm = Vm::new(object)?; // relocates, verifies, compiles
//! vm.world().task().set_pid(42).set_comm("dd");
//! vm.attach_all()?;
//!
//! let event = vm.tracepoint("syscalls/sys_enter_write")?.set("args[2]", 4096)?;
//! let outcome = vm.fire(event)?;
//!
//! assert_eq!(outcome.returned("count_write"), Some(0)); // 0: no perf sample
//! assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! There are three ways in, each with a page in `docs`:
//!
//! | for | use | page |
//! |---|---|---|
//! | unit tests of objects | [`Object`], [`Vm`] | `README.md` |
//! | raw programs: bytes or text on memory | [`harness::RawProgram`] | `docs/raw-programs.md` |
//! | the verifier alone | [`verifier::verify`] | `docs/verifier.md` |
//!
//! | to | look at |
//! |---|---|
//! | choose programs, set globals and map sizes before loading | [`Object`] |
//! | attach, fire, read maps, mock helpers | [`Vm`] |
//! | set time, task, CPU, random numbers, user memory, network | [`vm::World`] |
//! | describe events: tracepoints, packets, contexts | [`vm::events`] |
//! | see the outcome | [`vm::Outcome`], [`harness::MapView`] |
//! | decode, print, assemble instructions | [`isa`] |
//! | read types | [`btf`] |
//! | name types of programs and maps, flags, kernel configurations | [`spec`] |
//! | use the running kernel | `kernel` (Linux) |

// What is hidden is the machinery beneath, for this project's command line, tests and benchmarks:
// it may change in any version.
mod analysis;
pub mod btf;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod compare;
#[doc(hidden)]
pub mod coverage;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod fuzz;
#[doc(hidden)]
pub mod r#gen;
#[cfg(all(feature = "cli", feature = "kernel", target_os = "linux"))]
mod guest;
pub mod harness;
#[doc(hidden)]
pub mod instrument;
mod interp;
pub mod isa;
#[cfg(feature = "jit")]
#[doc(hidden)]
pub mod jit;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod kernel;
#[doc(hidden)]
pub mod lower;
pub mod object;
pub mod program;
#[doc(hidden)]
pub mod report;
#[cfg(test)]
#[path = "../tests/shared/sample.rs"]
mod sample;
#[cfg(test)]
#[path = "../tests/shared/skip.rs"]
mod shared;
pub mod spec;
#[doc(hidden)]
pub mod util;
pub mod verifier;
pub mod vm;

/// The crate whose traits the types of records, keys and values have: derive
/// [`FromBytes`](zerocopy::FromBytes) and [`IntoBytes`](zerocopy::IntoBytes) with it, and tell
/// the derived code where it is: `#[zerocopy(crate = "bpflab::zerocopy")]`.
#[doc(no_inline)]
pub use harness::zerocopy;
pub use harness::{Error, Result, Vm};
pub use object::{Object, ObjectError};
#[doc(inline)]
pub use util::{Errno, HelperId, MapId, Pc, TypeId};
