//! Constant strings in read-only maps (`check_reg_const_str`, `check_bpf_snprintf_call`).

use crate::isa::Reg;
use crate::spec::MapFlags;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::reg::Kind;
use crate::verifier::reject::{Reject, VerifyResult, reject};

impl Verifier<'_> {
    /// The string that a register points to, without the final zero byte.
    pub(in crate::verifier) fn constant_string(&mut self, reg: Reg) -> VerifyResult<Vec<u8>> {
        let state = *self.reg(reg);
        let number = reg.number();
        let Kind::MapValue { map, .. } = state.kind else {
            reject!(EINVAL, "");
        };
        let Some(def) = self.map(map) else {
            reject!(EFAULT, "R{number} points to no map");
        };
        if !(def.frozen && def.flags.contains(MapFlags::RDONLY_PROG)) {
            reject!(EACCES, "R{number} does not point to a readonly map'");
        }
        let Some(var) = state.var.value() else {
            reject!(EACCES, "R{number} is not a constant address'");
        };
        if !def.map_type.info().direct_value {
            reject!(EACCES, "no direct value access support for this map type");
        }
        let rest = i64::from(def.value_size) - i64::from(state.off);
        let rest = u32::try_from(rest).unwrap_or(u32::MAX);
        self.check_map_access(reg, state.off, rest, false)?;
        if def.max_entries != 1 {
            // Only the single value of an array has a direct address.
            reject!(ENOTSUPP, "direct value access on string failed");
        }
        let off = var.cast_signed().saturating_add(state.off.into());
        let off = usize::try_from(off).unwrap_or(usize::MAX);
        let value = def.initial_value(&0u32.to_le_bytes()).unwrap_or_default();
        let text = value.get(off..).unwrap_or_default();
        match text.iter().position(|byte| *byte == 0) {
            Some(end) => Ok(text.get(..end).unwrap_or_default().to_vec()),
            // The definition may omit zeros at the end.
            None if value.len() < def.value_size as usize => Ok(text.to_vec()),
            None => reject!(EINVAL, "string is not zero-terminated"),
        }
    }

    /// Checks that the kernel supports the format of `bpf_snprintf`, with as many arguments
    /// as the array of `u64` has.
    pub(super) fn check_snprintf(&mut self) -> VerifyResult {
        let size = self.reg(Reg::R5).var.bits.value;
        if !size.is_multiple_of(8) {
            return Err(Reject::new(Errno::EINVAL, ""));
        }
        let format = self.constant_string(Reg::R3)?;
        if !is_format(&format, size / 8) {
            reject!(EINVAL, "Invalid format string");
        }
        Ok(())
    }
}

/// Whether the kernel accepts this format with this number of arguments
/// (`bpf_bprintf_prepare`, `kernel/bpf/helpers.c`).
fn is_format(format: &[u8], args: u64) -> bool {
    let mut rest = format;
    let mut used = 0;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' if tail.first() == Some(&b'%') => rest = tail.get(1..).unwrap_or_default(),
            b'%' => {
                if used == args {
                    return false;
                }
                used += 1;
                match conversion(tail) {
                    Some(behind) => rest = behind,
                    None => return false,
                }
            }
            byte if !is_text(*byte) => return false,
            _ => {}
        }
    }
    true
}

/// Plain text: printable ASCII, spaces, and all non-ASCII bytes.
fn is_text(byte: u8) -> bool {
    !byte.is_ascii() || byte.is_ascii_graphic() || is_space(byte)
}

/// `isspace` for Latin-1, as in the kernel (`lib/ctype.c`).
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d | 0xa0)
}

/// `ispunct` for Latin-1.
fn is_punctuation(byte: u8) -> bool {
    byte.is_ascii_punctuation() || matches!(byte, 0xa1..=0xbf | 0xd7 | 0xf7)
}

/// Whether a conversion ends here: at the end, a space or punctuation.
fn is_end(rest: &[u8]) -> bool {
    let ends = |byte: &u8| is_space(*byte) || is_punctuation(*byte);
    rest.first().is_none_or(ends)
}

/// The rest of the format after a conversion, whose `%` is consumed.
fn conversion(format: &[u8]) -> Option<&[u8]> {
    let flags = format
        .iter()
        .take_while(|byte| b"0+- ".contains(byte))
        .count();
    let mut rest = format.get(flags..)?;
    if rest.first().is_some_and(|byte| matches!(byte, b'1'..=b'9')) {
        let width = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = rest.get(width..)?;
    }
    match rest {
        [b'p', b'k' | b'u', b's', tail @ ..] | [b's', tail @ ..] => is_end(tail).then_some(tail),
        [b'p', tail @ ..] if is_end(tail) => Some(tail),
        [b'p', b'K' | b'x' | b's' | b'S' | b'B', tail @ ..]
        | [b'p', b'i' | b'I', b'4' | b'6', tail @ ..]
        | [b'c', tail @ ..] => Some(tail),
        [b'p', ..] => None,
        _ => {
            let longs = rest
                .iter()
                .take(2)
                .take_while(|byte| **byte == b'l')
                .count();
            match rest.get(longs..)? {
                [b'i' | b'd' | b'u' | b'x' | b'X', tail @ ..] => Some(tail),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_the_kernel() {
        for (format, args) in [
            ("plain, 100%%", 0),
            ("%d %u %x %X %i", 5),
            ("%lld %ld", 2),
            ("%08x|%-3d|%+ 5d", 3),
            ("%s %c %p, %px %pK %ps %pS %pB", 8),
            ("%pks %pus %pi4 %pI6", 4),
            ("more arguments than conversions %d", 3),
            ("caf\u{e9} %s\u{5d0}", 1),
        ] {
            assert!(is_format(format.as_bytes(), args), "{format}");
        }
        for (format, args) in [
            ("%d", 0),
            ("%d %d", 1),
            ("%", 1),
            ("%l", 1),
            ("%llld", 1),
            ("%sx", 1),
            ("%pz", 1),
            ("%pI5", 1),
            ("%pksx", 1),
            ("%f", 1),
            ("\u{1}", 0),
            ("%s\u{e9}", 1),
            ("%\u{e9}", 1),
        ] {
            assert!(!is_format(format.as_bytes(), args), "{format}");
        }
    }
}
