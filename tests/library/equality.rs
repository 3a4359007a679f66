//! All engines agree: generated programs over the whole instruction set (`bpflab::gen`) run
//! on each of them, and all results are identical. A program with a difference is shrunk
//! and printed.
//!
//! `BPFLAB_RANDOM_COUNT` sets how many programs a test generates, `BPFLAB_SEED` selects
//! others. With `--nocapture` each test prints its counts, and with `BPFLAB_TELL` each
//! program before it runs. In an optimised build (`cargo test --release --test library equality::`)
//! the fast interpreter is tested in both its forms.

use crate::shared::law;

use std::collections::BTreeSet;

use bpflab::compare::Ours;
use bpflab::r#gen::Options;
use bpflab::harness::EngineKind;
use bpflab::isa::{
    AluOp, AtomicOp, EndianOp, EndianSize, Insn, JumpOp, Operand, Pseudo, SignedSize, Size, Width,
    decode_program,
};
use bpflab::lower::Passes;

use law::hold;

/// The engines that are compared with the checked one, with all passes.
fn fast() -> Vec<Ours> {
    let interp = Ours::new(EngineKind::Interp);
    vec![
        interp.clone().with_loop(),
        interp,
        Ours::new(EngineKind::Jit),
        Ours::new(EngineKind::Jit).without_counts(),
    ]
}

/// The engines with each pass left out, and without all passes.
fn without_passes() -> Vec<Ours> {
    let passes = Passes::all().iter().chain([Passes::all()]);
    passes
        .flat_map(|pass| fast().into_iter().map(move |engine| engine.without(pass)))
        .collect()
}

/// Return value, instruction count, context, packet, maps, outputs.
#[test]
fn programs_run_alike() {
    let mut engines = fast();
    let tally = hold("programs", 600, Options::default(), |tally, subject| {
        tally.agree(subject, &mut engines).map(drop)
    });
    tally.tell();
    assert!(tally.accepted() >= 0.9, "{tally:?}");
}

/// Tail calls from functions, and their results; budgets end in the middle.
#[test]
fn tail_calls_come_back_alike() {
    let options = Options {
        tail_calls: true,
        ..Options::default()
    };
    let mut engines = fast();
    let tally = hold("tail calls", 300, options, |tally, subject| {
        let whole = tally.agree(subject, &mut engines)?;
        let runs = whole.details.map(|details| details.outcome.runs);
        let insns = runs.and_then(|runs| runs.first()?.insns);
        let some = insns.unwrap_or_default() * 2 / 3;
        tally.agree(&subject.with_budget(some), &mut engines)?;
        Ok(())
    });
    tally.tell();
    assert!(tally.accepted() >= 0.9, "{tally:?}");
}

/// With a budget that ends anywhere: the same fault at the same position, and the same
/// effects before it.
#[test]
fn budgets_end_alike() {
    let mut engines = fast();
    let tally = hold("budgets", 300, Options::default(), |tally, subject| {
        let whole = tally.agree(subject, &mut [])?;
        let runs = whole.details.map(|details| details.outcome.runs);
        let insns = runs.and_then(|runs| runs.first()?.insns);
        let insns = insns.unwrap_or_default();
        for eighth in 0..8 {
            let least = insns * eighth / 8;
            let budget = least + insns * 5 % (insns / 8).max(1);
            tally.agree(&subject.with_budget(budget), &mut engines)?;
        }
        Ok(())
    });
    tally.tell();
    assert!(tally.faults > 1000 || tally.made < 300, "{tally:?}");
}

/// Every pass changes the speed of a program, and nothing else.
#[test]
fn passes_change_nothing() {
    let mut engines = without_passes();
    let tally = hold("passes", 100, Options::default(), |tally, subject| {
        tally.agree(subject, &mut engines).map(drop)
    });
    tally.tell();
}

