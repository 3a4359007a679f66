//! Finding sockets by address, the event's own socket, and references to sockets that programs
//! have to release.

use super::super::state::Machine;
use super::state::SocketRef;
use crate::spec::context::{self, Arch};
use crate::vm::memory::Address;
use crate::vm::world::kernel::KernelError;
use crate::vm::world::{Socket, SocketId};

impl Machine {
    /// The socket that a register points to: by its `struct bpf_sock`, its `bpf_tcp_sock`, the
    /// kernel's own structure, or the context of a hook about a socket.
    pub(in crate::vm) fn socket_at(&self, register: u64) -> Option<SocketRef> {
        let placed = self.shared.sockets.lock();
        let mut known = placed.iter();
        if let Some((id, _)) = known.find(|(_, views)| views.has(register)) {
            return Some(SocketRef::World(*id));
        }
        let typed = |socket: &&Socket| register != 0 && socket.object == Some(register);
        if let Some(socket) = self.world.sockets().find(typed) {
            return Some(SocketRef::World(socket.id()));
        }
        let placed = &self.current()?.placed;
        placed.socket.as_ref()?;
        let is = |address: Address| address.register() == register;
        let own_typed = self.run.sockets.own_typed.as_ref();
        let own = placed.other("sk").is_some_and(is)
            || self.run.sockets.own_tcp.is_some_and(is)
            || own_typed.is_some_and(|object| object.address() == register)
            || placed.other("sk").is_none() && placed.r1() == register;
        own.then_some(SocketRef::Own)
    }

    /// The canonical address of the socket that a register points to, the same for all of its
    /// structures. Identifies the owner of socket storage.
    pub(in crate::vm) fn socket_owner(&mut self, register: u64) -> Option<u64> {
        let socket = self.socket_at(register)?;
        self.canonical_address(socket)
    }

    /// The canonical address of the current event's socket.
    pub(in crate::vm) fn event_socket_address(&mut self) -> Option<u64> {
        let socket = self.event_socket()?;
        self.canonical_address(socket)
    }

    fn canonical_address(&mut self, socket: SocketRef) -> Option<u64> {
        match socket {
            SocketRef::World(id) => self.socket_address(id).ok().flatten(),
            SocketRef::Own => {
                let placed = &self.current()?.placed;
                Some(placed.other("sk").map_or(placed.r1(), Address::register))
            }
        }
    }

    /// The socket of the current event, if it has one.
    pub(in crate::vm) fn event_socket(&self) -> Option<SocketRef> {
        let placed = &self.current()?.placed;
        match placed.kern.socket {
            Some(id) => Some(SocketRef::World(id)),
            None => placed.socket.as_ref().map(|_| SocketRef::Own),
        }
    }

    /// The socket that `socket` refers to, mutable.
    pub(in crate::vm) fn socket(&mut self, socket: SocketRef) -> Option<&mut Socket> {
        match socket {
            SocketRef::World(id) => self.world.net().get_mut(id),
            SocketRef::Own => self.current_mut()?.0.placed.socket.as_deref_mut(),
        }
    }

    /// Acquires a reference to a socket for the program, and returns the socket's address.
    pub(in crate::vm) fn acquire_socket(&mut self, id: SocketId) -> Result<u64, KernelError> {
        let address = self.socket_address(id)?;
        self.run.sockets.acquired.push(id);
        Ok(address.unwrap_or(0))
    }

    /// Acquires a reference to the socket at an address. Ignores addresses without a socket: a
    /// test can put any address into a map.
    pub(in crate::vm) fn acquire_socket_at(&mut self, address: u64) {
        if let Some(SocketRef::World(id)) = self.socket_at(address) {
            self.run.sockets.acquired.push(id);
        }
    }

    /// Releases a reference to a socket; false if the program has none.
    pub(in crate::vm) fn release_socket(&mut self, id: SocketId) -> bool {
        let acquired = &mut self.run.sockets.acquired;
        match acquired.iter().rposition(|acquired| *acquired == id) {
            Some(at) => {
                acquired.remove(at);
                true
            }
            None => false,
        }
    }

    /// Addresses of the sockets with unreleased references.
    pub(in crate::vm) fn unreleased_sockets(&self) -> Vec<u64> {
        let placed = self.shared.sockets.lock();
        let acquired = self.run.sockets.acquired.iter();
        let addresses = acquired.filter_map(|id| Some(placed.get(id)?.sock.address()));
        addresses.collect()
    }

    /// Sets the current context's `sk` to the event's socket, if that is one of the world's.
    pub(in crate::vm) fn point_to_socket(&mut self) -> Result<(), KernelError> {
        let id = self
            .current()
            .and_then(|current| current.placed.kern.socket);
        match id {
            Some(id) => self.assign_socket(Some(id)),
            None => Ok(()),
        }
    }

    /// Sets or clears the current event's socket.
    pub(in crate::vm) fn assign_socket(&mut self, id: Option<SocketId>) -> Result<(), KernelError> {
        let address = match id {
            Some(id) => self.socket_address(id)?,
            None => None,
        };
        if let Some((current, space)) = self.current_mut() {
            current.placed.kern.socket = id;
            let kind = current.prog_type.info().context;
            let field = context::layout(kind, Arch::HOST).and_then(|layout| layout.find("sk"));
            if let Some((offset, _)) = field {
                current.placed.point(space, offset, address.unwrap_or(0));
            }
        }
        Ok(())
    }

    /// Ends the event: removes its own socket's structures and forgets all references.
    pub(in crate::vm) fn forget_sockets(&mut self) {
        self.run.sockets.acquired.clear();
        if let Some(own) = self.run.sockets.own_tcp.take() {
            self.space.remove(own);
        }
        if let Some(own) = self.run.sockets.own_typed.take() {
            // It was created for this event.
            let _ = own.free();
        }
    }
}
