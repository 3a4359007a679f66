//! Events: one firing of an attach point, with the context that programs get.
//!
//! A [`Layout`] says which fields a context has and where; an [`Event`] fills them.

mod context;
mod declare;
mod error;
mod event;
mod format;
mod from_btf;
mod layout;
mod packet;
mod place;
mod record;
mod shape;
mod syscall;
mod text;
mod value;
mod window;

pub use declare::{Declaration, Scalar};
pub use error::{EventError, TextError, ValueProblem};
pub use event::{Common, Event, EventKind};
pub use layout::{HIDDEN, Layout, Source};
pub use packet::{XDP_FRAME, XDP_HEADROOM};
pub use place::{Placed, PlacedPacket};
pub use shape::{Field, Shape, Storage};
pub use text::{parse_assignment, parse_hex};
pub use value::FieldValue;
pub use window::PacketRange;

#[cfg(test)]
mod live_tests;
