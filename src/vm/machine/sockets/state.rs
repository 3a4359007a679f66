//! The machine's state of sockets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::vm::memory::Address;
use crate::vm::world::SocketId;
use crate::vm::world::kernel::KernelObject;

/// The structures of each socket. All CPUs share them.
#[derive(Debug, Clone, Default)]
pub(in crate::vm) struct SocketViews(Arc<Mutex<FxHashMap<SocketId, Views>>>);

impl SocketViews {
    pub(super) fn lock(&self) -> MutexGuard<'_, FxHashMap<SocketId, Views>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The structures of a socket in kernel memory.
#[derive(Debug)]
pub(in crate::vm) struct Views {
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

/// The sockets of a run.
#[derive(Debug, Default)]
pub(in crate::vm) struct RunSockets {
    /// `struct bpf_tcp_sock` of the event's own socket.
    pub(super) own_tcp: Option<Address>,
    /// The kernel's structure of the event's own socket.
    pub(super) own_typed: Option<KernelObject>,
    /// Sockets that programs have acquired and not released, the latest one last.
    pub(super) acquired: Vec<SocketId>,
}

impl RunSockets {
    /// Whether programs released all references to sockets.
    pub(in crate::vm) const fn holds_nothing(&self) -> bool {
        self.acquired.is_empty()
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