/// The kind of an instruction, without its registers and numbers.
fn shape(insn: &Insn) -> String {
    let of = |src: &Operand| src.reg().map_or("imm", |_| "reg");
    match insn {
        Insn::Alu { op, width, src, .. } => format!("{op:?} {width:?} {}", of(src)),
        Insn::MovSx { width, from, .. } => format!("MovSx {width:?} {from:?}"),
        Insn::Neg { width, .. } => format!("Neg {width:?}"),
        Insn::Endian { op, size, .. } => format!("{op:?} {size:?}"),
        Insn::LoadPseudo { source, .. } => format!("{:?}", source.kind()),
        Insn::Load { size, .. } => format!("Load {size:?}"),
        Insn::LoadSx { from, .. } => format!("LoadSx {from:?}"),
        Insn::Store { size, src, .. } => format!("Store {size:?} {}", of(src)),
        Insn::Atomic { op, width, .. } => format!("Atomic {op:?} {width:?}"),
        Insn::LoadAcquire { size, .. } => format!("LoadAcquire {size:?}"),
        Insn::StoreRelease { size, .. } => format!("StoreRelease {size:?}"),
        Insn::LoadPacket { size, index, .. } => {
            format!("LoadPacket {size:?} {}", index.map_or("abs", |_| "ind"))
        }
        Insn::JumpIf { op, width, src, .. } => format!("If {op:?} {width:?} {}", of(src)),
        Insn::Call(bpflab::isa::CallTarget::Helper(_)) => "Call helper".to_owned(),
        Insn::Call(bpflab::isa::CallTarget::Subprogram { .. }) => "Call function".to_owned(),
        other => {
            let text = format!("{other:?}");
            text.split([' ', '(']).next().unwrap_or_default().to_owned()
        }
    }
}

/// All kinds that a verifier accepts, without calls through a register, calls of kfuncs,
/// which not every kernel has, and pointers of another address space, which are the
/// arena's.
fn all_shapes() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let operands = ["imm", "reg"];
    for width in Width::ALL {
        for operand in operands {
            all.extend(
                AluOp::ALL
                    .iter()
                    .map(|op| format!("{op:?} {width:?} {operand}")),
            );
            all.extend(
                JumpOp::ALL
                    .iter()
                    .map(|op| format!("If {op:?} {width:?} {operand}")),
            );
        }
        all.extend(
            AtomicOp::ALL
                .iter()
                .map(|op| format!("Atomic {op:?} {width:?}")),
        );
        all.insert(format!("Neg {width:?}"));
    }
    for from in SignedSize::ALL {
        all.extend([format!("LoadSx {from:?}"), format!("MovSx W64 {from:?}")]);
        if *from != SignedSize::S32 {
            all.insert(format!("MovSx W32 {from:?}"));
        }
    }
    for op in EndianOp::ALL {
        all.extend(
            EndianSize::ALL
                .iter()
                .map(|size| format!("{op:?} {size:?}")),
        );
    }
    for size in Size::ALL {
        all.extend(["Load", "LoadAcquire", "StoreRelease"].map(|what| format!("{what} {size:?}")));
        all.extend(operands.map(|operand| format!("Store {size:?} {operand}")));
        if *size != Size::Dw {
            all.extend(["abs", "ind"].map(|kind| format!("LoadPacket {size:?} {kind}")));
        }
    }
    let sources = [
        Pseudo::Func { rel: 0 },
        Pseudo::MapIdx { index: 0 },
        Pseudo::MapIdxValue { index: 0, off: 0 },
    ];
    all.extend(sources.map(|source| format!("{:?}", source.kind())));
    let others = [
        "LoadImm64",
        "Jump",
        "JumpLong",
        "MayGoto",
        "Exit",
        "Call helper",
        "Call function",
    ];
    all.extend(others.map(str::to_owned));
    all
}

/// The programs contain every kind of instruction.
#[test]
fn the_whole_instruction_set_is_made() {
    let (mut seen, mut insns) = (BTreeSet::new(), 0);
    let tally = hold("instructions", 600, Options::default(), |_, subject| {
        for program in subject.programs() {
            let decoded = decode_program(&program.insns).map_err(|error| error.to_string())?;
            insns += decoded.len();
            seen.extend(decoded.iter().map(shape));
        }
        Ok(())
    });
    eprintln!("{insns} instructions in {} programs", tally.made);
    let missing: Vec<_> = all_shapes().difference(&seen).cloned().collect();
    let unknown: Vec<_> = seen.difference(&all_shapes()).cloned().collect();
    assert_eq!(unknown, Vec::<String>::new());
    assert!(
        missing.is_empty() || tally.made < 600,
        "missing: {missing:?}"
    );
}
