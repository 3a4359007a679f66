use super::*;
use crate::btf::FuncInfo;
use crate::instrument::error::Reason;
use crate::isa::Code;
use crate::isa::{Insn, Reg, assemble};
use crate::program::{CoreAccess, Program, Subprogram};
use crate::spec::ProgType;
use crate::util::Pc;

fn program(text: &str, starts: &[u32]) -> Program {
    let mut program = Program::new("test", ProgType::Xdp, assemble(text).unwrap());
    program.subprograms = starts
        .iter()
        .map(|start| Subprogram {
            name: format!("f{start}"),
            start: Pc(*start),
            type_id: None,
            global: false,
        })
        .collect();
    program
}

/// `r9 = number`: marks the position of a block.
fn mark(number: i32) -> Block {
    let mut block = Block::default();
    block.mov(Reg::R9, number);
    block
}

fn apply(patch: &Patch, program: &Program) -> Program {
    patch.apply(program, &Code::new(&program.insns)).unwrap()
}

fn text(program: &Program) -> Vec<String> {
    let code = Code::new(&program.insns);
    let insns = code.iter();
    insns.map(|(_, insn)| insn.unwrap().to_string()).collect()
}

#[test]
fn jumps_lead_to_what_was_inserted_before_their_target() {
    let program = program(
        "r0 = 0\n again: r0 += 1\n if r0 < 5 goto again\n exit",
        &[0],
    );
    let mut patch = Patch::default();
    patch.entry(Pc(0), mark(1));
    patch.before(Pc(0), mark(2));
    patch.before(Pc(1), mark(3));
    patch.after(Pc(1), mark(4));
    patch.after(Pc(2), mark(5));
    let patched = apply(&patch, &program);
    let expected = assemble(
        "r9 = 1\n r9 = 2\n r0 = 0\n again: r9 = 3\n r0 += 1\n r9 = 4\n \
         if r0 < 5 goto again\n r9 = 5\n exit",
    );
    assert_eq!(patched.insns, expected.unwrap(), "{:#?}", text(&patched));
}

#[test]
fn what_a_loop_leads_back_to_is_not_entered_again() {
    let program = program("again: r0 += 1\n if r0 < 5 goto again\n exit", &[0]);
    let mut patch = Patch::default();
    patch.entry(Pc(0), mark(1));
    let expected = assemble("r9 = 1\n again: r0 += 1\n if r0 < 5 goto again\n exit");
    assert_eq!(apply(&patch, &program).insns, expected.unwrap());
}

#[test]
fn calls_and_addresses_of_functions_lead_to_their_entries() {
    let text = "r1 = f ll\n call f\n exit\n f: r0 = 1\n exit";
    let mut original = program(text, &[0, 4]);
    original.func_info = vec![
        FuncInfo {
            insn_off: 0,
            ty: crate::util::TypeId(1),
        },
        FuncInfo {
            insn_off: 4,
            ty: crate::util::TypeId(2),
        },
    ];
    let access = |pc| CoreAccess {
        pc: Pc(pc),
        path: String::new(),
        poisoned: false,
    };
    original.accesses = vec![access(3), access(4)];
    let mut patch = Patch::default();
    patch.before(Pc(2), mark(1));
    patch.end(Pc(0), mark(2));
    patch.entry(Pc(4), mark(3));
    patch.instead(Pc(4), mark(4));
    patch.end(Pc(4), mark(5));
    let patched = apply(&patch, &original);
    let expected = assemble(
        "r1 = f ll\n r9 = 1\n call f\n exit\n r9 = 2\n f: r9 = 3\n r9 = 4\n exit\n r9 = 5",
    );
    assert_eq!(patched.insns, expected.unwrap());
    assert_eq!(patched.subprograms[1].start, Pc(6));
    assert_eq!(patched.func_info[1].insn_off, 6);
    assert_eq!(patched.accesses, [access(4)], "what is gone is no access");
}

