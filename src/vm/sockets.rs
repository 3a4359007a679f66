//! The sockets that programs were given: their addresses, and the references held.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::kernel::{KernelError, KernelObject};
use super::machine::Machine;
use super::memory::{Address, Region, Rights, SharedBytes, SpaceFull};
use super::world::{Socket, SocketId};
use crate::spec::context::{self, Arch};

/// Where sockets of the world lie in memory.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// By socket. All CPUs see a socket at one address.
    placed: Arc<Mutex<FxHashMap<SocketId, Views>>>,
    /// `struct bpf_tcp_sock` of the event's own socket.
    own_tcp: Option<Address>,
    /// The event's own socket as the kernel has it.
    own_typed: Option<KernelObject>,
    /// Sockets that programs looked up and have not released, the last one last.
    held: Vec<SocketId>,
}

/// The structures that stand for a socket.
#[derive(Debug)]
struct Views {
    /// `struct bpf_sock`.
    sock: KernelObject,
    /// `struct bpf_tcp_sock`, once a program asked for it.
    tcp: Option<KernelObject>,
    /// The kernel's own structure (`tcp_sock`), once a program asked for it.
    typed: Option<KernelObject>,
}

impl Views {
    fn has(&self, address: u64) -> bool {
        let others = [&self.tcp, &self.typed].into_iter().flatten();
        let mut all = [&self.sock].into_iter().chain(others);
        all.any(|object| object.address() == address)
    }
}

impl Sockets {
    /// Those of another CPU.
    pub fn fork(&self) -> Self {
        Self {
            placed: self.placed.clone(),
            ..Self::default()
        }
    }

    fn placed(&self) -> MutexGuard<'_, FxHashMap<SocketId, Views>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a register that points to a socket means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketRef {
    /// A socket of the world.
    World(SocketId),
    /// The one of the current event alone.
    Own,
}

impl Machine {
    /// The address of a socket's `struct bpf_sock`, which says what the socket is now:
    /// the same one each time, on all CPUs. `None` where the world has no such socket.
    ///
    /// # Errors
    /// [`KernelError::Full`] where there are too many objects.
    pub fn socket_address(&mut self, id: SocketId) -> Result<Option<u64>, KernelError> {
        let Some(bytes) = self.world.net().get(id).map(Socket::sock_bytes) else {
            return Ok(None);
        };
        let mut placed = self.sockets.placed();
        if let Some(views) = placed.get(&id) {
            return Ok(Some(views.sock.clone().write(&bytes)?.address()));
        }
        let sock = self.world.kernel_memory().make_bytes("socket", &bytes)?;
        let address = sock.address();
        let views = Views {
            sock,
            tcp: None,
            typed: None,
        };
        placed.insert(id, views);
        Ok(Some(address))
    }

    /// The address of a socket's `struct bpf_tcp_sock`.
    pub(super) fn tcp_address(&mut self, socket: SocketRef) -> Result<Option<u64>, KernelError> {
        let Some(bytes) = self.socket(socket).map(|socket| socket.tcp.clone()) else {
            return Ok(None);
        };
        let SocketRef::World(id) = socket else {
            return Ok(self.own_tcp(&bytes).ok());
        };
        self.socket_address(id)?;
        let mut placed = self.sockets.placed();
        let Some(views) = placed.get_mut(&id) else {
            return Ok(None);
        };
        let tcp = match &views.tcp {
            Some(known) => known.clone().write(&bytes)?,
            None => self
                .world
                .kernel_memory()
                .make_bytes("tcp socket", &bytes)?,
        };
        let address = tcp.address();
        views.tcp = Some(tcp);
        Ok(Some(address))
    }

    /// That of the event's own socket, which goes with the event.
    fn own_tcp(&mut self, bytes: &[u8]) -> Result<u64, SpaceFull> {
        if let Some(known) = self.sockets.own_tcp {
            return Ok(known.register());
        }
        let bytes = Arc::new(SharedBytes::from_bytes(bytes));
        let region = Region::bytes("tcp socket", bytes).judged();
        let own = self.space.insert(region.with_rights(Rights::Read))?;
        self.sockets.own_tcp = Some(own);
        Ok(own.register())
    }

