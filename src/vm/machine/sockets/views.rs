//! Creating the structures of sockets that programs see.

use std::sync::Arc;

use super::super::state::Machine;
use super::state::{SocketRef, Views};
use crate::vm::memory::{Region, Rights, SharedBytes, SpaceFull};
use crate::vm::world::kernel::{KernelError, KernelObject};
use crate::vm::world::{Socket, SocketId};

impl Machine {
    /// The address of a socket's `struct bpf_sock`, after updating its contents. Each socket has
    /// one address on all CPUs. `None` if the world has no such socket.
    ///
    /// # Errors
    /// [`KernelError::Full`] if kernel memory is full.
    pub fn socket_address(&mut self, id: SocketId) -> Result<Option<u64>, KernelError> {
        let Some(bytes) = self.world.net().get(id).map(Socket::sock_bytes) else {
            return Ok(None);
        };
        let mut placed = self.shared.sockets.lock();
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
    pub(in crate::vm) fn tcp_address(
        &mut self,
        socket: SocketRef,
    ) -> Result<Option<u64>, KernelError> {
        let Some(bytes) = self.socket(socket).map(|socket| socket.tcp.clone()) else {
            return Ok(None);
        };
        let SocketRef::World(id) = socket else {
            return Ok(self.own_tcp(&bytes).ok());
        };
        self.socket_address(id)?;
        let mut placed = self.shared.sockets.lock();
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

    /// The `struct bpf_tcp_sock` of the event's own socket, which is removed with the event.
    fn own_tcp(&mut self, bytes: &[u8]) -> Result<u64, SpaceFull> {
        if let Some(known) = self.run.sockets.own_tcp {
            return Ok(known.register());
        }
        let bytes = Arc::new(SharedBytes::from_bytes(bytes));
        let region = Region::bytes("tcp socket", bytes).judged();
        let own = self.space.insert(region.with_rights(Rights::Read))?;
        self.run.sockets.own_tcp = Some(own);
        Ok(own.register())
    }

    /// The address of the kernel's own structure for a socket (`tcp_sock`), created from its BTF
    /// type. Addresses, ports and state are filled in; all other fields are zero.
    pub(in crate::vm) fn typed_socket(
        &mut self,
        socket: SocketRef,
        type_name: &str,
    ) -> Result<u64, KernelError> {
        let known = match socket {
            SocketRef::World(id) => {
                self.socket_address(id)?;
                let placed = self.shared.sockets.lock();
                placed.get(&id).and_then(|views| views.typed.clone())
            }
            SocketRef::Own => self.run.sockets.own_typed.clone(),
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
                if let Some(views) = self.shared.sockets.lock().get_mut(&id) {
                    views.typed = Some(object);
                }
            }
            SocketRef::Own => self.run.sockets.own_typed = Some(object),
        }
        Ok(address)
    }
}

/// Writes a socket's properties to the kernel's own structure. Does nothing if the object is
/// not a socket.
fn fill(object: &KernelObject, socket: &Socket) {
    // Paths to `struct sock_common` in the structures that begin with it.
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
        // Fields that the types lack are skipped.
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
