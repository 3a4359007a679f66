//! Operations on one map that has few elements: they are replaced, deleted, and there is no room
//! for more. The program returns a sum of all results.
//!
//! Engines share the maps, so only a kernel's results show what is wrong with one.

use super::super::random::Random;
use super::{FP, Maker};
use crate::program::{MapDef, Program};
use crate::spec::helpers::id;
use crate::spec::{MapFlags, MapType, ProgType};
use crate::util::HelperId;

/// The elements of a map.
const ENTRIES: u32 = 3;
/// Bytes of a ring buffer.
const RING: u32 = 4096;

const RECORD: u8 = 7;
const OTHER_RECORD: u8 = 8;
const SUM: u8 = 9;

/// Where key and value lie.
const KEY: i16 = -8;
const VALUE: i16 = -16;

/// The map of all programs.
const MAP: i32 = 0;

/// A map with its operations.
struct Subject {
    map_type: MapType,
    flags: MapFlags,
    key_size: u32,
    step: fn(&mut Maker),
}

/// A map whose keys are numbers.
const fn numbered(map_type: MapType, step: fn(&mut Maker)) -> Subject {
    Subject {
        map_type,
        flags: MapFlags::empty(),
        key_size: 4,
        step,
    }
}

/// A map without keys.
const fn keyless(map_type: MapType, step: fn(&mut Maker)) -> Subject {
    Subject {
        key_size: 0,
        ..numbered(map_type, step)
    }
}

const SUBJECTS: [Subject; 10] = [
    numbered(MapType::Array, Maker::numbered_step),
    numbered(MapType::Hash, Maker::numbered_step),
    Subject {
        flags: MapFlags::NO_PREALLOC,
        ..numbered(MapType::Hash, Maker::numbered_step)
    },
    numbered(MapType::PercpuArray, Maker::per_cpu_step),
    numbered(MapType::PercpuHash, Maker::per_cpu_step),
    Subject {
        flags: MapFlags::NO_PREALLOC,
        key_size: 8,
        ..numbered(MapType::LpmTrie, Maker::prefix_step)
    },
    keyless(MapType::Queue, Maker::queue_step),
    keyless(MapType::Stack, Maker::queue_step),
    keyless(MapType::BloomFilter, Maker::filter_step),
    keyless(MapType::Ringbuf, Maker::ring_step),
];

/// A program of some operations.
pub(in crate::fuzz) fn program(random: &mut Random) -> Program {
    let subject = &SUBJECTS[random.index(SUBJECTS.len())];
    let mut maker = Maker::new(Random(random.bits()), None);
    maker.emit(0xb7, SUM, 0, 0, 0);
    maker.emit(0x7a, FP, 0, KEY, 0);
    maker.emit(0x7a, FP, 0, VALUE, 0);
    for _ in 0..2 + maker.random.below(12) {
        (subject.step)(&mut maker);
    }
    maker.emit(0xbf, 0, SUM, 0, 0);
    maker.emit(0x95, 0, 0, 0, 0);
    let is_ring = subject.map_type == MapType::Ringbuf;
    let (value_size, entries) = if is_ring { (0, RING) } else { (8, ENTRIES) };
    let mut map = MapDef::new(
        "map",
        subject.map_type,
        subject.key_size,
        value_size,
        entries,
    );
    map.flags = subject.flags;
    let mut program = Program::new("maps", ProgType::Xdp, maker.insns);
    program.license = "GPL".to_owned();
    program.maps = [map].into();
    program
}

impl Maker {
    /// Adds a register to the sum, so that the order counts.
    fn add_to_sum(&mut self, reg: u8) {
        self.emit(0x27, SUM, 0, 0, 31);
        self.emit(0x0f, SUM, reg, 0, 0);
    }

    /// Calls a helper, and adds its result.
    fn add_result(&mut self, helper: HelperId) {
        self.helper(helper);
        self.add_to_sum(0);
    }

    /// The flags of an update: any element, no element yet, one that is there, invalid ones.
    fn update_flags(&mut self) -> i32 {
        self.random.pick(&[0, 0, 0, 1, 1, 2, 2, 3, 8])
    }

    fn new_value(&mut self) {
        let imm = self.random.imm();
        self.emit(0x7a, FP, 0, VALUE, imm);
    }

    fn numbered_step(&mut self) {
        let key = self.random.int(u64::from(ENTRIES) + 2);
        self.emit(0x62, FP, 0, KEY, key);
        self.element_step();
    }

    fn prefix_step(&mut self) {
        let (len, data) = (
            self.random.pick(&[0, 7, 8, 8, 9, 9, 32, 32, 33]),
            self.random.pick(&[0, 0x80]),
        );
        self.emit(0x62, FP, 0, KEY, len);
        self.emit(0x62, FP, 0, KEY + 4, data);
        self.element_step();
    }

