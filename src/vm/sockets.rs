//! The sockets that programs were given: their addresses, and the references held.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::machine::Machine;
use super::memory::{Address, Region, Rights, SharedBytes, SpaceFull};
use super::world::{Socket, SocketId};
use crate::spec::context::{self, Arch};

/// Where sockets of the world lie in memory.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// By socket: `struct bpf_sock`, and `struct bpf_tcp_sock` where a program asked.
    placed: FxHashMap<SocketId, Views>,
    /// `struct bpf_tcp_sock` of the event's own socket.
    own_tcp: Option<Address>,
    /// Sockets that programs looked up and have not released, the last one last.
    held: Vec<SocketId>,
}

/// The structures that stand for a socket.
#[derive(Debug, Clone, Copy)]
struct Views {
    sock: Address,
    tcp: Option<Address>,
}

/// What a register that points to a socket means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketRef {
    /// A socket of the world.
    World(SocketId),
    /// The one of the current event alone.
    Own,
}

fn insert(machine: &mut Machine, name: &'static str, bytes: &[u8]) -> Result<Address, SpaceFull> {
    let bytes = Arc::new(SharedBytes::from_bytes(bytes));
    let region = Region::bytes(name, bytes)
        .judged()
        .with_rights(Rights::Read);
    machine.space.insert(region)
}

impl Machine {
    /// The address of a socket's `struct bpf_sock`, which says what the socket is now:
    /// the same one each time. `None` where the world has no such socket.
    ///
    /// # Errors
    /// [`SpaceFull`] where there are too many objects.
    pub fn socket_address(&mut self, id: SocketId) -> Result<Option<u64>, SpaceFull> {
        let Some(bytes) = self.world.net().get(id).map(Socket::sock_bytes) else {
            return Ok(None);
        };
        if let Some(views) = self.sockets.placed.get(&id) {
            let at = views.sock.register();
            self.rewrite(at, &bytes);
            return Ok(Some(at));
        }
        let sock = insert(self, "socket", &bytes)?;
        self.sockets.placed.insert(id, Views { sock, tcp: None });
        Ok(Some(sock.register()))
    }

    /// The address of a socket's `struct bpf_tcp_sock`.
    pub(super) fn tcp_address(&mut self, socket: SocketRef) -> Result<Option<u64>, SpaceFull> {
        let Some(bytes) = self.socket(socket).map(|socket| socket.tcp.clone()) else {
            return Ok(None);
        };
        let known = match socket {
            SocketRef::World(id) => self.sockets.placed.get(&id).and_then(|views| views.tcp),
            SocketRef::Own => self.sockets.own_tcp,
        };
        if let Some(known) = known {
            self.rewrite(known.register(), &bytes);
            return Ok(Some(known.register()));
        }
        let tcp = insert(self, "tcp socket", &bytes)?;
        match socket {
            SocketRef::World(id) => {
                if let Some(views) = self.sockets.placed.get_mut(&id) {
                    views.tcp = Some(tcp);
                }
            }
            SocketRef::Own => self.sockets.own_tcp = Some(tcp),
        }
        Ok(Some(tcp.register()))
    }

    /// Puts what a socket is now where programs see it.
    fn rewrite(&mut self, at: u64, bytes: &[u8]) {
        if let Some(region) = Address::from_register(at).and_then(|at| self.space.region(at))
            && let super::memory::Body::Bytes { bytes: block, .. } = &region.body
        {
            // Both have the structure's size.
            let _ = block.write(0, bytes);
        }
    }

    /// The socket that a register points to: its `struct bpf_sock` or `bpf_tcp_sock`, or
    /// the context of a hook that is about a socket.
    pub(super) fn socket_at(&self, register: u64) -> Option<SocketRef> {
        let is = |address: Address| address.register() == register;
        let found = self
            .sockets
            .placed
            .iter()
            .find(|(_, views)| is(views.sock) || views.tcp.is_some_and(is));
        if let Some((id, _)) = found {
            return Some(SocketRef::World(*id));
        }
        let typed = |socket: &&Socket| register != 0 && socket.object == Some(register);
        if let Some(socket) = self.world.sockets().find(typed) {
            return Some(SocketRef::World(socket.id()));
        }
        let placed = &self.current()?.placed;
        placed.socket.as_ref()?;
        let own = placed.other("sk").is_some_and(is)
            || self.sockets.own_tcp.is_some_and(is)
            || placed.other("sk").is_none() && placed.r1() == register;
        own.then_some(SocketRef::Own)
    }

    /// The socket that the current event is about, if it is about one.
    pub(super) fn event_socket(&self) -> Option<SocketRef> {
        let placed = &self.current()?.placed;
        match placed.kern.socket {
            Some(id) => Some(SocketRef::World(id)),
            None => placed.socket.as_ref().map(|_| SocketRef::Own),
        }
    }

    /// A socket.
    pub(super) fn socket(&mut self, socket: SocketRef) -> Option<&mut Socket> {
        match socket {
            SocketRef::World(id) => self.world.net().get_mut(id),
            SocketRef::Own => self.current_mut()?.0.placed.socket.as_deref_mut(),
        }
    }

    /// Gives a socket to a program that has to release it.
    pub(super) fn hold_socket(&mut self, id: SocketId) -> Result<u64, SpaceFull> {
        let address = self.socket_address(id)?;
        self.sockets.held.push(id);
        Ok(address.unwrap_or(0))
    }

    /// Takes a socket back; false where the program does not hold it.
    pub(super) fn release_socket(&mut self, id: SocketId) -> bool {
        let held = &mut self.sockets.held;
        match held.iter().rposition(|held| *held == id) {
            Some(at) => {
                held.remove(at);
                true
            }
            None => false,
        }
    }

    /// Addresses of the sockets that were looked up and not released.
    pub(super) fn held_sockets(&self) -> impl Iterator<Item = u64> {
        let held = self.sockets.held.iter();
        held.filter_map(|id| Some(self.sockets.placed.get(id)?.sock.register()))
    }

    /// Makes the current context's `sk` lead to the event's socket.
    pub(super) fn point_to_socket(&mut self) -> Result<(), SpaceFull> {
        let id = self
            .current()
            .and_then(|current| current.placed.kern.socket);
        let address = match id {
            Some(id) => self.socket_address(id)?,
            None => None,
        };
        if let (Some(address), Some((current, space))) = (address, self.current_mut()) {
            let kind = current.prog_type.info().context;
            let field = context::layout(kind, Arch::HOST).and_then(|layout| layout.find("sk"));
            if let Some((offset, _)) = field {
                current.placed.point(space, offset, address);
            }
        }
        Ok(())
    }

    /// The event is over: what was there for it alone goes, and references are forgotten.
    pub(super) fn forget_sockets(&mut self) {
        self.sockets.held.clear();
        if let Some(own) = self.sockets.own_tcp.take() {
            self.space.remove(own);
        }
    }
}
