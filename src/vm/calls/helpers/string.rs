//! Comparing and parsing strings (`kernel/bpf/helpers.c`, `lib/kstrtox.c`).

use crate::util::Errno;
use crate::vm::machine::{Bytes, Call, HelperProblem};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

/// Copies out the string at the address in argument `n`, without its NUL, at most `most`
/// bytes.
pub(super) fn c_string(
    call: &Call<'_>,
    n: usize,
    most: usize,
) -> std::result::Result<Bytes, HelperProblem> {
    let mut text = Bytes::new();
    while text.len() < most {
        let at = call.arg(n).wrapping_add(text.len() as u64);
        let byte = call.machine.space.load(at, 1);
        match byte.map_err(|fault| HelperProblem::Access { arg: n, fault })? {
            0 => break,
            byte => text.push(byte.to_le_bytes()[0]),
        }
    }
    Ok(text)
}

/// `bpf_strncmp(s1, s1_sz, s2)`: -1, 0 or 1 for the first `s1_sz` bytes.
pub(super) fn strncmp(call: &mut Call<'_>) -> Result {
    let size = call.size(2);
    let first = call.read(1, size)?;
    let first = first.split(|byte| *byte == 0).next().unwrap_or_default();
    let second = c_string(call, 3, size)?;
    Ok((first.cmp(&second) as i64).cast_unsigned())
}

/// A parsed number: sign, magnitude, and the number of bytes consumed.
struct Number {
    negative: bool,
    magnitude: u64,
    consumed: usize,
}

/// Size of the kernel's copy of the digits; longer numbers are truncated.
const DIGITS: usize = 63;

/// Parses a number after white space (`__bpf_strtoull`).
fn number(text: &[u8], flags: u64) -> std::result::Result<Number, Errno> {
    if text.is_empty() {
        return Err(Errno::EINVAL);
    }
    let base = u32::try_from(flags).map_err(|_| Errno::EINVAL)?;
    if !matches!(base, 0 | 8 | 10 | 16) {
        return Err(Errno::EINVAL);
    }
    let space = text.iter().take_while(|byte| is_space(**byte)).count();
    let rest = text.get(space..).unwrap_or_default();
    let (negative, rest) = match rest.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let rest = rest.get(..DIGITS).unwrap_or(rest);
    if rest.is_empty() {
        return Err(Errno::EINVAL);
    }
    let (base, prefix) = radix(rest, base);
    let digits = rest.get(prefix..).unwrap_or_default();
    let (magnitude, len) = digits_of(digits, base)?;
    if len == 0 {
        return Err(Errno::EINVAL);
    }
    Ok(Number {
        negative,
        magnitude,
        consumed: space + usize::from(negative) + prefix + len,
    })
}

/// `isspace` of the kernel's `ctype.h`, which includes 0xa0.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// The base and the length of its prefix (`_parse_integer_fixup_radix`).
fn radix(text: &[u8], base: u32) -> (u32, usize) {
    let hex = matches!(text, [b'0', b'x' | b'X', ..]);
    match base {
        0 if hex && text.get(2).is_some_and(u8::is_ascii_hexdigit) => (16, 2),
        0 if text.first() == Some(&b'0') => (8, 0),
        0 => (10, 0),
        16 if hex => (16, 2),
        base => (base, 0),
    }
}

/// Parses digits; `ERANGE` if they exceed 64 bits.
fn digits_of(text: &[u8], base: u32) -> std::result::Result<(u64, usize), Errno> {
    let (mut value, mut len, mut overflow) = (0u64, 0, false);
    for digit in text
        .iter()
        .map_while(|byte| char::from(*byte).to_digit(base))
    {
        let next = value
            .checked_mul(base.into())
            .and_then(|v| v.checked_add(digit.into()));
        overflow |= next.is_none();
        value = next.unwrap_or(value);
        len += 1;
    }
    if overflow {
        Err(Errno::ERANGE)
    } else {
        Ok((value, len))
    }
}

