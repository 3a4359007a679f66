//! Events: one firing of an attach point, with the context that programs get.
//!
//! A [`Layout`] says which fields a context has and where they are. There are four
//! sources of one, and they agree on every tracepoint that two of them know:
//!
//! - the kernel's BTF ([`Layout::from_btf`]; arguments of raw tracepoints and
//!   functions too),
//! - a tracefs `format` file ([`Layout::from_format`]),
//! - the table of system calls ([`Layout::of_syscall`]), on any machine,
//! - the test itself ([`Layout::declare`]).
//!
//! An [`Event`] fills the fields. [`Event::place`] lays it out in a machine's memory
//! as a program of a certain type sees it: a record whose first 8 bytes are the
//! kernel's, `struct syscall_tp_t`, an `__sk_buff` or `xdp_md` with pointers into the
//! packet. [`Placed`] reads back what the program did and clears up.
//!
//! ```
//! use bpflab::spec::ProgType;
//! use bpflab::spec::context::Arch;
//! use bpflab::vm::events::{Event, Layout};
//! use bpflab::vm::memory::Space;
//!
//! let layout = Layout::of_syscall("sys_enter_write", Arch::X86_64)?;
//! let event = Event::tracepoint(layout).set("args[2]", 4096)?; // or "count"
//!
//! let mut space = Space::new();
//! let placed = event.place(ProgType::Tracepoint, &mut space)?;
//! assert_eq!(space.load(placed.context.plus(32), 8), Ok(4096));
//! placed.remove(&mut space);
//! # Ok::<(), bpflab::vm::events::EventError>(())
//! ```

mod behind;
mod builder;
mod capture;
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
mod probe;
mod record;
mod sample;
mod shape;
mod socket;
mod syscall;
mod text;
mod value;
mod window;

pub use builder::Packet;
pub use capture::{CaptureError, Captured};
pub use declare::{Declaration, Scalar};
pub(super) use error::listed;
pub use error::{EventError, TextError, ValueProblem};
pub use event::{Common, Event, EventKind};
pub use extras::Iteration;
pub use format::{Format, FormatField};
pub use from_btf::tracepoint_prototype;
pub use kern::{Checksum, Headers, Kern, KernSide, Segments, Sysctl, Tunnel, XfrmState};
pub use layout::{HIDDEN, Layout, Source};
pub use packet::{ETH_HLEN, MAX_GROWN, XDP_FRAME, XDP_HEADROOM};
pub use placed::{Placed, PlacedPacket};
pub(crate) use sample::Sample;
pub use shape::{Field, Shape, Storage};
pub use text::{parse_assignment, parse_hex};
pub use value::FieldValue;
pub use window::PacketRange;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod live_tests;
