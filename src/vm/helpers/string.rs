//! Helpers on strings (`kernel/bpf/helpers.c`, `lib/kstrtox.c`).

use super::ctype::is_space;
use crate::util::Errno;
use crate::vm::fault::HelperProblem;
use crate::vm::machine::{Call, Returned};

/// Bits of the flags that hold a base (`BPF_STRTOX_BASE_MASK`).
const BASE_MASK: u64 = 0x1f;
/// Bytes of a number that are looked at, behind spaces and sign.
const MOST: usize = 63;

/// A number as parsed.
struct Parsed {
    magnitude: u64,
    negative: bool,
    /// Bytes of the text that it took, with spaces and sign.
    consumed: usize,
}

/// -1, 0 or 1, as the generic `strncmp` of the kernel.
pub(super) fn strncmp(call: &mut Call<'_>) -> Returned {
    let (left, right) = (call.arg(1), call.arg(3));
    let byte = |n: usize, base: u64, at: u64| {
        let loaded = call.machine.space.load(base.wrapping_add(at), 1);
        loaded.map_err(|fault| HelperProblem::Access { arg: n, fault })
    };
    for at in 0..u64::from(call.arg32(2)) {
        let (left, right) = (byte(1, left, at)?, byte(3, right, at)?);
        if left != right {
            return Ok(if left < right { u64::MAX } else { 1 });
        }
        if left == 0 {
            break;
        }
    }
    Ok(0)
}

pub(super) fn strtol(call: &mut Call<'_>) -> Returned {
    parse_into_result(call, |parsed| {
        let value = i128::from(parsed.magnitude) * if parsed.negative { -1 } else { 1 };
        let value = i64::try_from(value).map_err(|_| Errno::ERANGE)?;
        Ok(value.cast_unsigned())
    })
}

pub(super) fn strtoul(call: &mut Call<'_>) -> Returned {
    parse_into_result(call, |parsed| match parsed.negative {
        true => Err(Errno::EINVAL),
        false => Ok(parsed.magnitude),
    })
}

/// `(text, length, flags, result)`: how many bytes the number took. The result is 0
/// on an error.
fn parse_into_result(
    call: &mut Call<'_>,
    number: impl FnOnce(&Parsed) -> Result<u64, Errno>,
) -> Returned {
    call.write(4, &[0; 8])?;
    // A size_t: what does not fit here fits no memory either.
    let len = usize::try_from(call.arg(2)).unwrap_or(usize::MAX);
    let text = call.read(1, len)?;
    let parsed = parse(&text, call.arg(3));
    match parsed.and_then(|parsed| Ok((number(&parsed)?, parsed.consumed))) {
        Ok((value, consumed)) => {
            call.write(4, &value.to_le_bytes())?;
            Ok(consumed as u64)
        }
        Err(error) => Ok(error.to_ret()),
    }
}

/// `__bpf_strtoull`: spaces, a minus sign, digits; whatever follows is left alone.
fn parse(text: &[u8], flags: u64) -> Result<Parsed, Errno> {
    let base = flags & BASE_MASK;
    if !matches!(base, 0 | 8 | 10 | 16) || flags != base {
        return Err(Errno::EINVAL);
    }
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    let rest = text.get(spaces..).unwrap_or_default();
    let negative = rest.first() == Some(&b'-');
    let signed = usize::from(negative);
    let rest = rest.get(signed..).unwrap_or_default();
    let rest = rest.get(..rest.len().min(MOST)).unwrap_or_default();
    let (base, prefix) = radix(rest, base);
    let digits = rest.get(prefix..).unwrap_or_default();
    let digits = digits.iter().map_while(|byte| {
        let digit = char::from(*byte).to_digit(16).map(u64::from)?;
        (digit < base).then_some(digit)
    });
    let (mut magnitude, mut count, mut overflow) = (0u64, 0, false);
    for digit in digits {
        let next = magnitude
            .checked_mul(base)
            .and_then(|n| n.checked_add(digit));
        overflow |= next.is_none();
        magnitude = next.unwrap_or(u64::MAX);
        count += 1;
    }
    match (overflow, count) {
        (true, _) => Err(Errno::ERANGE),
        (false, 0) => Err(Errno::EINVAL),
        (false, _) => Ok(Parsed {
            magnitude,
            negative,
            consumed: spaces + signed + prefix + count,
        }),
    }
}

