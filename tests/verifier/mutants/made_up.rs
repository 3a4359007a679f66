//! Random programs: register types are tracked, so that most steps make sense. Bounds are
//! checked often but not always, so that some programs are accepted and some rejected. A
//! table has the possible steps.

use bpflab::isa::RawInsn;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};

use bpflab::fuzz::Random;

/// The type of a register, as tracked by the generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holds {
    Nothing,
    Number,
    Context,
    Stack,
    Value,
    ValueOrNull,
    Packet,
    PacketEnd,
    Record,
    RecordOrNull,
}

/// The maps of each program, by index.
const ARRAY: i32 = 0;
const HASH: i32 = 1;
const RECORDS: i32 = 2;
/// The value size of the array and the hash.
const VALUE: i32 = 48;

/// A program under construction.
struct Maker {
    random: Random,
    insns: Vec<RawInsn>,
    holds: [Holds; 10],
    prog_type: ProgType,
    /// Jumps with open targets, and the register types at the jump.
    open: Vec<(usize, [Holds; 10])>,
    /// The stack slots that were written.
    written: Vec<i16>,
    /// The nesting depth of loops.
    loops: u32,
}

type Step = fn(&mut Maker);

/// The possible steps with their weights.
const STEPS: &[(u64, Step)] = &[
    (20, Maker::arithmetic),
    (8, Maker::constant),
    (8, Maker::copy),
    (14, Maker::branch),
    (8, Maker::close),
    (8, Maker::load_context),
    (10, Maker::spill),
    (8, Maker::fill),
    (6, Maker::stack_pointer),
    (8, Maker::look_up),
    (8, Maker::null_check),
    (8, Maker::access),
    (6, Maker::move_pointer),
    (6, Maker::packet_check),
    (4, Maker::helper_of_number),
    (4, Maker::helper_of_memory),
    (3, Maker::reserve),
    (3, Maker::submit),
    (3, Maker::count_loop),
    (2, Maker::atomic),
];

const TYPES: [ProgType; 6] = [
    ProgType::SchedCls,
    ProgType::Xdp,
    ProgType::SocketFilter,
    ProgType::Kprobe,
    ProgType::Tracepoint,
    ProgType::SchedCls,
];

/// The maps of every program.
pub fn maps() -> Vec<MapDef> {
    let value = u32::try_from(VALUE).unwrap();
    vec![
        MapDef::new("array", MapType::Array, 4, value, 4),
        MapDef::new("hash", MapType::Hash, 8, value, 8),
        MapDef::new("records", MapType::Ringbuf, 0, 0, 4096),
    ]
}

/// A random program.
pub fn program(random: &mut Random, maps: &[MapDef]) -> Program {
    let mut random = Random(random.wide());
    let prog_type = random.pick(&TYPES);
    let steps = 3 + random.below(40);
    let mut holds = [Holds::Nothing; 10];
    holds[1] = Holds::Context;
    let mut maker = Maker {
        random,
        insns: Vec::new(),
        holds,
        prog_type,
        open: Vec::new(),
        written: Vec::new(),
        loops: 0,
    };
    maker.emit(0xbf, 6, 1, 0, 0);
    maker.holds[6] = Holds::Context;
    let total: u64 = STEPS.iter().map(|(weight, _)| weight).sum();
    for _ in 0..steps {
        let mut at = maker.random.below(total);
        for (weight, step) in STEPS {
            if at < *weight {
                step(&mut maker);
                break;
            }
            at -= weight;
        }
    }
    let insns = maker.finish();
    let mut program = Program::new("made_up", prog_type, insns);
    program.license = "GPL".into();
    program.maps = maps.into();
    program
}

