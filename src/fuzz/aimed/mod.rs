//! Programs that aim at what verifiers get wrong: ranges of scalars, spills, variable offsets,
//! linked registers, precision, loops, references, sizes that helpers get; and at what engines
//! run as one operation.
//!
//! A program reads unknown numbers from the context of a syscall program, computes with them,
//! and uses them as offsets into a map value or its stack. Bounds are checked before an offset
//! is used, mostly so that the access just fits. What is wrong with a range so shows as a
//! register outside of its state, or as an accepted access out of bounds.

mod access;
pub(super) mod arenas;
mod calls;
mod constants;
mod definitions;
mod dynptrs;
mod exchanges;
mod extension_code;
mod extension_kinds;
mod extension_targets;
mod extension_types;
pub(super) mod extensions;
mod flow;
mod for_each;
mod frames;
mod functions;
mod graph_types;
pub(super) mod graphs;
mod idioms;
mod joins;
mod jumps;
mod links;
mod logarithm;
pub(super) mod maps;
pub(super) mod packets;
pub(super) mod pointers;

use super::random::Random;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::{ProgFlags, ProgType};
use definitions::{AREA, HASH, MAPS, RECORDS, VALUES};
use jumps::land;

/// Bytes of the context.
pub(super) const INPUT: usize = 64;
/// What a program aims at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Scalars,
    Spills,
    Offsets,
    Linked,
    Precision,
    Loops,
    References,
    Idioms,
    Helpers,
    Frames,
    Unwritten,
    Joins,
    Constants,
}

const CONTEXT: u8 = 6;
const VALUE: u8 = 7;
const COUNTER: u8 = 9;
const FP: u8 = 10;

type Step = fn(&mut Maker);

/// The steps of an aim with their weights.
fn steps(aim: Aim) -> &'static [(u64, Step)] {
    match aim {
        Aim::Scalars => &[
            (40, Maker::arithmetic),
            (14, Maker::branch),
            (8, Maker::close),
            (8, Maker::load),
            (10, Maker::access),
            (3, Maker::spill),
            (3, Maker::fill),
        ],
        Aim::Spills => &[
            (14, Maker::arithmetic),
            (8, Maker::branch),
            (5, Maker::close),
            (24, Maker::spill),
            (24, Maker::fill),
            (8, Maker::access),
            (6, Maker::stack_access),
            (6, Maker::zero_bytes),
            (3, Maker::call),
        ],
        Aim::Offsets => &[
            (14, Maker::arithmetic),
            (7, Maker::branch),
            (5, Maker::close),
            (20, Maker::access),
            (16, Maker::stack_access),
            (8, Maker::zero_bytes),
            (6, Maker::fill),
            (10, Maker::look_up),
            (4, Maker::load),
        ],
        Aim::Linked => &[
            (12, Maker::arithmetic),
            (18, Maker::copy),
            (16, Maker::branch),
            (8, Maker::close),
            (16, Maker::linked_access),
            (5, Maker::spill_part),
            (5, Maker::spill),
            (5, Maker::fill),
        ],
        Aim::Precision => &[
            (10, Maker::arithmetic),
            (20, Maker::two_ways),
            (10, Maker::branch),
            (8, Maker::close),
            (12, Maker::access),
            (6, Maker::spill),
            (8, Maker::fill),
            (6, Maker::call),
            (5, Maker::look_up),
        ],
        Aim::Loops => &[
            (14, Maker::arithmetic),
            (20, Maker::count),
            (8, Maker::branch),
            (6, Maker::close),
            (8, Maker::access),
            (6, Maker::spill),
            (6, Maker::fill),
            (6, Maker::two_ways),
        ],
        Aim::References => &[
            (10, Maker::arithmetic),
            (24, Maker::record),
            (12, Maker::branch),
            (8, Maker::close),
            (6, Maker::two_ways),
            (10, Maker::look_up),
            (6, Maker::call),
            (5, Maker::spill),
            (5, Maker::fill),
        ],
        Aim::Idioms => &[
            (8, Maker::rotate),
            (8, Maker::logarithm),
            (8, Maker::extract),
            (8, Maker::select),
            (8, Maker::test_bits),
            (8, Maker::count_and_compare),
            (8, Maker::load_sum),
            (8, Maker::divide),
            (8, Maker::exchange),
            (8, Maker::update),
            (6, Maker::mask_at_limit),
            (3, Maker::arithmetic),
        ],
        Aim::Helpers => &[
            (8, Maker::arithmetic),
            (20, Maker::send),
            (16, Maker::look_up_constant),
            (6, Maker::look_up),
            (6, Maker::branch),
            (5, Maker::close),
        ],
        Aim::Frames => &[
            (8, Maker::arithmetic),
            (12, Maker::fill_slot),
            (14, Maker::pass_slot),
            (12, Maker::delete_element),
            (6, Maker::branch),
            (5, Maker::close),
            (5, Maker::spill),
            (5, Maker::fill),
        ],
        Aim::Unwritten => &[
            (6, Maker::arithmetic),
            (14, Maker::read_unwritten),
            (12, Maker::spill),
            (10, Maker::branch),
            (8, Maker::close),
            (4, Maker::send),
        ],
        Aim::Constants => &[
            (8, Maker::arithmetic),
            (20, Maker::load_constant),
            (8, Maker::branch),
            (6, Maker::close),
            (6, Maker::access),
        ],
        Aim::Joins => &[
            (6, Maker::arithmetic),
            (24, Maker::join),
            (4, Maker::join_and_call),
            (4, Maker::join_links),
            (3, Maker::many_links),
            (4, Maker::join_records),
            (4, Maker::join_argument),
            (4, Maker::join_dynptr),
            (3, Maker::join_two_dynptrs),
            (5, Maker::pass_slot),
            (4, Maker::branch),
            (4, Maker::close),
        ],
    }
}

