//! `func_info` and `line_info`, checked against the functions.

use super::*;
use crate::btf::{Btf, Builder, Encoding, FuncInfo, LineInfo, Linkage};
use crate::util::TypeId;

/// Two functions that return `int`, the second global, and one that returns `void`.
struct Types {
    btf: Btf,
    main: TypeId,
    global: TypeId,
    void: TypeId,
    int: TypeId,
    text: u32,
}

fn types(tags: &[&str]) -> Types {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let returns_int = b.prototype(int, &[]);
    let returns_nothing = b.prototype(TypeId(0), &[]);
    let main = b.function("main", returns_int, Linkage::Global);
    let global = b.function("other", returns_int, Linkage::Global);
    let void = b.function("quiet", returns_nothing, Linkage::Static);
    for tag in tags {
        b.decl_tag(tag, main, None, false);
    }
    let text = b.string("a.c");
    Types {
        btf: b.build().unwrap(),
        main,
        global,
        void,
        int,
        text,
    }
}

/// A program that calls a second function, which begins at 2.
fn two(text: &str, types: &Types, records: &[(u32, TypeId)]) -> Program {
    let mut program = program(ProgType::SocketFilter, &format!("call pc+1\nexit\n{text}"));
    program.btf = Some(types.btf.clone());
    program.func_info = records
        .iter()
        .map(|&(insn_off, ty)| FuncInfo { insn_off, ty })
        .collect();
    program
}

#[test]
fn functions_are_held_against_the_records() {
    let types = types(&[]);
    let Types {
        main,
        global,
        void,
        int,
        ..
    } = types;
    let check = |records: &[(u32, TypeId)]| verdict(&two("r0 = 0\nexit", &types, records));
    assert_eq!(check(&[(0, main), (2, global)]), "ok");
    assert_eq!(
        check(&[(1, main), (2, global)]),
        "EINVAL nonzero insn_off 1 for the first func info record"
    );
    assert_eq!(
        check(&[(0, main), (0, global)]),
        "EINVAL same or smaller insn offset (0) than previous func info record (0)"
    );
    assert_eq!(
        check(&[(0, main), (2, int)]),
        format!("EINVAL invalid type id {} in func info", int.0)
    );
    assert_eq!(
        check(&[(0, main)]),
        "EINVAL number of funcs in func_info doesn't match number of subprogs"
    );
    assert_eq!(
        check(&[(0, main), (3, global)]),
        "EINVAL func_info BTF section doesn't match subprog layout in BPF program"
    );
    let taken = two("r0 = 0\nexit", &types, &[(0, main), (2, void)]);
    let subprograms = structure(&taken).unwrap().subprograms;
    let known: Vec<_> = subprograms
        .iter()
        .map(|sub| (sub.name.as_str(), sub.global, sub.type_id))
        .collect();
    let expected = [("main", true, Some(main)), ("quiet", false, Some(void))];
    assert_eq!(known, expected);
}

#[test]
fn who_may_leave_early_returns_a_number() {
    let types = types(&[]);
    let check = |text: &str, ty| verdict(&two(text, &types, &[(0, types.main), (2, ty)]));
    let (load, call) = ("r0 = *(u8 *)skb[0]\nexit", "call 12\nr0 = 0\nexit");
    assert_eq!(check(load, types.global), "ok");
    assert_eq!(check(call, types.global), "ok");
    assert_eq!(
        check(load, types.void),
        "EINVAL LD_ABS is only allowed in functions that return 'int'."
    );
    assert_eq!(
        check(call, types.void),
        "EINVAL tail_call is only allowed in functions that return 'int'."
    );
}

#[test]
fn lines_rise_and_begin_each_function() {
    let types = types(&[]);
    let lines = |offsets: &[u32], text: u32| {
        let records = [(0, types.main), (2, types.global)];
        let mut program = two("r0 = 0 ll\nexit", &types, &records);
        program.lines = offsets
            .iter()
            .map(|&insn_off| LineInfo {
                insn_off,
                file: types.text,
                text,
                line_col: 1 << 10,
            })
            .collect();
        verdict(&program)
    };
    assert_eq!(lines(&[0, 1, 2, 4], types.text), "ok");
    assert_eq!(
        lines(&[0, 2, 2], types.text),
        "EINVAL Invalid line_info[2].insn_off:2 (prev_offset:2 prog->len:5)"
    );
    assert_eq!(
        lines(&[0, 2, 5], types.text),
        "EINVAL Invalid line_info[2].insn_off:5 (prev_offset:2 prog->len:5)"
    );
    assert_eq!(
        lines(&[0, 2, 3], types.text),
        "EINVAL Invalid insn code at line_info[2].insn_off"
    );
    assert_eq!(
        lines(&[0, 2], 9999),
        "EINVAL Invalid line_info[0].line_off or .file_name_off"
    );
    assert_eq!(
        lines(&[0, 4], types.text),
        "EINVAL missing bpf_line_info for func#1"
    );
    assert_eq!(
        lines(&[0, 1], types.text),
        "EINVAL missing bpf_line_info for 1 funcs starting from func#1"
    );
    assert_eq!(
        lines(&[1], types.text),
        "EINVAL missing bpf_line_info for func#0"
    );
}

#[test]
fn exceptions_end_in_the_function_that_is_named() {
    let check = |tags: &[&str], main_only: bool| {
        let types = types(tags);
        let records = [(0, types.main), (2, types.global)];
        let mut program = two("r0 = 0\nexit", &types, &records);
        if main_only {
            program.func_info.truncate(1);
        }
        match structure(&program) {
            Ok(structure) => format!("{:?}", structure.exception_callback),
            Err(reject) => format!("{:?} {}", reject.errno(), reject.message()),
        }
    };
    let tag = "exception_callback:other";
    assert_eq!(check(&[], false), "None");
    assert_eq!(check(&[tag], false), "Some(1)");
    assert_eq!(
        check(&[tag, "exception_callback:quiet"], false),
        "EEXIST multiple exception callback tags for main subprog"
    );
    assert_eq!(
        check(&["exception_callback:nobody"], false),
        "ENOENT exception callback 'nobody' could not be found in BTF"
    );
    assert_eq!(
        check(&["exception_callback:quiet"], false),
        "EINVAL exception callback 'quiet' must have global linkage"
    );
    assert_eq!(
        check(&[tag], true),
        "EINVAL exception callback type id not found in func_info"
    );
    assert_eq!(
        check(&["exception_callback:main"], false),
        "EINVAL invalid exception callback insn_off in func_info: 0"
    );
}
