//! One instruction slot in memory format (RFC 9669, section 3).

use std::fmt;

use super::opcode::LD_IMM64;

/// Eight undecoded bytes of a program: `opcode`, two 4-bit registers, a 16-bit offset, a
/// 32-bit immediate. A 64-bit immediate load takes two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RawInsn {
    /// Operation, source bit and class, or size, mode and class.
    pub opcode: u8,
    /// Destination register in the low nibble, source register in the high one.
    pub regs: u8,
    /// Offset of a memory access or a jump; selects a variant of some ALU operations.
    pub off: i16,
    /// Constant operand.
    pub imm: i32,
}

impl RawInsn {
    /// Size of a slot in bytes.
    pub const SIZE: usize = 8;

    /// A slot with these fields; only the low 4 bits of `dst` and `src` are used.
    #[must_use]
    pub const fn new(opcode: u8, dst: u8, src: u8, off: i16, imm: i32) -> Self {
        Self {
            opcode,
            regs: (dst & 0xf) | (src << 4),
            off,
            imm,
        }
    }

    /// Whether it is the first slot of a 64-bit immediate (`BPF_LD | BPF_IMM | BPF_DW`), which takes
    /// two.
    #[must_use]
    pub(crate) const fn is_wide(self) -> bool {
        self.opcode == LD_IMM64
    }

    /// Number of the destination register, 0 to 15 (above 10 it is invalid).
    #[must_use]
    pub const fn dst(self) -> u8 {
        self.regs & 0xf
    }

    /// Number of the source register, or the pseudo source.
    #[must_use]
    pub const fn src(self) -> u8 {
        self.regs >> 4
    }

    /// The same slot with another source field.
    #[must_use]
    pub const fn with_src(self, src: u8) -> Self {
        Self {
            regs: (self.regs & 0xf) | (src << 4),
            ..self
        }
    }

    /// The same slot with another immediate.
    #[must_use]
    pub const fn with_imm(self, imm: i32) -> Self {
        Self { imm, ..self }
    }

    /// Reads a slot from its little-endian bytes.
    #[must_use]
    pub const fn from_bytes(b: [u8; Self::SIZE]) -> Self {
        Self {
            opcode: b[0],
            regs: b[1],
            off: i16::from_le_bytes([b[2], b[3]]),
            imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        }
    }

    /// The slot's little-endian bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        let [o0, o1] = self.off.to_le_bytes();
        let [i0, i1, i2, i3] = self.imm.to_le_bytes();
        [self.opcode, self.regs, o0, o1, i0, i1, i2, i3]
    }

    /// Splits code bytes into slots; the second part is the bytes after the last whole
    /// slot.
    #[must_use]
    pub fn slots(bytes: &[u8]) -> (Vec<Self>, &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<{ Self::SIZE }>();
        (chunks.iter().map(|b| Self::from_bytes(*b)).collect(), rest)
    }
}

impl fmt::Debug for RawInsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "({:02x}) dst={} src={} off={} imm={}",
            self.opcode,
            self.dst(),
            self.src(),
            self.off,
            self.imm
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_fields_are_the_same_thing() {
        let bytes = [0x7b, 0x1a, 0xf8, 0xff, 0x01, 0x02, 0x03, 0x04];
        let insn = RawInsn::from_bytes(bytes);
        assert_eq!((insn.dst(), insn.src(), insn.off), (10, 1, -8));
        assert_eq!(insn.to_bytes(), bytes);
        assert_eq!(insn, RawInsn::new(0x7b, 10, 1, -8, 0x0403_0201));
    }

    #[test]
    fn slots_keep_the_rest() {
        let (slots, rest) = RawInsn::slots(&[0; 19]);
        assert_eq!((slots.len(), rest.len()), (2, 3));
    }
}