/// What is initialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// Registers with numbers, by bit.
    numbers: u16,
    /// Written bytes of the stack: bit 0 is the byte at -64.
    stack: u64,
}

struct Maker {
    random: Random,
    insns: Vec<RawInsn>,
    known: Known,
    /// Jumps whose targets are open, with what is known there.
    open: Vec<(usize, Known)>,
    /// Calls of the function at the end.
    calls: Vec<usize>,
    /// Whether that function gets the address of a slot.
    passes_slots: bool,
    in_loop: bool,
    /// Offsets of the context's fields of four bytes that are numbers; `None` for a context of
    /// bytes.
    fields: Option<&'static [i16]>,
}

/// A program of at most about 80 instructions.
pub(super) fn program(random: &mut Random, aim: Aim) -> Program {
    let count = match random.below(8) {
        0 => 2 + random.below(30),
        // Many ways of meeting are wrong: a program of several of them is seldom accepted.
        _ if aim == Aim::Joins => 1 + random.below(4),
        _ => 2 + random.below(7),
    };
    let mut maker = Maker::new(Random(random.bits()), None);
    maker.passes_slots = matches!(aim, Aim::Frames | Aim::Joins);
    maker.begin(aim);
    for _ in 0..count {
        maker.step(steps(aim));
    }
    maker.end();
    let insns = maker.insns;
    let mut program = Program::new("aimed", ProgType::Syscall, insns);
    program.license = "GPL".to_owned();
    program.flags = ProgFlags::SLEEPABLE;
    if random.chance(if aim == Aim::Joins { 70 } else { 40 }) {
        // A checkpoint wherever there may be one: what pruning gets wrong shows sooner.
        program.flags |= ProgFlags::TEST_STATE_FREQ;
    }
    if random.chance(4) {
        program.flags |= ProgFlags::STRICT_ALIGNMENT;
    }
    program.maps = match aim {
        Aim::Constants => definitions::WITH_CONSTANTS.clone(),
        _ => MAPS.clone(),
    };
    program
}

/// The operation bits of conditional jumps, without the test of bits (`0x40`).
const JUMPS: [u8; 10] = [0x10, 0x20, 0x30, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0];

impl Maker {
    /// At the start of a function; the fields are those of its context.
    const fn new(random: Random, fields: Option<&'static [i16]>) -> Self {
        Self {
            random,
            insns: Vec::new(),
            known: Known {
                numbers: 0,
                stack: 0,
            },
            open: Vec::new(),
            calls: Vec::new(),
            passes_slots: false,
            in_loop: false,
            fields,
        }
    }

