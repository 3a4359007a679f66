//! Tests of programs with subprograms, up to the verdict.

use std::sync::Arc;

use crate::btf::{Builder, Encoding, FuncInfo, Linkage, Param};
use crate::isa::{PseudoKind, assemble};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgFlags, ProgType};
use crate::util::{Errno, TypeId};
use crate::verifier::{LogLevel, Options, Verdict, verify};

/// A program with these functions: the line at which each begins, whether it is global, and
/// the type that its one parameter points to (`None` for a scalar).
fn program(text: &str, functions: &[(u32, bool, Option<&str>)]) -> Program {
    let mut types = Builder::new();
    let int = types.int("int", 4, Encoding::Signed);
    let pair = types.structure("pair", 8, &[]);
    let context = types.structure("__sk_buff", 0, &[]);
    let pointer = |types: &mut Builder, to: &str| match to {
        "pair" => types.ptr(pair),
        "__sk_buff" => types.ptr(context),
        _ => types.ptr(TypeId(0)),
    };
    let mut info = Vec::new();
    for (number, (insn_off, global, to)) in functions.iter().enumerate() {
        let ty = to.map_or(int, |to| pointer(&mut types, to));
        let prototype = types.prototype(int, &[Param { name: "x", ty }]);
        let linkage = if *global {
            Linkage::Global
        } else {
            Linkage::Static
        };
        let ty = types.function(&format!("f{number}"), prototype, linkage);
        let insn_off = *insn_off;
        info.push(FuncInfo { insn_off, ty });
    }
    let insns = assemble(text).unwrap();
    let mut program = Program::new("f0", ProgType::SchedCls, insns);
    program.btf = Some(types.build().unwrap());
    program.func_info = info;
    program.license = "GPL".to_owned();
    program
}

fn verdict(program: Program) -> Verdict {
    let options = Options {
        log: LogLevel::ALL,
        ..Options::default()
    };
    verify(&Arc::new(program), &options).verdict
}

fn message(program: Program) -> String {
    verdict(program).message
}

const MAIN: (u32, bool, Option<&str>) = (0, true, Some("__sk_buff"));

#[test]
fn a_global_function_is_verified_for_any_arguments() {
    let text = "r1 = 7\ncall f\nexit\nf:\nr0 = r1\nexit";
    let verdict = verdict(program(text, &[MAIN, (3, true, None)]));
    assert!(verdict.is_accepted(), "{}", verdict.log);
    for line in [
        "Func#1 ('f1') is global and assumed valid.\n",
        "Validating f1() func#1...\n",
        "Func#1 ('f1') is safe for any args that match its prototype\n",
    ] {
        assert!(verdict.log.contains(line), "{line} in {}", verdict.log);
    }
    // The call is not entered: the callee's two instructions are processed separately.
    assert_eq!(verdict.processed(), 5);
}

#[test]
fn what_is_passed_is_held_against_the_types() {
    let text = "r1 = r10\ncall f\nexit\nf:\nr0 = 0\nexit";
    let wrong = verdict(program(text, &[MAIN, (3, true, None)]));
    assert_eq!(wrong.errno, Some(Errno::EINVAL));
    assert_eq!(
        wrong.message,
        "Caller passes invalid args into func#1 ('f1')"
    );
    assert!(wrong.log.contains("R1 is not a scalar\nCaller passes"));
    let memory = "*(u64 *)(r10 - 8) = 0\nr1 = r10\nr1 += -8\ncall f\nr0 = 0\nexit\n\
                  f:\nif r1 == 0 goto out\nr0 = *(u32 *)(r1 + 4)\nexit\nout:\nr0 = 0\nexit";
    let accepted = verdict(program(memory, &[MAIN, (6, true, Some("pair"))]));
    assert!(accepted.is_accepted(), "{}", accepted.log);
    let unchecked = memory.replace("if r1 == 0 goto out\n", "r2 = 0\nif r2 == 1 goto out\n");
    assert_eq!(
        message(program(&unchecked, &[MAIN, (6, true, Some("pair"))])),
        "R1 invalid mem access 'mem_or_null'"
    );
    let too_small = memory.replace("r1 += -8", "r1 += -4");
    assert_eq!(
        message(program(&too_small, &[MAIN, (6, true, Some("pair"))])),
        "Caller passes invalid args into func#1 ('f1')"
    );
}

#[test]
fn a_function_in_dead_code_is_not_verified() {
    let text = "r0 = 0\nif r0 == 0 goto out\ncall f\nout:\nexit\n\
                f:\nr0 = *(u64 *)(r1 + 0)\nexit";
    assert_eq!(message(program(text, &[MAIN, (4, true, None)])), "");
    let alive = text.replace("if r0 == 0 goto out\n", "r1 = 0\n");
    assert_eq!(
        message(program(&alive, &[MAIN, (4, true, None)])),
        "R1 invalid mem access 'scalar'"
    );
}

#[test]
fn a_static_function_is_walked_whatever_its_types_say() {
    let text = "r1 = r10\ncall f\nr0 = 0\nexit\nf:\nr0 = 0\nexit";
    let verdict = verdict(program(text, &[MAIN, (4, false, None)]));
    assert!(verdict.is_accepted() && verdict.log.contains("R1 is not a scalar\n"));
}

