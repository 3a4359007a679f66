//! Helpers on dynptrs (`kernel/bpf/helpers.c`, `kernel/bpf/ringbuf.c`).

use super::super::dynptr::access::{Use, init, load, store};
use super::super::dynptr::{Dynptr, DynptrKind};
use super::output;
use crate::util::Errno;
use crate::vm::machine::{Call, Returned};
use crate::vm::memory::AccessKind;

/// `E2BIG` for sizes above the limit of a dynptr.
const fn check_size(size: u32) -> Result<(), Errno> {
    if size > Dynptr::MAX_SIZE {
        return Err(Errno::E2BIG);
    }
    Ok(())
}

/// `bpf_dynptr_from_mem(memory, size, flags, dynptr)`: makes a dynptr to memory.
pub(super) fn from_mem(call: &mut Call<'_>) -> Returned {
    let (data, size, flags) = (call.arg(1), call.arg_u32(2), call.arg(3));
    let made = match (check_size(size), flags) {
        (Err(errno), _) => Err(errno),
        (Ok(()), 0) => Ok(Dynptr::new(DynptrKind::Local, data, size)),
        _ => Err(Errno::EINVAL),
    };
    if made.is_ok() {
        call.check(1, size as usize, AccessKind::Write)?;
    }
    init(call, 4, made)
}

/// `bpf_ringbuf_reserve_dynptr(ring buffer, size, flags, dynptr)`: reserves a record.
pub(super) fn reserve(call: &mut Call<'_>) -> Returned {
    let (size, flags) = (call.arg_u32(2), call.arg(3));
    let made = match check_size(size) {
        _ if flags != 0 => Err(Errno::EINVAL),
        Err(errno) => Err(errno),
        // A full ring buffer makes a null dynptr.
        Ok(()) => match output::reserve(call, 1, size.into())? {
            0 => Err(Errno::EINVAL),
            record => Ok(Dynptr::new(DynptrKind::Ringbuf, record, size)),
        },
    };
    init(call, 4, made)
}

/// `bpf_ringbuf_submit_dynptr(dynptr, flags)`: submits the record.
pub(super) fn submit(call: &mut Call<'_>) -> Returned {
    give_back(call, false)
}

/// `bpf_ringbuf_discard_dynptr(dynptr, flags)`: discards the record.
pub(super) fn discard(call: &mut Call<'_>) -> Returned {
    give_back(call, true)
}

/// Ends a reservation. A failed reservation left a null dynptr; ending it is not an error.
fn give_back(call: &mut Call<'_>, discard: bool) -> Returned {
    let pointer = load(call, 1)?;
    if pointer.is_null() {
        return Ok(0);
    }
    if pointer.kind() != Some(DynptrKind::Ringbuf) {
        return Err(call.wrong(1, "a dynptr from bpf_ringbuf_reserve_dynptr"));
    }
    output::give_back(call, 1, pointer.data, discard)?;
    store(call, 1, Dynptr::NULL)?;
    Ok(0)
}

/// `bpf_dynptr_read(destination, size, dynptr, offset, flags)`: copies bytes out.
pub(super) fn read(call: &mut Call<'_>) -> Returned {
    let (len, offset, flags) = (call.arg_u32(2), call.arg_u32(4), call.arg(5));
    call.check(1, len as usize, AccessKind::Write)?;
    let from = Use::of(call, 3)?;
    if flags != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    match from.read(call, offset, len)? {
        Ok(bytes) => call.write(1, &bytes).map(|()| 0),
        Err(errno) => {
            // If the packet has no such bytes, the program gets zeros.
            if from.clears(errno) {
                call.write(1, &vec![0; len as usize])?;
            }
            Ok(errno.to_ret())
        }
    }
}

/// `bpf_dynptr_write(dynptr, offset, source, size, flags)`: copies bytes in.
pub(super) fn write(call: &mut Call<'_>) -> Returned {
    let (offset, size, flags) = (call.arg_u32(2), call.size(4), call.arg(5));
    let to = Use::of(call, 1)?;
    let bytes = call.read(3, size)?;
    let written = to.write(call, offset, &bytes, flags)?;
    Ok(written.err().map_or(0, Errno::to_ret))
}

