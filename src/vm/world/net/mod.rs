//! The mocked network: devices, routes, neighbours and sockets, for look-ups by programs.
//!
//! ```
//! use bpflab::vm::World;
//! use bpflab::vm::SocketState;
//!
//! let mut world = World::default();
//! let net = world.net();
//! net.device(2, "eth0").mac("02:00:00:00:00:02")?.mtu(1500);
//! net.route("10.0.0.0/8")?.via("192.168.0.1")?.dev(2);
//! net.neighbour("192.168.0.1", 2, "02:00:00:00:00:99")?;
//! net.tcp().local("10.0.0.1:80")?.state(SocketState::Listen);
//! # Ok::<(), bpflab::vm::NetError>(())
//! ```

mod address;
mod device;
mod error;
mod route;
mod socket;

use std::net::{IpAddr, SocketAddr};

pub use address::Prefix;
pub use device::Device;
pub use error::NetError;
pub use route::{MAIN_TABLE, Route, RouteKind, Wanted};
pub use socket::{Ancestry, Socket, SocketId, SocketState};

pub(in crate::vm) use address::bytes_of;
pub(in crate::vm) use socket::{AF_INET, AF_INET6, TCP, UDP};

/// The mocked network. At first it only has the loopback device (1, `lo`).
#[derive(Debug, Clone)]
pub struct Net {
    devices: Vec<Device>,
    routes: Vec<Route>,
    neighbours: Vec<Neighbour>,
    sockets: Vec<Socket>,
    namespace_cookie: u64,
    syncookies: bool,
    secret: u64,
}

/// A neighbour on a device's link: its IP and hardware address.
#[derive(Debug, Clone, Copy)]
struct Neighbour {
    address: IpAddr,
    device: u32,
    mac: [u8; 6],
}

impl Default for Net {
    fn default() -> Self {
        Self {
            devices: vec![Device::loopback()],
            routes: Vec::new(),
            neighbours: Vec::new(),
            sockets: Vec::new(),
            namespace_cookie: 1,
            syncookies: true,
            secret: 0,
        }
    }
}

impl Net {
    /// The device with this number, created if needed.
    pub fn device(&mut self, index: u32, name: &str) -> &mut Device {
        let at = self.devices.iter().position(|device| device.index == index);
        let at = at.unwrap_or_else(|| {
            self.devices.push(Device::new(index, name.to_owned()));
            self.devices.len() - 1
        });
        let device = &mut self.devices[at];
        name.clone_into(&mut device.name);
        device
    }

    /// The device with this number.
    #[must_use]
    pub fn find_device(&self, index: u32) -> Option<&Device> {
        self.devices.iter().find(|device| device.index == index)
    }

    /// Adds a route for a [`Prefix`] in text form.
    ///
    /// # Errors
    /// [`NetError::Prefix`].
    pub fn route(&mut self, prefix: &str) -> Result<&mut Route, NetError> {
        self.routes.push(Route::new(prefix.parse()?));
        let last = self.routes.len() - 1;
        Ok(&mut self.routes[last])
    }

    /// The route for a packet, and its device's number.
    #[doc(hidden)]
    #[must_use]
    pub fn find_route(&self, wanted: &Wanted) -> Option<(&Route, u32)> {
        let default = self.default_device();
        let route = route::best(&self.routes, wanted, default)?;
        Some((route, route.device.unwrap_or(default)))
    }

    fn default_device(&self) -> u32 {
        let made = self.devices.get(1).or(self.devices.first());
        made.map_or(1, Device::index)
    }

    /// Sets the hardware address of a neighbour on a device's link.
    ///
    /// # Errors
    /// [`NetError::Address`], [`NetError::Mac`].
    pub fn neighbour(&mut self, address: &str, device: u32, mac: &str) -> Result<(), NetError> {
        let mac = address::mac(mac)?;
        let address = address::address(address)?;
        self.neighbours
            .retain(|known| (known.address, known.device) != (address, device));
        self.neighbours.push(Neighbour {
            address,
            device,
            mac,
        });
        Ok(())
    }

