//! Soundness tests by enumeration: the instruction is executed on each member of small
//! sets, and each result must be a member of the set computed for them.
//!
//! The functions take 64-bit and 32-bit scalars. The sets are small because their numbers
//! differ in a few bits only, at the critical positions: around zero, at the sign bits and
//! at the middle of the register.

mod arithmetic;
mod branches;
mod exact;
mod known;
mod lattice;
mod wide;

use super::{Scalar, low32};
use crate::verifier::tnum::Tnum;

/// A scalar and its members in the window.
struct Set {
    number: Scalar,
    members: Vec<u64>,
}

/// `1 << bits` numbers, the first half below the middle, `step` apart.
fn window(middle: u64, step: u64, bits: u32) -> Vec<u64> {
    let half = 1u64 << (bits - 1);
    (0..2 * half)
        .map(|index| middle.wrapping_add(index.wrapping_sub(half).wrapping_mul(step)))
        .collect()
}

/// The windows of this many bits.
fn windows(bits: u32) -> [Vec<u64>; 7] {
    [
        window(1 << (bits - 1), 1, bits),
        window(0, 1, bits),
        window(1 << 31, 1, bits),
        window(1 << 32, 1, bits),
        window(1 << 63, 1, bits),
        // The low bits are zero; the numbers differ across the middle or at the top.
        window(0, 1 << (32 - bits / 2), bits),
        window(0, 1 << (64 - bits), bits),
    ]
}

/// The sets in a window: the common bits of any two of its numbers, and the interval
/// between any two, in each of the four readings.
fn sets(window: &[u64]) -> Vec<Set> {
    let all = window
        .iter()
        .map(|&x| Tnum::constant(x))
        .reduce(Tnum::union);
    let any = Scalar {
        bits: all.unwrap_or(Tnum::UNKNOWN),
        ..Scalar::UNKNOWN
    };
    let mut sets: Vec<Set> = Vec::new();
    for (x, y) in pairs(window) {
        let bits = Tnum::constant(x).union(Tnum::constant(y));
        let (low, high) = (x.min(y), x.max(y));
        let ends = ends(x, y);
        let candidates = [
            Scalar { bits, ..any },
            // The bits without the smallest number: bounds and bits must agree on the next.
            Scalar {
                bits,
                umin: low.saturating_add(1),
                ..any
            },
            Scalar {
                bits,
                smax: ends.smax.saturating_sub(1),
                ..any
            },
            Scalar {
                umin: low,
                umax: high,
                ..any
            },
            Scalar {
                smin: ends.smin,
                smax: ends.smax,
                ..any
            },
            Scalar {
                umin32: ends.umin32,
                umax32: ends.umax32,
                ..any
            },
            Scalar {
                smin32: ends.smin32,
                smax32: ends.smax32,
                ..any
            },
        ];
        for number in candidates.map(Scalar::synced) {
            let members = members(&number, window);
            if !members.is_empty() && !sets.iter().any(|set| set.number == number) {
                sets.push(Set { number, members });
            }
        }
    }
    sets
}

/// All pairs of numbers, including a number with itself.
fn pairs(numbers: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    numbers
        .iter()
        .enumerate()
        .flat_map(|(index, &x)| numbers[index..].iter().map(move |&y| (x, y)))
}

fn members(number: &Scalar, window: &[u64]) -> Vec<u64> {
    let all = window.iter().copied();
    all.filter(|&x| number.contains(x)).collect()
}

/// The intervals between two numbers, in each reading; all bits unknown.
fn ends(x: u64, y: u64) -> Scalar {
    let signed = [x.cast_signed(), y.cast_signed()];
    let low = [low32(x), low32(y)];
    let low_signed = low.map(u32::cast_signed);
    Scalar {
        bits: Tnum::UNKNOWN,
        umin: x.min(y),
        umax: x.max(y),
        smin: signed[0].min(signed[1]),
        smax: signed[0].max(signed[1]),
        umin32: low[0].min(low[1]),
        umax32: low[0].max(low[1]),
        smin32: low_signed[0].min(low_signed[1]),
        smax32: low_signed[0].max(low_signed[1]),
    }
}
