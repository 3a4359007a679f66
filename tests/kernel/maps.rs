//! bpflab's maps against the running kernel's: which can be created, and random operations on
//! both, which must give the same results, errnos and contents.

mod creation;
mod evicting;
use crate::shared::here;
mod holding;
mod law;
mod locking;
mod operation;
mod pair;
mod records;
mod side;
