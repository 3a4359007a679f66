//! Programs that replace a function of another one (`freplace`), sometimes with a mistake. Their
//! targets are never struct_ops programs: such an extension can kill the kernel (docs/findings.md).

use std::sync::Arc;

use super::super::random::Random;
use super::extension_targets::{NAMES, Target, target_of};
use super::extension_types::{Shape, Types};
use super::{CONTEXT, Known, MAPS, Maker, Step, VALUE, VALUES};
use crate::btf::{FuncInfo, Linkage};
use crate::isa::RawInsn;
use crate::program::{AttachProgram, Program, Subprogram};
use crate::spec::{ProgFlags, ProgType};
use crate::util::{Pc, TypeId};
use crate::verifier::{Options, verify};

/// Attempts to make a target that is accepted.
const TRIES: usize = 10;
/// Programs in 100 that are a target by itself.
const TARGETS: u64 = 8;
/// Extensions in 100 that have a mistake.
const MISTAKES: u64 = 15;

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

/// What is wrong with an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// One argument more or fewer.
    Count,
    /// An argument of another size.
    Width,
    /// No context, or one that the function does not have.
    Context,
    /// No result.
    Result,
    /// A static function, a type that is none, or no type.
    Function,
    /// The flag of programs that may sleep.
    Sleeps,
    /// No `func_info`.
    Untyped,
    /// It is a static function.
    Static,
    /// The memory of an argument is larger in its types.
    Larger,
    /// Whether memory may be missing is another in its types.
    Null,
    /// It changes packets where the function does not.
    Packet,
}

const ALL_MISTAKES: [Mistake; 11] = [
    Mistake::Count,
    Mistake::Width,
    Mistake::Context,
    Mistake::Result,
    Mistake::Function,
    Mistake::Sleeps,
    Mistake::Untyped,
    Mistake::Static,
    Mistake::Larger,
    Mistake::Null,
    Mistake::Packet,
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

/// An extension, or a target by itself.
pub(in crate::fuzz) struct Made {
    pub program: Program,
    /// Whether a kernel has the same results. A kernel must not run what relies on wrong types:
    /// nothing there stops it.
    pub defined: bool,
}

/// An extension with its target.
pub(in crate::fuzz) fn program(random: &mut Random) -> Made {
    let mut random = Random(random.bits());
    let kind = Target::random(&mut random);
    let mut tries = 0;
    loop {
        tries += 1;
        let shapes: Vec<Shape> = (0..1 + random.below(2))
            .map(|_| Shape::random(&mut random, !kind.changes.is_empty()))
            .collect();
        let mut types = Types::new(kind.context);
        let mut target = target_of(&mut random, kind, &shapes, &mut types);
        let mut made = extension_of(&mut random, kind, &shapes, &mut types);
        // One object has one table of types.
        target.btf = types.btf();
        made.program.btf.clone_from(&target.btf);
        let is_alone = random.chance(TARGETS);
        let target = Arc::new(target);
        let verified = verify(&target, &Options::default()).outcome;
        if is_alone || verified.is_err() && tries == TRIES {
            return Made {
                program: Program::clone(&target),
                defined: true,
            };
        }
        if let Ok(verified) = verified {
            made.program.attach_prog = AttachProgram::Known(Arc::new(verified.target()));
            return made;
        }
    }
}

/// The extension of one of the functions; without the program to attach to.
fn extension_of(random: &mut Random, kind: &Target, shapes: &[Shape], types: &mut Types) -> Made {
    let at = random.index(shapes.len());
    let replaces_main = random.chance(8);
    let (name, original) = match (replaces_main, shapes.get(at), NAMES.get(at)) {
        (false, Some(shape), Some((name, _))) => (*name, shape.clone()),
        _ => ("target", Shape::main()),
    };
    let mut shape = original;
    let mistake = random.chance(MISTAKES).then(|| random.pick(&ALL_MISTAKES));
    let mut linkage = Linkage::Global;
    match mistake {
        Some(Mistake::Count) if shape.count() < 5 && random.chance(50) => shape.numbers.push(true),
        Some(Mistake::Count) => drop(shape.numbers.pop()),
        Some(Mistake::Width) => {
            if let Some(wide) = shape.numbers.first_mut() {
                *wide = !*wide;
            }
        }
        Some(Mistake::Context) => shape.context = !shape.context && shape.count() < 5,
        Some(Mistake::Result) => types.returns_nothing = true,
        Some(Mistake::Static) => linkage = Linkage::Static,
        Some(Mistake::Larger) => types.is_larger = true,
        Some(Mistake::Null) => shape.memory = shape.memory.map(|is_there| !is_there),
        Some(Mistake::Packet) => shape.changes = true,
        _ => {}
    }
    let count = 2 + random.below(10);
    let mut piece = body(random, kind, &shape, count);
    if mistake == Some(Mistake::Larger) {
        // Memory that the caller's does not have.
        piece.insns.splice(0..0, shape.reads_behind());
        piece.own = piece.own.map(|own| own + shape.reads_behind().len());
    }
    let ty = types.function("extension", &shape, linkage);
    types.returns_nothing = false;
    let function = Function {
        name: "extension",
        ty,
        piece,
    };
    let mut program = assembled(random, types, vec![function]);
    let btf = types.btf();
    let of_name = |name: &str| {
        let ty = btf.as_ref()?.named(name).next()?;
        Some(ty.id())
    };
    program.name = "extension".to_owned();
    program.section = format!("freplace/{name}");
    program.attach_target = Some(name.to_owned());
    program.prog_type = ProgType::Ext;
    program.attach_btf_id = of_name(name);
    match mistake {
        Some(Mistake::Function) => {
            let names = ["first_own", "second_own", "target", "", "pair", "own"];
            program.attach_btf_id = match random.pick(&names) {
                "" => Some(TypeId(random.pick(&[0, 1, 2, 9999]))),
                other => of_name(other).or(program.attach_btf_id),
            };
        }
        Some(Mistake::Sleeps) => program.flags |= ProgFlags::SLEEPABLE,
        Some(Mistake::Untyped) => program.func_info.clear(),
        _ => {}
    }
    let misleads = matches!(
        mistake,
        Some(Mistake::Larger | Mistake::Null | Mistake::Function)
    );
    Made {
        program,
        defined: !misleads,
    }
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
            let start = Pc::from_index(start);
            let made = Subprogram::new(name, start).with_type_id(ty);
            program.subprograms.push(made.with_global(global));
            program.func_info.push(FuncInfo {
                insn_off: start.0,
                ty,
            });
        }
        program.insns.extend(function.piece.insns);
    }
    program
}

/// A maker at the start of a function, with this context.
pub(super) fn maker(random: &mut Random, fields: &'static [i16]) -> Maker {
    Maker {
        random: Random(random.bits()),
        insns: Vec::with_capacity(64),
        known: Known {
            numbers: 0,
            stack: 0,
        },
        open: Vec::new(),
        calls: Vec::new(),
        in_loop: false,
        fields: Some(fields),
    }
}

/// A function of this shape.
pub(super) fn body(random: &mut Random, kind: &Target, shape: &Shape, count: u64) -> Piece {
    let mut maker = maker(random, if shape.context { kind.fields } else { &[] });
    let mut arg = 1;
    if shape.context {
        maker.emit(0xbf, CONTEXT, 1, 0, 0);
        arg += 1;
    }
    maker.emit(0x18, VALUE, 6, 0, VALUES);
    maker.emit(0, 0, 0, 0, 0);
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
