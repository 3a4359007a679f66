//! The programs whose functions extensions replace: a main function that calls one or two others,
//! and shows their results.

use super::super::random::Random;
use super::extension_code::{Function, NAMES, Piece, assembled, body};
use super::extension_kinds::Target;
use super::extension_types::{Shape, Types};
use super::{CONTEXT, FP, Maker, VALUE};
use crate::btf::Linkage;
use crate::isa::RawInsn;
use crate::program::Program;

const SUM: u8 = 8;
/// A packet pointer that the main function keeps during a call.
const KEPT: u8 = 9;

/// A program with functions of these shapes.
pub(super) fn target_of(
    random: &mut Random,
    kind: &Target,
    shapes: &[Shape],
    types: &mut Types,
) -> Program {
    let main = types.function("target", &Shape::main(), Linkage::Global);
    let pieces: Vec<Piece> = shapes
        .iter()
        .map(|shape| {
            let count = random.below(6);
            body(random, kind, shape, count)
        })
        .collect();
    let mut functions = vec![Function {
        name: "target",
        ty: main,
        piece: Piece {
            insns: Vec::new(),
            own: None,
        },
    }];
    for ((shape, (name, _)), piece) in shapes.iter().zip(NAMES).zip(pieces) {
        let ty = types.function(name, shape, Linkage::Global);
        functions.push(Function { name, ty, piece });
    }
    let (insns, calls) = main_of(random, kind, shapes);
    if let Some(main) = functions.first_mut() {
        main.piece.insns = insns;
    }
    let mut program = assembled(random, types, functions);
    for (slot, callee) in calls {
        // The callees' own functions have the places between.
        let name = NAMES.get(callee).map_or("", |(name, _)| name);
        let mut all = program.subprograms.iter();
        let start = all.find(|function| function.name == name);
        let start = start.map_or(0, |function| function.start.index());
        if let Some(insn) = program.insns.get_mut(slot) {
            insn.imm = i32::try_from(start - slot - 1).unwrap_or_default();
        }
    }
    program.name = "target".to_owned();
    program.prog_type = kind.prog_type;
    program.expected_attach_type = kind.attach_type;
    program
}

/// The main function, and its calls of the others.
fn main_of(
    random: &mut Random,
    kind: &Target,
    shapes: &[Shape],
) -> (Vec<RawInsn>, Vec<(usize, usize)>) {
    let mut maker = Maker::new(Random(random.bits()), Some(kind.fields));
    let mut calls = Vec::new();
    maker.emit(0xbf, CONTEXT, 1, 0, 0);
    maker.load_value();
    maker.emit(0xb7, SUM, 0, 0, 0);
    let imm = maker.random.imm();
    maker.emit(0x7a, FP, 0, -8, imm);
    let rounds = shapes.len() + usize::from(maker.random.chance(25));
    for round in 0..rounds {
        let callee = round % shapes.len();
        let Some(shape) = shapes.get(callee) else {
            continue;
        };
        // A pointer that is still valid behind the call.
        let keeps = !shape.changes && maker.random.chance(30);
        let skip = kind.packet.filter(|_| keeps).map(|packet| {
            maker.bytes(packet, KEPT);
            maker.jump(0x2d, 3, 2, 0)
        });
        maker.arguments(shape);
        calls.push((maker.insns.len(), callee));
        maker.emit(0x85, 0, 1, 0, 0);
        let off = 32 + i16::try_from(round).unwrap_or_default() * 8;
        maker.emit(0x7b, VALUE, 0, off, 0);
        maker.emit(0x0f, SUM, 0, 0, 0);
        if let Some(skip) = skip {
            let off = i16::from(maker.random.byte(14));
            maker.emit(0x71, 1, KEPT, off, 0);
            maker.emit(0x0f, SUM, 1, 0, 0);
            maker.land(skip);
        }
    }
    maker.emit(0x79, 1, FP, -8, 0);
    maker.emit(0x7b, VALUE, 1, 56, 0);
    maker.emit(0xbf, 0, SUM, 0, 0);
    maker.emit(0x57, 0, 0, 0, kind.mask);
    maker.emit(0x95, 0, 0, 0, 0);
    (maker.insns, calls)
}

impl Maker {
    /// The arguments of a call.
    fn arguments(&mut self, shape: &Shape) {
        let mut arg = 1;
        if shape.context {
            self.emit(0xbf, arg, CONTEXT, 0, 0);
            arg += 1;
        }
        if let Some(is_there) = shape.memory {
            if !is_there && self.random.chance(30) {
                self.emit(0xb7, arg, 0, 0, 0);
            } else {
                self.emit(0xbf, arg, FP, 0, 0);
                self.emit(0x07, arg, 0, 0, -8);
            }
            arg += 1;
        }
        for _ in &shape.numbers {
            match self.random.below(4) {
                0 => {
                    let imm = self.random.imm();
                    self.emit(0xb7, arg, 0, 0, imm);
                }
                1 => self.emit(0xbf, arg, SUM, 0, 0),
                2 => self.emit(0x79, arg, VALUE, 16, 0),
                _ => {
                    let fields = self.fields.unwrap_or_default();
                    let off = self.random.pick(fields);
                    self.emit(0x61, arg, CONTEXT, off, 0);
                }
            }
            arg += 1;
        }
    }
}
