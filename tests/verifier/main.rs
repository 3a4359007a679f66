//! The verifier: verdicts, logs, facts and reports.

#[path = "../shared/mod.rs"]
mod explain;
mod shared;

mod corpus;
mod facts;
mod formats;
mod helpers;
mod locks;
mod log;
mod matrix;
mod mistakes;
mod mutants;
mod oracle;
mod random;
mod scalars;
