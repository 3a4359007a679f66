//! What a machine keeps of sockets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::super::kernel::KernelObject;
use super::super::memory::Address;
use super::super::world::SocketId;

/// Where sockets of the world lie in memory.
#[derive(Debug, Default)]
pub(in crate::vm) struct Sockets {
    /// By socket. All CPUs see a socket at one address.
    placed: Arc<Mutex<FxHashMap<SocketId, Views>>>,
    /// `struct bpf_tcp_sock` of the event's own socket.
    pub(super) own_tcp: Option<Address>,
    /// The event's own socket as the kernel has it.
    pub(super) own_typed: Option<KernelObject>,
    /// Sockets that programs looked up and have not released, the last one last.
    pub(super) held: Vec<SocketId>,
}

/// The structures that stand for a socket.
#[derive(Debug)]
pub(super) struct Views {
    /// `struct bpf_sock`.
    pub(super) sock: KernelObject,
    /// `struct bpf_tcp_sock`, once a program asked for it.
    pub(super) tcp: Option<KernelObject>,
    /// The kernel's own structure (`tcp_sock`), once a program asked for it.
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
    /// Those of another CPU.
    pub(in crate::vm) fn fork(&self) -> Self {
        Self {
            placed: self.placed.clone(),
            ..Self::default()
        }
    }

    /// Whether every socket that programs looked up was released.
    pub(in crate::vm) const fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn placed(&self) -> MutexGuard<'_, FxHashMap<SocketId, Views>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a register that points to a socket means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum SocketRef {
    /// A socket of the world.
    World(SocketId),
    /// The one of the current event alone.
    Own,
}
