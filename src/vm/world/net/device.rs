//! Network devices.

use std::net::IpAddr;

use super::address;
use super::error::NetError;

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) mac: [u8; 6],
    pub(super) mtu: u32,
    pub(super) link_header: u32,
    pub(super) forwards: bool,
    pub(super) addresses: Vec<IpAddr>,
}

impl Device {
    pub(super) fn new(index: u32, name: String) -> Self {
        let [a, b, c, d] = index.to_be_bytes();
        Self {
            index,
            name,
            mac: [2, 0, a, b, c, d],
            mtu: 1500,
            link_header: 14,
            forwards: true,
            addresses: Vec::new(),
        }
    }

    /// The loopback device of a test run.
    pub(super) fn loopback() -> Self {
        Self {
            mac: [0; 6],
            mtu: 65_536,
            forwards: false,
            addresses: vec![[127, 0, 0, 1].into()],
            ..Self::new(1, "lo".to_owned())
        }
    }

    /// Sets the largest packet size without the link header. The default is 1500, and 65,536
    /// for the loopback device.
    pub fn mtu(&mut self, mtu: u32) -> &mut Self {
        self.mtu = mtu;
        self
    }

    /// Sets the hardware address. The default is `02:00` and the device's number.
    ///
    /// # Errors
    /// [`NetError::Mac`].
    pub fn mac(&mut self, mac: &str) -> Result<&mut Self, NetError> {
        self.mac = address::mac(mac)?;
        Ok(self)
    }

    /// Sets the size of the link header (`hard_header_len`): 14 for Ethernet, 0 for a tunnel of
    /// IP packets.
    pub fn link_header(&mut self, bytes: u32) -> &mut Self {
        self.link_header = bytes;
        self
    }

    /// Sets whether packets from this device are forwarded (`forwarding`). The default is yes,
    /// and no for the loopback device.
    pub fn forwards(&mut self, forwards: bool) -> &mut Self {
        self.forwards = forwards;
        self
    }

    /// Adds an address of the device: the source of packets that it sends.
    ///
    /// # Errors
    /// [`NetError::Address`].
    pub fn address(&mut self, text: &str) -> Result<&mut Self, NetError> {
        self.addresses.push(address::address(text)?);
        Ok(self)
    }

    /// The device's number (`ifindex`).
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The largest packet size, without and with the link header.
    #[must_use]
    pub const fn mtus(&self) -> (u32, u32) {
        (self.mtu, self.mtu.saturating_add(self.link_header))
    }

    /// The bytes of the hardware address.
    #[must_use]
    pub const fn mac_bytes(&self) -> [u8; 6] {
        self.mac
    }

    /// Whether packets from the device are forwarded.
    #[must_use]
    pub const fn is_forwarding(&self) -> bool {
        self.forwards
    }

    /// The device's first address of the same family as `other`.
    #[must_use]
    pub fn address_like(&self, other: IpAddr) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().copied();
        addresses.find(|address| address.is_ipv4() == other.is_ipv4())
    }
}
