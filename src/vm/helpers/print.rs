//! Printing (`kernel/trace/bpf_trace.c`, `kernel/bpf/helpers.c`).

use super::super::fault::HelperProblem;
use super::super::memory::AccessKind;
use super::super::outcome::Output;
use super::call::Call;
use super::format::{Format, Line};
use super::string::c_string;
use crate::spec::limits;
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

/// The format of a helper that gives its size: up to its NUL, `None` without one.
fn format(call: &Call<'_>) -> std::result::Result<Option<Vec<u8>>, HelperProblem> {
    let bytes = call.read(1, call.size(2))?;
    let end = bytes.iter().position(|byte| *byte == 0);
    Ok(end.and_then(|end| bytes.get(..end)).map(<[u8]>::to_vec))
}

/// The arguments of a helper that takes an array of them (argument `n` and its
/// size in the next); `None` where their size is wrong.
fn arguments(call: &Call<'_>, n: usize) -> std::result::Result<Option<Vec<u64>>, HelperProblem> {
    let size = call.size(n + 1);
    let null = call.arg(n) == 0;
    if !size.is_multiple_of(8) || size > limits::MAX_PRINTF_ARGS * 8 || size > 0 && null {
        return Ok(None);
    }
    let bytes = call.read(n, size)?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(Some(
        words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
    ))
}

/// Prints a line to the trace, and returns its length.
fn print(call: &mut Call<'_>, format: Option<Vec<u8>>, args: &[u64]) -> Result {
    let Some(format) = format else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let prepared = match Format::prepare(&format, args, call.machine) {
        Ok(prepared) => prepared,
        Err(errno) => return Ok(errno.to_ret()),
    };
    let line = prepared.print(limits::MAX_PRINTF_BUFFER);
    // The trace keeps a C string: it ends at a NUL that `%c` has printed.
    let text = line
        .text
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = String::from_utf8_lossy(text).into_owned();
    call.machine.output(Output::Printk(text));
    Ok(line.len)
}

pub(super) fn trace_printk(call: &mut Call<'_>) -> Result {
    let format = format(call)?;
    let args = [call.arg(3), call.arg(4), call.arg(5)];
    print(call, format, &args)
}

pub(super) fn trace_vprintk(call: &mut Call<'_>) -> Result {
    match arguments(call, 3)? {
        Some(args) => {
            let format = format(call)?;
            print(call, format, &args)
        }
        None => Ok(Errno::EINVAL.to_ret()),
    }
}

/// Prints into the program's memory, and returns the length that the whole has
/// with its NUL.
pub(super) fn snprintf(call: &mut Call<'_>) -> Result {
    let Some(args) = arguments(call, 4)? else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let size = call.size(2);
    call.check(1, size, AccessKind::Write)?;
    let format = c_string(call, 3, usize::MAX)?;
    let prepared = match Format::prepare(&format, &args, call.machine) {
        Ok(prepared) => prepared,
        Err(errno) => return Ok(errno.to_ret()),
    };
    let Line { mut text, len } = prepared.print(size);
    if size > 0 {
        text.push(0);
        call.write(1, &text)?;
    }
    Ok(len + 1)
}
