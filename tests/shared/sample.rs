//! How many of its cases a test with many takes: one in seven by default, so that `cargo test` takes
//! minutes. `BPFLAB_ALL_CASES=1` takes all, as `.ci/run` does.

use std::ops::Div;

/// The variable that asks for all cases.
pub const ALL: &str = "BPFLAB_ALL_CASES";
/// A prime, so that a period in the cases hides none of them for good.
const ONE_IN: u16 = 7;

/// Whether all cases are taken.
pub fn all() -> bool {
    std::env::var_os(ALL).is_some_and(|value| value != "0")
}

/// The distance of two cases that are taken.
pub fn step() -> usize {
    if all() { 1 } else { ONE_IN.into() }
}

/// The number of cases to take of so many; never 0.
pub fn cases<N: From<u16> + Div<Output = N> + Ord>(count: N) -> N {
    let least = N::from(1);
    if all() {
        count
    } else {
        (count / N::from(ONE_IN)).max(least)
    }
}