/// `bpf_dynptr_data(dynptr, offset, size)`: the address of the bytes; 0 for a packet, whose
/// bytes may not be contiguous.
pub(super) fn data(call: &mut Call<'_>) -> Returned {
    let (offset, len) = (call.arg_u32(2), call.arg_u32(3));
    let of = Use::of(call, 1)?;
    match of.pointer.kind() {
        Some(DynptrKind::Skb | DynptrKind::Xdp | DynptrKind::SkbMeta) => Ok(0),
        _ => Ok(of.slice_to_write(call, offset, len)?.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;
    use crate::spec::{MapType, ProgType};
    use crate::vm::HelperProblem;
    use crate::vm::events::Event;
    use crate::vm::machine::Output;

    /// The dynptr at an address.
    fn at(bench: &Bench, pointer: u64) -> Dynptr {
        Dynptr::load(&bench.machine.space, pointer).unwrap()
    }

    #[test]
    fn memory_of_the_program_is_read_and_written_in_bounds() {
        let mut bench = Bench::new();
        let (memory, pointer) = (
            bench.memory(&[1, 2, 3, 4, 5, 6, 7, 8]),
            bench.memory(&[9; 16]),
        );
        assert_eq!(bench.ok(id::dynptr_from_mem, [memory, 8, 0, pointer]), 0);
        assert_eq!(
            at(&bench, pointer),
            Dynptr::new(DynptrKind::Local, memory, 8)
        );
        let to = bench.memory(&[0; 4]);
        assert_eq!(bench.ok(id::dynptr_read, [to, 4, pointer, 4, 0]), 0);
        assert_eq!(bench.bytes(to, 4), [5, 6, 7, 8]);
        assert_eq!(
            bench.errno(id::dynptr_read, [to, 4, pointer, 5, 0]),
            Errno::E2BIG
        );
        assert_eq!(
            bench.errno(id::dynptr_read, [to, 4, pointer, 0, 1]),
            Errno::EINVAL
        );
        assert_eq!(bench.bytes(to, 4), [5, 6, 7, 8], "errors write nothing");
        assert_eq!(bench.ok(id::dynptr_write, [pointer, 1, to, 4, 0]), 0);
        assert_eq!(bench.bytes(memory, 8), [1, 5, 6, 7, 8, 6, 7, 8]);
        assert_eq!(
            bench.errno(id::dynptr_write, [pointer, 5, to, 4, 0]),
            Errno::E2BIG
        );
        assert_eq!(
            bench.errno(id::dynptr_write, [pointer, 0, to, 4, 2]),
            Errno::EINVAL
        );
        assert_eq!(bench.ok(id::dynptr_data, [pointer, 2, 6]), memory + 2);
        assert_eq!(bench.ok(id::dynptr_data, [pointer, 3, 6]), 0);
        // Overlapping bytes are moved correctly (memmove).
        assert_eq!(bench.ok(id::dynptr_read, [memory + 1, 4, pointer, 0, 0]), 0);
        assert_eq!(bench.bytes(memory, 8), [1, 1, 5, 6, 7, 6, 7, 8]);
    }

    #[test]
    fn what_can_not_be_made_is_null() {
        let mut bench = Bench::new();
        let (memory, pointer) = (bench.memory(&[0; 8]), bench.memory(&[9; 16]));
        let make = [memory, 8, 1, pointer];
        assert_eq!(bench.errno(id::dynptr_from_mem, make), Errno::EINVAL);
        assert_eq!(at(&bench, pointer), Dynptr::NULL);
        let make = [memory, 1 << 24, 1, pointer];
        assert_eq!(bench.errno(id::dynptr_from_mem, make), Errno::E2BIG);
        assert_eq!(
            bench.errno(id::dynptr_read, [memory, 0, pointer, 0, 0]),
            Errno::EINVAL
        );
        assert_eq!(
            bench.errno(id::dynptr_write, [pointer, 0, memory, 0, 0]),
            Errno::EINVAL
        );
        assert_eq!(bench.ok(id::dynptr_data, [pointer, 0, 0]), 0);
        // The verifier rejects these calls.
        assert!(
            bench
                .call(id::dynptr_from_mem, [memory, 9, 0, pointer])
                .is_err()
        );
        assert!(
            bench
                .call(id::dynptr_from_mem, [memory, 8, 0, memory])
                .is_err()
        );
        let junk = bench.memory(&[0xff; 16]);
        let problem = bench
            .call(id::dynptr_read, [memory, 1, junk, 0, 0])
            .unwrap_err();
        assert_eq!(
            problem.to_string(),
            "argument 3 is memory, expected an initialised dynptr"
        );
    }

    #[test]
    fn records_are_reserved_with_a_size_known_at_run_time() {
        let mut bench = Bench::new();
        let (map, ..) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let (pointer, data) = (bench.memory(&[9; 16]), bench.memory(&[1, 2, 3]));
        let reserve = id::ringbuf_reserve_dynptr;
        assert_eq!(bench.ok(reserve, [map, 5, 0, pointer]), 0);
        assert_eq!(bench.machine.unreleased().len(), 1);
        assert_eq!(bench.ok(id::dynptr_write, [pointer, 2, data, 3, 0]), 0);
        assert_eq!(
            bench.errno(id::dynptr_write, [pointer, 3, data, 3, 0]),
            Errno::E2BIG
        );
        let inside = bench.ok(id::dynptr_data, [pointer, 0, 2]);
        bench.machine.space.store(inside, 2, 0x0807).unwrap();
        assert_eq!(bench.ok(id::ringbuf_submit_dynptr, [pointer, 0]), 0);
        let submitted = Output::RingBuf {
            map: "m".into(),
            data: vec![7, 8, 1, 2, 3],
        };
        assert_eq!(bench.machine.take_outputs(), [submitted]);
        assert_eq!(at(&bench, pointer), Dynptr::NULL);
        assert_eq!(
            bench.ok(id::ringbuf_discard_dynptr, [pointer, 0]),
            0,
            "null"
        );

        assert_eq!(bench.errno(reserve, [map, 5, 1, pointer]), Errno::EINVAL);
        assert_eq!(
            bench.errno(reserve, [map, 1 << 24, 0, pointer]),
            Errno::E2BIG
        );
        assert_eq!(bench.errno(reserve, [map, 5000, 0, pointer]), Errno::EINVAL);
        let full = Output::Lost {
            map: "m".into(),
            error: Errno::EAGAIN,
        };
        assert_eq!(bench.machine.take_outputs(), [full]);
        assert_eq!(bench.ok(reserve, [map, 5, 0, pointer]), 0);
        assert_eq!(bench.ok(id::ringbuf_discard_dynptr, [pointer, 0]), 0);
        assert!(bench.machine.take_outputs().is_empty());
        assert_eq!(bench.machine.unreleased().len(), 0);
        assert_eq!(bench.ok(id::dynptr_from_mem, [data, 3, 0, pointer]), 0);
        let problem = bench
            .call(id::ringbuf_submit_dynptr, [pointer, 0])
            .unwrap_err();
        assert!(matches!(problem, HelperProblem::Argument { arg: 1, .. }));
    }

    #[test]
    fn a_packet_has_no_address_by_this_helper() {
        let mut bench = Bench::on(ProgType::Xdp, &Event::packet([7; 60]));
        let (context, pointer) = (bench.context(), bench.memory(&[0; 16]));
        let made = Dynptr::new(DynptrKind::Xdp, context, 60);
        made.store(&bench.machine.space, pointer).unwrap();
        assert_eq!(bench.ok(id::dynptr_data, [pointer, 0, 1]), 0);
        let to = bench.memory(&[0; 4]);
        assert_eq!(bench.ok(id::dynptr_read, [to, 4, pointer, 56, 0]), 0);
        assert_eq!(bench.bytes(to, 4), [7; 4]);
        assert_eq!(
            bench.errno(id::dynptr_read, [to, 4, pointer, 57, 0]),
            Errno::E2BIG
        );
        assert_eq!(
            bench.errno(id::dynptr_write, [pointer, 0, to, 4, 1]),
            Errno::EINVAL
        );
        // The dynptr keeps its size when the packet's end moves.
        assert_eq!(
            bench.ok(id::xdp_adjust_tail, [context, (-10i64).cast_unsigned()]),
            0
        );
        assert_eq!(
            bench.errno(id::dynptr_read, [to, 4, pointer, 50, 0]),
            Errno::EINVAL
        );
    }
}
