//! Tests whether calls in tail position use no stack.

use std::sync::OnceLock;

/// Whether calls in tail position use no stack in this build: tested once.
pub(super) fn use_no_stack() -> bool {
    static HOLDS: OnceLock<bool> = OnceLock::new();
    *HOLDS.get_or_init(|| {
        let (mut first, mut last) = (0, 0);
        // Opaque to the compiler, so that it makes no loop of it.
        let itself = std::hint::black_box(Probe(probe));
        probe(&itself, CALLS, &mut first, &mut last, 0, 0);
        first == last
    })
}

/// How many calls the test makes.
const CALLS: u64 = 16;

/// A function that calls another one in tail position, as those of cells do.
struct Probe(fn(&Self, u64, &mut usize, &mut usize, u64, u64));

/// Calls itself and records the stack's position at the first and at the last call.
#[inline(never)]
fn probe(itself: &Probe, left: u64, first: &mut usize, last: &mut usize, a: u64, b: u64) {
    note(if left == CALLS {
        &mut *first
    } else {
        &mut *last
    });
    if left > 0 {
        (itself.0)(itself, left - 1, first, last, b, a);
    }
}

/// Records the stack's position.
#[inline(never)]
fn note(place: &mut usize) {
    let here = 0u8;
    *place = std::hint::black_box(&raw const here).addr();
}
