//! Programs that replace a function of another one (`freplace`), sometimes with a mistake. Their
//! targets are never struct_ops programs: such an extension can kill the kernel (docs/findings.md).

use std::sync::Arc;

use super::super::random::Random;
use super::extension_code::{Function, NAMES, assembled, body};
use super::extension_kinds::Target;
use super::extension_targets::target_of;
use super::extension_types::{Shape, Types};
use crate::btf::Linkage;
use crate::program::{AttachProgram, Program};
use crate::spec::{ProgFlags, ProgType};
use crate::util::TypeId;
use crate::verifier::{Options, verify};

/// Attempts to make a target that is accepted.
const TRIES: usize = 10;
/// Programs in 100 that are a target by itself.
const TARGETS: u64 = 8;
/// Extensions in 100 that have a mistake.
const MISTAKES: u64 = 15;

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
