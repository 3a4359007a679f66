//! Locations of USDT arguments in the assembler notation of `<sys/sdt.h>`: `-4@%edi`,
//! `8@-16(%rbp)`, `4@$5`; `4@x0`, `8@[sp, 16]`, `4@5` on arm64.

use crate::spec::ContextKind;
use crate::spec::context::{Arch, layout};

/// An argument of a USDT probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u8,
    pub is_signed: bool,
    pub location: ArgumentLocation,
}

/// The location of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentLocation {
    Constant(i64),
    /// The register at this offset of `struct pt_regs`.
    Register(u32),
    /// Memory at the register (offset in `struct pt_regs`) plus an offset.
    Memory(u32, i64),
}

/// All arguments of a USDT probe, or the text of the first that is not understood.
pub fn parse(text: &str, arch: Arch) -> Result<Vec<Argument>, &str> {
    let words = split(text);
    let read = words.map(|word| argument(word, arch).ok_or(word));
    read.collect()
}

/// Splits the arguments at spaces; arm64 has spaces within brackets, too.
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
    let (size, operand) = word.split_once('@')?;
    let size: i8 = size.parse().ok()?;
    let location = match arch {
        Arch::X86_64 => x86_64(operand),
        Arch::Arm64 => arm64(operand),
    };
    matches!(size.unsigned_abs(), 1 | 2 | 4 | 8).then_some(Argument {
        size: size.unsigned_abs(),
        is_signed: size < 0,
        location: location?,
    })
}

/// `%rdi`, `-16(%rbp)`, `$5`.
fn x86_64(operand: &str) -> Option<ArgumentLocation> {
    if let Some(constant) = operand.strip_prefix('$') {
        return Some(ArgumentLocation::Constant(number(constant)?));
    }
    if let Some(name) = operand.strip_prefix('%') {
        return Some(ArgumentLocation::Register(x86_64_register(name)?));
    }
    // `struct __bpf_usdt_arg_spec` of this layout has no index registers or symbols.
    let (offset, register) = operand.strip_suffix(')')?.split_once("(%")?;
    let offset = match offset {
        "" => 0,
        offset => number(offset)?,
    };
    Some(ArgumentLocation::Memory(x86_64_register(register)?, offset))
}

/// `x0`, `[sp, 16]`, `[x1]`, `5`.
fn arm64(operand: &str) -> Option<ArgumentLocation> {
    if let Some(inner) = operand.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let (register, offset) = inner.split_once(',').unwrap_or((inner, "0"));
        let offset = number(offset.trim())?;
        return Some(ArgumentLocation::Memory(
            arm64_register(register.trim())?,
            offset,
        ));
    }
    match number(operand) {
        Some(constant) => Some(ArgumentLocation::Constant(constant)),
        None => Some(ArgumentLocation::Register(arm64_register(operand)?)),
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    // Unsigned constants of 8 bytes may exceed `i64`: the bits are kept.
    let number = number.cast_signed();
    Some(match digits.len() == text.len() {
        true => number,
        false => number.wrapping_neg(),
    })
}

/// The offset of a register by any of its names: `rdi`, `edi`, `di`, `dil`.
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
    field_offset(Arch::X86_64, &field)
}

/// The offset of `x0` to `x30`, of their lower halves and of `sp`.
fn arm64_register(name: &str) -> Option<u32> {
    match name.strip_prefix(['x', 'w']) {
        Some(number) => field_offset(Arch::Arm64, &format!("regs[{number}]")),
        None => field_offset(Arch::Arm64, name).filter(|_| name == "sp"),
    }
}

fn field_offset(arch: Arch, field: &str) -> Option<u32> {
    let (offset, _) = layout(ContextKind::PtRegs, arch)?.find(field)?;
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, arch: Arch) -> Option<(i8, ArgumentLocation)> {
        let arguments = parse(text, arch).ok()?;
        let [argument] = arguments.as_slice() else {
            return None;
        };
        let size = argument.size.cast_signed();
        let size = if argument.is_signed { -size } else { size };
        Some((size, argument.location))
    }

    #[test]
    fn x86_64_places_are_read() {
        for (text, expected) in [
            ("8@%rdi", (8, ArgumentLocation::Register(112))),
            ("-4@%edi", (-4, ArgumentLocation::Register(112))),
            ("1@%dil", (1, ArgumentLocation::Register(112))),
            ("2@%ax", (2, ArgumentLocation::Register(80))),
            ("1@%al", (1, ArgumentLocation::Register(80))),
            ("4@%r8d", (4, ArgumentLocation::Register(72))),
            ("8@%r15", (8, ArgumentLocation::Register(0))),
            ("-8@$-5", (-8, ArgumentLocation::Constant(-5))),
            ("8@$0x10", (8, ArgumentLocation::Constant(16))),
            (
                "8@$18446744073709551615",
                (8, ArgumentLocation::Constant(-1)),
            ),
            (
                "-8@$-9223372036854775808",
                (-8, ArgumentLocation::Constant(i64::MIN)),
            ),
            ("8@-16(%rbp)", (8, ArgumentLocation::Memory(32, -16))),
            ("8@(%rsp)", (8, ArgumentLocation::Memory(152, 0))),
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
            ("-4@x0", (-4, ArgumentLocation::Register(0))),
            ("4@w3", (4, ArgumentLocation::Register(24))),
            ("8@[sp, 16]", (8, ArgumentLocation::Memory(248, 16))),
            ("8@[x1]", (8, ArgumentLocation::Memory(8, 0))),
            ("4@5", (4, ArgumentLocation::Constant(5))),
        ] {
            assert_eq!(one(text, Arch::Arm64), Some(expected), "{text}");
        }
        let both = parse("8@[sp, 8] -4@x1", Arch::Arm64).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(parse("8@x31 8@x1", Arch::Arm64), Err("8@x31"));
        assert_eq!(parse("", Arch::Arm64), Ok(Vec::new()));
    }
}
