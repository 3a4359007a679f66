//! The machine's state of sockets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::super::kernel::KernelObject;
use super::super::memory::Address;
use super::super::world::SocketId;

/// Addresses and references of sockets.
#[derive(Debug, Default)]
pub(in crate::vm) struct Sockets {
    /// The structures of each socket. All CPUs share them.
    placed: Arc<Mutex<FxHashMap<SocketId, Views>>>,
    /// `struct bpf_tcp_sock` of the event's own socket.
    pub(super) own_tcp: Option<Address>,
    /// The kernel's structure of the event's own socket.
    pub(super) own_typed: Option<KernelObject>,
    /// Sockets that programs have acquired and not released, the latest one last.
    pub(super) acquired: Vec<SocketId>,
}

/// The structures of a socket in kernel memory.
#[derive(Debug)]
pub(super) struct Views {
    /// `struct bpf_sock`.
    pub(super) sock: KernelObject,
    /// `struct bpf_tcp_sock`, once a program requested it.
    pub(super) tcp: Option<KernelObject>,
    /// The kernel's own structure (`tcp_sock`), once a program requested it.
    pub(super) typed: Option<KernelObject>,
}

impl Views {
    pub(super) fn has(&self, address: u64) -> bool {
        let others = [&self.tcp, &self.typed].into_iter().flatten();
        let mut all = [&self.sock].into_iter().chain(others);
        all.any(|object| object.address() == address)
    }
}

impl Sockets {
    /// The sockets for another CPU, without references.
    pub(in crate::vm) fn fork(&self) -> Self {
        Self {
            placed: self.placed.clone(),
            ..Self::default()
        }
    }

    /// Whether programs released all references to sockets.
    pub(in crate::vm) const fn holds_nothing(&self) -> bool {
        self.acquired.is_empty()
    }

    pub(super) fn placed(&self) -> MutexGuard<'_, FxHashMap<SocketId, Views>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refers to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum SocketRef {
    /// A socket of the world.
    World(SocketId),
    /// The current event's own socket.
    Own,
}