    /// A neighbour's hardware address.
    #[must_use]
    pub fn find_neighbour(&self, address: IpAddr, device: u32) -> Option<[u8; 6]> {
        let mut known = self.neighbours.iter();
        let found = known.find(|known| (known.address, known.device) == (address, device))?;
        Some(found.mac)
    }

    fn add(&mut self, make: fn(SocketId, u64) -> Socket) -> &mut Socket {
        let at = self.sockets.len();
        let id = SocketId(u32::try_from(at).unwrap_or(u32::MAX));
        self.sockets.push(make(id, at as u64 + 1));
        &mut self.sockets[at]
    }

    /// Adds a closed TCP socket.
    pub fn tcp(&mut self) -> &mut Socket {
        self.add(Socket::tcp)
    }

    /// Adds a UDP socket.
    pub fn udp(&mut self) -> &mut Socket {
        self.add(Socket::udp)
    }

    /// Adds a socket of another type: `SOCK_*` and the protocol number.
    pub fn socket(&mut self, kind: u32, protocol: u32) -> &mut Socket {
        let socket = self.tcp();
        (socket.kind, socket.protocol) = (kind, protocol);
        socket
    }

    /// The socket with this id.
    #[must_use]
    pub fn get(&self, id: SocketId) -> Option<&Socket> {
        self.sockets.get(id.0 as usize)
    }

    /// The socket with this id, mutable.
    pub fn get_mut(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.get_mut(id.0 as usize)
    }

