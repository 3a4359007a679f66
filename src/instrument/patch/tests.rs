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

/// `r9 = number`: shows where a block went.
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

/// Jumps over 40,000 instructions: 16 bits don't say that, so a long jump has to.
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
