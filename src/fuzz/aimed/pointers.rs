//! Arithmetic with pointers of all kinds: operations that only some of them allow, offsets near
//! the limits, numbers with and without bounds; then accesses, comparisons, leaks.
//!
//! Many of the programs are rejected: where, and with which words, is for a kernel to say.

use super::super::random::Random;
use super::definitions::{AREA, HASH, MAPS, RECORDS, field};
use super::for_each::set_types;
use super::{CONTEXT, FP, JUMPS, Maker, VALUE};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::spec::limits::MAX_VAR_OFFSET;
use crate::spec::{ProgFlags, ProgType};

/// The pointer that the program is about.
const POINTER: u8 = 9;
/// A number that moves it.
const BY: u8 = 8;
/// Where the address of a record is kept, and the key of a look-up.
const KEPT: i16 = -8;
/// Where the pointer is spilled.
const SPILLED: i16 = -16;
/// No offset of a pointer may be this large.
#[expect(clippy::cast_possible_truncation, reason = "it has 30 bits")]
const LIMIT: i32 = MAX_VAR_OFFSET as i32;

/// A kind of pointer: the types of programs that have it, and the steps that get it.
type Kind = (u64, &'static [ProgType], fn(&mut Maker, ProgType));

const ANY: &[ProgType] = &[
    ProgType::Syscall,
    ProgType::Xdp,
    ProgType::SchedCls,
    ProgType::SocketFilter,
];
const PACKETS: &[ProgType] = &[ProgType::Xdp, ProgType::SchedCls];

const KINDS: [Kind; 11] = [
    (2, ANY, |maker, _| maker.emit(0xbf, POINTER, CONTEXT, 0, 0)),
    (4, ANY, |maker, _| {
        let slot = maker.random.slot(9);
        maker.address(POINTER, slot);
    }),
    (5, ANY, |maker, _| maker.emit(0xbf, POINTER, VALUE, 0, 0)),
    (1, ANY, |maker, _| {
        maker.emit(0x18, POINTER, 5, 0, HASH);
        maker.emit(0, 0, 0, 0, 0);
    }),
    (3, ANY, |maker, _| maker.get_element()),
    (3, ANY, |maker, _| maker.get_record()),
    (5, PACKETS, |maker, of| maker.get_packet(of)),
    (1, PACKETS, |maker, of| {
        maker.emit(0x61, POINTER, CONTEXT, field(of, "data_end"), 0);
    }),
    (1, PACKETS, |maker, of| {
        maker.emit(0x61, POINTER, CONTEXT, field(of, "data_meta"), 0);
    }),
    (2, &[ProgType::SchedCls], |maker, of| {
        maker.get_socket(field(of, "sk"));
    }),
    (1, &[ProgType::FlowDissector], |maker, of| {
        maker.emit(0x79, POINTER, CONTEXT, field(of, "flow_keys"), 0);
    }),
];

/// A program about one pointer.
pub(in crate::fuzz) fn program(random: &mut Random) -> Program {
    let mut maker = Maker::new(Random(random.bits()), None);
    let callback = maker.random.chance(12);
    let callback = callback.then(|| maker.begin_with_callback(KEPT));
    let weighted = maker.random.weighted(&KINDS, |(weight, ..)| *weight);
    let (_, types, get) = weighted.unwrap_or(&KINDS[0]);
    let prog_type = maker
        .random
        .pick(if callback.is_some() { ANY } else { types });
    if callback.is_some() {
        // Its last argument is a pointer, too.
        maker.emit(0xbf, CONTEXT, 4, 0, 0);
        let argument = maker.random.pick(&[1, 2, 2, 2, 3, 3]);
        maker.emit(0xbf, POINTER, argument, 0, 0);
    } else {
        maker.emit(0xbf, CONTEXT, 1, 0, 0);
    }
    maker.load_value();
    maker.emit(0x7a, FP, 0, KEPT, 0);
    maker.emit(0x7a, FP, 0, SPILLED, 0);
    if callback.is_none() {
        get(&mut maker, prog_type);
    }
    for _ in 0..1 + maker.random.below(3) {
        maker.step(&[
            (12, Maker::move_by_constant),
            (16, Maker::move_by_number),
            (1, Maker::wrong_operation),
            (2, Maker::difference),
            (3, Maker::compare_pointer),
            (3, Maker::spill_pointer),
        ]);
        if maker.random.chance(50) {
            maker.access_pointer();
        }
    }
    maker.finish();
    let mut program = Program::new("pointers", prog_type, std::mem::take(&mut maker.insns));
    program.license = "GPL".to_owned();
    program.maps = MAPS.clone();
    if let Some(start) = callback {
        set_types(&mut program, start);
    }
    if maker.random.chance(10) {
        program.flags |= ProgFlags::STRICT_ALIGNMENT;
    }
    program
}

impl Maker {
    /// The rest of the program is for a pointer that is not null, unless the test is forgotten.
    fn unless_null(&mut self, forgets: u64) {
        if !self.random.chance(forgets) {
            let skip = self.jump(0x55, POINTER, 0, 0);
            self.exit_with(0);
            self.land(skip);
        }
    }

    fn exit_with(&mut self, result: i32) {
        self.emit(0xb7, 0, 0, 0, result);
        self.emit(0x95, 0, 0, 0, 0);
    }

    fn get_element(&mut self) {
        self.element(HASH, KEPT);
        self.helper(id::map_lookup_elem);
        self.emit(0xbf, POINTER, 0, 0, 0);
        self.unless_null(10);
    }

    fn get_record(&mut self) {
        self.reserve(RECORDS, AREA);
        self.emit(0xbf, POINTER, 0, 0, 0);
        self.unless_null(0);
        self.emit(0x7b, FP, POINTER, KEPT, 0);
    }

    /// The packet's start, of which some bytes are there.
    fn get_packet(&mut self, of: ProgType) {
        self.emit(0x61, POINTER, CONTEXT, field(of, "data"), 0);
        self.emit(0x61, 1, CONTEXT, field(of, "data_end"), 0);
        self.emit(0xbf, 2, POINTER, 0, 0);
        let len = 1 + self.random.int(40);
        self.emit(0x07, 2, 0, 0, len);
        let skip = self.jump(0xbd, 2, 1, 0);
        self.exit_with(0);
        self.land(skip);
    }

    /// The socket of a packet, whose field has this offset.
    fn get_socket(&mut self, field: i16) {
        self.emit(0x79, POINTER, CONTEXT, field, 0);
        self.unless_null(10);
        if self.random.chance(50) {
            self.emit(0xbf, 1, POINTER, 0, 0);
            self.helper(id::sk_fullsock);
            self.emit(0xbf, POINTER, 0, 0, 0);
            self.unless_null(10);
        }
    }

    /// A distance: mostly a small one, or one near a limit.
    fn distance(&mut self) -> i32 {
        match self.random.below(40) {
            0 => self.random.imm(),
            1 => LIMIT - 1 + self.random.int(3),
            2 => -LIMIT - 1 + self.random.int(3),
            3..6 => -self.random.int(9),
            _ => self.random.int(12),
        }
    }

    fn move_by_constant(&mut self) {
        let by = self.distance();
        let opcode = self.random.pick(&[0x07, 0x07, 0x07, 0x17]);
        if self.random.chance(70) {
            return self.emit(opcode, POINTER, 0, 0, by);
        }
        self.emit(0xb7, BY, 0, 0, by);
        self.emit(opcode | 8, POINTER, BY, 0, 0);
    }

    /// A number of the map's value, with bounds or without.
    fn number_to_add(&mut self) {
        let (size, _) = self.size();
        let mode = self.random.pick(&[0x61, 0x61, 0x81]);
        // There is no load of eight bytes with sign extension.
        let mode = if size == 0x18 { 0x61 } else { mode };
        let off = 8 * i16::from(self.random.byte(8));
        self.emit(mode | size, BY, VALUE, off, 0);
        match self.random.below(50) {
            // Without bounds but those of its size.
            0..3 => {}
            // Near a limit.
            3 => self.emit(0x57, BY, 0, 0, LIMIT - 1),
            4 => {
                self.emit(0x57, BY, 0, 0, 1);
                self.emit(0x67, BY, 0, 0, 29);
            }
            // Below zero.
            5 | 6 => {
                self.emit(0x57, BY, 0, 0, 7);
                self.emit(0x87, BY, 0, 0, 0);
            }
            7 | 8 => self.emit(0xc7, BY, 0, 0, 60),
            _ => {
                let most = self.random.pick(&[1, 3, 7, 8, 15, 31, 56, 60]);
                for skip in self.bound(BY, most) {
                    // What the condition excludes becomes zero.
                    self.land_with_zero(skip);
                }
            }
        }
    }

    /// Sets the target of a jump to code that sets the number to zero, which is skipped otherwise.
    fn land_with_zero(&mut self, jump: usize) {
        let over = self.jump(0x05, 0, 0, 0);
        self.land(jump);
        self.emit(0xb7, BY, 0, 0, 0);
        self.land(over);
    }

    fn move_by_number(&mut self) {
        self.number_to_add();
        match self.random.below(16) {
            0 if self.random.chance(50) => self.emit(0x1f, POINTER, BY, 0, 0),
            // The operands the other way around.
            1..4 => {
                self.emit(0x0f, BY, POINTER, 0, 0);
                self.emit(0xbf, POINTER, BY, 0, 0);
            }
            4 if self.random.chance(30) => {
                self.emit(0x1f, BY, POINTER, 0, 0);
                self.emit(0xbf, POINTER, BY, 0, 0);
            }
            _ => self.emit(0x0f, POINTER, BY, 0, 0),
        }
    }

    /// An operation that pointers do not have, or that makes a number of one.
    fn wrong_operation(&mut self) {
        let op = 0x10 * self.random.byte(13);
        let class = self.random.pick(&[4, 7]);
        match self.random.below(4) {
            0 => {
                self.number_to_add();
                self.emit(op | 8 | class, POINTER, BY, 0, 0);
            }
            1 => self.emit(0xbc, POINTER, POINTER, 0, 0),
            2 => {
                let bits = self.random.pick(&[8, 16, 32]);
                self.emit(0xbf, POINTER, POINTER, bits, 0);
            }
            _ => {
                let imm = 1 + self.random.int(30);
                self.emit(op | class, POINTER, 0, 0, imm);
            }
        }
    }

    /// A register with another pointer, or the same.
    fn other_pointer(&mut self) -> u8 {
        self.random.pick(&[POINTER, POINTER, VALUE, CONTEXT, FP])
    }

    /// The difference of two pointers, or what else is made of two.
    fn difference(&mut self) {
        let other = self.other_pointer();
        self.emit(0xbf, BY, POINTER, 0, 0);
        let opcode = self.random.pick(&[0x1f, 0x1f, 0x1f, 0x1c, 0x0f, 0x5f]);
        self.emit(opcode, BY, other, 0, 0);
        if self.random.chance(50) {
            self.emit(0x0f, POINTER, BY, 0, 0);
        }
    }

    /// A comparison with a constant, mostly 0, a number or a pointer; both ways go on.
    fn compare_pointer(&mut self) {
        let class = if self.random.chance(2) { 6 } else { 5 };
        let op = match self.random.chance(80) {
            true => self.random.pick(&[0x10, 0x50]),
            false => self.random.pick(&JUMPS),
        };
        let skip = match self.random.below(12) {
            0 => {
                let other = self.other_pointer();
                self.jump(op | 8 | class, POINTER, other, 0)
            }
            1 => {
                self.number_to_add();
                self.jump(op | 8 | class, POINTER, BY, 0)
            }
            2 => {
                let imm = self.random.imm();
                self.jump(op | class, POINTER, 0, imm)
            }
            _ => self.jump(op | class, POINTER, 0, 0),
        };
        if self.random.chance(50) {
            self.move_by_constant();
        } else {
            self.access_pointer();
        }
        self.land(skip);
    }

    /// The pointer goes through a slot; at times only a part of it.
    fn spill_pointer(&mut self) {
        if self.random.chance(95) {
            self.emit(0x7b, FP, POINTER, SPILLED, 0);
            return self.emit(0x79, POINTER, FP, SPILLED, 0);
        }
        let (size, _) = self.size();
        self.emit(0x63 | size, FP, POINTER, SPILLED, 0);
        let (size, _) = self.size();
        let off = SPILLED + self.random.pick(&[0, 0, 4]);
        self.emit(0x61 | size, BY, FP, off, 0);
    }

    fn access_pointer(&mut self) {
        let (size, _) = self.size();
        let off = match self.random.below(16) {
            0 => self.distance(),
            1 => -self.random.int(70),
            2 | 3 => 4 * self.random.int(16),
            _ => 0,
        };
        let off = i16::try_from(off).unwrap_or(i16::MAX);
        match self.random.below(20) {
            0..13 => self.emit(0x61 | size, 1, POINTER, off, 0),
            13 => self.emit(0x62 | size, POINTER, 0, off, 1),
            14 => {
                self.emit(0xb7, 1, 0, 0, 1);
                let size = self.random.pick(&[0x00, 0x18]);
                let op = self.random.pick(&[0x00, 0x01, 0x40, 0xe1, 0xf1]);
                self.emit(0xc3 | size, POINTER, 1, off, op);
            }
            15 => self.emit(0x7b, VALUE, POINTER, 0, 0),
            16 => self.emit(0x7b, POINTER, POINTER, off, 0),
            17 => self.emit(0x7b, CONTEXT, POINTER, 0, 0),
            _ => {
                self.map(RECORDS);
                self.emit(0xbf, 2, POINTER, 0, 0);
                let len = 1 + self.random.int(AREA.unsigned_abs().into());
                self.emit(0xb7, 3, 0, 0, len);
                self.emit(0xb7, 4, 0, 0, 0);
                self.helper(id::ringbuf_output);
            }
        }
    }

    /// The record is given back; the result is a number, or the pointer.
    fn finish(&mut self) {
        let reserves = |insn: &crate::isa::RawInsn| {
            insn.opcode == 0x85 && insn.imm == id::ringbuf_reserve.0.cast_signed()
        };
        if self.insns.iter().any(reserves) {
            match self.random.chance(90) {
                true => self.emit(0x79, 1, FP, KEPT, 0),
                false => self.emit(0xbf, 1, POINTER, 0, 0),
            }
            self.emit(0xb7, 2, 0, 0, 0);
            self.helper(id::ringbuf_discard);
        }
        if self.random.chance(5) {
            self.emit(0xbf, 0, POINTER, 0, 0);
            return self.emit(0x95, 0, 0, 0, 0);
        }
        // A callback may return 0 or 1.
        let result = self.random.pick(&[0, 0, 0, 0, 1, 2]);
        self.exit_with(result);
    }
}
