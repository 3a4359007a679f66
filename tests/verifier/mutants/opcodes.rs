//! Every opcode at every position, with valid and invalid field values: each program has
//! one such slot among valid instructions.

use bpflab::isa::RawInsn;
use bpflab::program::Program;
use bpflab::spec::ProgType;

/// `r0 = 0`.
const ZERO: RawInsn = RawInsn::new(0xb7, 0, 0, 0, 0);
/// `r6 = r1`.
const KEEP: RawInsn = RawInsn::new(0xbf, 6, 1, 0, 0);
const EXIT: RawInsn = RawInsn::new(0x95, 0, 0, 0, 0);
/// `call pc+1`.
const CALL: RawInsn = RawInsn::new(0x85, 0, 1, 0, 1);
/// The placeholder of a slot under test.
const SLOT: RawInsn = RawInsn::new(0, 0, 0, 0, 0);

/// A position: its name, the instructions, and the index to replace.
pub struct Place {
    pub name: &'static str,
    insns: &'static [RawInsn],
    at: usize,
}

pub const PLACES: &[Place] = &[
    Place {
        name: "first",
        insns: &[SLOT, ZERO, EXIT],
        at: 0,
    },
    Place {
        name: "behind what it reads",
        insns: &[KEEP, ZERO, SLOT, EXIT],
        at: 2,
    },
    Place {
        name: "last",
        insns: &[ZERO, SLOT],
        at: 1,
    },
    Place {
        name: "alone",
        insns: &[SLOT],
        at: 0,
    },
    Place {
        name: "unreachable",
        insns: &[ZERO, EXIT, SLOT],
        at: 2,
    },
    Place {
        name: "of two slots",
        insns: &[SLOT, SLOT, ZERO, EXIT],
        at: 0,
    },
    Place {
        name: "in a function",
        insns: &[CALL, EXIT, ZERO, SLOT, EXIT],
        at: 3,
    },
];

/// Program types with and without packet loads.
pub const TYPES: [ProgType; 2] = [ProgType::SocketFilter, ProgType::Kprobe];

const DST: [u8; 3] = [0, 1, 11];
const SRC: [u8; 5] = [0, 1, 2, 3, 11];
const OFF: [i16; 4] = [0, 1, -2, 8];
const IMM: [i32; 4] = [0, 1, -1, 32];

/// All combinations of field values of a slot.
pub fn slots(opcode: u8) -> impl Iterator<Item = RawInsn> {
    DST.into_iter().flat_map(move |dst| {
        SRC.into_iter().flat_map(move |src| {
            OFF.into_iter().flat_map(move |off| {
                IMM.into_iter()
                    .map(move |imm| RawInsn::new(opcode, dst, src, off, imm))
            })
        })
    })
}

/// The program with a slot at a position.
pub fn program(place: &Place, slot: RawInsn, prog_type: ProgType) -> Program {
    let mut insns = place.insns.to_vec();
    insns[place.at] = slot;
    let mut program = Program::new("opcode", prog_type, insns);
    program.license = "GPL".into();
    program.kernel_btf = bpflab::kernel::running_btf().cloned();
    program
}
