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
//! An [`Event`] fills the fields. [`Event::place`] writes the context into a machine's memory
//! as a program type sees it: a record whose first 8 bytes belong to the kernel, `struct
//! syscall_tp_t`, an `__sk_buff` or `xdp_md` with pointers into the packet. [`Placed`] reads
//! back what programs changed and frees the memory.
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

pub mod attach;
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
mod pointees;
mod probe;
mod record;
mod sample;
mod socket;
mod syscall;
mod window;

pub use builder::Packet;
pub use capture::{CaptureError, Captured};
pub use declare::{Declaration, Scalar};
pub use error::EventError;
pub use event::{Common, Event, EventKind};
pub use extras::Iteration;
pub use format::{Format, FormatField};
pub use from_btf::tracepoint_prototype;
pub use kern::{Checksum, Headers, Kern, KernSide, Segments, Sysctl, Tunnel, XfrmState};
pub use layout::{HIDDEN, Layout, LayoutSource};
pub use packet::{ETH_HLEN, MAX_GROWN, XDP_FRAME, XDP_HEADROOM};
pub use placed::{Placed, PlacedPacket};
pub(crate) use sample::Sample;
pub use window::PacketRange;

pub use super::fields::{
    Field, FieldValue, Shape, Storage, TextError, ValueProblem, parse_assignment, parse_hex,
};

#[cfg(test)]
mod laws;
#[cfg(test)]
mod live_tests;
