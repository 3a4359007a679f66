//! Sockets that programs can access: their addresses, and acquired references.

mod references;
pub(super) mod state;
mod views;

pub(super) use state::SocketRef;
