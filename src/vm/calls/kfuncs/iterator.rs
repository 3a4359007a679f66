//! Iterators over numbers and bits (`kernel/bpf/bpf_iter.c`, `kernel/bpf/helpers.c`), and
//! code shared by all kinds.
//!
//! The state of an iterator is in the machine, found by the iterator's address on the stack.
//! The verifier rejects writes to that address; if an unverified program writes there, no
//! harm is done.

use crate::spec::call::IteratorKind;
use crate::spec::limits;
use crate::util::Errno;
use crate::vm::machine::objects::Iterator;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

/// The minimum size of an iterator.
const MIN_SIZE: usize = 8;

/// Creates an iterator of `size` bytes at argument 1. After an error the iterator exists but
/// is empty, so a program can advance and destroy it.
pub(super) fn begin(
    call: &mut Call<'_>,
    size: usize,
    iterator: Iterator,
) -> std::result::Result<(), HelperProblem> {
    call.check(1, size, AccessKind::Write)?;
    let at = call.arg(1);
    let name = iterator.kind().structure();
    if call.machine.acquired().begin(at, iterator) {
        return Ok(());
    }
    let problem = format!("there is an iterator already: {name}_destroy() ends it first");
    Err(HelperProblem::Other(problem))
}

/// Creates an empty iterator of this kind.
pub(super) fn begin_empty(
    call: &mut Call<'_>,
    kind: IteratorKind,
) -> std::result::Result<(), HelperProblem> {
    let left = Vec::new().into_iter();
    begin(call, MIN_SIZE, Iterator::Objects { kind, left })
}

/// The iterator of this kind at argument 1.
pub(super) fn under_way<'a>(
    call: &'a mut Call<'_>,
    kind: IteratorKind,
) -> std::result::Result<&'a mut Iterator, HelperProblem> {
    let at = call.arg(1);
    match call.machine.acquired().iterator(at) {
        Some(iterator) if iterator.kind() == kind => Ok(iterator),
        Some(iterator) => Err(HelperProblem::Other(format!(
            "the iterator there is a {}",
            iterator.kind().structure()
        ))),
        None => Err(HelperProblem::Other(format!(
            "there is no iterator: {}_new() makes one first",
            kind.structure()
        ))),
    }
}

/// Destroys the iterator of this kind at argument 1.
pub(super) fn end(call: &mut Call<'_>, kind: IteratorKind) -> Result {
    under_way(call, kind)?;
    let at = call.arg(1);
    call.machine.acquired().end(at);
    Ok(0)
}

/// Size of `struct bpf_iter_num`: the number and the end.
const NUM_SIZE: usize = 8;

pub(super) fn num_new(call: &mut Call<'_>) -> Result {
    let (start, end) = (call.arg_i32(2), call.arg_i32(3));
    let count = i64::from(end) - i64::from(start);
    let problem = if count < 0 {
        Some(Errno::EINVAL)
    } else if count > i64::from(limits::MAX_LOOPS) {
        Some(Errno::E2BIG)
    } else {
        None
    };
    let iterator = match problem {
        None => Iterator::Num {
            last: start.wrapping_sub(1),
            end,
        },
        Some(_) => Iterator::Num { last: 0, end: 0 },
    };
    begin(call, NUM_SIZE, iterator)?;
    Ok(problem.map_or(0, Errno::to_ret))
}

/// `bpf_iter_num_next`: the address of the next number, which is the iterator's.
pub(super) fn num_next(call: &mut Call<'_>) -> Result {
    let Iterator::Num { last, end } = under_way(call, IteratorKind::Num)? else {
        return Ok(0);
    };
    let next = last.wrapping_add(1);
    if next >= *end {
        (*last, *end) = (0, 0);
        return Ok(0);
    }
    *last = next;
    call.write(1, &next.to_le_bytes())?;
    Ok(call.arg(1))
}

pub(super) fn num_destroy(call: &mut Call<'_>) -> Result {
    end(call, IteratorKind::Num)
}

/// Size of `struct bpf_iter_bits`, and the offset of the bit's number.
const BITS_SIZE: usize = 16;
const BIT_AT: u64 = 12;
/// The most words (`BITS_ITER_NR_WORDS_MAX`).
const MAX_WORDS: u32 = 511;

pub(super) fn bits_new(call: &mut Call<'_>) -> Result {
    let (from, count) = (call.arg(2), call.arg_u32(3));
    let words = if from == 0 || count == 0 {
        Err(Errno::EINVAL)
    } else if count > MAX_WORDS {
        Err(Errno::E2BIG)
    } else {
        let mut bytes = vec![0; count as usize * 8];
        let read = call.machine.space.probe(from, &mut bytes);
        let (words, _) = bytes.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        read.map(|()| words).ok_or(Errno::EFAULT)
    };
    let result = words.as_ref().err().map_or(0, |errno| errno.to_ret());
    let words: Vec<u64> = words.unwrap_or_default();
    begin(call, BITS_SIZE, Iterator::Bits { words, next: 0 })?;
    Ok(result)
}

/// `bpf_iter_bits_next`: the address of the next bit's number.
pub(super) fn bits_next(call: &mut Call<'_>) -> Result {
    let Iterator::Bits { words, next } = under_way(call, IteratorKind::Bits)? else {
        return Ok(0);
    };
    let is_set = |bit: &usize| {
        words
            .get(bit / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 1)
    };
    let Some(bit) = (*next..words.len() * 64).find(is_set) else {
        *next = words.len() * 64;
        return Ok(0);
    };
    *next = bit + 1;
    let at = call.arg(1).wrapping_add(BIT_AT);
    // Below 511 * 64.
    let written = call.machine.space.store(at, 4, bit as u64);
    written.map_err(|fault| HelperProblem::Access { arg: 1, fault })?;
    Ok(at)
}

pub(super) fn bits_destroy(call: &mut Call<'_>) -> Result {
    end(call, IteratorKind::Bits)
}

/// The next object of an iterator over kernel objects; null after the last one.
pub(super) fn next_object(call: &mut Call<'_>, kind: IteratorKind) -> Result {
    match under_way(call, kind)? {
        Iterator::Objects { left, .. } | Iterator::ScxDsq { left, .. } => {
            Ok(left.next().unwrap_or(0))
        }
        _ => Ok(0),
    }
}
