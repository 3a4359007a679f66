//! Packets and their checksums (`net/core/filter.c`).

use super::super::fault::HelperProblem;
use super::super::memory::AccessKind;
use super::call::Call;
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

/// Adds with the carry put back in: the sum of 16- or 32-bit words in ones'
/// complement (RFC 1071).
const fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u32
}

/// The difference that replacing `from` by `to` makes to a checksum, on top of
/// `seed`, folded to 16 bits as Linux since 6.13 does on every machine.
pub(super) fn csum_diff(call: &mut Call<'_>) -> Result {
    let (from_size, to_size) = (call.size(2), call.size(4));
    if !from_size.is_multiple_of(4) || !to_size.is_multiple_of(4) {
        return Ok(Errno::EINVAL.to_ret());
    }
    let (from, to) = (call.read(1, from_size)?, call.read(3, to_size)?);
    let words = |bytes: &[u8]| {
        let (words, _) = bytes.as_chunks::<4>();
        words
            .iter()
            .fold(0, |sum, word| add(sum, u32::from_ne_bytes(*word)))
    };
    let mut sum = call.arg_u32(5);
    if !from.is_empty() {
        sum = add(sum, !words(&from));
    }
    sum = add(sum, words(&to));
    Ok((add(sum, sum.rotate_left(16)) >> 16).into())
}

/// Reads packet bytes into the program's memory; zeros and `EFAULT` where the
/// packet is shorter (`bpf_skb_load_bytes`, `net/core/filter.c`).
pub(super) fn load_bytes(call: &mut Call<'_>) -> Result {
    let (offset, len) = (call.arg_u32(2), call.size(4));
    call.check(3, len, AccessKind::Write)?;
    let offset = i32::try_from(offset).ok();
    let bytes = offset.and_then(|offset| call.machine.packet_bytes(offset, len));
    match bytes {
        Some(bytes) => call.write(3, &bytes).map(|()| 0),
        None => call
            .write(3, &vec![0; len])
            .map(|()| Errno::EFAULT.to_ret()),
    }
}
