//! What programs are told of a marker: an element of the map of `usdt.bpf.h`
//! (`struct __bpf_usdt_spec`).

use super::argument::{Argument, Source, parse};
use crate::spec::context::Arch;

/// How many arguments it has room for (`BPF_USDT_MAX_ARG_CNT`), and bytes of each
/// (`struct __bpf_usdt_arg_spec`): the value or offset (`u64`), the kind (`u32`), where the
/// register stands (`u16`), whether it is signed, how many bits above it are not its own.
const ARGUMENTS: usize = 12;
const ARGUMENT: usize = 16;
/// Behind them the cookie (`u64`) and the number of arguments (`u16`).
const COOKIE: usize = ARGUMENTS * ARGUMENT;
const COUNT: usize = COOKIE + 8;

/// The element for a marker's arguments, of `size` bytes; else what is wrong.
pub fn value(arguments: &str, cookie: u64, size: usize) -> Result<Vec<u8>, String> {
    let read = parse(arguments, Arch::HOST)
        .map_err(|word| format!("its argument '{word}' is somewhere that programs can't read"))?;
    if read.len() > ARGUMENTS {
        return Err(format!(
            "it has {} arguments, more than {ARGUMENTS}",
            read.len()
        ));
    }
    let mut value = vec![0; COUNT + 2];
    for (argument, place) in read.iter().zip(value.chunks_exact_mut(ARGUMENT)) {
        place.copy_from_slice(&encode(argument));
    }
    let count = u16::try_from(read.len()).unwrap_or(u16::MAX);
    for (at, bytes) in [
        (COOKIE, &cookie.to_ne_bytes()[..]),
        (COUNT, &count.to_ne_bytes()),
    ] {
        if let Some(place) = value.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    if size < value.len() {
        return Err(format!("the map has values of {size} bytes, too few"));
    }
    value.resize(size, 0);
    Ok(value)
}

fn encode(argument: &Argument) -> [u8; ARGUMENT] {
    let (kind, register, value) = match argument.source {
        Source::Constant(value) => (0u32, 0, value),
        Source::Register(register) => (1, register, 0),
        Source::Memory(register, offset) => (2, register, offset),
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
            source: Source::Memory(32, -16),
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
