//! What can be wrong with a mocked network.

use thiserror::Error;

/// Why a part of the mocked network can't be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NetError {
    /// Text that is no prefix.
    #[error("`{0}` is no prefix: write an address, a slash and a length, as in 10.0.0.0/8")]
    Prefix(String),
    /// Text that is no address.
    #[error("`{0}` is no IP address")]
    Address(String),
    /// Text that is no address with a port.
    #[error("`{0}` is no address with a port: write 10.0.0.1:80 or [fd00::1]:80")]
    Endpoint(String),
    /// Text that is no hardware address.
    #[error("`{0}` is no hardware address: write six pairs of digits, as in 02:00:00:00:00:01")]
    Mac(String),
    /// Addresses of two families in one place.
    #[error("{one} and {other} are of different families")]
    Families {
        /// What was there first.
        one: String,
        /// What was given then.
        other: String,
    },
    /// There is no such field of a socket.
    #[error("struct bpf_tcp_sock has no field `{0}`")]
    TcpField(String),
}
