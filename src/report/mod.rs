//! Every rendering of what the other layers found: they give data, this gives text.

mod histogram;

pub use histogram::{Buckets, Histogram, Row};
