//! Bit-granular numbers in little-endian bytes.

/// A mask of the lowest `count` bits.
fn mask(count: u32) -> u128 {
    1u128.checked_shl(count).map_or(u128::MAX, |bit| bit - 1)
}

/// The bytes that contain the bits, and the offset of the first bit in them.
fn window(offset: u64, count: u32) -> Option<(std::ops::Range<usize>, u32)> {
    let start = usize::try_from(offset / 8).ok()?;
    let end = usize::try_from(offset.checked_add(u64::from(count))?.div_ceil(8)).ok()?;
    Some((start..end.max(start), u32::try_from(offset % 8).ok()?))
}

/// Reads `count` bits (at most 128) from bit `offset` on; `None` if some are out of bounds.
pub(super) fn read(bytes: &[u8], offset: u64, count: u32) -> Option<u128> {
    let (range, shift) = window(offset, count)?;
    let mut low = [0; 16];
    let mut ninth = 0;
    for (index, byte) in bytes.get(range)?.iter().enumerate() {
        *low.get_mut(index).unwrap_or(&mut ninth) = *byte;
    }
    // A 17th byte is needed if 128 bits don't start at a byte boundary.
    let high = u128::from(ninth)
        .checked_shl(128 - shift)
        .unwrap_or_default();
    Some((u128::from_le_bytes(low) >> shift | high) & mask(count))
}

/// Writes the lowest `count` bits (at most 128) of `value` from bit `offset` on; false if
/// they don't fit.
pub(super) fn write(bytes: &mut [u8], offset: u64, count: u32, value: u128) -> bool {
    let Some((range, shift)) = window(offset, count) else {
        return false;
    };
    let Some(bytes) = bytes.get_mut(range) else {
        return false;
    };
    let mut left = count;
    let mut value = value & mask(count);
    let mut shift = shift;
    for byte in bytes {
        let here = (8 - shift).min(left);
        let ones = u8::try_from(mask(here)).unwrap_or(u8::MAX);
        let [bits, ..] = value.to_le_bytes();
        *byte = *byte & !(ones << shift) | (bits & ones) << shift;
        value >>= here;
        left -= here;
        shift = 0;
    }
    true
}

/// Sign-extends a number of `count` bits.
pub(super) fn sign_extend(value: u128, count: u32) -> i128 {
    let shift = 128u32.saturating_sub(count);
    (value.checked_shl(shift).unwrap_or_default()).cast_signed() >> shift.min(127)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else_changes(
            mut bytes in prop::array::uniform32(any::<u8>()),
            offset in 0u64..128, count in 1u32..=128, value: u128,
        ) {
            let before = bytes;
            prop_assert!(write(&mut bytes, offset, count, value));
            prop_assert_eq!(read(&bytes, offset, count), Some(value & mask(count)));
            let bit = |bytes: &[u8], at: u64| read(bytes, at, 1);
            for at in (0..256).filter(|at| !(offset..offset + u64::from(count)).contains(at)) {
                prop_assert_eq!(bit(&bytes, at), bit(&before, at));
            }
        }

        #[test]
        fn signs_extend(value: i64, count in 1u32..=64) {
            let shifted = value << (64 - count) >> (64 - count);
            let bits = u128::from(value.cast_unsigned()) & mask(count);
            prop_assert_eq!(sign_extend(bits, count), i128::from(shifted));
        }
    }

    #[test]
    fn bits_outside_are_refused() {
        assert_eq!(read(&[0; 4], 30, 3), None);
        assert_eq!(read(&[0; 4], u64::MAX, 3), None);
        assert!(!write(&mut [0; 4], 32, 1, 0));
    }
}
