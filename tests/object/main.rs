//! Object files: opening, linking, changing, cases.

#[path = "../shared/mod.rs"]
mod shared;

mod bad;
mod cases;
mod change;
mod hostile;
mod link;
mod open;
