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
    let seed = call.arg_u32(5);
    // The order matters to which of ones' complement's two zeros comes out.
    let sum = match (from.is_empty(), to.is_empty()) {
        (false, false) => add(add(seed, !words(&from)), words(&to)),
        (false, true) => !add(!seed, words(&from)),
        (true, _) => add(seed, words(&to)),
    };
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

/// Writes packet bytes (`bpf_skb_store_bytes`).
pub(super) fn skb_store_bytes(call: &mut Call<'_>) -> Result {
    /// `BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH`.
    const FLAGS: u64 = 1 | 2;
    if call.arg(5) & !FLAGS != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    xdp_store_bytes(call)
}

/// Writes packet bytes; `EFAULT` where the packet is shorter
/// (`bpf_xdp_store_bytes`).
pub(super) fn xdp_store_bytes(call: &mut Call<'_>) -> Result {
    let (offset, len) = (call.size(2), call.size(4));
    let bytes = call.read(3, len)?;
    let machine = &call.machine;
    let placed = machine.current().map(|current| &current.placed);
    let stored = placed.and_then(|placed| placed.store_packet(&machine.space, offset, &bytes));
    Ok(stored.map_or(Errno::EFAULT.to_ret(), |()| 0))
}

/// Adds to the checksum that the device computed, which a packet from a test does
/// not have (`bpf_csum_update`).
pub(super) fn csum_update(_call: &mut Call<'_>) -> Result {
    Ok(Errno::ENOTSUPP.to_ret())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::ProgType;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;

    fn difference(from: &[u8], to: &[u8], seed: u64) -> u64 {
        let mut bench = Bench::new();
        let pointers = [from, to].map(|bytes| match bytes {
            [] => 0,
            bytes => bench.memory(bytes),
        });
        let sizes = [from.len() as u64, to.len() as u64];
        let args = [pointers[0], sizes[0], pointers[1], sizes[1], seed];
        bench.call(id::csum_diff, args).unwrap()
    }

    /// What Linux 6.18 returned.
    #[test]
    fn a_difference_takes_one_checksum_to_another() {
        let number = |n: u32| n.to_le_bytes();
        let (one, all, x) = (number(1), number(u32::MAX), number(0x1234_5678));
        let four = [one, all, x, [0; 4]].concat();
        assert_eq!(difference(&[], &one, 0), 1);
        assert_eq!(difference(&[], &all, 0), 0xffff);
        assert_eq!(difference(&[], &[0; 8], 0), 0);
        assert_eq!(difference(&four[..8], &[], 5), 4);
        assert_eq!(difference(&one, &four[8..], 0), 26_795);
        assert_eq!(difference(&[], &[], 0x1_0000), 1);
        assert_eq!(difference(&four, &four, 0), 0xffff);
        assert_eq!(difference(&[0; 8], &[0; 8], 0), 0xffff);
        assert_eq!(difference(&[0; 8], &[], 0), 0);
        assert_eq!(difference(&[], &[], u64::from(u32::MAX)), 0xffff);
        assert_eq!(difference(&x, &[], 0x9abc_def0), 4353);
        assert_eq!(difference(&[0; 8], &[], u64::from(u32::MAX)), 0xffff);
        assert_eq!(difference(&[1; 3], &[], 0), Errno::EINVAL.to_ret());
        assert_eq!(difference(&[], &[1; 5], 0), Errno::EINVAL.to_ret());
    }

    #[test]
    fn packet_bytes_are_stored_whole_or_not_at_all() {
        let mut bench = Bench::new();
        let event = Event::packet(vec![0; 64]);
        let placed = event
            .place(ProgType::SchedCls, &mut bench.machine.space)
            .unwrap();
        bench.machine.enter(ProgType::SchedCls, placed);
        let from = bench.memory(&[1, 2, 3, 4]);
        assert_eq!(bench.call(id::skb_store_bytes, [0, 60, from, 4, 0]), Ok(0));
        assert_eq!(bench.machine.packet_bytes(60, 4), Some(vec![1, 2, 3, 4]));
        let efault = Errno::EFAULT.to_ret();
        assert_eq!(
            bench.call(id::skb_store_bytes, [0, 61, from, 4, 0]),
            Ok(efault)
        );
        let einval = Errno::EINVAL.to_ret();
        assert_eq!(
            bench.call(id::skb_store_bytes, [0, 0, from, 4, 4]),
            Ok(einval)
        );
    }

    #[test]
    fn packet_bytes_are_loaded_whole_or_not_at_all() {
        let mut bench = Bench::new();
        let packet: Vec<u8> = (0..64).collect();
        for (helper, prog_type) in [
            (id::skb_load_bytes, ProgType::SchedCls),
            (id::xdp_load_bytes, ProgType::Xdp),
        ] {
            let placed = Event::packet(packet.clone())
                .place(prog_type, &mut bench.machine.space)
                .unwrap();
            let context = placed.r1();
            bench.machine.enter(prog_type, placed);
            let to = bench.memory(&[0xee; 4]);
            assert_eq!(bench.call(helper, [context, 60, to, 4]), Ok(0));
            assert_eq!(bench.bytes(to, 4), [60, 61, 62, 63]);
            let efault = Errno::EFAULT.to_ret();
            assert_eq!(bench.call(helper, [context, 61, to, 4]), Ok(efault));
            assert_eq!(bench.bytes(to, 4), [0; 4]);
            assert_eq!(bench.call(helper, [context, 1 << 31, to, 4]), Ok(efault));
            assert!(bench.call(helper, [context, 0, to, 5]).is_err());
        }
    }
}
