//! Internet checksums as the kernel computes them (RFC 1071, `include/net/checksum.h`).
//!
//! A partial sum is a `u32` in one's complement: 0 only if all added bytes are zero, all ones
//! for any other zero.

/// Adds two partial sums (`csum_add`).
#[must_use]
pub const fn add(left: u32, right: u32) -> u32 {
    let (sum, carry) = left.overflowing_add(right);
    sum.wrapping_add(carry as u32)
}

/// Adds bytes to a partial sum (`csum_partial`).
#[must_use]
pub fn partial(bytes: &[u8], sum: u32) -> u32 {
    bytes.chunks(4).fold(sum, |sum, chunk| {
        let mut word = [0; 4];
        word.iter_mut()
            .zip(chunk)
            .for_each(|(to, from)| *to = *from);
        add(sum, u32::from_le_bytes(word))
    })
}

/// Folds a partial sum to 16 bits (`csum_from32to16`).
#[must_use]
pub const fn folded(sum: u32) -> u16 {
    let [a, b, c, d] = sum.to_le_bytes();
    let (low, high) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    let (sum, carry) = low.overflowing_add(high);
    sum.wrapping_add(carry as u16)
}

/// The partial sum of bytes at offset `at` of the summed data (`csum_block_add`): at an odd
/// offset high and low bytes are swapped.
#[must_use]
pub const fn shifted(sum: u32, at: usize) -> u32 {
    if at.is_multiple_of(2) {
        sum
    } else {
        sum.rotate_right(8)
    }
}
