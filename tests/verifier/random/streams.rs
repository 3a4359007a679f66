//! Random programs.

use std::sync::Arc;

use bpflab::isa::{Code, RawInsn};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::util::Pc;

/// A source of programs, reproducible by seed.
pub struct Streams {
    state: u64,
    /// The opcodes of instructions.
    opcodes: Vec<u8>,
    maps: Arc<[MapDef]>,
}

/// Constants near limits.
const CONSTANTS: [i32; 12] = [
    0,
    1,
    -1,
    2,
    8,
    -8,
    64,
    255,
    512,
    0x7fff_ffff,
    i32::MIN,
    -512,
];

impl Streams {
    /// With the seed of the environment variable; `which` selects one of several streams.
    pub fn seeded(which: u64) -> Self {
        let seed = std::env::var("BPFLAB_SEED").ok();
        let seed: u64 = seed.map_or(1, |seed| seed.parse().expect("BPFLAB_SEED is a number"));
        let valid = |opcode: &u8| {
            let raw = RawInsn::new(*opcode, 0, 0, 0, 0);
            Code::new(&[raw, RawInsn::new(0, 0, 0, 0, 0)])
                .insn(Pc(0))
                .is_some()
        };
        let ringbuf = MapDef::new("records", MapType::Ringbuf, 0, 0, 4096);
        Self {
            state: seed << 8 | which,
            opcodes: (0..=255).filter(valid).collect(),
            maps: Arc::new([
                MapDef::new("array", MapType::Array, 4, 32, 4),
                MapDef::new("hash", MapType::Hash, 8, 16, 8),
                ringbuf,
            ]),
        }
    }

    /// `SplitMix64`.
    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn program(&mut self, insns: Vec<RawInsn>) -> Program {
        let prog_type = self.pick(ProgType::ALL);
        let mut program = Program::new("random", prog_type, insns);
        program.license = "GPL".into();
        program.maps = self.maps.clone();
        program
    }

    /// A program of random bytes.
    pub fn bytes(&mut self) -> Program {
        let len = 1 + self.below(24);
        let mut insns: Vec<_> = (0..len)
            .map(|_| RawInsn::from_bytes(self.next().to_le_bytes()))
            .collect();
        if self.below(2) == 0 {
            insns.push(RawInsn::new(0x95, 0, 0, 0, 0));
        }
        self.program(insns)
    }

    /// Instructions with mostly sensible fields; registers are initialised before them.
    pub fn instructions(&mut self) -> Program {
        let mut insns = vec![RawInsn::new(0xbf, 6, 1, 0, 0)];
        for reg in [0, 2, 3, 4, 5, 7, 8, 9] {
            let value = self.constant();
            insns.push(match self.below(4) {
                0 => RawInsn::new(0xbf, reg, 10, 0, 0),
                1 => RawInsn::new(0x61, reg, 6, 0, 0),
                _ => RawInsn::new(0xb7, reg, 0, 0, value),
            });
        }
        for _ in 0..1 + self.below(20) {
            self.instruction(&mut insns);
        }
        insns.push(RawInsn::new(0xb7, 0, 0, 0, 0));
        insns.push(RawInsn::new(0x95, 0, 0, 0, 0));
        self.program(insns)
    }

    fn instruction(&mut self, insns: &mut Vec<RawInsn>) {
        const LOAD_IMM64: u8 = 0x18;
        const CALL: u8 = 0x85;
        const REGISTER: u8 = 0x08;
        let opcode = match self.opcodes.clone() {
            opcodes if self.below(8) > 0 => self.pick(&opcodes),
            _ => self.pick(&[LOAD_IMM64, CALL]),
        };
        let (dst, src) = (self.byte() % 11, self.byte() % 11);
        let off = self.offset(opcode);
        let imm = self.constant();
        let class = opcode & 7;
        insns.push(match opcode {
            LOAD_IMM64 => {
                let map = i32::try_from(self.below(3)).unwrap();
                let source = self.pick(&[0, 5, 6]);
                let imm = if source == 0 { imm } else { map };
                RawInsn::new(opcode, dst % 10, source, 0, imm)
            }
            CALL => {
                let helper = i32::try_from(1 + self.below(211)).unwrap();
                RawInsn::new(opcode, 0, 0, 0, helper)
            }
            _ if matches!(class, 4 | 7) && opcode & REGISTER != 0 => {
                RawInsn::new(opcode, dst, src, 0, 0)
            }
            _ if matches!(class, 4 | 7) => RawInsn::new(opcode, dst, 0, 0, imm),
            _ if matches!(class, 5 | 6) && opcode & REGISTER != 0 => {
                RawInsn::new(opcode, dst, src, off, 0)
            }
            _ if matches!(class, 5 | 6) => RawInsn::new(opcode, dst, 0, off, imm),
            _ => RawInsn::new(opcode, dst, src, off, imm),
        });
        if opcode == LOAD_IMM64 {
            insns.push(RawInsn::new(0, 0, 0, 0, 0));
        }
    }

    fn constant(&mut self) -> i32 {
        match self.below(4) {
            0 => i32::from_le_bytes(self.next().to_le_bytes()[..4].try_into().unwrap()),
            1 => i32::from(self.byte() % 64),
            _ => self.pick(&CONSTANTS),
        }
    }

    /// For jumps, a short distance ahead, rarely back; for others, a stack offset.
    fn offset(&mut self, opcode: u8) -> i16 {
        if matches!(opcode & 7, 5 | 6) {
            return self.pick(&[0, 0, 1, 1, 2, 3, 5, -2, -3]);
        }
        match self.below(8) {
            0 => i16::from_le_bytes(self.next().to_le_bytes()[..2].try_into().unwrap()),
            1 => i16::from(self.byte() % 32),
            _ => -8 * i16::from(self.byte() % 6),
        }
    }

    /// One of these programs with one to three fields changed.
    pub fn changed(&mut self, programs: &[Program]) -> Program {
        let at = self.below(programs.len());
        let mut program = programs[at].clone();
        for _ in 0..1 + self.below(3) {
            let at = self.below(program.insns.len());
            let mut bytes = program.insns[at].to_bytes();
            match self.below(5) {
                0 => bytes[0] = self.pick(&self.opcodes.clone()),
                1 => bytes[1] = ((self.byte() % 11) << 4) | (bytes[1] & 0xf),
                2 => bytes[1] = (bytes[1] & 0xf0) | (self.byte() % 11),
                3 => {
                    let off = self.offset(bytes[0]).to_le_bytes();
                    bytes[2..4].copy_from_slice(&off);
                }
                _ => bytes[4..].copy_from_slice(&self.constant().to_le_bytes()),
            }
            program.insns[at] = RawInsn::from_bytes(bytes);
        }
        program
    }
}
