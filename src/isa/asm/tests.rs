use proptest::prelude::*;

use super::*;
use crate::isa::insn::Insn;
use crate::isa::{Reg, arbitrary, decode_program, disassemble, encode};
use crate::util::{HelperId, TypeId};
use std::borrow::Cow;

/// Knows two functions.
struct Two;

impl Names for Two {
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        (id.0 == 1).then_some("bpf_map_lookup_elem".into())
    }

    fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Cow<'_, str>> {
        (id.0 == 1234 && fd_index == 2).then_some("bpf_task_acquire".into())
    }

    fn helper_named(&self, name: &str) -> Option<HelperId> {
        (name == "bpf_map_lookup_elem").then_some(HelperId(1))
    }

    fn kfunc_named(&self, name: &str) -> Option<(TypeId, i16)> {
        (name == "bpf_task_acquire").then_some((TypeId(1234), 2))
    }
}

fn insns(text: &str) -> Vec<Insn> {
    decode_program(&assemble_with(text, &Two).unwrap().slots).unwrap()
}

fn error(text: &str) -> String {
    assemble_with(text, &Two).unwrap_err().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(20_000)))]

    #[test]
    fn assembling_what_was_disassembled_gives_it_back(insn in arbitrary::insn()) {
        let slots = insn.encode().to_vec();
        let text = disassemble(&slots, &Two);
        prop_assert_eq!(assemble_with(&text, &Two).unwrap().slots, slots.clone(), "{}", text);
        let text = insn.text(&Two).without_opcode().to_string();
        prop_assert_eq!(assemble_with(&text, &Two).unwrap().slots, slots.clone(), "{}", text);
        let text = insn.to_string();
        prop_assert_eq!(assemble(&text).unwrap(), slots, "{}", text);
    }

    #[test]
    fn any_text_gives_a_program_or_a_place(text in "(r[0-9]{1,2}|w1|if|goto|[-+*=()\\[\\]<>:]| |[a-z_]{1,4}|0x?[0-9]{0,3}|\n|é){0,20}") {
        if let Err(error) = assemble(&text) {
            let line = text.lines().nth(usize::try_from(error.line).unwrap() - 1).unwrap();
            prop_assert!(usize::try_from(error.column).unwrap() <= line.chars().count() + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(2_000)))]

    /// Slots that are not instructions round-trip as well.
    #[test]
    fn any_slots_come_back(slots in proptest::collection::vec(arbitrary::raw(), 0..20)) {
        let text = disassemble(&slots, &Two);
        let back = assemble_with(&text, &Two).unwrap().slots;
        prop_assert_eq!(back.len(), slots.len());
        prop_assert_eq!(disassemble(&back, &Two), text);
    }

    #[test]
    fn programs_come_back(program in proptest::collection::vec(arbitrary::insn(), 0..20)) {
        let slots = encode(&program);
        let assembly = assemble_with(&disassemble(&slots, &Two), &Two).unwrap();
        prop_assert_eq!(assembly.lines.len(), slots.len());
        prop_assert_eq!(assembly.slots, slots);
    }
}

