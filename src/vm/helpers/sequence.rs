//! What iterators print for who reads them (`kernel/trace/bpf_trace.c`).

use super::super::outcome::Output;
use super::call::{Call, Returned};
use super::format::Format;
use super::print;
use crate::util::Errno;

/// Bytes that one run of an iterator's program may print: the buffer of the `seq_file`,
/// eight pages (`bpf_seq_read`, `kernel/bpf/bpf_iter.c`).
const BUFFER: usize = 8 * 4096;

/// Hands bytes on; those that don't fit the buffer are lost, and the program is told.
fn give(call: &mut Call<'_>, bytes: Vec<u8>) -> u64 {
    let outputs = call.machine.outputs().map(|output| match output {
        Output::Seq(bytes) => bytes.len(),
        _ => 0,
    });
    if outputs.sum::<usize>() + bytes.len() >= BUFFER {
        return Errno::EOVERFLOW.to_ret();
    }
    call.machine.output(Output::Seq(bytes));
    0
}

/// `(seq_file, format, its size, data, its size)`.
pub(super) fn seq_printf(call: &mut Call<'_>) -> Returned {
    let Some(args) = print::arguments(call, 4)? else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let Some(format) = print::format(call, 2)? else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let prepared = match Format::prepare(&format, &args, call.machine) {
        Ok(prepared) => prepared,
        Err(errno) => return Ok(errno.to_ret()),
    };
    let line = prepared.print(BUFFER + 1);
    Ok(give(call, line.text))
}

/// `(seq_file, data, size)`.
pub(super) fn seq_write(call: &mut Call<'_>) -> Returned {
    let bytes = call.read(2, call.size(3))?.into_vec();
    Ok(give(call, bytes))
}

/// `(seq_file, struct btf_ptr, its size, flags)`.
pub(super) fn seq_printf_btf(call: &mut Call<'_>) -> Returned {
    let shown = print::shown(call, 2, 3, 4)?;
    Ok(match shown {
        Ok(shown) => {
            give(call, shown.text);
            shown.status.err().map_or(0, Errno::to_ret)
        }
        Err(errno) => errno.to_ret(),
    })
}
