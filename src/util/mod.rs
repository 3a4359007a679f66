//! Utilities for all layers: types for positions and ids, a byte reader whose errors carry
//! the offset, and timing of short runs.

mod base_name;
mod bursts;
pub(crate) mod compressed;
mod errno;
mod glob;
mod ids;
mod nearest;
mod reader;
mod with;

pub(crate) use base_name::base_name;
pub use bursts::{Bursts, median};
pub use errno::Errno;
pub use glob::glob;
pub use ids::{HelperId, MapId, Pc, TypeId};
pub use nearest::nearest_first;
pub use reader::{ReadError, Reader};
pub(crate) use with::with;