impl Maker {
    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.insns.push(RawInsn::new(opcode, dst, src, off, imm));
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.random.below(end)).unwrap()
    }

    /// A register of this type.
    fn with(&mut self, what: Holds) -> Option<u8> {
        let found: Vec<u8> = (0u8..)
            .zip(self.holds)
            .filter(|(_, holds)| *holds == what)
            .map(|(reg, _)| reg)
            .collect();
        if found.is_empty() {
            return None;
        }
        Some(found[self.below(found.len() as u64)])
    }

    /// A register to be written; rarely the one with the context.
    fn free(&mut self) -> u8 {
        loop {
            let reg = u8::try_from(self.random.below(10)).unwrap();
            if reg != 6 || self.random.chance(2) {
                return reg;
            }
        }
    }

    fn set(&mut self, reg: u8, holds: Holds) {
        self.holds[usize::from(reg)] = holds;
    }

    fn number(&mut self) -> u8 {
        if let Some(reg) = self.with(Holds::Number) {
            return reg;
        }
        let reg = self.free();
        self.emit(0x85, 0, 0, 0, 7); // get_prandom_u32
        self.forget_caller_saved();
        self.emit(0xbf, reg, 0, 0, 0);
        self.set(0, Holds::Number);
        self.set(reg, Holds::Number);
        reg
    }

    fn forget_caller_saved(&mut self) {
        self.holds[..6].fill(Holds::Nothing);
    }

    /// A small offset: mostly aligned, sometimes any.
    fn offset(&mut self, end: u64) -> i16 {
        let end = if self.random.chance(5) { end * 2 } else { end };
        let at = i16::try_from(self.random.below(end)).unwrap();
        if self.random.chance(80) { at & !7 } else { at }
    }

    fn size(&mut self) -> u8 {
        self.random.pick(&[0x00, 0x08, 0x10, 0x18, 0x18])
    }

    fn arithmetic(&mut self) {
        const OPERATIONS: [u8; 12] = [
            0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x50, 0x60, 0x70, 0x90, 0xa0, 0xc0,
        ];
        let dst = self.number();
        let op = self.random.pick(&OPERATIONS);
        let opcode = op | self.random.pick(&[4, 7, 7]);
        match self.random.below(10) {
            0 => {
                let size = self.random.pick(&[16, 32, 64]);
                let opcode = self.random.pick(&[0xd4, 0xdc, 0xd7]);
                self.emit(opcode, dst, 0, 0, size);
            }
            1 => {
                let src = self.number();
                let from = self.random.pick(&[8, 16, 32]);
                self.emit(0xbf, dst, src, from, 0);
            }
            2 => self.emit(opcode & 7 | 0x80, dst, 0, 0, 0),
            3 | 4 => {
                let src = self.number();
                self.emit(opcode | 8, dst, src, 0, 0);
            }
            _ => {
                let imm = match op {
                    0x60 | 0x70 | 0xc0 => i32::try_from(self.random.below(32)).unwrap(),
                    0x50 => self.random.pick(&[0xff, 7, 0x3f, 0xffff, 15, 31]),
                    0x30 | 0x90 => self.random.imm() | 1,
                    _ => self.random.imm(),
                };
                self.emit(opcode, dst, 0, 0, imm);
            }
        }
        self.set(dst, Holds::Number);
    }

    fn constant(&mut self) {
        let dst = self.free();
        if self.random.chance(15) {
            let wide = self.random.wide().to_le_bytes();
            let half = |at: usize| i32::from_le_bytes(wide[at..at + 4].try_into().unwrap());
            self.emit(0x18, dst, 0, 0, half(0));
            self.emit(0, 0, 0, 0, half(4));
        } else {
            let (opcode, imm) = (self.random.pick(&[0xb4, 0xb7]), self.random.imm());
            self.emit(opcode, dst, 0, 0, imm);
        }
        self.set(dst, Holds::Number);
    }

    fn copy(&mut self) {
        let src = self.below(10);
        let what = self.holds[src];
        if what == Holds::Nothing {
            return;
        }
        let dst = self.free();
        let narrow = what == Holds::Number && self.random.chance(30);
        let opcode = if narrow { 0xbc } else { 0xbf };
        self.emit(opcode, dst, u8::try_from(src).unwrap(), 0, 0);
        self.set(dst, what);
    }

    fn branch(&mut self) {
        const JUMPS: [u8; 11] = [
            0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0,
        ];
        let dst = self.number();
        let opcode = self.random.pick(&JUMPS) | self.random.pick(&[5, 5, 6]);
        self.open.push((self.insns.len(), self.holds));
        if self.random.chance(30) {
            let src = self.number();
            let at = self.insns.len();
            self.open.last_mut().unwrap().0 = at;
            self.emit(opcode | 8, dst, src, 0, 0);
        } else {
            let imm = if self.random.chance(50) {
                i32::try_from(self.random.below(64)).unwrap()
            } else {
                self.random.imm()
            };
            self.emit(opcode, dst, 0, 0, imm);
        }
    }

    /// Sets an open jump's target here; a register keeps its type only if it is the same on
    /// both branches.
    fn close(&mut self) {
        let Some((jump, there)) = self.open.pop() else {
            return;
        };
        let skips = self.random.chance(30);
        if skips {
            // The branch that did not jump returns, or skips the next instructions.
            self.emit(0xb7, 0, 0, 0, 0);
            self.emit(0x95, 0, 0, 0, 0);
        }
        let here = self.insns.len();
        self.insns[jump].off = i16::try_from(here - jump - 1).unwrap_or(0);
        for (now, other) in self.holds.iter_mut().zip(there) {
            if skips {
                *now = other;
            } else if *now != other {
                *now = Holds::Nothing;
            }
        }
    }

    fn load_context(&mut self) {
        let Some(context) = self.with(Holds::Context) else {
            return;
        };
        let dst = self.free();
        let (opcode, off, what) = match self.prog_type {
            ProgType::SchedCls => match self.below(4) {
                0 => (0x61, 76, Holds::Packet),
                1 => (0x61, 80, Holds::PacketEnd),
                _ => (
                    0x61,
                    self.random.pick(&[0, 4, 8, 16, 48, 60]),
                    Holds::Number,
                ),
            },
            ProgType::Xdp => match self.below(3) {
                0 => (0x61, 0, Holds::Packet),
                1 => (0x61, 4, Holds::PacketEnd),
                _ => (0x61, self.random.pick(&[12, 16]), Holds::Number),
            },
            ProgType::SocketFilter => {
                let off = self.random.pick(&[0, 4, 8, 16, 48]);
                (self.random.pick(&[0x61, 0x69, 0x71]), off, Holds::Number)
            }
            _ => (0x79, self.offset(64) & !7, Holds::Number),
        };
        self.emit(opcode, dst, context, off, 0);
        self.set(dst, what);
    }

    fn slot(&mut self) -> i16 {
        -8 * i16::try_from(1 + self.random.below(8)).unwrap()
    }

    fn spill(&mut self) {
        let slot = self.slot();
        if self.random.chance(25) {
            let (size, imm) = (self.size(), self.random.imm());
            self.emit(0x62 & !0x18 | size, 10, 0, slot, imm);
        } else {
            let src = self.below(10);
            if self.holds[src] == Holds::Nothing {
                return;
            }
            let whole = self.holds[src] != Holds::Number;
            let size = if whole { 0x18 } else { self.size() };
            let src = u8::try_from(src).unwrap();
            self.emit(0x63 & !0x18 | size, 10, src, slot, 0);
        }
        self.written.push(slot);
    }

    fn fill(&mut self) {
        let at = self.below(self.written.len().max(1) as u64);
        let Some(&slot) = self.written.get(at) else {
            return;
        };
        let (dst, size) = (self.free(), self.size());
        let signed = size != 0x18 && self.random.chance(20);
        let mode = if signed { 0x80 } else { 0x60 };
        let within = if size == 0x18 { 0 } else { self.offset(8) & !3 };
        self.emit(mode | 1 | size, dst, 10, slot + within, 0);
        self.set(dst, Holds::Number);
    }

    fn stack_pointer(&mut self) {
        let (dst, slot) = (self.free(), self.slot());
        self.emit(0xbf, dst, 10, 0, 0);
        self.emit(0x07, dst, 0, 0, slot.into());
        self.set(dst, Holds::Stack);
    }

    fn load_map(&mut self, reg: u8, map: i32) {
        self.emit(0x18, reg, 5, 0, map);
        self.emit(0, 0, 0, 0, 0);
    }

    fn look_up(&mut self) {
        let dst = self.free();
        if self.random.chance(25) {
            let off = self.offset(VALUE.cast_unsigned().into());
            self.emit(0x18, dst, 6, 0, ARRAY);
            self.emit(0, 0, 0, 0, off.into());
            return self.set(dst, Holds::Value);
        }
        let map = self.random.pick(&[ARRAY, HASH]);
        let slot = self.slot();
        let imm = i32::try_from(self.random.below(6)).unwrap();
        if self.random.chance(60) {
            self.emit(0x7a, 10, 0, slot, imm);
        } else {
            let src = self.number();
            self.emit(0x7b, 10, src, slot, 0);
        }
        self.written.push(slot);
        self.emit(0xbf, 2, 10, 0, 0);
        self.emit(0x07, 2, 0, 0, slot.into());
        self.load_map(1, map);
        self.emit(0x85, 0, 0, 0, 1);
        self.forget_caller_saved();
        self.set(0, Holds::ValueOrNull);
        if self.random.chance(50) {
            self.emit(0xbf, dst, 0, 0, 0);
            self.set(dst, Holds::ValueOrNull);
        }
        if self.random.chance(70) {
            self.null_check();
        }
    }

    /// On the branch that continues, no register of the type is null.
    fn null_check(&mut self) {
        for (maybe, sure) in [
            (Holds::ValueOrNull, Holds::Value),
            (Holds::RecordOrNull, Holds::Record),
        ] {
            let Some(reg) = self.with(maybe) else {
                continue;
            };
            self.open.push((self.insns.len(), self.holds));
            self.emit(0x15, reg, 0, 0, 0);
            self.set(reg, sure);
        }
    }

    /// A pointer to memory, with its size.
    fn pointer(&mut self) -> Option<(u8, u64)> {
        let kinds = [
            (Holds::Value, VALUE.cast_unsigned().into()),
            (Holds::Packet, 32),
            (Holds::Stack, 8),
            (Holds::Record, 24),
        ];
        let (what, bytes) = self.random.pick(&kinds);
        Some((self.with(what)?, bytes))
    }

    fn access(&mut self) {
        let Some((base, bytes)) = self.pointer() else {
            return;
        };
        let (size, off) = (self.size(), self.offset(bytes));
        match self.below(3) {
            0 => {
                let dst = self.free();
                self.emit(0x61 & !0x18 | size, dst, base, off, 0);
                self.set(dst, Holds::Number);
            }
            1 => {
                let src = self.number();
                // The register may have been allocated where the pointer was.
                self.emit(0x63 & !0x18 | size, base, src, off, 0);
            }
            _ => {
                let imm = self.random.imm();
                self.emit(0x62 & !0x18 | size, base, 0, off, imm);
            }
        }
    }

    fn move_pointer(&mut self) {
        let Some((base, bytes)) = self.pointer() else {
            return;
        };
        if self.random.chance(40) {
            let by = i32::from(self.offset(bytes / 2));
            return self.emit(0x07, base, 0, 0, by);
        }
        let by = self.number();
        if by == base || !self.random.chance(90) {
            return;
        }
        match self.below(3) {
            0 => self.emit(0x57, by, 0, 0, 15),
            1 => {
                self.open.push((self.insns.len(), self.holds));
                let imm = i32::try_from(self.random.below(bytes)).unwrap();
                self.emit(0x25, by, 0, 0, imm);
            }
            _ => {
                self.emit(0x57, by, 0, 0, 0xff);
                self.emit(0x77, by, 0, 0, 4);
            }
        }
        let opcode = self.random.pick(&[0x0f, 0x0f, 0x0f, 0x1f]);
        self.emit(opcode, base, by, 0, 0);
    }

    fn packet_check(&mut self) {
        let Some((packet, end)) = self.with(Holds::Packet).zip(self.with(Holds::PacketEnd)) else {
            return;
        };
        let reg = self.free();
        if reg == packet || reg == end {
            return;
        }
        let bytes = i32::from(self.offset(40));
        self.emit(0xbf, reg, packet, 0, 0);
        self.emit(0x07, reg, 0, 0, bytes);
        self.set(reg, Holds::Nothing);
        self.open.push((self.insns.len(), self.holds));
        match self.below(6) {
            0 => self.emit(0x3d, reg, end, 0, 0),
            1 => self.emit(0xad, end, reg, 0, 0),
            2 => self.emit(0xbd, end, reg, 0, 0),
            3 => self.emit(0xbd, reg, end, 0, 0),
            _ => self.emit(0x2d, reg, end, 0, 0),
        }
        self.set(reg, Holds::Packet);
    }

    fn helper_of_number(&mut self) {
        // prandom, ktime, cpu: no arguments.
        let helper = self.random.pick(&[7, 5, 8]);
        self.emit(0x85, 0, 0, 0, helper);
        self.forget_caller_saved();
        self.set(0, Holds::Number);
    }

    /// Passes memory to a helper with a constant or a bounded size.
    fn helper_of_memory(&mut self) {
        let Some((base, bytes)) = self.pointer() else {
            return;
        };
        let size = self.number();
        if size == 1 || base == 2 {
            return;
        }
        self.emit(0xbf, 1, base, 0, 0);
        if self.random.chance(40) {
            let imm = i32::try_from(self.random.below(bytes + 2)).unwrap();
            self.emit(0xb7, 2, 0, 0, imm);
        } else {
            self.emit(0xbf, 2, size, 0, 0);
            let mask = self.random.pick(&[7, 15, 31]);
            self.emit(0x57, 2, 0, 0, mask);
        }
        // trace_printk, or the checksum difference of the same memory.
        if self.random.chance(50) {
            self.emit(0x85, 0, 0, 0, 6);
        } else {
            self.emit(0xbf, 3, 1, 0, 0);
            self.emit(0xbf, 4, 2, 0, 0);
            self.emit(0xb7, 5, 0, 0, 0);
            self.emit(0x85, 0, 0, 0, 28);
        }
        self.forget_caller_saved();
        self.set(0, Holds::Number);
    }

    fn reserve(&mut self) {
        if self.with(Holds::Record).is_some() && self.random.chance(95) {
            return;
        }
        self.load_map(1, RECORDS);
        self.emit(0xb7, 2, 0, 0, 24);
        self.emit(0xb7, 3, 0, 0, 0);
        self.emit(0x85, 0, 0, 0, 131);
        self.forget_caller_saved();
        self.emit(0xbf, 9, 0, 0, 0);
        self.emit(0x55, 9, 0, 2, 0);
        self.emit(0xb7, 0, 0, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
        self.set(9, Holds::Record);
    }

    fn submit(&mut self) {
        let Some(record) = self.with(Holds::Record) else {
            return;
        };
        self.emit(0xbf, 1, record, 0, 0);
        self.emit(0xb7, 2, 0, 0, 0);
        let helper = self.random.pick(&[132, 133]);
        self.emit(0x85, 0, 0, 0, helper);
        self.forget_caller_saved();
        for holds in &mut self.holds {
            if *holds == Holds::Record {
                *holds = Holds::Nothing;
            }
        }
    }

    /// A loop of some steps with a constant or bounded count.
    fn count_loop(&mut self) {
        if self.loops > 1 {
            return;
        }
        let counter = self.random.pick(&[7, 8]);
        self.emit(0xb7, counter, 0, 0, 0);
        self.set(counter, Holds::Number);
        let start = self.insns.len();
        let before = self.holds;
        self.loops += 1;
        let body: [Step; 5] = [
            Self::arithmetic,
            Self::spill,
            Self::fill,
            Self::access,
            Self::helper_of_number,
        ];
        for _ in 0..1 + self.below(4) {
            let step = self.random.pick(&body);
            step(self);
        }
        self.loops -= 1;
        self.emit(0x07, counter, 0, 0, 1);
        let back = i64::try_from(self.insns.len() - start).unwrap() + 1;
        let off = i16::try_from(-back).unwrap();
        let opcode = self.random.pick(&[0xa5, 0xa5, 0x55, 0xc5, 0xa6]);
        let imm = i32::try_from(1 + self.random.below(12)).unwrap();
        self.emit(opcode, counter, 0, off, imm);
        for (now, first) in self.holds.iter_mut().zip(before) {
            if *now != first {
                *now = Holds::Nothing;
            }
        }
        self.set(counter, Holds::Number);
    }

    fn atomic(&mut self) {
        let Some((base, bytes)) = self.pointer() else {
            return;
        };
        let src = self.number();
        let off = self.offset(bytes);
        let (opcode, op) = (
            self.random.pick(&[0xc3, 0xdb]),
            self.random.pick(&[0, 1, 0x40, 0x51, 0xa0, 0xe1, 0xf1]),
        );
        self.emit(opcode, base, src, off, op);
    }

    fn finish(mut self) -> Vec<RawInsn> {
        if self.random.chance(80) {
            self.submit();
        }
        while let Some((jump, _)) = self.open.pop() {
            let here = self.insns.len();
            self.insns[jump].off = i16::try_from(here - jump - 1).unwrap_or(0);
        }
        self.emit(0xb7, 0, 0, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
        self.insns
    }
}
