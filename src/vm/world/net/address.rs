//! Parsing addresses and prefixes.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::error::NetError;

/// An IP prefix: all addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Any address in the prefix.
    pub address: IpAddr,
    /// The prefix length in bits.
    pub len: u8,
}

impl Prefix {
    /// Whether the prefix contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (bits(self.address), bits(address)) {
            ((own, width), (other, other_width)) if width == other_width => {
                let differing = own ^ other;
                // All differing bits lie below the prefix.
                u32::from(width - self.len.min(width)) >= 128 - differing.leading_zeros()
            }
            _ => false,
        }
    }
}

/// An address as a number, and its width in bits.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl FromStr for Prefix {
    type Err = NetError;

    /// Parses `10.0.0.0/8` or `fd00::/8`; a plain address is a prefix of full length.
    fn from_str(text: &str) -> Result<Self, NetError> {
        let wrong = || NetError::Prefix(text.to_owned());
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address = address.parse().map_err(|_| wrong())?;
        let (_, width) = bits(address);
        let len = match len {
            Some(len) => len.parse().map_err(|_| wrong())?,
            None => width,
        };
        if len > width {
            return Err(wrong());
        }
        Ok(Self { address, len })
    }
}

/// Parses an address.
pub(super) fn address(text: &str) -> Result<IpAddr, NetError> {
    let parsed = text.parse();
    parsed.map_err(|_| NetError::Address(text.to_owned()))
}

/// Parses an address with a port.
pub(super) fn endpoint(text: &str) -> Result<SocketAddr, NetError> {
    let parsed = text.parse();
    parsed.map_err(|_| NetError::Endpoint(text.to_owned()))
}

/// Parses a hardware address.
pub(super) fn mac(text: &str) -> Result<[u8; 6], NetError> {
    let wrong = || NetError::Mac(text.to_owned());
    let mut parts = text.split([':', '-']);
    let mut mac = [0; 6];
    for byte in &mut mac {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()));
        *byte = u8::from_str_radix(part.ok_or_else(wrong)?, 16).map_err(|_| wrong())?;
    }
    match parts.next() {
        None => Ok(mac),
        Some(_) => Err(wrong()),
    }
}

/// An address as the kernel's structures store it, in 16 bytes; IPv4 uses the first four.
#[must_use]
pub(in crate::vm) fn bytes_of(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            for (to, from) in bytes.iter_mut().zip(address.octets()) {
                *to = from;
            }
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_hold_their_addresses() {
        let contains = |range: &str, one: &str| prefix(range).contains(one.parse().unwrap());
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("0.0.0.0/0", "255.1.2.3") && !contains("0.0.0.0/0", "::"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("fd00::/8", "fdff::1") && !contains("fd00::/8", "fe00::1"));
        assert!(contains("::/0", "1::"));
    }

    #[test]
    fn text_that_is_none_is_told() {
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "fd00::/129",
            "10.0.0.0/",
            "10.0.0.0/x",
        ] {
            assert!(
                bad.parse::<Prefix>()
                    .unwrap_err()
                    .to_string()
                    .contains("invalid prefix")
            );
        }
        assert_eq!(mac("02:00:00:00:00:0a"), Ok([2, 0, 0, 0, 0, 10]));
        for bad in [
            "",
            "02:00",
            "02:00:00:00:00:00:00",
            "g2:00:00:00:00:01",
            "+2:0:0:0:0:1:",
        ] {
            assert!(mac(bad).is_err(), "{bad}");
        }
        assert!(endpoint("10.0.0.1").is_err() && address("10.0.0.1:80").is_err());
        assert!(endpoint("[::1]:80").is_ok());
    }
}
