//! Printing helpers (`kernel/trace/bpf_trace.c`, `kernel/bpf/helpers.c`).

use super::format::{Format, Line, hash};
use super::probe::From;
use super::show::{Memory, ShowFlags, Shown, show};
use super::string::c_string;
use crate::isa::low32;
use crate::spec::limits;
use crate::util::{Errno, TypeId};
use crate::vm::machine::{Call, HelperProblem, Machine, Output};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

/// The format string of size in argument `n + 1` at the address in argument `n`, up to its
/// NUL; `None` without a NUL.
pub(super) fn format(
    call: &Call<'_>,
    n: usize,
) -> std::result::Result<Option<Vec<u8>>, HelperProblem> {
    let bytes = call.read(n, call.size(n + 1))?;
    let end = bytes.iter().position(|byte| *byte == 0);
    Ok(end.and_then(|end| bytes.get(..end)).map(<[u8]>::to_vec))
}

/// The array of arguments in argument `n`, with its size in the next; `None` if the size is
/// invalid.
pub(super) fn arguments(
    call: &Call<'_>,
    n: usize,
) -> std::result::Result<Option<Vec<u64>>, HelperProblem> {
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

/// Prints a line to the trace and returns its length.
fn print(call: &mut Call<'_>, format: Option<Vec<u8>>, args: &[u64]) -> Result {
    let Some(format) = format else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let prepared = match Format::prepare(&format, args, call.machine) {
        Ok(prepared) => prepared,
        Err(errno) => return Ok(errno.to_ret()),
    };
    let line = prepared.print(limits::MAX_PRINTF_BUFFER);
    // The trace stores a C string, which ends at a NUL printed by `%c`.
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
    let format = format(call, 1)?;
    let args = [call.arg(3), call.arg(4), call.arg(5)];
    print(call, format, &args)
}

pub(super) fn trace_vprintk(call: &mut Call<'_>) -> Result {
    match arguments(call, 3)? {
        Some(args) => {
            let format = format(call, 1)?;
            print(call, format, &args)
        }
        None => Ok(Errno::EINVAL.to_ret()),
    }
}

/// `bpf_snprintf(buffer, size, format, data, its size)`: prints into memory and returns the
/// length of the whole text with its NUL.
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

/// The text of the format in argument `n`, with the data in the next two arguments.
pub(in crate::vm::calls) fn printed(
    call: &mut Call<'_>,
    n: usize,
) -> std::result::Result<String, HelperProblem> {
    let format = c_string(call, n, usize::MAX)?;
    let args = arguments(call, n + 1)?.unwrap_or_default();
    let text = match Format::prepare(&format, &args, call.machine) {
        Ok(prepared) => prepared.print(limits::MAX_PRINTF_BUFFER).text,
        // The kernel shows the format then.
        Err(_) => format.to_vec(),
    };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The text of the object that a `struct btf_ptr` in argument `n` describes, or an errno
/// (`bpf_btf_printf_prepare`). `size` and `flags` are argument numbers.
pub(super) fn shown(
    call: &mut Call<'_>,
    n: usize,
    size: usize,
    flags: usize,
) -> std::result::Result<std::result::Result<Shown, Errno>, HelperProblem> {
    /// Size of a `struct btf_ptr`: an address, a type ID, unused flags.
    const POINTER: usize = 16;
    let len = call.size(size);
    let bytes = call.read(n, len)?;
    let Some(flags) = ShowFlags::from_bits(call.arg(flags)) else {
        return Ok(Err(Errno::EINVAL));
    };
    let (words, _) = bytes.as_chunks::<8>();
    let [at, id] = match words {
        [at, id] if len == POINTER => [*at, *id].map(u64::from_le_bytes),
        _ => return Ok(Err(Errno::EINVAL)),
    };
    let Some(btf) = call.machine.world.kernel_memory().types() else {
        return Ok(Err(Errno::EINVAL));
    };
    // Type IDs are signed in this struct.
    let id = low32(id);
    if id == 0 {
        return Ok(Err(Errno::EINVAL));
    }
    let id = TypeId(id);
    if id.0 > i32::MAX.cast_unsigned() || btf.get(id).is_none() {
        return Ok(Err(Errno::ENOENT));
    }
    Ok(Ok(show(&btf, id, at, flags, call.machine)))
}

impl Memory for Machine {
    fn read(&mut self, at: u64, len: usize) -> std::result::Result<Vec<u8>, Errno> {
        From::Kernel.copy(self, at, len)
    }

    fn hashed(&self, address: u64) -> String {
        format!("{:016x}", hash(address))
    }
}

/// `bpf_snprintf_btf(buffer, size, struct btf_ptr, its size, flags)`: returns the length of
/// the whole text.
pub(super) fn snprintf_btf(call: &mut Call<'_>) -> Result {
    let size = call.size(2);
    call.check(1, size, AccessKind::Write)?;
    let shown = match shown(call, 3, 4, 5)? {
        Ok(shown) => shown,
        Err(errno) => return Ok(errno.to_ret()),
    };
    let len = shown.text.len() as u64;
    let mut text = shown.text;
    if size > 0 && !text.is_empty() {
        text.truncate(size - 1);
        text.push(0);
        call.write(1, &text)?;
    }
    Ok(shown.status.err().map_or(len, Errno::to_ret))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;

    const EINVAL: u64 = Errno::EINVAL.to_ret();
    const ENOSPC: u64 = Errno::ENOSPC.to_ret();

    /// The result of `bpf_snprintf` with a large buffer.
    fn formatted(
        bench: &mut Bench,
        format: &[u8],
        args: &[u64],
    ) -> std::result::Result<String, u64> {
        let (to, from) = (
            bench.memory(&[0xee; 2048]),
            bench.memory(&[format, &[0]].concat()),
        );
        let data: Vec<u8> = args.iter().flat_map(|arg| arg.to_le_bytes()).collect();
        let pointer = bench.memory(&data);
        let pointer = if data.is_empty() { 0 } else { pointer };
        let result = bench.call(id::snprintf, [to, 2048, from, pointer, data.len() as u64]);
        let result = result.unwrap();
        match usize::try_from(result) {
            Ok(len) if len <= 2048 => {
                let mut text = bench.bytes(to, len);
                assert_eq!(text.pop(), Some(0));
                Ok(String::from_utf8_lossy(&text).into_owned())
            }
            _ => Err(result),
        }
    }

    fn ok(format: &str, args: &[u64]) -> String {
        formatted(&mut Bench::new(), format.as_bytes(), args).unwrap()
    }

    #[test]
    fn integers_with_flags_and_width() {
        let minus = (-42i64).cast_unsigned();
        assert_eq!(
            ok("%d|%i|%u|%x|%X", &[minus, 7, minus, 255, 255]),
            "-42|7|4294967254|ff|FF"
        );
        assert_eq!(
            ok("%ld|%lld|%lu|%llx", &[minus, minus, minus, 1 << 40]),
            "-42|-42|18446744073709551574|10000000000"
        );
        assert_eq!(
            ok("%5d|%-5d|%05d|%+d|% d", &[minus, minus, minus, 7, 7]),
            "  -42|-42  |-0042|+7| 7"
        );
        assert_eq!(ok("%-05d|%+05d|%+u", &[7, 7, 7]), "7    |+0007|7");
        assert_eq!(ok("%1d%%%2d", &[100, 3]), "100% 3");
        assert_eq!(ok("%lld", &[1 << 63]), "-9223372036854775808");
    }

    #[test]
    fn strings_and_characters() {
        let mut bench = Bench::new();
        let kernel = bench.memory(b"kernel\0junk");
        let user = bench.machine.world.user_cstr("user");
        let text = formatted(
            &mut bench,
            b"%s,%s,%pks,%pus.",
            &[kernel, user, kernel, user],
        );
        assert_eq!(text.unwrap(), "kernel,user,kernel,user.");
        // An address of another address space or null gives an empty string. The width is
        // ignored for `%pks` and `%pus`.
        let text = formatted(
            &mut bench,
            b"[%pks][%pus][%s][%9pks]",
            &[user, kernel, 0, kernel],
        );
        assert_eq!(text.unwrap(), "[][][][kernel]");
        let text = formatted(
            &mut bench,
            b"[%8s][%-8s][%3c][%-3c]",
            &[kernel, kernel, 65, 66],
        );
        assert_eq!(text.unwrap(), "[  kernel][kernel  ][  A][B  ]");
    }

    #[test]
    fn pointers() {
        let mut bench = Bench::new();
        let v4 = bench.memory(&[192, 168, 0, 1]);
        let v6 = bench.memory(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let text = formatted(&mut bench, b"%pI4 %pi4 %pI6 %pi6", &[v4, v4, v6, v6]).unwrap();
        let expected = "192.168.0.1 192.168.000.001 fe80:0000:0000:0000:0000:0000:0000:0001 \
                        fe800000000000000000000000000001";
        assert_eq!(text, expected);
        assert_eq!(formatted(&mut bench, b"%pI4", &[0]).unwrap(), "0.0.0.0");
        assert_eq!(
            ok("%px|%5px|%p|%pK", &[0xabc, 0xabc, 0, 0]),
            "0000000000000abc|  abc|0000000000000000|0000000000000000"
        );
        assert_eq!(
            ok("%pS %ps %pB", &[0xabc, 0xabc, 0xabc]),
            "0xabc 0xabc 0xabc"
        );
        let (hash, again) = (ok("%p", &[0x1234_5678]), ok("%pK", &[0x1234_5678]));
        assert_eq!(hash, again, "the same each time");
        assert!(hash.starts_with("00000000") && !hash.ends_with("12345678"));
        assert_eq!(ok("%pxyz!", &[1]), "0000000000000001!");
    }

    #[test]
    fn formats_are_checked_as_the_kernel_does() {
        for format in [
            "%", "%d", "%5", "%#x", "%.2d", "%5%", "%o", "%zu", "%hd", "%n", "%lp", "%llld", "%sx",
            "%pksx", "%pz", "%pI5", "%lc", "\x01", "\x7f", "%-",
        ] {
            let args: &[u64] = if format == "%d" { &[] } else { &[1] };
            let found = formatted(&mut Bench::new(), format.as_bytes(), args);
            assert_eq!(found, Err(EINVAL), "{format:?}");
        }
        assert_eq!(ok("100%% Grüße\t\n", &[1, 2]), "100% Grüße\t\n");
        assert_eq!(ok("", &[]), "");
        let latin = formatted(&mut Bench::new(), b"%\xe9", &[1]);
        assert_eq!(latin, Err(EINVAL));
    }

    #[test]
    fn arguments_share_a_buffer_of_512_bytes() {
        let mut bench = Bench::new();
        let long = bench.memory(&[vec![b'x'; 600], vec![0]].concat());
        let text = formatted(&mut bench, b"%s", &[long]).unwrap();
        assert_eq!(text.len(), 511, "cut, with its NUL");
        assert_eq!(formatted(&mut bench, b"%s%d", &[long, 1]), Err(ENOSPC));
        assert_eq!(formatted(&mut bench, b"%s%s", &[long, long]), Err(ENOSPC));
        assert_eq!(formatted(&mut bench, b"%s%c", &[long, 65]), Err(ENOSPC));
        assert_eq!(formatted(&mut bench, b"%s%pI6", &[long, long]), Err(ENOSPC));
        let short = bench.memory(&[vec![b'y'; 500], vec![0]].concat());
        // 501 bytes, aligned to 504, leave 8.
        assert!(formatted(&mut bench, b"%s%lld", &[short, 1]).is_ok());
        assert_eq!(
            formatted(&mut bench, b"%s%d%lld", &[short, 1, 1]),
            Err(ENOSPC)
        );
    }

    #[test]
    fn snprintf_cuts_and_returns_the_whole_length() {
        let mut bench = Bench::new();
        let (to, format) = (bench.memory(&[0xee; 8]), bench.memory(b"%d-%d\0"));
        let args = bench.memory(&[[1u64, 22].map(u64::to_le_bytes).concat()].concat());
        assert_eq!(bench.call(id::snprintf, [to, 8, format, args, 16]), Ok(5));
        assert_eq!(bench.bytes(to, 6), b"1-22\0\xee");
        assert_eq!(bench.call(id::snprintf, [to, 3, format, args, 16]), Ok(5));
        assert_eq!(bench.bytes(to, 4), b"1-\x002");
        assert_eq!(bench.call(id::snprintf, [0, 0, format, args, 16]), Ok(5));
        assert_eq!(bench.call(id::snprintf, [to, 1, format, args, 16]), Ok(5));
        assert_eq!(bench.bytes(to, 1), [0]);
        for (pointer, size) in [(args, 15), (args, 104), (0, 8)] {
            let found = bench.call(id::snprintf, [to, 8, format, pointer, size]);
            assert_eq!(found, Ok(EINVAL));
        }
        assert!(bench.call(id::snprintf, [to, 9, format, args, 16]).is_err());
    }

    #[test]
    fn widths_cost_no_memory() {
        assert_eq!(
            formatted(&mut Bench::new(), b"%99999999999999999999d", &[1]),
            Err(8_388_608)
        );
        let mut bench = Bench::new();
        let format = bench.memory(b"%9999999d!\0");
        assert_eq!(bench.call(id::trace_printk, [format, 11, 1]), Ok(8_388_608));
        assert_eq!(
            bench.machine.take_outputs(),
            [Output::Printk(" ".repeat(1023))]
        );
    }

    #[test]
    fn lines_go_to_the_trace() {
        let mut bench = Bench::new();
        let format = bench.memory(b"a=%d b=%s\n\0");
        let text = bench.machine.world.user_cstr("text");
        assert_eq!(bench.call(id::trace_printk, [format, 11, 7, text]), Ok(11));
        let args = bench.memory(&[8u64.to_le_bytes(), text.to_le_bytes()].concat());
        assert_eq!(
            bench.call(id::trace_vprintk, [format, 11, args, 16]),
            Ok(11)
        );
        let lines = ["a=7 b=text", "a=8 b=text"].map(|line| Output::Printk(line.into()));
        assert_eq!(bench.machine.take_outputs(), lines);
        assert_eq!(
            bench.call(id::trace_printk, [format, 10, 7, text]),
            Ok(EINVAL),
            "no NUL"
        );
        assert_eq!(
            bench.call(id::trace_vprintk, [format, 11, args, 8]),
            Ok(EINVAL)
        );
        assert_eq!(
            bench.call(id::trace_vprintk, [format, 11, 0, 8]),
            Ok(EINVAL)
        );
        let four = bench.memory(b"%d%d%d%d\0");
        assert_eq!(bench.call(id::trace_printk, [four, 9, 1, 2, 3]), Ok(EINVAL));
        assert!(bench.call(id::trace_printk, [format, 12]).is_err());
        assert!(bench.machine.take_outputs().is_empty());
    }

    #[test]
    fn a_nul_ends_the_traces_line() {
        let mut bench = Bench::new();
        let format = bench.memory(b"ab%cde\0");
        assert_eq!(bench.call(id::trace_printk, [format, 7, 0]), Ok(5));
        assert_eq!(bench.machine.take_outputs(), [Output::Printk("ab".into())]);
    }
}