#[test]
fn labels_are_places_in_blocks() {
    let program = program("r0 = 0\n exit", &[0]);
    let mut patch = Patch::default();
    let (skip, out, start) = (patch.label(), patch.label(), patch.label());
    let mut before = Block::default();
    before.jump_if(crate::isa::JumpOp::Eq, Reg::R1, 0, skip);
    before.jump(out);
    before.bind(skip);
    patch.before(Pc(1), before);
    let mut first = Block::default();
    first.bind(start);
    patch.before(Pc(0), first);
    let mut end = Block::default();
    end.bind(out);
    end.jump(start);
    patch.end(Pc(0), end);
    let expected =
        assemble("start: r0 = 0\n if r1 == 0 goto skip\n goto out\n skip: exit\n out: goto start");
    assert_eq!(apply(&patch, &program).insns, expected.unwrap());
}

/// Jumps over 40,000 instructions, which need a long jump.
#[test]
fn jumps_that_get_too_long_become_long_ones() {
    let source =
        "if r1 == 0 goto end\n goto end\n r2 = 0\n end: r0 = 0\n if r1 == 1 goto -4\n exit";
    let program = program(source, &[0]);
    let mut patch = Patch::default();
    let mut filling = Block::default();
    for _ in 0..40_000 {
        filling.push(Insn::Jump { off: 0 });
    }
    patch.after(Pc(2), filling);
    let patched = text(&apply(&patch, &program));
    assert_eq!(
        patched[..5],
        [
            "if r1 == 0x0 goto pc+1",
            "goto pc+1",
            "gotol pc+40002",
            "gotol pc+40001",
            "r2 = 0"
        ]
    );
    assert_eq!(
        patched[40_005..],
        [
            "r0 = 0",
            "if r1 == 0x1 goto pc+1",
            "goto pc+1",
            "gotol pc-40006",
            "exit"
        ]
    );
}

#[test]
fn what_is_no_instruction_is_named() {
    let program = program(".quad 0xff\n exit", &[0]);
    let code = Code::new(&program.insns);
    let error = Patch::default().apply(&program, &code).unwrap_err();
    assert!(matches!(error, Reason::NoInstruction(_)), "{error}");
}

/// The kernel allows one line per instruction.
#[test]
fn of_lines_without_instructions_the_last_counts() {
    let mut original = program("r0 = 0\n r1 = 1\n exit", &[0]);
    let line = |insn_off| crate::btf::LineInfo {
        insn_off,
        file: 0,
        text: 0,
        line_col: insn_off << 10,
    };
    original.lines = vec![line(0), line(1), line(2)];
    let mut patch = Patch::default();
    patch.instead(Pc(1), Block::default());
    let patched = apply(&patch, &original);
    let lines: Vec<_> = patched
        .lines
        .iter()
        .map(|it| (it.insn_off, it.line()))
        .collect();
    assert_eq!(lines, [(0, 0), (1, 2)]);
}

/// Inserts no-ops everywhere: generated programs must give the same results.
#[test]
fn nothing_inserted_everywhere_changes_nothing() {
    use crate::compare::{Engine, Ours, Subject};
    use crate::r#gen::{Choices, Options, make};
    use crate::harness::EngineKind;

    let nothing = || {
        let mut block = Block::default();
        block.push(Insn::Jump { off: 0 });
        block
    };
    let padded = |program: &std::sync::Arc<Program>| {
        let code = Code::new(&program.insns);
        let mut patch = Patch::default();
        for (pc, insn) in code.iter() {
            patch.before(pc, nothing());
            if insn.unwrap().falls_through() {
                patch.after(pc, nothing());
            }
        }
        for subprogram in &program.subprograms {
            patch.entry(subprogram.start, nothing());
        }
        std::sync::Arc::new(patch.apply(program, &code).unwrap())
    };
    let mut ran = 0;
    for seed in 0..80 {
        let subject = Subject::from(make(&mut Choices::seeded(seed, 500), Options::default()));
        let mut other = subject.clone();
        other.program = padded(&subject.program);
        other.others = subject.others.iter().map(padded).collect();
        let run = |subject: &Subject| {
            let mut answer = Ours::new(EngineKind::Checked).run(subject).ok()?;
            let details = answer.details.take()?;
            // Positions and counts differ.
            let stopped = details.fault.is_some();
            Some((answer, details.outcome.outputs, stopped))
        };
        let (one, padded) = (run(&subject), run(&other));
        ran += usize::from(one.is_some());
        assert_eq!(one, padded, "seed {seed}");
    }
    assert!(ran > 60, "{ran}");
}
