//! The verifier: verdicts, logs, facts and reports.

mod explain;
#[path = "../shared/mod.rs"]
mod shared;

mod attach_targets;
mod corpus;
mod facts;
mod findings;
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
mod unprivileged;