    /// The kernel's own structure for a socket (`tcp_sock`), made from its types: its
    /// addresses, ports and state are those of the socket, all else is zero.
    pub(super) fn typed_socket(
        &mut self,
        socket: SocketRef,
        type_name: &str,
    ) -> Result<u64, KernelError> {
        let known = match socket {
            SocketRef::World(id) => {
                self.socket_address(id)?;
                let placed = self.sockets.placed();
                placed.get(&id).and_then(|views| views.typed.clone())
            }
            SocketRef::Own => self.sockets.own_typed.clone(),
        };
        let object = match known {
            Some(known) => known,
            None => self.world.kernel(type_name)?,
        };
        if let Some(socket) = self.socket(socket) {
            fill(&object, socket);
        }
        let address = object.address();
        match socket {
            SocketRef::World(id) => {
                if let Some(views) = self.sockets.placed().get_mut(&id) {
                    views.typed = Some(object);
                }
            }
            SocketRef::Own => self.sockets.own_typed = Some(object),
        }
        Ok(address)
    }

    /// The socket that a register points to: its `struct bpf_sock` or `bpf_tcp_sock`, the
    /// kernel's own structure, or the context of a hook that is about a socket.
    pub(super) fn socket_at(&self, register: u64) -> Option<SocketRef> {
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
    pub(super) fn socket_owner(&mut self, register: u64) -> Option<u64> {
        let socket = self.socket_at(register)?;
        self.standing_for(socket)
    }

    /// The same for the socket that the current event is about.
    pub(super) fn event_socket_address(&mut self) -> Option<u64> {
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
    pub(super) fn hold_socket(&mut self, id: SocketId) -> Result<u64, KernelError> {
        let address = self.socket_address(id)?;
        self.sockets.held.push(id);
        Ok(address.unwrap_or(0))
    }

    /// The same for a socket at an address, which may be one that is no socket's: a test
    /// puts into a map what it likes.
    pub(super) fn hold_socket_at(&mut self, address: u64) {
        if let Some(SocketRef::World(id)) = self.socket_at(address) {
            self.sockets.held.push(id);
        }
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
    pub(super) fn held_sockets(&self) -> Vec<u64> {
        let placed = self.sockets.placed();
        let held = self.sockets.held.iter();
        let addresses = held.filter_map(|id| Some(placed.get(id)?.sock.address()));
        addresses.collect()
    }

    /// Makes the current context's `sk` lead to the socket of the world that the event
    /// brings along, if it brings one.
    pub(super) fn point_to_socket(&mut self) -> Result<(), KernelError> {
        let id = self
            .current()
            .and_then(|current| current.placed.kern.socket);
        match id {
            Some(id) => self.assign_socket(Some(id)),
            None => Ok(()),
        }
    }

    /// Makes a socket, or none, the current event's.
    pub(super) fn assign_socket(&mut self, id: Option<SocketId>) -> Result<(), KernelError> {
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
    pub(super) fn forget_sockets(&mut self) {
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

/// Puts into the kernel's own structure what a socket is; of an object that is no socket's
/// nothing.
fn fill(object: &KernelObject, socket: &Socket) {
    // Where `struct sock_common` is in the structures that begin with it.
    const COMMON: [&str; 5] = [
        "inet_conn.icsk_inet.sk.__sk_common",
        "tcp.inet_conn.icsk_inet.sk.__sk_common",
        "udp.inet.sk.__sk_common",
        "sk.__sk_common",
        "__sk_common",
    ];
    let has = |path: &&&str| object.get(&format!("{path}.skc_family")).is_ok();
    let Some(common) = COMMON.iter().find(has) else {
        return;
    };
    let put = |field: &str, value: u64| {
        // What the types don't have is left out.
        let _ = object.clone().set(&format!("{common}.{field}"), value);
    };
    put("skc_family", socket.family.into());
    put("skc_state", socket.state.into());
    let ends = [
        (socket.local, "skc_rcv_saddr", "skc_v6_rcv_saddr"),
        (socket.remote, "skc_daddr", "skc_v6_daddr"),
    ];
    for (end, four, six) in ends {
        match end.map(|end| end.ip()) {
            Some(std::net::IpAddr::V4(address)) => {
                put(four, u32::from_ne_bytes(address.octets()).into());
            }
            Some(std::net::IpAddr::V6(address)) => {
                let path = format!("{common}.{six}.in6_u.u6_addr8");
                let _ = object.clone().set(&path, address.octets().to_vec());
            }
            None => {}
        }
    }
    let port = |end: Option<std::net::SocketAddr>| end.map_or(0, |end| end.port());
    put("skc_num", port(socket.local).into());
    let remote = u16::from_ne_bytes(port(socket.remote).to_be_bytes());
    put("skc_dport", remote.into());
}
