//! The catalogue of tracepoints: their names, arguments and records, and the programs that can
//! attach to them.
//!
//! There are two sources. BTF has a typedef `btf_trace_<name>` for each tracepoint and the
//! prototype of its probes, but no groups; it is readable without root. Tracefs has the groups,
//! the ids and the records (`format`), but not the arguments; it needs root. The tracepoints of
//! system calls are in tracefs only: without it the catalogue has those for which BTF has the
//! call's function and bpflab's table its arguments.
//!
//! ```no_run
//! use bpflab::kernel::tracepoints::{Catalogue, Pattern};
//!
//! let catalogue = Catalogue::of_this_kernel()?;
//! for tracepoint in catalogue.matching(&[Pattern::parse("irq:softirq_*")]) {
//!     println!("{tracepoint}: {:?}", catalogue.arguments(tracepoint));
//! }
//! # Ok::<(), bpflab::kernel::tracepoints::CatalogueError>(())
//! ```

mod catalogue;
mod from_btf;
mod pattern;
mod syscalls;
mod tracepoint;

pub use catalogue::{BtfUnreadable, Catalogue, CatalogueError, Hint};
pub use pattern::Pattern;
pub use tracepoint::{Argument, DescriptionSource, Group, Record, RecordField, Tracepoint};
