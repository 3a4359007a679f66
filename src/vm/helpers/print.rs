//! Helpers that print (`kernel/trace/bpf_trace.c`, `kernel/bpf/helpers.c`).

use super::format::format;
use crate::util::Errno;
use crate::vm::fault::HelperProblem;
use crate::vm::machine::{Call, Returned};
use crate::vm::outcome::Output;

/// Bytes of a line for `trace_pipe`, with its NUL (`MAX_BPRINTF_BUF`).
const LINE: usize = 1024;
/// Bytes of arguments: 12 of them (`MAX_BPRINTF_VARARGS`).
const MOST_DATA: usize = 12 * 8;

/// `(format, size, three arguments)`: the line's length, as long as it would be
/// without an end to the buffer.
pub(super) fn trace_printk(call: &mut Call<'_>) -> Returned {
    trace(call, &[call.arg(3), call.arg(4), call.arg(5)])
}

/// `(format, size, arguments, their size)`: as [`trace_printk`].
pub(super) fn trace_vprintk(call: &mut Call<'_>) -> Returned {
    match arguments(call, 3)? {
        Ok(args) => trace(call, &args),
        Err(error) => Ok(error.to_ret()),
    }
}

/// Prints a line; the format, arguments 1 and 2, has to end in a NUL.
fn trace(call: &mut Call<'_>, args: &[u64]) -> Returned {
    let mut text = call.read(1, call.arg_size(2))?;
    let Some(end) = text.iter().position(|byte| *byte == 0) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    text.truncate(end);
    match format(call.machine, &text, args, LINE) {
        Ok(printed) => {
            let line = String::from_utf8_lossy(&printed.text);
            let line = line.strip_suffix('\n').unwrap_or(&line).to_owned();
            call.machine.output(Output::Printk(line));
            Ok(printed.len)
        }
        Err(error) => Ok(error.to_ret()),
    }
}

/// `(buffer, its size, format, arguments, their size)`: the text's length with its
/// NUL, as long as it would be with room enough.
pub(super) fn snprintf(call: &mut Call<'_>) -> Returned {
    let args = match arguments(call, 4)? {
        Ok(args) => args,
        Err(error) => return Ok(error.to_ret()),
    };
    let room = call.arg_size(2);
    call.check_writable(1, room)?;
    let text = call.cstr(3)?;
    match format(call.machine, &text, &args, room) {
        Ok(mut printed) => {
            if room > 0 {
                printed.text.push(0);
            }
            call.write(1, &printed.text)?;
            Ok(printed.len + 1)
        }
        Err(error) => Ok(error.to_ret()),
    }
}

/// The array of arguments that argument `n` points to; its size follows.
fn arguments(call: &Call<'_>, n: usize) -> Result<Result<Vec<u64>, Errno>, HelperProblem> {
    let len = call.arg_size(n + 1);
    if !len.is_multiple_of(8) || len > MOST_DATA || (len > 0 && call.arg(n) == 0) {
        return Ok(Err(Errno::EINVAL));
    }
    let bytes = call.read(n, len)?;
    let (words, _) = bytes.as_chunks();
    Ok(Ok(words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::id;
    use crate::vm::helpers::testing::Bench;

    fn words(bench: &mut Bench, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.bytes(&bytes)
    }

    #[test]
    fn lines_go_to_the_outputs() {
        let mut bench = Bench::new();
        let text = bench.cstr("%d and %s\n");
        let name = bench.cstr("name");
        assert_eq!(bench.ok(id::trace_printk, [text, 11, 7, name]), 11);
        let args = words(&mut bench, &[8, name]);
        assert_eq!(bench.ok(id::trace_vprintk, [text, 11, args, 16]), 11);
        let lines = ["7 and name", "8 and name"].map(|line| Output::Printk(line.to_owned()));
        assert_eq!(bench.machine.take_outputs(), lines);
    }

    #[test]
    fn a_line_is_cut_but_counted_whole() {
        let mut bench = Bench::new();
        let text = bench.cstr("%1030d|%d");
        assert_eq!(bench.ok(id::trace_printk, [text, 10, 1, 2]), 1032);
        let outputs = bench.machine.take_outputs();
        assert_eq!(outputs, [Output::Printk(" ".repeat(1023))]);
    }

    #[test]
    fn bad_calls_print_nothing() {
        let mut bench = Bench::new();
        let (text, name) = (bench.cstr("%d"), bench.cstr("name"));
        let args = words(&mut bench, &[0; 13]);
        assert_eq!(
            bench.errno(id::trace_printk, [text, 2, 0]),
            Errno::EINVAL,
            "no NUL"
        );
        for (data, len) in [(args, 0), (args, 7), (args, 104), (0, 8)] {
            let call = [text, 3, data, len];
            assert_eq!(bench.errno(id::trace_vprintk, call), Errno::EINVAL);
            let call = [name, 0, text, data, len];
            assert_eq!(bench.errno(id::snprintf, call), Errno::EINVAL);
        }
        assert_eq!(bench.ok(id::trace_vprintk, [name, 5, 0, 0]), 4);
        assert_eq!(bench.machine.take_outputs().len(), 1);
        assert!(bench.call(id::trace_printk, [text, 4, 0]).is_err());
    }

    #[test]
    fn strings_are_printed_into_buffers() {
        let mut bench = Bench::new();
        let text = bench.cstr("%d%%");
        let args = words(&mut bench, &[42]);
        for (size, want) in [
            (8, &b"42%\0\xff\xff\xff\xff"[..]),
            (4, b"42%\0\xff\xff\xff\xff"),
            (3, b"42\0\xff\xff\xff\xff\xff"),
            (1, b"\0\xff\xff\xff\xff\xff\xff\xff"),
            (0, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        ] {
            let buffer = bench.bytes(&[0xff; 8]);
            assert_eq!(bench.ok(id::snprintf, [buffer, size, text, args, 8]), 4);
            assert_eq!(bench.read(buffer, 8), want, "{size}");
        }
        assert_eq!(bench.ok(id::snprintf, [0, 0, text, args, 8]), 4);
        assert!(bench.call(id::snprintf, [0, 1, text, args, 8]).is_err());
    }
}