#[test]
fn labels_are_jumped_to_called_and_loaded() {
    let text = "
        main:   if r1 s> -5 goto loop   # forward
                r2 = callback ll
        loop:   r1 += 1
                may_goto loop
                goto main
                gotol end
                call callback
        end:    exit
        callback: r0 = 0
                exit";
    let assembly = assemble_with(text, &Two).unwrap();
    let jumps: Vec<_> = decode_program(&assembly.slots)
        .unwrap()
        .into_iter()
        .filter_map(|insn| match insn {
            Insn::Call(CallTarget::Subprogram { rel })
            | Insn::LoadPseudo {
                source: Pseudo::Func { rel },
                ..
            } => Some(rel),
            insn => insn.jump_off(),
        })
        .collect();
    assert_eq!(jumps, [2, 7, -2, -6, 1, 1]);
    assert_eq!(assembly.labels["callback"], Pc(9));
    assert_eq!(assembly.lines, [2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn functions_are_called_by_name_or_number() {
    let target = |text: &str| match insns(text)[..] {
        [Insn::Call(target)] => target,
        ref other => panic!("{other:?}"),
    };
    let helper = CallTarget::Helper(HelperId(1));
    let kfunc = CallTarget::Kfunc {
        id: TypeId(1234),
        fd_index: 2,
    };
    for text in [
        "call 1",
        "call 0x1",
        "call unknown#1",
        "call bpf_map_lookup_elem",
    ] {
        assert_eq!(target(text), helper);
    }
    assert_eq!(target("call bpf_map_lookup_elem#1"), helper);
    assert_eq!(target("call bpf_task_acquire"), kfunc);
    assert_eq!(target("call bpf_task_acquire#1234"), kfunc);
    assert_eq!(target("call kernel-function#1234 fd_idx=2"), kfunc);
    for text in [
        "call pc+5",
        "call +5",
        "0: 85 10 00 00 05 00 00 00 call 0x5 <f+0x30>",
    ] {
        assert_eq!(target(text), CallTarget::Subprogram { rel: 5 });
    }
    assert_eq!(
        target("85 20 01 00 05 00 00 00 call 0x5"),
        CallTarget::Kfunc {
            id: TypeId(5),
            fd_index: 1
        }
    );
}

#[test]
fn what_stands_in_front_decides_and_is_checked() {
    let value = |text| insns(text)[0];
    let wide = Insn::LoadImm64 {
        dst: Reg::R1,
        value: 5,
    };
    assert_eq!(value("4: (18) r1 = 0x5"), wide);
    assert_eq!(value("r1 = 5 ll"), wide);
    assert_ne!(value("(b7) r1 = 0x5"), wide);
    assert_eq!(
        value("18 11 00 00 05 00 00 00 00 00 00 00 00 00 00 00 r1 = 0x5 ll"),
        Insn::LoadPseudo {
            dst: Reg::R1,
            source: Pseudo::MapFd { fd: 5 }
        }
    );
    assert_eq!(
        error("(b4) r1 = 5"),
        "line 1, column 6: the text before the instruction says b4, the instruction is b7"
    );
    assert!(error("b7 01 00 00 06 00 00 00 r1 = 5").contains("the instruction is b7 01 00 00 05"));
}

/// The text that `llvm-objdump -dr` prints in addition to the instructions.
#[test]
fn headings_and_relocations_are_skipped() {
    let text = "
a.o:	file format elf64-bpf

Disassembly of section tp/x:

0000000000000000 <f>:
; int f(void *ctx) { return 0; }
       0:	18 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00	r1 = 0x0 ll
		0000000000000000:  R_BPF_64_64	v
       2:	c3 86 10 00 e1 00 00 00	<unknown>
0000000000000018 <LBB0_2>:
       3:	05 00 fe ff 00 00 00 00	goto -0x2 <f+0x10>
";
    let assembly = assemble_with(text, &NoNames).unwrap();
    assert_eq!(assembly.slots.len(), 4);
    assert_eq!(assembly.labels["LBB0_2"], Pc(3));
    assert_eq!(
        decode_program(&assembly.slots).unwrap()[2],
        Insn::Jump { off: -2 }
    );
}

/// One text per line, with the position and text of its error.
#[test]
fn errors_say_where_and_what() {
    let cases = [
        (
            "frob",
            "column 1: expected an instruction or a label, found `frob`",
        ),
        (
            "r1",
            "column 3: expected an operator such as `=` or `+=`, found the end of the line",
        ),
        (
            "r1 +=",
            "column 6: expected a register or a constant, found the end of the line",
        ),
        (
            "r1 += w2",
            "column 7: expected a 64-bit register (r0 to r10), found `w2`",
        ),
        (
            "r11 = 0",
            "column 1: expected an instruction or a label, found `r11`",
        ),
        (
            "r1 = -r2",
            "column 7: expected the same register, r1, found `r2`",
        ),
        (
            "r1 += 0x80000000",
            "column 7: a constant 2147483648 is not in -2147483648..=2147483647",
        ),
        (
            "r0 = *(u63 *)(r1 +0)",
            "column 8: expected a type: u8, u16, u32, u64, s8, s16 or s32, found `u63`",
        ),
        (
            "r0 = *(u64 *)(r1 +40000)",
            "column 18: an offset 40000 is not in -32768..=32767",
        ),
        (
            "w0 = *(u64 *)(r1 +0)",
            "column 6: expected a 64-bit register on the left, found `*(u64`",
        ),
        (
            "r2 = *(u8 *)skb[3]",
            "column 6: expected `r0 =` and at most 4 bytes for a packet load, found `*(u8`",
        ),
        (
            "w1 = (s32)w2",
            "column 6: expected a type smaller than the register, found `(s32)w2`",
        ),
        (
            "r1 = be24 r1",
            "column 6: expected a register, a constant, or `*(u64 *)(r1 +0)`, found `be24`",
        ),
        (
            "if r1 = 3 goto +1",
            "column 7: expected a comparison such as `==` or `s<`, found `=`",
        ),
        (
            "goto 3",
            "column 6: expected a target: `pc+3`, `+3` or a label, found `3`",
        ),
        (
            "goto +40000",
            "column 6: offset 40000 is not in -32768..=32767",
        ),
        ("goto away", "column 1: label `away` is not defined"),
        ("a: a: exit", "column 4: label `a` is defined twice"),
        (
            "call nobody",
            "column 1: `nobody` is neither a label nor a known function",
        ),
        (
            "call nobody#7",
            "column 6: `nobody#7` is neither a label nor a known function",
        ),
        (
            "exit now",
            "column 6: expected the end of the line, found `now`",
        ),
        (
            "lock *(u8 *)(r1 +0) += r2",
            "column 7: expected `(u32 *)` or `(u64 *)`, found `(u8`",
        ),
        (
            "r3 = atomic64_xchg((u64 *)(r1 +0), r2)",
            "column 36: expected the old value in r2, not in r3: `r2 = atomic64_xchg(…)`, found `r2)`",
        ),
        (
            "r0 = atomic64_xchg((u32 *)(r1 +0), r0)",
            "column 20: expected the type that the operation's name says, found `(u32`",
        ),
        (
            "r1 = addr_space_cast(r2, 1, 1)",
            "column 26: expected address spaces `0, 1` or `1, 0`, found `1,`",
        ),
        (".quad x", "column 7: expected a 64-bit number, found `x`"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            error(&format!("exit\n{text}")),
            format!("line 2, {expected}"),
            "{text}"
        );
    }
    let far = format!("goto end\n{}end: exit", "r0 = 0\n".repeat(32768));
    assert_eq!(
        error(&far),
        "line 1, column 1: label `end` is 32768 slots away, more than this jump reaches; use gotol"
    );
}
