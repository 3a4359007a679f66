//! The fixed bits of an opcode (RFC 9669, section 3); the bits of single operations are in
//! the tables.

/// The class: the low three bits of every opcode.
pub(super) mod class {
    pub const MASK: u8 = 0x07;
    pub const LD: u8 = 0x00;
    pub const LDX: u8 = 0x01;
    pub const ST: u8 = 0x02;
    pub const STX: u8 = 0x03;
    pub const ALU: u8 = 0x04;
    pub const JMP: u8 = 0x05;
    pub const JMP32: u8 = 0x06;
    pub const ALU64: u8 = 0x07;
}

/// The mode of a load or store: its high three bits.
pub(super) mod mode {
    pub const MASK: u8 = 0xe0;
    pub const IMM: u8 = 0x00;
    pub const ABS: u8 = 0x20;
    pub const IND: u8 = 0x40;
    pub const MEM: u8 = 0x60;
    pub const MEMSX: u8 = 0x80;
    pub const ATOMIC: u8 = 0xc0;
}

/// Operation bits of arithmetic and jumps: the high four.
pub(super) mod op {
    pub const MASK: u8 = 0xf0;
    pub const NEG: u8 = 0x80;
    pub const MOV: u8 = 0xb0;
    pub const END: u8 = 0xd0;
    pub const JA: u8 = 0x00;
    pub const CALL: u8 = 0x80;
    pub const EXIT: u8 = 0x90;
    pub const JCOND: u8 = 0xe0;
}

/// Bit 3 of arithmetic and jumps: the second operand is a register.
pub(super) const SRC_X: u8 = 0x08;

/// The whole opcode of a 64-bit immediate load.
pub(super) const LD_IMM64: u8 = class::LD | mode::IMM | 0x18;

/// Source field of `call`.
pub(super) mod call {
    pub const HELPER: u8 = 0;
    pub const SUBPROGRAM: u8 = 1;
    pub const KFUNC: u8 = 2;
}

/// Offset field of a 64-bit move between address spaces.
pub(super) const ADDR_SPACE_CAST: i16 = 1;
