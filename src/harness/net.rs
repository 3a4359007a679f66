//! Sockets of the mocked network, for tests that hand them to maps.

use super::error::Result;
use super::vm::Vm;
use crate::vm::world::SocketId;

impl Vm {
    /// The address of a socket's `struct bpf_sock`, the same one each time, as programs see
    /// it. `None` if the network has no such socket.
    ///
    /// # Errors
    /// [`Error::Kernel`](super::Error::Kernel) where there are too many objects.
    pub fn socket_address(&mut self, id: SocketId) -> Result<Option<u64>> {
        Ok(self.machine.socket_address(id)?)
    }
}