/// The base, and the bytes of its prefix (`_parse_integer_fixup_radix`). `0x` without
/// a hexadecimal digit is an octal zero, unless base 16 was asked for.
fn radix(text: &[u8], base: u64) -> (u64, usize) {
    let hex = matches!(text, [b'0', b'x' | b'X', ..]);
    match base {
        0 if hex && text.get(2).is_some_and(u8::is_ascii_hexdigit) => (16, 2),
        0 if text.first() == Some(&b'0') => (8, 0),
        0 => (10, 0),
        16 if hex => (16, 2),
        _ => (base, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::id;
    use crate::vm::helpers::testing::Bench;

    #[test]
    fn comparison_ends_at_a_nul_or_the_size() {
        let mut bench = Bench::new();
        for (left, size, right, want) in [
            ("abc", 4, "abc", 0),
            ("abc", 3, "abcdef", 0),
            ("abc", 4, "abd", u64::MAX),
            ("abd", 4, "abc", 1),
            ("ab", 3, "abc", u64::MAX),
            ("abc\u{7f}", 5, "abc", 1),
            ("x", 0, "y", 0),
        ] {
            let (left, right) = (bench.cstr(left), bench.cstr(right));
            assert_eq!(bench.ok(id::strncmp, [left, size, right]), want);
        }
        let open = bench.bytes(b"ab");
        let text = bench.cstr("abc");
        let problem = bench.call(id::strncmp, [open, 8, text]).unwrap_err();
        assert!(problem.to_string().starts_with("argument 1: reads 1 byte"));
    }

    /// (text, flags, strtol, strtoul): how many bytes and the number.
    type Row = (
        &'static str,
        u64,
        Result<(u64, i64), Errno>,
        Result<(u64, u64), Errno>,
    );

    const NUMBERS: &[Row] = &[
        ("42", 0, Ok((2, 42)), Ok((2, 42))),
        (" \t42 apples", 0, Ok((4, 42)), Ok((4, 42))),
        ("-7", 0, Ok((2, -7)), Err(Errno::EINVAL)),
        ("-0", 0, Ok((2, 0)), Err(Errno::EINVAL)),
        ("+7", 0, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("- 7", 0, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("0x1F", 0, Ok((4, 31)), Ok((4, 31))),
        ("0x1F", 16, Ok((4, 31)), Ok((4, 31))),
        ("1F", 16, Ok((2, 31)), Ok((2, 31))),
        ("0x", 0, Ok((1, 0)), Ok((1, 0))),
        ("0x", 16, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("0x1F", 10, Ok((1, 0)), Ok((1, 0))),
        ("0177", 0, Ok((4, 127)), Ok((4, 127))),
        ("0189", 0, Ok((2, 1)), Ok((2, 1))),
        ("178", 8, Ok((2, 15)), Ok((2, 15))),
        ("", 0, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("  ", 10, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("abc", 10, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("1", 2, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("1", 32, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        ("1", 10 | 1 << 40, Err(Errno::EINVAL), Err(Errno::EINVAL)),
        (
            "9223372036854775807",
            0,
            Ok((19, i64::MAX)),
            Ok((19, 0x7fff_ffff_ffff_ffff)),
        ),
        (
            "9223372036854775808",
            0,
            Err(Errno::ERANGE),
            Ok((19, 1 << 63)),
        ),
        (
            "-9223372036854775808",
            0,
            Ok((20, i64::MIN)),
            Err(Errno::EINVAL),
        ),
        (
            "-9223372036854775809",
            0,
            Err(Errno::ERANGE),
            Err(Errno::EINVAL),
        ),
        (
            "18446744073709551615",
            0,
            Err(Errno::ERANGE),
            Ok((20, u64::MAX)),
        ),
        (
            "18446744073709551616",
            0,
            Err(Errno::ERANGE),
            Err(Errno::ERANGE),
        ),
    ];

    #[test]
    fn numbers_are_read_as_the_kernel_reads_them() {
        let mut bench = Bench::new();
        let result = bench.bytes(&[0; 8]);
        for (text, flags, signed, unsigned) in NUMBERS {
            let at = bench.bytes(text.as_bytes());
            let unsigned = *unsigned;
            let signed = signed.map(|(len, value)| (len, value.cast_unsigned()));
            for (helper, want) in [(id::strtol, signed), (id::strtoul, unsigned)] {
                bench.machine.space.write(result, &[0xff; 8]).unwrap();
                let returned = bench.ok(helper, [at, text.len() as u64, *flags, result]);
                let stored = bench.machine.space.load(result, 8).unwrap();
                let want = want.unwrap_or_else(|error| (error.to_ret(), 0));
                assert_eq!((returned, stored), want, "{helper} {text:?} {flags}");
            }
        }
    }

    #[test]
    fn only_63_digits_are_looked_at() {
        let mut bench = Bench::new();
        let (text, result) = (bench.bytes(&[b'0'; 80]), bench.bytes(&[0; 8]));
        assert_eq!(bench.ok(id::strtol, [text, 80, 10, result]), 63);
    }
}
