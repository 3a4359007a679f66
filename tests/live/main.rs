//! Programs attached to the running kernel, recordings and replays.

#[path = "../shared/mod.rs"]
mod shared;

mod record;
mod relay;
mod replay;
