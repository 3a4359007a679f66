//! What every layer needs and none of them owns: positions and numbers with a
//! type of their own, and a reader of bytes whose every error carries its offset.

mod errno;
mod ids;
mod reader;

pub use errno::Errno;
pub use ids::{HelperId, MapId, Pc, TypeId};
pub use reader::{ReadError, Reader};
