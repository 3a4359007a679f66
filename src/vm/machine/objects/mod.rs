//! Objects that programs allocate, and what the running program holds: references, iterators,
//! critical sections. Freeing an object frees the lists and trees that it owns.

mod acquired;
mod contents;
mod live;
mod red_black;
mod references;
mod release;
mod words;

pub(in crate::vm) use acquired::{AcquiredResources, Iterator};
#[cfg(test)]
pub(in crate::vm) use contents::{take_list, take_tree};
pub(in crate::vm) use live::{Maker, Object, Objects, stride};
pub(in crate::vm) use red_black::{Side, Tree};
pub use release::{drop_object, free_fields};
pub(in crate::vm) use words::{NEXT, PREV, broken, link, load, next, store};
