//! Output of iterators (`kernel/trace/bpf_trace.c`).

use super::format::Format;
use super::print;
use crate::util::Errno;
use crate::vm::machine::{Call, Output, Returned};

/// Bytes that one run of an iterator's program can print: the buffer of the `seq_file`, eight
/// pages (`bpf_seq_read`, `kernel/bpf/bpf_iter.c`).
const BUFFER: usize = 8 * 4096;

/// Outputs bytes; if they don't fit into the buffer, they are lost and the program gets an
/// error.
fn give(call: &mut Call<'_>, bytes: Vec<u8>) -> u64 {
    let outputs = call
        .machine
        .run
        .outputs
        .others()
        .map(|output| match output {
            Output::Seq(bytes) => bytes.len(),
            _ => 0,
        });
    if outputs.sum::<usize>() + bytes.len() >= BUFFER {
        return Errno::EOVERFLOW.to_ret();
    }
    call.machine.output(Output::Seq(bytes));
    0
}

/// `bpf_seq_printf(seq_file, format, its size, data, its size)`.
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

/// `bpf_seq_write(seq_file, data, size)`.
pub(super) fn seq_write(call: &mut Call<'_>) -> Returned {
    let bytes = call.read(2, call.size(3))?.into_vec();
    Ok(give(call, bytes))
}

/// `bpf_seq_printf_btf(seq_file, struct btf_ptr, its size, flags)`.
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

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;

    #[test]
    fn text_and_bytes_are_given_on_in_order() {
        let mut bench = Bench::new();
        let format = bench.memory(b"%d of %s\n\0");
        let name = bench.memory(b"disk\0");
        let args = bench.memory(&[7u64.to_le_bytes(), name.to_le_bytes()].concat());
        assert_eq!(bench.ok(id::seq_printf, [1, format, 10, args, 16]), 0);
        assert_eq!(bench.ok(id::seq_write, [1, name, 5]), 0);
        let given = [b"7 of disk\n".to_vec(), b"disk\0".to_vec()].map(Output::Seq);
        assert_eq!(bench.machine.take_outputs(), given);
        for (size, pointer) in [(15, args), (104, args), (8, 0)] {
            let errno = bench.errno(id::seq_printf, [1, format, 10, pointer, size]);
            assert_eq!(errno, Errno::EINVAL);
        }
        let errno = bench.errno(id::seq_printf, [1, format, 9, args, 16]);
        assert_eq!(errno, Errno::EINVAL, "no NUL");
        let errno = bench.errno(id::seq_printf, [1, format, 10, args, 8]);
        assert_eq!(errno, Errno::EINVAL, "too few arguments");
        assert!(bench.machine.take_outputs().is_empty());
    }

    #[test]
    fn what_has_no_room_is_lost_and_told() {
        let mut bench = Bench::new();
        let bytes = bench.memory(&[7; BUFFER]);
        let most = BUFFER as u64 - 1;
        let errno = bench.errno(id::seq_write, [1, bytes, BUFFER as u64]);
        assert_eq!(errno, Errno::EOVERFLOW);
        assert_eq!(bench.ok(id::seq_write, [1, bytes, most]), 0);
        assert_eq!(bench.errno(id::seq_write, [1, bytes, 1]), Errno::EOVERFLOW);
        let format = bench.memory(b"x\0");
        let errno = bench.errno(id::seq_printf, [1, format, 2, 0, 0]);
        assert_eq!(errno, Errno::EOVERFLOW);
        assert_eq!(bench.machine.take_outputs().len(), 1);
        // Another run has its own buffer.
        assert_eq!(bench.ok(id::seq_printf, [1, format, 2, 0, 0]), 0);
    }
}
