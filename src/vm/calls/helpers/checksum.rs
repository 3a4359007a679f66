//! Incremental updates of header checksums, and `bpf_csum_diff` (`net/core/filter.c`,
//! `include/net/checksum.h`).

use crate::vm::events::checksum::{add, folded, partial};
use crate::vm::machine::{Call, Returned};

/// A header's checksum after a 32-bit word (or an extended 16-bit word) was replaced
/// (`csum_replace4`). All in the packet's byte order.
pub(super) const fn replaced(checksum: u16, from: u32, to: u32) -> u16 {
    !folded(add(add(!checksum as u32, !from), to))
}

/// As [`replaced`] for 16-bit words (`csum_replace2`); the result can be the other zero.
pub(super) const fn replaced16(checksum: u16, from: u16, to: u16) -> u16 {
    !add16(add16(!checksum, !from), to)
}

/// Adds two 16-bit sums (`csum16_add`).
pub(super) const fn add16(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    sum.wrapping_add(carry as u16)
}

/// A header's checksum after a difference of partial sums was added to the data
/// (`csum_replace_by_diff`).
pub(super) const fn moved(checksum: u16, difference: u32) -> u16 {
    // The complement is taken in 32 bits: its upper half is all ones.
    !folded(add(difference, !(checksum as u32)))
}

/// The sum of a pseudo header, not complemented, after a word was replaced
/// (`inet_proto_csum_replace4`) or a difference was added.
pub(super) const fn pseudo_replaced(sum: u16, from: Option<u32>, to: u32) -> u16 {
    match from {
        Some(from) => folded(add(add(sum as u32, !from), to)),
        None => folded(add(to, sum as u32)),
    }
}

/// `bpf_csum_diff(from, its size, to, its size, seed)`: the checksum difference of replacing
/// `from` with `to`, in 16 bits. Linux 6.18 accepts any sizes.
pub(super) fn csum_diff(call: &mut Call<'_>) -> Returned {
    let (from_len, to_len, seed) = (call.size(2), call.size(4), call.arg_u32(5));
    let (from, to) = (call.read(1, from_len)?, call.read(3, to_len)?);
    let sum = match (from_len, to_len) {
        (0, 0) => seed,
        (0, _) => partial(&to, seed),
        (_, 0) => !partial(&from, !seed),
        _ => add(partial(&to, seed), !partial(&from, 0)),
    };
    Ok(folded(sum).into())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;

    fn words(words: [u32; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn differences_are_the_kernels() {
        let mut bench = Bench::new();
        let a = bench.memory(&words([0x1122_3344, 0xffff_ffff, 0, 0x8000_0001]));
        let b = bench.memory(&words([0xdead_beef, 1, 2, 3]));
        let zeros = bench.memory(&[0; 16]);
        let ones = bench.memory(&[0xff; 16]);
        // Results of Linux 6.18.
        for (args, want) in [
            ([0, 0, b, 16, 0], 0x9da3),
            ([a, 16, 0, 0, 0], 0x3b98),
            ([a, 16, b, 16, 0], 0xd93b),
            ([a, 8, b, 16, 0x1234_5678], 0xc1e9),
            ([0, 0, 0, 0, 0x1234_5678], 0x68ac),
            ([zeros, 16, zeros, 16, 0], 0xffff),
            ([ones, 16, 0, 0, 0], 0),
            ([0, 0, ones, 16, 0], 0xffff),
            ([ones, 16, ones, 16, 0], 0xffff),
            ([a, 16, a, 16, 0], 0xffff),
            ([a, 6, 0, 0, 0], 0xbb99),
            ([zeros, 16, 0, 0, 0xffff_ffff], 0xffff),
            ([zeros, 16, 0, 0, 0], 0),
        ] {
            assert_eq!(bench.ok(id::csum_diff, args), want, "{args:x?}");
        }
        let odd = bench.memory(&[1, 2, 3, 4, 5, 6, 7, 8]);
        for (args, want) in [
            ([odd, 3, 0, 0, 0], 65019),
            ([0, 0, odd, 5, 0], 1545),
            ([odd, 3, odd, 7, 0], 2572),
            ([0, 0, odd, 1, 0], 1),
        ] {
            assert_eq!(bench.ok(id::csum_diff, args), want, "{args:x?}");
        }
        assert!(bench.call(id::csum_diff, [a, 20, 0, 0, 0]).is_err());
    }

    #[test]
    fn a_replaced_word_keeps_a_header_valid() {
        let mut header = vec![
            0x45, 0, 0, 50, 0x12, 0x34, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let checksum = !folded(partial(&header, 0));
        let (from, to) = ([10, 0, 0, 1], [192, 168, 7, 9]);
        header[12..16].copy_from_slice(&to);
        let want = !folded(partial(&header, 0));
        let (from, to) = (u32::from_le_bytes(from), u32::from_le_bytes(to));
        assert_eq!(replaced(checksum, from, to), want);
        assert_eq!(moved(checksum, add(to, !from)), want);
    }
}
