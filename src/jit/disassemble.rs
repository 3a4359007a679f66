//! Disassembly of machine code.

use iced_x86::{Decoder as X86Decoder, DecoderOptions, Formatter, IntelFormatter};
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64;

use crate::spec::context::Arch;

/// A machine instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineInsn {
    /// Its offset in the code, in bytes.
    pub offset: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its assembly text; jump targets are offsets in the code (x86-64) or distances
    /// (arm64).
    pub text: String,
}

/// Disassembles code for a machine; undecodable bytes are marked as such.
#[must_use]
pub fn disassemble(machine: Arch, code: &[u8]) -> Vec<MachineInsn> {
    match machine {
        Arch::X86_64 => x86_64(code),
        Arch::Arm64 => arm64(code),
    }
}

fn x86_64(code: &[u8]) -> Vec<MachineInsn> {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_space_after_operand_separator(true);
    let mut listed = Vec::new();
    let mut decoder = X86Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    while decoder.can_decode() {
        let offset = decoder.position();
        let insn = decoder.decode();
        let mut text = String::new();
        formatter.format(&insn, &mut text);
        let bytes = code.get(offset..decoder.position()).unwrap_or_default();
        listed.push(MachineInsn {
            offset,
            bytes: bytes.to_vec(),
            text,
        });
    }
    listed
}

fn arm64(code: &[u8]) -> Vec<MachineInsn> {
    let decoder = a64::InstDecoder::default();
    let words = code.chunks(4).enumerate();
    words
        .map(|(number, bytes)| MachineInsn {
            offset: 4 * number,
            bytes: bytes.to_vec(),
            text: match decoder.decode(&mut U8Reader::new(bytes)) {
                Ok(insn) => insn.to_string(),
                Err(_) => "(bad)".to_owned(),
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_for_both_machines() {
        let code = [0x48, 0x8b, 0x47, 0x08, 0x74, 0x02, 0xc3, 0x06];
        let listed = disassemble(Arch::X86_64, &code);
        let texts: Vec<_> = listed.iter().map(|insn| insn.text.as_str()).collect();
        assert_eq!(texts, ["mov rax, [rdi+8]", "je short 8", "ret", "(bad)"]);
        assert_eq!((listed[2].offset, listed[2].bytes.len()), (6, 1));

        let code = [0x20, 0x00, 0x02, 0x8b, 0xc0, 0x03, 0x5f, 0xd6];
        let listed = disassemble(Arch::Arm64, &code);
        let texts: Vec<_> = listed.iter().map(|insn| insn.text.as_str()).collect();
        assert_eq!(texts, ["add x0, x1, x2", "ret"]);
    }
}
