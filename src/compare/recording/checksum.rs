//! The checksum of blocks, programs and objects: CRC-32 as in gzip and Ethernet
//! (polynomial 0x04c11db7, reflected). It finds damage and mix-ups, not forgery.

use crate::program::Program;

/// CRC-32 of bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// That of a program's instructions after relocation, each slot in its 8 bytes; maps are
/// in it by their number in the object. Equal checksums mean: what was recorded is what
/// is going to be replayed.
#[must_use]
pub fn program_checksum(program: &Program) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for insn in &program.insns {
        crc.update(&insn.to_bytes());
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::RawInsn;
    use crate::spec::ProgType;

    #[test]
    fn it_is_the_crc_of_gzip() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_program_has_that_of_its_bytes() {
        let code = [0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
        let program = Program::new("p", ProgType::Tracepoint, RawInsn::slots(&code).0);
        assert_eq!(program_checksum(&program), checksum(&code));
    }
}
