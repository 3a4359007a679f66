//! Events: one firing of an attach point, with the context that programs get.
//!
//! A [`Layout`] has the fields of a context and their offsets. It has four sources, which
//! agree on every tracepoint that several of them have:
//!
//! - the kernel's BTF ([`Layout::from_btf`]; also arguments of raw tracepoints and
//!   functions),
//! - a tracefs `format` file ([`Layout::from_format`]),
//! - the table of system calls ([`Layout::of_syscall`]), on any machine,
//! - the test itself ([`Layout::declare`]).
//!
//! An [`Event`] fills the fields, and a program gets them as its type sees them: a record whose
//! first 8 bytes belong to the kernel, `struct syscall_tp_t`, an `__sk_buff` or `xdp_md` with
//! pointers into the packet.
//!
//! ```
//! use bpflab::spec::Arch;
//! use bpflab::vm::events::{Event, Layout};
//!
//! let layout = Layout::of_syscall("sys_enter_write", Arch::X86_64)?;
//! let event = Event::tracepoint(layout).set("args[2]", 4096)?; // or "count"
//!
//! assert_eq!(event.record()[32..40], 4096u64.to_ne_bytes());
//! # Ok::<(), bpflab::vm::events::EventError>(())
//! ```

#[doc(hidden)]
pub mod attach;
mod builder;
mod capture;
#[doc(hidden)]
pub mod checksum;
mod context;
mod declare;
mod error;
mod event;
mod extras;
mod format;
mod from_btf;
mod kern;
mod layout;
mod packet;
mod place;
mod placed;
mod pointed;
mod pointees;
mod probe;
mod program_function;
mod record;
mod sample;
mod socket;
mod syscall;
mod window;

pub use builder::Packet;
#[doc(hidden)]
pub use builder::headers_of;
pub use capture::{CaptureError, Captured};
pub use declare::{Declaration, Scalar};
pub use error::EventError;
pub use event::{Common, Event, EventKind};
pub use extras::Iteration;
pub use format::{Format, FormatField};
pub use kern::{Checksum, Kern, KernSide, Segments, Sysctl, Tunnel, XfrmState};
pub use layout::{Layout, LayoutSource};
pub(crate) use sample::Sample;

pub use super::fields::{Field, FieldValue, Shape, Storage, TextError, ValueProblem};

#[doc(hidden)]
pub use from_btf::tracepoint_prototype;
#[doc(hidden)]
pub use kern::Headers;
#[doc(hidden)]
pub use layout::HIDDEN;
#[doc(hidden)]
pub use packet::{ETH_HLEN, MAX_GROWN, XDP_FRAME, XDP_HEADROOM};
#[doc(hidden)]
pub use placed::{Placed, PlacedPacket};
#[doc(hidden)]
pub use window::PacketRange;

#[doc(hidden)]
pub use super::fields::{parse_assignment, parse_hex};

#[cfg(test)]
mod laws;
#[cfg(test)]
mod live_tests;
