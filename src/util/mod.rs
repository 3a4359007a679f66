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
