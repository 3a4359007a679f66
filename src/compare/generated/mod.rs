//! Generated programs.
mod batch;