    /// Something is done with the element that has the key.
    fn element_step(&mut self) {
        match self.random.below(10) {
            0..5 => {
                let flags = self.update_flags();
                self.update_with(flags);
            }
            5 => self.delete(),
            _ => {
                self.element(MAP, KEY);
                self.helper(id::map_lookup_elem);
                self.use_value();
            }
        }
    }

    fn update_with(&mut self, flags: i32) {
        self.new_value();
        self.element(MAP, KEY);
        self.address(3, VALUE);
        self.emit(0xb7, 4, 0, 0, flags);
        self.add_result(id::map_update_elem);
    }

    fn delete(&mut self) {
        self.element(MAP, KEY);
        self.add_result(id::map_delete_elem);
    }

    /// Adds the value that r0 points to, if it does, and perhaps writes another one.
    fn use_value(&mut self) {
        let null = self.jump(0x15, 0, 0, 0);
        self.emit(0x79, 1, 0, 0, 0);
        self.add_to_sum(1);
        if self.random.chance(40) {
            let imm = self.random.imm();
            self.emit(0x7a, 0, 0, 0, imm);
        }
        self.land(null);
    }

    /// The same for values of the own CPU and of its neighbour.
    fn per_cpu_step(&mut self) {
        let key = self.random.int(2);
        self.emit(0x62, FP, 0, KEY, key);
        match self.random.below(20) {
            0..11 => self.element_step(),
            11..18 => self.value_of_neighbour(),
            _ => {
                // In place of the element comes a new one, of which nobody wrote the other value:
                // where the element was, after as many as there are places.
                for _ in 0..1 + self.random.below(u64::from(ENTRIES) + 1) {
                    self.value_of_neighbour();
                    self.delete();
                    self.update_with(0);
                }
                self.value_of_neighbour();
            }
        }
    }

    /// Whichever the own CPU is, results are the same.
    fn value_of_neighbour(&mut self) {
        self.helper(id::get_smp_processor_id);
        self.emit(0xbf, 3, 0, 0, 0);
        if self.random.chance(70) {
            self.emit(0xa7, 3, 0, 0, 1);
        }
        self.element(MAP, KEY);
        self.helper(id::map_lookup_percpu_elem);
        self.use_value();
    }

    fn queue_step(&mut self) {
        self.map(MAP);
        self.address(2, VALUE);
        let helper = match self.random.below(8) {
            0..4 => {
                self.new_value();
                let flags = self.update_flags();
                self.emit(0xb7, 3, 0, 0, flags);
                return self.add_result(id::map_push_elem);
            }
            4..7 => id::map_pop_elem,
            _ => id::map_peek_elem,
        };
        self.add_result(helper);
        self.emit(0x79, 1, FP, VALUE, 0);
        self.add_to_sum(1);
    }

    /// A value is added, and asked for: which others are there is up to chance.
    fn filter_step(&mut self) {
        self.new_value();
        self.map(MAP);
        self.address(2, VALUE);
        let flags = self.update_flags();
        self.emit(0xb7, 3, 0, 0, flags);
        self.add_result(id::map_push_elem);
        if flags == 0 {
            self.map(MAP);
            self.address(2, VALUE);
            self.add_result(id::map_peek_elem);
        }
    }

    fn ring_step(&mut self) {
        match self.random.below(10) {
            0..6 => self.reserved(RECORD),
            6..8 => {
                self.new_value();
                self.map(MAP);
                self.address(2, VALUE);
                let len = 1 + self.random.int(8);
                self.emit(0xb7, 3, 0, 0, len);
                self.emit(0xb7, 4, 0, 0, 0);
                self.add_result(id::ringbuf_output);
            }
            _ => {
                self.map(MAP);
                let what = self.random.int(5);
                self.emit(0xb7, 2, 0, 0, what);
                self.add_result(id::ringbuf_query);
            }
        }
    }

    /// A record that may be too large, perhaps with another one inside.
    fn reserved(&mut self, record: u8) {
        let most = RING.cast_signed();
        let len = self.random.pick(&[
            8,
            16,
            1000,
            2040,
            most - 16,
            most - 8,
            most - 7,
            most,
            2 * most,
        ]);
        self.reserve(MAP, len);
        self.emit(0x27, SUM, 0, 0, 31);
        let null = self.jump(0x15, 0, 0, 0);
        self.emit(0x07, SUM, 0, 0, 1);
        self.emit(0xbf, record, 0, 0, 0);
        let imm = self.random.imm();
        self.emit(0x7a, record, 0, 0, imm);
        if record == RECORD && self.random.chance(50) {
            self.reserved(OTHER_RECORD);
        }
        self.emit(0xbf, 1, record, 0, 0);
        self.emit(0xb7, 2, 0, 0, 0);
        let helper =
            self.random
                .pick(&[id::ringbuf_submit, id::ringbuf_submit, id::ringbuf_discard]);
        self.helper(helper);
        self.land(null);
    }
}
