//! The code of a function of an extension or of its target.

use super::super::random::Random;
use super::extension_kinds::Target;
use super::extension_types::{Shape, Types};
use super::functions::add_function;
use super::{CONTEXT, MAPS, Maker, Step};
use crate::btf::Linkage;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::{Pc, TypeId};

/// The names of the functions that the main function calls, and of those that these call.
pub(super) const NAMES: [(&str, &str); 2] = [("first", "first_own"), ("second", "second_own")];

/// The steps of a function.
const STEPS: &[(u64, Step)] = &[
    (14, Maker::arithmetic),
    (9, Maker::branch),
    (7, Maker::close),
    (7, Maker::load),
    (10, Maker::access),
    (5, Maker::spill),
    (5, Maker::fill),
    (4, Maker::two_ways),
    (4, Maker::look_up),
    (4, Maker::look_up_constant),
    (5, Maker::call),
    (3, Maker::copy),
    (2, Maker::count),
    (2, Maker::record),
    (2, Maker::send),
];

/// The code of a function, and of the one that only it calls.
pub(super) struct Piece {
    pub insns: Vec<RawInsn>,
    pub own: Option<usize>,
}

/// A function of a program.
pub(super) struct Function {
    pub name: &'static str,
    pub ty: TypeId,
    pub piece: Piece,
}

/// The functions one after another, with their types.
pub(super) fn assembled(
    random: &mut Random,
    types: &mut Types,
    functions: Vec<Function>,
) -> Program {
    let mut program = Program::new("made", ProgType::SchedCls, Vec::new());
    program.license = "GPL".to_owned();
    program.maps = MAPS.clone();
    program.subprograms.clear();
    for function in functions {
        let start = program.insns.len();
        let is_global = random.chance(30);
        let own = function.piece.own.map(|own| {
            let name = match function.name {
                "first" => NAMES[0].1,
                "second" => NAMES[1].1,
                _ => "own",
            };
            let linkage = match is_global {
                true => Linkage::Global,
                false => Linkage::Static,
            };
            let ty = types.function(name, &Shape::own(), linkage);
            (name, start + own, ty, is_global)
        });
        let all = [Some((function.name, start, function.ty, true)), own];
        for (name, start, ty, global) in all.into_iter().flatten() {
            add_function(&mut program, name, Pc::from_index(start), ty, global);
        }
        program.insns.extend(function.piece.insns);
    }
    program
}

/// A function of this shape.
pub(super) fn body(random: &mut Random, kind: &Target, shape: &Shape, count: u64) -> Piece {
    let fields = if shape.context { kind.fields } else { &[] };
    let mut maker = Maker::new(Random(random.bits()), Some(fields));
    let mut arg = 1;
    if shape.context {
        maker.emit(0xbf, CONTEXT, 1, 0, 0);
        arg += 1;
    }
    maker.load_value();
    if let Some(is_there) = shape.memory {
        maker.memory(arg, is_there);
        arg += 1;
    }
    for _ in &shape.numbers {
        maker.set_number(arg);
        arg += 1;
    }
    if maker.known.numbers == 0 {
        maker.load();
    }
    let changes_at = (shape.changes && shape.context).then(|| maker.random.below(count + 1));
    for step in 0..=count {
        if changes_at == Some(step) {
            maker.change_packet(kind);
        }
        match kind.packet.filter(|_| shape.context) {
            Some(packet) if maker.random.chance(10) => maker.packet(packet),
            _ => maker.step(STEPS),
        }
    }
    let own = maker.end();
    Piece {
        insns: maker.insns,
        own,
    }
}

impl Maker {
    /// Reads and writes the memory of an argument; the number is in r8.
    fn memory(&mut self, arg: u8, is_there: bool) {
        self.emit(0xb7, 8, 0, 0, 0);
        let checks = !is_there && self.random.chance(95);
        let skip = checks.then(|| self.jump(0x15, arg, 0, 0));
        let off = self.random.pick(&[0, 4]);
        self.emit(0x61, 8, arg, off, 0);
        self.emit(0x07, 8, 0, 0, 1);
        self.emit(0x63, arg, 8, 4 - off, 0);
        if let Some(skip) = skip {
            self.land(skip);
        }
        self.set_number(8);
    }

    /// The packet's start in `start`, its end in r2, and in r3 what is 14 bytes behind the start.
    pub(super) fn bytes(&mut self, (data, end): (i16, i16), start: u8) {
        self.emit(0x61, start, CONTEXT, data, 0);
        self.emit(0x61, 2, CONTEXT, end, 0);
        self.emit(0xbf, 3, start, 0, 0);
        self.emit(0x07, 3, 0, 0, 14);
    }

    /// A byte of the packet in r5, or 0.
    fn packet(&mut self, packet: (i16, i16)) {
        self.emit(0xb7, 5, 0, 0, 0);
        self.bytes(packet, 4);
        let skip = self.jump(0x2d, 3, 2, 0);
        let off = i16::from(self.random.byte(14));
        self.emit(0x71, 5, 4, off, 0);
        self.land(skip);
        for reg in 2..5 {
            self.forget(reg);
        }
        self.set_number(5);
    }

    /// A helper changes the packet.
    fn change_packet(&mut self, kind: &Target) {
        if kind.changes.is_empty() {
            return self.arithmetic();
        }
        let (helper, least, most) = self.random.pick(kind.changes);
        let range = most.abs_diff(least);
        let by = least + self.random.int(range.into());
        self.emit(0xbf, 1, CONTEXT, 0, 0);
        self.emit(0xb7, 2, 0, 0, by);
        self.emit(0xb7, 3, 0, 0, 0);
        self.helper(helper);
    }
}
