//! Where a marker's argument is, as the compiler wrote it down in the assembler's
//! notation: `-4@%edi`, `8@-16(%rbp)`, `4@$5`; `4@x0`, `8@[sp, 16]`, `4@5` on arm64.

use crate::spec::ContextKind;
use crate::spec::context::{Arch, layout};

/// An argument of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Bytes of it: 1, 2, 4 or 8.
    pub size: u8,
    pub is_signed: bool,
    pub source: Source,
}

/// Where an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Constant(i64),
    /// In the register that stands so far in `struct pt_regs`.
    Register(u32),
    /// In memory, so far behind where that register points.
    Memory(u32, i64),
}

/// All arguments of a marker, or the text of the first that is not understood.
pub fn parse(text: &str, arch: Arch) -> Result<Vec<Argument>, &str> {
    let words = split(text);
    let read = words.map(|word| argument(word, arch).ok_or(word));
    read.collect()
}

/// The arguments; arm64's have spaces between brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        let mut depth = 0u32;
        let end = rest.find(|c: char| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && c.is_whitespace()
        });
        let (word, more) = rest.split_at(end.unwrap_or(rest.len()));
        rest = more.trim_start();
        (!word.is_empty()).then_some(word)
    })
}

fn argument(word: &str, arch: Arch) -> Option<Argument> {
    let (size, place) = word.split_once('@')?;
    let size: i8 = size.parse().ok()?;
    let source = match arch {
        Arch::X86_64 => x86_64(place),
        Arch::Arm64 => arm64(place),
    };
    matches!(size.unsigned_abs(), 1 | 2 | 4 | 8).then_some(Argument {
        size: size.unsigned_abs(),
        is_signed: size < 0,
        source: source?,
    })
}

/// `%rdi`, `-16(%rbp)`, `$5`.
fn x86_64(place: &str) -> Option<Source> {
    if let Some(constant) = place.strip_prefix('$') {
        return Some(Source::Constant(number(constant)?));
    }
    if let Some(name) = place.strip_prefix('%') {
        return Some(Source::Register(x86_64_register(name)?));
    }
    // An index register or a symbol is more than the map can tell.
    let (offset, register) = place.strip_suffix(')')?.split_once("(%")?;
    let offset = match offset {
        "" => 0,
        offset => number(offset)?,
    };
    Some(Source::Memory(x86_64_register(register)?, offset))
}

/// `x0`, `[sp, 16]`, `[x1]`, `5`.
fn arm64(place: &str) -> Option<Source> {
    if let Some(inner) = place.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let (register, offset) = inner.split_once(',').unwrap_or((inner, "0"));
        let offset = number(offset.trim())?;
        return Some(Source::Memory(arm64_register(register.trim())?, offset));
    }
    match number(place) {
        Some(constant) => Some(Source::Constant(constant)),
        None => Some(Source::Register(arm64_register(place)?)),
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    // Unsigned ones of 8 bytes are written as such: the bits count.
    let number = number.cast_signed();
    Some(match digits.len() == text.len() {
        true => number,
        false => number.wrapping_neg(),
    })
}

/// Where a register stands, by any of the names of its parts: `rdi`, `edi`, `di`, `dil`.
fn x86_64_register(name: &str) -> Option<u32> {
    let numbered = name.strip_prefix('r').filter(|rest| {
        let digits = rest.trim_end_matches(['d', 'w', 'b']);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let field = match numbered {
        Some(rest) => format!("r{}", rest.trim_end_matches(['d', 'w', 'b'])),
        None => {
            let bare = name.strip_prefix(['r', 'e']).unwrap_or(name);
            match bare {
                "al" | "bl" | "cl" | "dl" => bare.replace('l', "x"),
                "sil" | "dil" | "bpl" | "spl" => bare.trim_end_matches('l').to_owned(),
                _ => bare.to_owned(),
            }
        }
    };
    place(Arch::X86_64, &field)
}

/// `x0` to `x30`, their lower halves, and the stack's.
fn arm64_register(name: &str) -> Option<u32> {
    match name.strip_prefix(['x', 'w']) {
        Some(number) => place(Arch::Arm64, &format!("regs[{number}]")),
        None => place(Arch::Arm64, name).filter(|_| name == "sp"),
    }
}

fn place(arch: Arch, field: &str) -> Option<u32> {
    let (offset, _) = layout(ContextKind::PtRegs, arch)?.find(field)?;
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, arch: Arch) -> Option<(i8, Source)> {
        let arguments = parse(text, arch).ok()?;
        let [argument] = arguments.as_slice() else {
            return None;
        };
        let size = argument.size.cast_signed();
        let size = if argument.is_signed { -size } else { size };
        Some((size, argument.source))
    }

    #[test]
    fn x86_64_places_are_read() {
        for (text, expected) in [
            ("8@%rdi", (8, Source::Register(112))),
            ("-4@%edi", (-4, Source::Register(112))),
            ("1@%dil", (1, Source::Register(112))),
            ("2@%ax", (2, Source::Register(80))),
            ("1@%al", (1, Source::Register(80))),
            ("4@%r8d", (4, Source::Register(72))),
            ("8@%r15", (8, Source::Register(0))),
            ("-8@$-5", (-8, Source::Constant(-5))),
            ("8@$0x10", (8, Source::Constant(16))),
            ("8@$18446744073709551615", (8, Source::Constant(-1))),
            ("-8@$-9223372036854775808", (-8, Source::Constant(i64::MIN))),
            ("8@-16(%rbp)", (8, Source::Memory(32, -16))),
            ("8@(%rsp)", (8, Source::Memory(152, 0))),
        ] {
            assert_eq!(one(text, Arch::X86_64), Some(expected), "{text}");
        }
        for text in [
            "3@%rdi",
            "8@%rxx",
            "8@name(%rip)",
            "8@$--9223372036854775808",
            "8@(%rax,%rbx,8)",
            "x",
            "8@",
        ] {
            assert_eq!(parse(text, Arch::X86_64), Err(text));
        }
    }

    #[test]
    fn arm64_places_are_read() {
        for (text, expected) in [
            ("-4@x0", (-4, Source::Register(0))),
            ("4@w3", (4, Source::Register(24))),
            ("8@[sp, 16]", (8, Source::Memory(248, 16))),
            ("8@[x1]", (8, Source::Memory(8, 0))),
            ("4@5", (4, Source::Constant(5))),
        ] {
            assert_eq!(one(text, Arch::Arm64), Some(expected), "{text}");
        }
        let both = parse("8@[sp, 8] -4@x1", Arch::Arm64).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(parse("8@x31 8@x1", Arch::Arm64), Err("8@x31"));
        assert_eq!(parse("", Arch::Arm64), Ok(Vec::new()));
    }
}
