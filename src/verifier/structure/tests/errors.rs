//! Errors before exploration. Each was seen on Linux 6.18.

use super::*;
use crate::spec::limits::MAX_INSNS;
use crate::util::Pc;

#[test]
fn programs_in_text() {
    let cases = [
        ("r0 = 0\nexit", "ok"),
        ("r0 = 0", "EINVAL last insn is not an exit or jmp"),
        (
            "r0 = 0\ngoto +5\nexit",
            "EINVAL jump out of range from insn 1 to 7",
        ),
        (
            "r0 = 0\nif r1 == 0 goto -5\nexit",
            "EINVAL jump out of range from insn 1 to -3",
        ),
        (
            "gotol +70000\nexit",
            "EINVAL jump out of range from insn 0 to 70001",
        ),
        ("r0 = 0\nexit\nr0 = 1\nexit", "EINVAL unreachable insn 2"),
        (
            "if r1 == 0 goto +1\nr1 = 0 ll\nr0 = 0\nexit",
            "EINVAL jump into the middle of ldimm64 insn 1",
        ),
        (
            "call pc+9\nr0 = 0\nexit",
            "EINVAL call to invalid destination",
        ),
        (
            "call pc-9\nr0 = 0\nexit",
            "EINVAL call to invalid destination",
        ),
        (
            "call pc+1\nexit\nr0 = 0\ncall pc+1\nr0 = 0\nr0 = 1\nexit",
            "EINVAL last insn is not an exit or jmp",
        ),
        // A jump out of its function, into another.
        (
            "call pc+1\nexit\ngoto -2\nexit",
            "EINVAL jump out of range from insn 2 to 1",
        ),
        (
            "call pc+1\nexit\ncall 12\nr0 = 0\nexit",
            "EINVAL tail_call is not allowed in subprogs without BTF",
        ),
        (
            "call pc+1\nexit\nr0 = *(u8 *)skb[0]\nexit",
            "EINVAL LD_ABS is not allowed in subprogs without BTF",
        ),
        // An infinite loop is found during exploration.
        ("r0 = 0\ngoto -2", "ok"),
        // Recursion, too.
        ("call pc-1\nr0 = 0\nexit", "ok"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            verdict(&program(ProgType::SocketFilter, text)),
            expected,
            "{text}"
        );
    }
}

/// Slots that the assembler can't produce: opcode, dst, src, off, imm. They follow `r0 =
/// 0`.
#[test]
fn slots_that_are_no_instruction() {
    let cases = [
        ((0x99, 0, 1, 0, 0), "EINVAL unknown opcode 99"),
        ((0xff, 0, 0, 0, 0), "EINVAL unknown opcode ff"),
        ((0x38, 0, 0, 0, 0), "EINVAL unknown opcode 38"),
        ((0x8d, 1, 0, 0, 0), "EINVAL unknown opcode 8d"),
        ((0x79, 0, 1, 0, 5), "EINVAL BPF_LDX uses reserved fields"),
        ((0xa1, 0, 1, 0, 0), "EINVAL BPF_LDX uses reserved fields"),
        // These are errors only on an explored path.
        ((0x07, 11, 0, 0, 1), "ok"),
        ((0x7a, 10, 1, -8, 1), "ok"),
        ((0xdb, 10, 0, -8, 2), "ok"),
    ];
    for ((opcode, dst, src, off, imm), expected) in cases {
        let mut program = program(ProgType::SocketFilter, "r0 = 0\nr0 = 0\nexit");
        program.insns[1] = RawInsn::new(opcode, dst, src, off, imm);
        assert_eq!(verdict(&program), expected, "{:?}", program.insns[1]);
    }
}