#[test]
fn a_callback_of_a_loop_is_walked_until_nothing_is_new() {
    let text = "*(u64 *)(r10 - 8) = 0\nr1 = 100\nr2 = f ll\nr3 = r10\nr3 += -8\nr4 = 0\n\
                call 181\nr0 = *(u64 *)(r10 - 8)\nexit\n\
                f:\nr1 = *(u64 *)(r2 + 0)\nr1 += 1\n*(u64 *)(r2 + 0) = r1\nr0 = 0\nexit";
    let accepted = verdict(program(text, &[MAIN, (10, false, None)]));
    assert!(accepted.is_accepted(), "{}", accepted.log);
    assert!(accepted.processed() < 60, "{}", accepted.processed());
    let wrong = text.replace("r0 = 0\nexit", "r0 = 2\nexit");
    assert_eq!(
        message(program(&wrong, &[MAIN, (10, false, None)])),
        "At callback return the register R0 has smin=2 smax=2 should have been in [0, 1]"
    );
}

#[test]
fn only_some_maps_are_walked_by_callbacks() {
    let text = "r1 = 0 ll\nr2 = f ll\nr3 = 0\nr4 = 0\ncall 164\nr0 = 0\nexit\n\
                f:\n*(u32 *)(r2 + 0) = 1\nr0 = 0\nexit";
    let with = |map_type| {
        let mut program = program(text, &[MAIN, (9, false, None)]);
        program.insns[0] = program.insns[0].with_src(PseudoKind::MapIdx.src());
        program.maps = [MapDef::new("m", map_type, 4, 8, 1)].into();
        message(program)
    };
    assert_eq!(with(MapType::Hash), "write to change key R2 not allowed");
    assert_eq!(
        with(MapType::LpmTrie),
        "callback function not allowed for map"
    );
}

#[test]
fn a_function_that_sleeps_is_called_where_sleeping_is_allowed() {
    let text = "r1 = 0\ncall f\nr0 = 0\nexit\n\
                f:\nr1 = r10\nr1 += -8\nr2 = 8\nr3 = 0\ncall 148\nr0 = 0\nexit";
    let mut program = program(text, &[(0, true, None), (4, true, None)]);
    program.prog_type = ProgType::RawTracepoint;
    assert_eq!(
        message(program.clone()),
        "a non-sleepable BPF program context"
    );
    program.prog_type = ProgType::Syscall;
    program.flags = ProgFlags::SLEEPABLE;
    assert_eq!(message(program), "");
}

/// The kernel limits the tail calls with a constant index, which it compiles to jumps.
#[test]
fn direct_tail_calls_are_limited() {
    let message = |count: usize, key: &str| {
        let mut text = "r6 = r1\n".to_owned();
        for _ in 0..count {
            text += &format!("{key}r1 = r6\nr2 = 0 ll\ncall 12\n");
        }
        text += "r0 = 0\nexit\n";
        let mut insns = assemble(&text).unwrap();
        for insn in insns.iter_mut().filter(|insn| insn.opcode == 0x18) {
            *insn = insn.with_src(PseudoKind::MapIdx.src());
        }
        let mut program = Program::new("f0", ProgType::SchedCls, insns);
        program.maps = [MapDef::new("jumps", MapType::ProgArray, 4, 4, 1)].into();
        program.license = "GPL".to_owned();
        verdict(program).message
    };
    assert_eq!(message(1024, "r3 = 0\n"), "");
    let refused = "adding tail call poke descriptor failed";
    assert_eq!(message(1025, "r3 = 0\n"), refused);
    assert_eq!(message(1025, "r3 = *(u32 *)(r6 + 0)\n"), "");
}

/// A function whose address is loaded but which is never called is removed as dead code.
/// Its address then becomes that of the next function, if there is one.
#[test]
fn an_address_of_a_function_that_no_path_runs() {
    let message = |last: &str| {
        let text = format!("call {last}\nr2 = 0 ll\nr0 = 0\nexit\nr0 = 1\nexit\nr0 = 2\nexit\n");
        let mut program = program(&text, &[MAIN, (5, false, None), (7, false, None)]);
        let called = if last == "+4" { 7 } else { 5 };
        program.insns[1] = program.insns[1]
            .with_src(PseudoKind::Func.src())
            .with_imm(called - 2);
        verdict(program).message
    };
    assert_eq!(message("+6"), "");
    let refused = "verifier bug: No program to jit at insn 7 (subprog < 0)";
    assert_eq!(message("+4"), refused);
}

#[test]
fn any_alignment_outweighs_strict_alignment() {
    let accepted = |flags| {
        let text = "r1 = *(u64 *)(r10 -8)\nr6 = 0 ll\nr0 = *(u32 *)(r6 + 1)\nexit\n";
        let mut insns = assemble(text).unwrap();
        insns[1] = insns[1].with_src(PseudoKind::MapIdxValue.src());
        let mut program = Program::new("f0", ProgType::SchedCls, insns);
        program.maps = [MapDef::new("values", MapType::Array, 4, 8, 1)].into();
        program.flags = flags;
        verdict(program).is_accepted()
    };
    assert!(!accepted(ProgFlags::STRICT_ALIGNMENT));
    assert!(accepted(
        ProgFlags::STRICT_ALIGNMENT | ProgFlags::ANY_ALIGNMENT
    ));
}
