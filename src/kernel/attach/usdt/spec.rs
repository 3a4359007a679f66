//! The arguments of a USDT probe as BPF programs read them: an element of the map of
//! `usdt.bpf.h` (`struct __bpf_usdt_spec`).

use super::argument::{Argument, ArgumentLocation, parse};
use crate::spec::context::Arch;

/// The number of arguments (`BPF_USDT_MAX_ARG_CNT`), and bytes of each (`struct
/// __bpf_usdt_arg_spec`): value or offset (`u64`), kind (`u32`), offset of the register
/// (`u16`), whether it is signed, how many bits to shift out.
const ARGUMENTS: usize = 12;
const ARGUMENT: usize = 16;
/// After them the cookie (`u64`) and the number of arguments (`u16`).
const COOKIE: usize = ARGUMENTS * ARGUMENT;
const COUNT: usize = COOKIE + 8;

/// The element, of `size` bytes, for a USDT probe's arguments, or why there is none.
pub fn value(arguments: &str, cookie: u64, size: usize) -> Result<Vec<u8>, String> {
    let read = parse(arguments, Arch::HOST)
        .map_err(|word| format!("unsupported USDT argument '{word}'"))?;
    if read.len() > ARGUMENTS {
        return Err(format!(
            "{} USDT arguments, more than {ARGUMENTS}",
            read.len()
        ));
    }
    let mut value = vec![0; COUNT + 2];
    for (argument, bytes) in read.iter().zip(value.chunks_exact_mut(ARGUMENT)) {
        bytes.copy_from_slice(&encode(argument));
    }
    let count = u16::try_from(read.len()).unwrap_or(u16::MAX);
    for (at, bytes) in [
        (COOKIE, &cookie.to_ne_bytes()[..]),
        (COUNT, &count.to_ne_bytes()),
    ] {
        if let Some(field) = value.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }
    if size < value.len() {
        return Err(format!("the map's values are too small: {size} bytes"));
    }
    value.resize(size, 0);
    Ok(value)
}

fn encode(argument: &Argument) -> [u8; ARGUMENT] {
    let (kind, register, value) = match argument.location {
        ArgumentLocation::Constant(value) => (0u32, 0, value),
        ArgumentLocation::Register(register) => (1, register, 0),
        ArgumentLocation::Memory(register, offset) => (2, register, offset),
    };
    let mut bytes = [0; ARGUMENT];
    bytes[..8].copy_from_slice(&value.to_ne_bytes());
    bytes[8..12].copy_from_slice(&kind.to_ne_bytes());
    let register = u16::try_from(register).unwrap_or(u16::MAX);
    bytes[12..14].copy_from_slice(&register.to_ne_bytes());
    bytes[14] = u8::from(argument.is_signed);
    bytes[15] = 64u8.saturating_sub(argument.size.saturating_mul(8));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_laid_out_as_the_header_says() {
        let argument = Argument {
            size: 4,
            is_signed: true,
            location: ArgumentLocation::Memory(32, -16),
        };
        let mut expected = (-16i64).to_ne_bytes().to_vec();
        expected.extend([2, 0, 0, 0, 32, 0, 1, 32]);
        assert_eq!(encode(&argument).to_vec(), expected);
        let none = value("", 7, 208).unwrap();
        assert_eq!((none.len(), none[192], none[200]), (208, 7, 0));
        assert!(value("", 0, 100).unwrap_err().contains("100 bytes"));
        assert!(value("8@nowhere", 0, 208).unwrap_err().contains("nowhere"));
    }
}
