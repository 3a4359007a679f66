//! What every layer needs and none of them owns: positions and numbers with a
//! type of their own, a reader of bytes whose every error carries its offset, and the way
//! in which times are taken.

mod bursts;
mod errno;
mod glob;
mod ids;
mod nearest;
mod reader;

pub use bursts::{Bursts, median};
pub use errno::Errno;
pub use glob::glob;
pub use ids::{HelperId, MapId, Pc, TypeId};
pub use nearest::nearest_first;
pub use reader::{ReadError, Reader};

/// Whether this test runs in an emulator, as `.ci/run` says: a process with several threads
/// that starts another one there may wait for ever, for a lock that some thread held.
#[cfg(test)]
pub(crate) fn is_emulated() -> bool {
    std::env::var_os("BPFLAB_EMULATED").is_some()
}