#[test]
fn immediates_of_two_slots() {
    let cases = [
        ((1, 0, 0), (0, 0), "ok"),
        ((1, 0, 0), (1, 0), "EINVAL invalid bpf_ld_imm64 insn"),
        ((1, 7, 0), (0, 0), "EINVAL unrecognized bpf_ld_imm64 insn"),
        ((1, 1, 3), (0, 3), "EINVAL unrecognized bpf_ld_imm64 insn"),
        (
            (1, 1, 0),
            (0, 0),
            "EINVAL fd 0 is not pointing to valid bpf_map",
        ),
        (
            (1, 1, 99),
            (0, 0),
            "EBADF fd 99 is not pointing to valid bpf_map",
        ),
        (
            (1, 1, -1),
            (0, 0),
            "EBADF fd -1 is not pointing to valid bpf_map",
        ),
        // The invalid register is reported during exploration.
        ((11, 0, 0), (0, 0), "ok"),
    ];
    for ((dst, src, imm), (regs, second), expected) in cases {
        let mut program = program(ProgType::SocketFilter, "r1 = 0 ll\nr0 = 0\nexit");
        program.insns[0] = RawInsn::new(0x18, dst, src, 0, imm);
        program.insns[1] = RawInsn::new(0, regs, 0, 0, second);
        assert_eq!(verdict(&program), expected, "{:?}", program.insns);
    }
    let mut cut = program(ProgType::SocketFilter, "r0 = 0\nexit\nexit");
    cut.insns[2] = RawInsn::new(0x18, 1, 0, 0, 0);
    assert_eq!(verdict(&cut), "EINVAL last insn is not an exit or jmp");
}

#[test]
fn sizes_have_limits() {
    let mut long = program(ProgType::Xdp, "r0 = 0\nexit");
    long.insns.clear();
    assert_eq!(verdict(&long), "E2BIG ");
    long.insns = vec![slots("r0 = 0")[0]; MAX_INSNS - 1];
    long.insns.extend(slots("exit"));
    assert_eq!(verdict(&long), "ok");
    long.insns.extend(slots("exit"));
    assert_eq!(verdict(&long), "E2BIG ");

    // `functions` calls, then that many functions.
    let calls = |functions: usize| {
        let offset = |at: usize| functions + 1 + at;
        let calls = (0..functions).map(|at| format!("call pc+{}\n", offset(at)));
        let text: String = calls.chain(["r0 = 0\nexit\n".to_owned()]).collect();
        text + &"r0 = 0\nexit\n".repeat(functions)
    };
    assert_eq!(verdict(&program(ProgType::Xdp, &calls(255))), "ok");
    let many = program(ProgType::Xdp, &calls(256));
    assert_eq!(verdict(&many), "E2BIG too many subprograms");
}

#[test]
fn the_type_decides_where_it_attaches() {
    let mut program = program(ProgType::CgroupSkb, "r0 = 0\nexit");
    assert_eq!(verdict(&program), "ok");
    program.expected_attach_type = Some(crate::spec::AttachType::TraceRawTp);
    assert_eq!(verdict(&program), "EINVAL ");
    program.prog_type = ProgType::Syscall;
    program.expected_attach_type = None;
    assert_eq!(
        verdict(&program),
        "EINVAL Syscall programs can only be sleepable"
    );
}

/// The kernel rejects unknown kfuncs before anything else.
#[test]
fn kernel_functions_are_looked_at_first() {
    let mut program = program(ProgType::Xdp, "r0 = 0\nr0 = 0\nexit\nexit");
    program.insns[1] = RawInsn::new(0x85, 0, 2, 0, 77);
    let error = "EINVAL cannot call kernel function from non-GPL compatible program";
    assert_eq!(verdict(&program), error);
    program.license = "Dual MIT/GPL".to_owned();
    assert_eq!(verdict(&program), "EINVAL unreachable insn 3");
    program.kernel_btf = Some(crate::btf::Builder::new().build().unwrap());
    assert_eq!(
        verdict(&program),
        "EINVAL kernel btf_id 77 is not a function"
    );
    // An unresolved weak kfunc.
    program.insns[1] = RawInsn::new(0x85, 0, 2, 0, 0);
    assert_eq!(verdict(&program), "EINVAL unreachable insn 3");
}

#[test]
fn an_error_has_its_place() {
    let text = "r0 = 0\nexit\nr0 = 1\nexit";
    let error = structure(&program(ProgType::Xdp, text)).unwrap_err();
    assert_eq!(error.pc(), Some(Pc(2)));
    let error = structure(&program(ProgType::Xdp, "r0 = 0\ncall pc+9\nexit")).unwrap_err();
    assert_eq!(error.pc(), Some(Pc(1)));
}
