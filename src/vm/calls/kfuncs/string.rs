//! Strings in kernel memory (`bpf_strcmp` and others, `kernel/bpf/helpers.c`). Each read of a
//! byte may fault.

use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem};
use crate::vm::memory::Space;

type Result = std::result::Result<u64, HelperProblem>;
/// Result of a search: a position in the string, or an errno.
type Found = std::result::Result<u64, Errno>;

/// Maximum length of a string (`XATTR_SIZE_MAX`).
const MAX: u64 = 65_536;

/// A string at an unchecked address.
#[derive(Clone, Copy)]
struct Text<'a> {
    space: &'a Space,
    at: u64,
}

impl Text<'_> {
    /// The byte at an index.
    fn byte(self, index: u64) -> std::result::Result<u8, Errno> {
        let mut byte = [0];
        let read = self.space.probe(self.at.wrapping_add(index), &mut byte);
        read.map(|()| byte[0]).ok_or(Errno::EFAULT)
    }

    /// Index of the first byte for which `ends` holds, or of the NUL.
    fn span(self, limit: u64, ends: impl Fn(u8) -> std::result::Result<bool, Errno>) -> Found {
        for index in 0..limit.min(MAX) {
            let byte = self.byte(index)?;
            if byte == 0 || ends(byte)? {
                return Ok(index);
            }
        }
        if limit < MAX {
            Ok(limit)
        } else {
            Err(Errno::E2BIG)
        }
    }

    /// Whether the string contains a byte.
    fn has(self, wanted: u8) -> std::result::Result<bool, Errno> {
        let at = self.span(MAX, |byte| Ok(byte == wanted))?;
        Ok(self.byte(at)? == wanted && wanted != 0)
    }
}

/// The string in an argument; `ERANGE` for a user address.
fn text<'a>(call: &'a Call<'_>, arg: usize) -> std::result::Result<Text<'a>, Errno> {
    let at = call.arg(arg);
    let space = &call.machine.space;
    let is_kernel = at >> 63 == 1;
    is_kernel.then_some(Text { space, at }).ok_or(Errno::ERANGE)
}

/// The value of r0.
fn told(found: Found) -> Result {
    Ok(found.unwrap_or_else(Errno::to_ret))
}

fn compare(call: &Call<'_>, fold: impl Fn(u8) -> u8) -> Found {
    let (first, second) = (text(call, 1)?, text(call, 2)?);
    for index in 0..MAX {
        let (a, b) = (fold(first.byte(index)?), fold(second.byte(index)?));
        if a != b {
            return Ok(if a < b { (-1i64).cast_unsigned() } else { 1 });
        }
        if a == 0 {
            return Ok(0);
        }
    }
    Err(Errno::E2BIG)
}

pub(super) fn strcmp(call: &mut Call<'_>) -> Result {
    told(compare(call, |byte| byte))
}

pub(super) fn strcasecmp(call: &mut Call<'_>) -> Result {
    told(compare(call, lower))
}

/// The kernel's `tolower`, which includes Latin-1 (`lib/ctype.c`).
const fn lower(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' | 0xc0..=0xd6 | 0xd8..=0xde => byte + 0x20,
        _ => byte,
    }
}

/// The character in an argument.
fn character(call: &Call<'_>, arg: usize) -> u8 {
    call.arg(arg).to_le_bytes()[0]
}

/// Index of a character's first occurrence; the character may be the NUL.
fn find(call: &Call<'_>, limit: u64, wanted: u8) -> Found {
    let text = text(call, 1)?;
    let at = text.span(limit, |byte| Ok(byte == wanted))?;
    if at < limit && text.byte(at)? == wanted {
        Ok(at)
    } else {
        Err(Errno::ENOENT)
    }
}

pub(super) fn strchr(call: &mut Call<'_>) -> Result {
    told(find(call, MAX, character(call, 2)))
}

pub(super) fn strnchr(call: &mut Call<'_>) -> Result {
    told(find(call, call.arg(2), character(call, 3)))
}

/// `bpf_strchrnul`: index of a character's first occurrence, or of the NUL.
pub(super) fn strchrnul(call: &mut Call<'_>) -> Result {
    let wanted = character(call, 2);
    told(text(call, 1).and_then(|text| text.span(MAX, |byte| Ok(byte == wanted))))
}

/// `bpf_strrchr`: index of a character's last occurrence. The argument is an `int`, so
/// characters above 255 are never found.
pub(super) fn strrchr(call: &mut Call<'_>) -> Result {
    let wanted = call.arg_u32(2);
    let search = || {
        let text = text(call, 1)?;
        let mut last = Err(Errno::ENOENT);
        for index in 0..MAX {
            let byte = text.byte(index)?;
            if u32::from(byte) == wanted {
                last = Ok(index);
            }
            if byte == 0 {
                return last;
            }
        }
        Err(Errno::E2BIG)
    };
    told(search())
}

pub(super) fn strlen(call: &mut Call<'_>) -> Result {
    told(text(call, 1).and_then(|text| text.span(MAX, |_| Ok(false))))
}

pub(super) fn strnlen(call: &mut Call<'_>) -> Result {
    let limit = call.arg(2);
    told(text(call, 1).and_then(|text| text.span(limit, |_| Ok(false))))
}

fn span(call: &Call<'_>, accept: bool) -> Found {
    let (text, set) = (text(call, 1)?, text(call, 2)?);
    text.span(MAX, |byte| Ok(set.has(byte)? != accept))
}

pub(super) fn strspn(call: &mut Call<'_>) -> Result {
    told(span(call, true))
}

pub(super) fn strcspn(call: &mut Call<'_>) -> Result {
    told(span(call, false))
}

/// Index of a string's first occurrence in the first `limit` bytes of another one.
fn find_text(call: &Call<'_>, limit: u64) -> Found {
    let (text, wanted) = (text(call, 1)?, text(call, 2)?);
    for start in 0..MAX {
        let mut matched = 0;
        loop {
            if matched == MAX {
                return Err(Errno::E2BIG);
            }
            // The wanted string may end exactly at the limit.
            let second = wanted.byte(matched)?;
            if second == 0 {
                return Ok(start);
            }
            if start + matched >= limit {
                return Err(Errno::ENOENT);
            }
            let first = text.byte(start + matched)?;
            if first == 0 {
                return Err(Errno::ENOENT);
            }
            if first != second {
                break;
            }
            matched += 1;
        }
    }
    Err(Errno::E2BIG)
}

pub(super) fn strstr(call: &mut Call<'_>) -> Result {
    told(find_text(call, MAX))
}

pub(super) fn strnstr(call: &mut Call<'_>) -> Result {
    told(find_text(call, call.arg(3)))
}
