//! Arrays of atomics, for data that programs don't see.

use zerocopy::FromZeros;

/// `len` zeros. Untouched pages use no memory.
pub(in crate::vm) fn zeroed<T: FromZeros>(len: usize) -> Box<[T]> {
    <[T]>::new_box_zeroed_with_elems(len).expect("memory for an array")
}