    fn step(&mut self, steps: &[(u64, Step)]) {
        if let Some((_, step)) = self.random.weighted(steps, |(weight, _)| *weight) {
            step(self);
        }
    }

    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.insns.push(RawInsn::new(opcode, dst, src, off, imm));
    }

    /// A jump whose target is set later.
    fn jump(&mut self, opcode: u8, dst: u8, src: u8, imm: i32) -> usize {
        self.emit(opcode, dst, src, 0, imm);
        self.insns.len() - 1
    }

    /// Sets the target of a jump to the next instruction.
    fn land(&mut self, jump: usize) {
        land(&mut self.insns, jump);
    }

    /// Two paths that meet: one behind the branch, the other where it jumps to. What both know is
    /// known then.
    fn two_paths(
        &mut self,
        branch: usize,
        one: impl FnOnce(&mut Self),
        other: impl FnOnce(&mut Self),
    ) {
        let before = self.known;
        one(self);
        let end = self.jump(0x05, 0, 0, 0);
        let after = std::mem::replace(&mut self.known, before);
        self.land(branch);
        other(self);
        self.land(end);
        self.known.numbers &= after.numbers;
        self.known.stack &= after.stack;
    }

    fn is_number(&self, reg: u8) -> bool {
        self.known.numbers >> reg & 1 == 1
    }

    fn set_number(&mut self, reg: u8) {
        self.known.numbers |= 1 << reg;
    }

    fn forget(&mut self, reg: u8) {
        self.known.numbers &= !(1 << reg);
    }

    /// A register to write: r0 to r5 or r8.
    fn free(&mut self) -> u8 {
        self.random.pick(&[0, 1, 2, 3, 4, 5, 8])
    }

    /// A register with a number.
    fn number(&mut self) -> u8 {
        let from = self.random.byte(9);
        let all = (0..9).map(|by| (from + by) % 9);
        let found = all.into_iter().find(|reg| self.is_number(*reg));
        found.unwrap_or_else(|| {
            self.load();
            self.number_of_last()
        })
    }

    /// The destination of the last instruction.
    fn number_of_last(&self) -> u8 {
        self.insns.last().map_or(0, |insn| insn.dst())
    }

    fn size(&mut self) -> (u8, i32) {
        self.random
            .pick(&[(0x10, 1), (0x08, 2), (0x00, 4), (0x18, 8)])
    }

    fn begin(&mut self, aim: Aim) {
        self.emit(0xbf, CONTEXT, 1, 0, 0);
        self.load_value();
        if matches!(aim, Aim::Spills | Aim::Offsets | Aim::Joins) || self.random.chance(15) {
            for slot in 1..=8 {
                let imm = match self.random.chance(40) {
                    true => 0,
                    false => self.random.imm(),
                };
                self.emit(0x7a, FP, 0, slot * -8, imm);
            }
            self.known.stack = u64::MAX;
        }
        for _ in 0..2 + self.random.below(2) {
            self.load();
        }
    }

    /// Shows some numbers in the map value, and returns one. The function that was called follows;
    /// returns where it begins.
    fn end(&mut self) -> Option<usize> {
        while !self.open.is_empty() {
            self.close();
        }
        for place in 0..1 + i16::from(self.random.byte(3)) {
            let reg = self.number();
            self.emit(0x7b, VALUE, reg, place * 8, 0);
        }
        let reg = self.number();
        self.emit(0xbf, 0, reg, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
        if self.calls.is_empty() {
            return None;
        }
        let start = self.insns.len();
        for call in std::mem::take(&mut self.calls) {
            if let Some(insn) = self.insns.get_mut(call) {
                insn.imm = i32::try_from(start - call - 1).unwrap_or_default();
            }
        }
        self.function();
        Some(start)
    }

    /// A static function of two numbers.
    fn function(&mut self) {
        self.known = Known {
            numbers: 0b110,
            stack: 0,
        };
        if self.passes_slots {
            return self.function_of_slot();
        }
        for _ in 0..1 + self.random.below(4) {
            self.step(&[
                (10, Maker::arithmetic_of_arguments),
                (5, Maker::branch_of_arguments),
                (3, Maker::close),
            ]);
        }
        while !self.open.is_empty() {
            self.close();
        }
        let reg = 1 + self.random.byte(2);
        self.emit(0xbf, 0, reg, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
    }

    fn arithmetic_of_arguments(&mut self) {
        let dst = 1 + self.random.byte(2);
        self.compute(dst);
    }

    fn branch_of_arguments(&mut self) {
        self.branch();
    }

    /// An unknown number.
    fn load(&mut self) {
        let dst = self.free();
        let (size, bytes) = self.size();
        let places = INPUT / 8;
        let off = i16::try_from(self.random.index(places) * 8).unwrap_or_default();
        let from_value = self.fields.is_some_and(<[i16]>::is_empty);
        match self.random.below(5) {
            // Sign extension: of the map's value.
            0 if bytes < 8 => self.emit(0x81 | size, dst, VALUE, off, 0),
            1 => self.emit(0x61 | size, dst, VALUE, off, 0),
            _ if from_value => self.emit(0x61 | size, dst, VALUE, off, 0),
            _ if self.fields.is_some() => {
                let off = self.random.pick(self.fields.unwrap_or_default());
                self.emit(0x61, dst, CONTEXT, off, 0);
            }
            _ => self.emit(0x61 | size, dst, CONTEXT, off, 0),
        }
        self.set_number(dst);
    }

    fn arithmetic(&mut self) {
        let dst = self.number();
        self.compute(dst);
    }

    /// An operation on a number.
    fn compute(&mut self, dst: u8) {
        const OPERATIONS: [u8; 14] = [
            0x00, 0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x50, 0x60, 0x70, 0x90, 0xa0, 0xc0, 0xc0,
        ];
        let class = self.random.pick(&[4, 7, 7]);
        let bits: u64 = if class == 4 { 32 } else { 64 };
        match self.random.below(16) {
            0 => {
                let size = self.random.pick(&[16, 32, 64]);
                let opcode = self.random.pick(&[0xd4, 0xdc, 0xd7]);
                return self.emit(opcode, dst, 0, 0, size);
            }
            1 | 2 => {
                let src = self.number();
                let from = match class {
                    4 => self.random.pick(&[8, 16]),
                    _ => self.random.pick(&[8, 16, 32]),
                };
                return self.emit(0xb8 | class, dst, src, from, 0);
            }
            3 => return self.emit(0x80 | class, dst, 0, 0, 0),
            4 => return self.emit(0xbc, dst, dst, 0, 0),
            _ => {}
        }
        let op = self.random.pick(&OPERATIONS);
        // Signed division.
        let off = i16::from(matches!(op, 0x30 | 0x90) && self.random.chance(40));
        if self.random.chance(40) {
            let src = self.number();
            return self.emit(op | 8 | class, dst, src, off, 0);
        }
        let imm = match op {
            0x60 | 0x70 | 0xc0 => self.random.int(bits),
            0x30 | 0x90 => match self.random.imm() {
                0 => 1,
                imm => imm,
            },
            _ => self.random.imm(),
        };
        self.emit(op | class, dst, 0, off, imm);
    }

    /// A branch over the next steps.
    fn branch(&mut self) {
        let dst = self.number();
        let class = self.random.pick(&[5, 5, 6]);
        let op = match self.random.below(12) {
            0 => 0x40,
            _ => self.random.pick(&JUMPS),
        };
        let jump = if self.random.chance(30) {
            let src = self.number();
            self.jump(op | 8 | class, dst, src, 0)
        } else {
            let imm = match self.random.below(3) {
                0 => self.random.int(64),
                _ => self.random.imm(),
            };
            self.jump(op | class, dst, 0, imm)
        };
        self.open.push((jump, self.known));
    }

    /// Ends the last branch.
    fn close(&mut self) {
        let Some((jump, there)) = self.open.pop() else {
            return;
        };
        self.land(jump);
        self.known.numbers &= there.numbers;
        self.known.stack &= there.stack;
    }

    /// The bits of the stack bytes from `at` (0 for -64).
    fn mask(at: i32, bytes: i32) -> u64 {
        let ones = u64::MAX >> (64 - bytes.clamp(1, 64));
        ones << at.clamp(0, 63)
    }

    fn spill(&mut self) {
        let (size, bytes) = self.size();
        let at = self.random.int(64 / 8) * 8
            + match self.random.below(4) {
                0 | 1 => 0,
                2 if bytes < 8 => 4,
                // Zeros inside of a slot are no spill.
                _ => self.random.int(u64::from((8 / bytes).unsigned_abs())) * bytes,
            };
        let off = i16::try_from(at - AREA).unwrap_or(-8);
        if self.random.chance(30) {
            let imm = match self.random.chance(60) {
                true => 0,
                false => self.random.imm(),
            };
            self.emit(0x62 | size, FP, 0, off, imm);
        } else {
            let src = self.number();
            self.emit(0x63 | size, FP, src, off, 0);
        }
        self.known.stack |= Self::mask(at, bytes);
    }

    fn fill(&mut self) {
        let (size, bytes) = self.size();
        let places = (0..AREA / bytes).map(|place| place * bytes);
        let written: Vec<i32> = places
            .filter(|at| {
                let mask = Self::mask(*at, bytes);
                self.known.stack & mask == mask
            })
            .collect();
        if written.is_empty() {
            return self.spill();
        }
        let at = self.random.pick(&written);
        let off = i16::try_from(at - AREA).unwrap_or(-8);
        let dst = self.free();
        let mode = if bytes < 8 && self.random.chance(15) {
            0x81
        } else {
            0x61
        };
        self.emit(mode | size, dst, FP, off, 0);
        self.set_number(dst);
    }

    /// A copy of a number, which links the registers, mostly with a distance.
    fn copy(&mut self) {
        let (dst, src) = (self.free(), self.number());
        let opcode = self.random.pick(&[0xbf, 0xbf, 0xbc]);
        self.emit(opcode, dst, src, 0, 0);
        self.set_number(dst);
        if self.random.chance(60) {
            let by = self
                .random
                .pick(&[1, 2, 4, 8, -1, -8, 63, 100, i32::MAX, i32::MIN]);
            let opcode = self.random.pick(&[0x07, 0x07, 0x04]);
            self.emit(opcode, dst, 0, 0, by);
        }
    }
}
