//! Errors of the mocked network.

use thiserror::Error;

/// Why a part of the mocked network is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetError {
    /// An invalid prefix.
    #[error("invalid prefix `{0}`: write an address, a slash and a length, as in 10.0.0.0/8")]
    Prefix(String),
    /// An invalid IP address.
    #[error("invalid IP address `{0}`")]
    Address(String),
    /// An invalid address with a port.
    #[error("invalid address and port `{0}`: write 10.0.0.1:80 or [fd00::1]:80")]
    Endpoint(String),
    /// An invalid hardware address.
    #[error("invalid hardware address `{0}`: write six pairs of digits, as in 02:00:00:00:00:01")]
    Mac(String),
    /// A socket with addresses of different families.
    #[error("{one} and {other} are of different address families")]
    Families {
        /// The address that was set first.
        one: String,
        /// The address that was set second.
        other: String,
    },
    /// `struct bpf_tcp_sock` has no such field.
    #[error("struct bpf_tcp_sock has no field `{0}`")]
    TcpField(String),
}
