//! The programs of `benches/bpf`.

use bpflab::Object;
use bpflab::object::Target;
use bpflab::program;

use super::{expected, inputs};

/// The group of a program in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// One of the twelve: computes on memory, calls neither helpers nor functions. The parser
    /// comes in two sizes.
    Twelve,
    /// Helper calls.
    Helpers,
    /// Function calls.
    Calls,
    /// Maps.
    Maps,
    /// The empty program.
    Empty,
}

/// The location of a program's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the packet.
    Packet,
    /// In the global array `memory`.
    Memory,
}

/// A program.
#[derive(Debug)]
pub struct Program {
    /// The name of its function and its source.
    pub name: &'static str,
    /// Its title in the table.
    pub title: &'static str,
    pub group: Group,
    pub place: Place,
    /// Whether it needs memory only, so that it also has a flat and a native form.
    pub is_flat: bool,
    /// Makes its input.
    pub input: fn() -> Vec<u8>,
    /// Computes its expected result for this input.
    pub expected: fn(&[u8]) -> u32,
}

macro_rules! programs {
    ($($name:ident, $title:literal, $group:ident, $place:ident, $flat:literal;)*) => {
        /// All of them.
        pub const PROGRAMS: &[Program] = &[$(Program {
            name: stringify!($name),
            title: $title,
            group: Group::$group,
            place: Place::$place,
            is_flat: $flat,
            input: inputs::$name,
            expected: expected::$name,
        }),*];
    };
}

programs! {
    lcg, "LCG, 1000 rounds", Twelve, Packet, true;
    primes, "primes below 500", Twelve, Packet, true;
    checksum, "checksum, 1400 bytes", Twelve, Packet, true;
    copy, "memcpy, 4 KiB", Twelve, Memory, true;
    sum, "sum, 64 KiB", Twelve, Memory, true;
    fnv, "FNV-1a, 1400 bytes", Twelve, Packet, true;
    siphash, "SipHash, 1400 bytes", Twelve, Packet, true;
    jenkins, "Jenkins, 1404 bytes", Twelve, Packet, true;
    histogram, "log2 histogram, 128", Twelve, Memory, true;
    parse_one, "parse a packet", Twelve, Packet, true;
    parse_64, "parse 64 packets", Twelve, Memory, true;
    states, "state machine, 256", Twelve, Memory, true;
    search, "string match, 1 KiB", Twelve, Packet, true;
    helpers, "200 helper calls", Helpers, Packet, false;
    calls, "400 function calls", Calls, Packet, true;
    map_array, "array[log2]++, 64", Maps, Packet, false;
    map_hash, "hash[log2]++, 64", Maps, Packet, false;
    empty, "empty", Empty, Packet, true;
}

impl Program {
    /// Its object, with the input in place.
    pub fn object(&self) -> Object {
        let file = format!("{}/bpf/{}.bpf.o", env!("CARGO_MANIFEST_DIR"), self.name);
        let mut object = Object::open(file).expect("it is committed");
        object.set_target(Target::Own);
        if self.place == Place::Memory {
            let mut names = object.maps().iter().map(|map| map.name.clone());
            let bss = names
                .find(|name| name.ends_with(".bss"))
                .expect("it has one");
            let mut memory = object.map_mut(&bss).expect("it is there");
            memory
                .set_initial_value(&(self.input)())
                .expect("of its size");
        }
        object
    }

    /// Its form for Linux.
    pub fn linux(&self) -> program::Program {
        self.object().program(self.name).expect("it is there")
    }

    /// The instructions of its flat form: r1 is the memory, r2 its length. The first
    /// instruction sets r2, since not every virtual machine does.
    pub fn flat(&self) -> Option<Vec<u8>> {
        if !self.is_flat {
            return None;
        }
        let name = format!("{}_flat", self.name);
        let mut object = self.object();
        object.load_only([name.as_str()]).expect("it is there");
        let program = object.program(&name).expect("it is there");
        let length = u32::try_from((self.input)().len()).expect("little");
        let [a, b, c, d] = length.to_le_bytes();
        let set_length = [0xb7, 2, 0, 0, a, b, c, d];
        let rest = program.insns.iter().flat_map(|insn| insn.to_bytes());
        Some(set_length.into_iter().chain(rest).collect())
    }

    /// The packet that it runs on.
    pub fn packet(&self) -> Vec<u8> {
        match self.place {
            Place::Packet => (self.input)(),
            Place::Memory => vec![0; 64],
        }
    }
}
