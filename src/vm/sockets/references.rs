//! The sockets that programs refer to: by address, as the event's own, and those that they
//! have to release.

use super::super::kernel::KernelError;
use super::super::machine::Machine;
use super::super::memory::Address;
use super::super::world::{Socket, SocketId};
use super::state::SocketRef;
use crate::spec::context::{self, Arch};

impl Machine {
    /// The socket that a register points to: its `struct bpf_sock` or `bpf_tcp_sock`, the
    /// kernel's own structure, or the context of a hook that is about a socket.
    pub(in crate::vm) fn socket_at(&self, register: u64) -> Option<SocketRef> {
        let placed = self.sockets.placed();
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
        let own_typed = self.sockets.own_typed.as_ref();
        let own = placed.other("sk").is_some_and(is)
            || self.sockets.own_tcp.is_some_and(is)
            || own_typed.is_some_and(|object| object.address() == register)
            || placed.other("sk").is_none() && placed.r1() == register;
        own.then_some(SocketRef::Own)
    }

    /// The one address that stands for the socket that a register points to, whatever view
    /// of it that is: what belongs to a socket belongs to this address.
    pub(in crate::vm) fn socket_owner(&mut self, register: u64) -> Option<u64> {
        let socket = self.socket_at(register)?;
        self.standing_for(socket)
    }

    /// The same for the socket that the current event is about.
    pub(in crate::vm) fn event_socket_address(&mut self) -> Option<u64> {
        let socket = self.event_socket()?;
        self.standing_for(socket)
    }

    fn standing_for(&mut self, socket: SocketRef) -> Option<u64> {
        match socket {
            SocketRef::World(id) => self.socket_address(id).ok().flatten(),
            SocketRef::Own => {
                let placed = &self.current()?.placed;
                Some(placed.other("sk").map_or(placed.r1(), Address::register))
            }
        }
    }

    /// The socket that the current event is about, if it is about one.
    pub(in crate::vm) fn event_socket(&self) -> Option<SocketRef> {
        let placed = &self.current()?.placed;
        match placed.kern.socket {
            Some(id) => Some(SocketRef::World(id)),
            None => placed.socket.as_ref().map(|_| SocketRef::Own),
        }
    }

    /// A socket.
    pub(in crate::vm) fn socket(&mut self, socket: SocketRef) -> Option<&mut Socket> {
        match socket {
            SocketRef::World(id) => self.world.net().get_mut(id),
            SocketRef::Own => self.current_mut()?.0.placed.socket.as_deref_mut(),
        }
    }

    /// Gives a socket to a program that has to release it.
    pub(in crate::vm) fn hold_socket(&mut self, id: SocketId) -> Result<u64, KernelError> {
        let address = self.socket_address(id)?;
        self.sockets.held.push(id);
        Ok(address.unwrap_or(0))
    }

    /// The same for a socket at an address, which may be one that is no socket's: a test
    /// puts into a map what it likes.
    pub(in crate::vm) fn hold_socket_at(&mut self, address: u64) {
        if let Some(SocketRef::World(id)) = self.socket_at(address) {
            self.sockets.held.push(id);
        }
    }

    /// Takes a socket back; false where the program does not hold it.
    pub(in crate::vm) fn release_socket(&mut self, id: SocketId) -> bool {
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
    pub(in crate::vm) fn held_sockets(&self) -> Vec<u64> {
        let placed = self.sockets.placed();
        let held = self.sockets.held.iter();
        let addresses = held.filter_map(|id| Some(placed.get(id)?.sock.address()));
        addresses.collect()
    }

    /// Makes the current context's `sk` lead to the socket of the world that the event
    /// brings along, if it brings one.
    pub(in crate::vm) fn point_to_socket(&mut self) -> Result<(), KernelError> {
        let id = self
            .current()
            .and_then(|current| current.placed.kern.socket);
        match id {
            Some(id) => self.assign_socket(Some(id)),
            None => Ok(()),
        }
    }

    /// Makes a socket, or none, the current event's.
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

    /// The event is over: what was there for it alone goes, and references are forgotten.
    pub(in crate::vm) fn forget_sockets(&mut self) {
        self.sockets.held.clear();
        if let Some(own) = self.sockets.own_tcp.take() {
            self.space.remove(own);
        }
        if let Some(own) = self.sockets.own_typed.take() {
            // It was made for this event.
            let _ = own.free();
        }
    }
}