/// Parses text and stores an 8-byte number, 0 on an error; returns the number of bytes
/// consumed.
fn convert(
    call: &mut Call<'_>,
    value: impl FnOnce(&Number) -> std::result::Result<u64, Errno>,
) -> Result {
    call.check(4, 8, AccessKind::Write)?;
    let size = usize::try_from(call.arg(2)).unwrap_or(usize::MAX);
    let text = call.read(1, size)?;
    let number = number(&text, call.arg(3));
    let value = number.and_then(|number| Ok((value(&number)?, number.consumed)));
    match value {
        Ok((value, consumed)) => call
            .write(4, &value.to_le_bytes())
            .map(|()| consumed as u64),
        Err(errno) => call.write(4, &[0; 8]).map(|()| errno.to_ret()),
    }
}

pub(super) fn strtol(call: &mut Call<'_>) -> Result {
    convert(call, |number| {
        let value = if number.negative {
            number.magnitude.wrapping_neg()
        } else {
            number.magnitude
        };
        // The kernel's overflow test: the sign differs from that of the text.
        let wrong = match number.negative {
            true => value.cast_signed() > 0,
            false => value.cast_signed() < 0,
        };
        if wrong { Err(Errno::ERANGE) } else { Ok(value) }
    })
}

pub(super) fn strtoul(call: &mut Call<'_>) -> Result {
    convert(call, |number| match number.negative {
        true => Err(Errno::EINVAL),
        false => Ok(number.magnitude),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use crate::spec::helpers::id;
    use crate::util::HelperId;

    fn compare(first: &[u8], size: u64, second: &[u8]) -> i64 {
        let mut bench = Bench::new();
        let (first, second) = (bench.memory(first), bench.memory(second));
        bench
            .call(id::strncmp, [first, size, second])
            .unwrap()
            .cast_signed()
    }

    #[test]
    fn strings_compare_as_in_c() {
        assert_eq!(compare(b"abc\0", 4, b"abc\0"), 0);
        assert_eq!(compare(b"abcX", 3, b"abcY\0"), 0);
        assert_eq!(compare(b"abcX", 4, b"abcY\0"), -1);
        assert_eq!(compare(b"abd\0", 4, b"abc\0"), 1);
        assert_eq!(compare(b"ab\0X", 4, b"ab\0"), 0);
        assert_eq!(compare(b"ab\0X", 4, b"abc\0"), -1);
        assert_eq!(compare(b"\xff", 1, b"a\0"), 1);
    }

    fn convert(helper: HelperId, text: &[u8], base: u64) -> (i64, i64) {
        let mut bench = Bench::new();
        let (at, to) = (bench.memory(text), bench.memory(&[0xee; 8]));
        let result = bench
            .call(helper, [at, text.len() as u64, base, to])
            .unwrap();
        let value = bench.bytes(to, 8).try_into().unwrap();
        (result.cast_signed(), i64::from_le_bytes(value))
    }

    #[test]
    fn numbers_in_every_base() {
        for (text, base, expected) in [
            (&b"42"[..], 0, (2, 42)),
            (b"  -42x", 10, (5, -42)),
            (b"0x1f", 0, (4, 31)),
            (b"0X1F", 16, (4, 31)),
            (b"1f", 16, (2, 31)),
            (b"017", 0, (3, 15)),
            (b"0xg", 0, (1, 0)),
            (b"0", 0, (1, 0)),
            (b"19", 8, (1, 1)),
            (b"9223372036854775807", 10, (19, i64::MAX)),
            (b"-9223372036854775808", 10, (20, i64::MIN)),
        ] {
            assert_eq!(convert(id::strtol, text, base), expected, "{text:?}");
        }
        assert_eq!(convert(id::strtoul, b"18446744073709551615", 10), (20, -1));
    }

    #[test]
    fn what_is_no_number_leaves_zero() {
        let (einval, erange) = ((-22, 0), (-34, 0));
        for (text, base, expected) in [
            (&b"x"[..], 0, einval),
            (b"-", 0, einval),
            (b"   ", 0, einval),
            (b"1", 2, einval),
            (b"1", 1 << 32, einval),
            (b"0x", 16, einval),
            (b"9223372036854775808", 10, erange),
            (b"-9223372036854775809", 10, erange),
            (b"99999999999999999999", 10, erange),
        ] {
            assert_eq!(convert(id::strtol, text, base), expected, "{text:?}");
        }
        assert_eq!(convert(id::strtoul, b"-1", 10), einval);
        assert_eq!(convert(id::strtoul, b"18446744073709551616", 10), erange);
        // The first 63 characters count.
        assert_eq!(convert(id::strtoul, &[b'0'; 70], 10), (63, 0));
    }
}