    /// All sockets, in the order in which they were added.
    pub fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter()
    }

    /// The socket that receives a packet on a device. Connections take precedence over listeners,
    /// then the more specific binding, then the first added. `namespace` is the id of a
    /// network namespace other than the packet's own.
    #[must_use]
    pub fn find_socket(
        &self,
        protocol: u32,
        from: SocketAddr,
        to: SocketAddr,
        device: u32,
        namespace: Option<i32>,
    ) -> Option<&Socket> {
        let there = self
            .sockets
            .iter()
            .filter(|socket| socket.protocol == protocol && socket.netns == namespace);
        let scored = there.filter_map(|socket| Some((socket.score(to, from, device)?, socket)));
        let best = scored.rev().max_by_key(|(score, _)| *score)?;
        Some(best.1)
    }

    /// The cookie of the network namespace (`bpf_get_netns_cookie`), 1 by default.
    #[must_use]
    pub const fn namespace_cookie(&self) -> u64 {
        self.namespace_cookie
    }

    /// Sets the cookie of the network namespace.
    pub fn set_namespace_cookie(&mut self, cookie: u64) -> &mut Self {
        self.namespace_cookie = cookie;
        self
    }

    /// Whether SYN cookies are on (`net.ipv4.tcp_syncookies`); the default is on.
    #[must_use]
    pub const fn has_syncookies(&self) -> bool {
        self.syncookies
    }

    /// Turns SYN cookies on or off.
    pub fn set_syncookies(&mut self, on: bool) -> &mut Self {
        self.syncookies = on;
        self
    }

    /// The secret for SYN cookies, 0 by default. The kernel draws it at boot.
    #[must_use]
    pub const fn secret(&self) -> u64 {
        self.secret
    }

    /// Sets the secret for SYN cookies.
    pub fn set_secret(&mut self, secret: u64) -> &mut Self {
        self.secret = secret;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(to: &str) -> Wanted {
        Wanted {
            to: to.parse().unwrap(),
            table: None,
            mark: 0,
            device: None,
        }
    }

    #[test]
    fn the_longest_prefix_then_the_lowest_metric_counts() {
        let mut net = Net::default();
        net.device(7, "eth7");
        net.route("0.0.0.0/0").unwrap().dev(2);
        net.route("10.0.0.0/8").unwrap().dev(3).metric(5);
        net.route("10.0.0.0/8").unwrap().dev(4).metric(1);
        net.route("10.1.0.0/16").unwrap();
        net.route("10.1.0.0/16").unwrap().dev(9).table(100);
        net.route("0.0.0.0/0").unwrap().dev(8).mark(3);
        let device = |wanted: &Wanted| net.find_route(wanted).map(|(_, device)| device);
        assert_eq!(device(&wanted("192.0.2.1")), Some(2));
        assert_eq!(device(&wanted("10.2.0.1")), Some(4));
        assert_eq!(
            device(&wanted("10.1.0.1")),
            Some(7),
            "the first that was made"
        );
        let ask = |to: &str, table, mark| {
            device(&Wanted {
                table,
                mark,
                ..wanted(to)
            })
        };
        assert_eq!(ask("10.1.0.1", Some(100), 0), Some(9));
        assert_eq!(ask("10.2.0.1", Some(100), 0), None);
        assert_eq!(ask("10.1.0.1", None, 3), Some(8), "a rule goes first");
        assert_eq!(device(&wanted("fd00::1")), None);
        assert!(net.route("10.0.0.0/40").is_err());
    }

    #[test]
    fn packets_reach_the_socket_that_fits_best() {
        let mut net = Net::default();
        let listener = net
            .tcp()
            .local("0.0.0.0:80")
            .unwrap()
            .state(SocketState::Listen)
            .id();
        let bound = net
            .tcp()
            .local("10.0.0.1:80")
            .unwrap()
            .state(SocketState::Listen)
            .id();
        let connection = net.tcp();
        connection
            .local("10.0.0.1:80")
            .unwrap()
            .remote("10.0.0.2:999")
            .unwrap();
        let connection = connection.id();
        net.udp().local("10.0.0.1:53").unwrap().device(3);
        net.tcp()
            .local("10.0.0.9:80")
            .unwrap()
            .netns(5)
            .state(SocketState::Listen);
        let find = |protocol, from: &str, to: &str, device, namespace| {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let found = net.find_socket(protocol, from, to, device, namespace);
            found.map(Socket::id)
        };
        let at = |to: &str| find(TCP, "10.0.0.2:999", to, 1, None);
        assert_eq!(at("10.0.0.1:80"), Some(connection));
        assert_eq!(at("10.0.0.3:80"), Some(listener));
        assert_eq!(at("10.0.0.1:81"), None);
        assert_eq!(find(TCP, "10.0.0.4:1", "10.0.0.1:80", 1, None), Some(bound));
        assert_eq!(find(UDP, "10.0.0.4:1", "10.0.0.1:53", 1, None), None);
        assert!(find(UDP, "10.0.0.4:1", "10.0.0.1:53", 3, None).is_some());
        assert!(find(TCP, "10.0.0.4:1", "10.0.0.9:80", 3, Some(5)).is_some());
        assert_eq!(find(TCP, "10.0.0.4:1", "10.0.0.9:80", 3, Some(6)), None);
    }

    #[test]
    fn a_socket_is_what_programs_see_of_it() {
        let mut net = Net::default();
        let socket = net.tcp();
        socket
            .local("10.0.0.1:80")
            .unwrap()
            .remote("10.0.0.2:999")
            .unwrap()
            .mark(7);
        let bytes = socket.sock_bytes();
        assert_eq!(bytes[4..16], [2, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0]);
        assert_eq!((bytes[16], &bytes[24..28]), (7, &[10, 0, 0, 1][..]));
        assert_eq!(
            (bytes[44], &bytes[48..56]),
            (80, &[3, 231, 0, 0, 10, 0, 0, 2][..])
        );
        assert_eq!((bytes[72], bytes[76]), (1, 0xff));
        socket
            .tcp_field("snd_cwnd", 10)
            .unwrap()
            .tcp_field("bytes_acked", 1 << 40)
            .unwrap();
        assert_eq!(socket.tcp_value("snd_cwnd"), Some(10));
        assert_eq!(socket.tcp_value("bytes_acked"), Some(1 << 40));
        assert!(
            socket
                .tcp_field("cwnd", 1)
                .unwrap_err()
                .to_string()
                .contains("`cwnd`")
        );
        assert!(socket.local("[::1]:80").is_err() && socket.local("10.0.0.1").is_err());
    }
}
