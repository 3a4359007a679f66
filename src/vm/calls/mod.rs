//! What calls of helpers and kfuncs do.

pub mod dynptr;
pub mod helpers;
pub(super) mod inject;
pub mod kfuncs;
