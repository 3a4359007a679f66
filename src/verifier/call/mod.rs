//! Calls of helpers, kfuncs and subprograms, and callbacks.

pub(crate) mod callback;
mod functions;
pub(crate) mod global;
pub(crate) mod helper;
mod kfunc;
pub(crate) mod return_code;
mod rewrite;
pub(crate) mod signature;
pub(crate) mod start;
pub(crate) mod subprogram;

pub(crate) use functions::Functions;

#[cfg(test)]
mod tests;
