//! Sockets that programs can access: their addresses, and acquired references.

mod references;
mod state;
mod views;

pub(in crate::vm) use state::{RunSockets, SocketRef, SocketViews};
