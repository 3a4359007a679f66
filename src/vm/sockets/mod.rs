//! The sockets that programs were given: their addresses, and the references held.

mod references;
pub(super) mod state;
mod views;

pub(super) use state::SocketRef;
