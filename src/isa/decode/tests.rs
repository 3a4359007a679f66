use proptest::prelude::*;

use super::super::arbitrary;
use super::*;

/// Clears the bits that decoding ignores.
fn normal(mut slots: Vec<RawInsn>, insn: Insn) -> Vec<RawInsn> {
    slots.truncate(usize::try_from(insn.slots()).unwrap());
    if insn == Insn::Exit {
        slots[0].off = 0;
    }
    if slots[0].opcode == LD_IMM64 && slots[0].src() == PseudoKind::Func.src() {
        slots[1].imm = 0;
    }
    slots
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(20_000)))]

    #[test]
    fn encoding_what_was_decoded_gives_it_back(a in arbitrary::raw(), b in arbitrary::raw()) {
        let slots = vec![a, b];
        if let Ok(insn) = decode(&slots, Pc(0)) {
            prop_assert_eq!(insn.encode().to_vec(), normal(slots, insn));
        }
    }

    #[test]
    fn decoding_what_was_encoded_gives_it_back(insn in arbitrary::insn()) {
        let slots = insn.encode();
        prop_assert_eq!(slots.len(), usize::try_from(insn.slots()).unwrap());
        prop_assert_eq!(decode(&slots, Pc(3)), Ok(insn));
    }

    #[test]
    fn any_bytes_are_walked_to_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (slots, _) = RawInsn::slots(&bytes);
        let mut end = 0;
        for (pc, insn) in decode_all(&slots) {
            prop_assert_eq!(pc.index(), end);
            end += if slots[end].opcode == LD_IMM64 { 2 } else { 1 };
            if let Err(error) = insn {
                prop_assert_eq!(error.pc, pc);
                prop_assert!(!error.to_string().is_empty());
            }
        }
        prop_assert!(end >= slots.len());
    }
}

/// The opcodes of `kernel/bpf/core.c`'s public table, and 0x8d, the call
/// through a register.
#[test]
fn as_many_opcodes_as_the_kernel_has() {
    let known = |opcode: u8| {
        let second = RawInsn::default();
        [0, 1, 16, LOAD_ACQUIRE].iter().any(|imm| {
            !matches!(
                decode(&[RawInsn::new(opcode, 0, 0, 0, *imm), second], Pc(0)),
                Err(DecodeError {
                    field: Field::Opcode,
                    ..
                })
            )
        })
    };
    let count = (0..=u8::MAX).filter(|opcode| known(*opcode)).count();
    // 2·(12·2+1) + 3 arithmetic, 2·11·2 + ja, gotol, call, callx, exit, jcond,
    // 4 stx, 4 st, 4 + 3 ldx, 4 atomic, 6 packet, 1 imm64.
    assert_eq!(count, 53 + 44 + 6 + 8 + 7 + 4 + 6 + 1);
}

/// One error per line: opcode, dst, src, off, imm, and the message.
#[test]
fn an_error_names_the_field() {
    let cases = [
        (0x8c, 0, 0, 0, 0, "no instruction has this opcode"),
        (
            0xb7,
            11,
            0,
            0,
            0,
            "destination register r11 does not exist: r0 to r10 do",
        ),
        (
            0xbf,
            1,
            15,
            0,
            0,
            "source register r15 does not exist: r0 to r10 do",
        ),
        (0x0f, 1, 2, 0, 9, "immediate 9 is reserved and must be 0"),
        (0x07, 1, 0, 1, 9, "offset 1 is reserved and must be 0"),
        (0x37, 1, 0, 2, 9, "offset 2 is unknown to this opcode"),
        (0xbc, 1, 2, 32, 0, "offset 32 is unknown to this opcode"),
        (0xbf, 1, 2, 1, 2, "immediate 2 is unknown to this opcode"),
        (0xd7, 1, 0, 0, 8, "immediate 8 is unknown to this opcode"),
        (
            0xdb,
            1,
            2,
            0,
            0x11,
            "immediate 17 is unknown to this opcode",
        ),
        (0xcb, 1, 2, 0, 0, "immediate 0 is unknown to this opcode"),
        (
            0x85,
            0,
            3,
            0,
            1,
            "source register 3 is unknown to this opcode",
        ),
        (0x85, 0, 0, 1, 1, "offset 1 is reserved and must be 0"),
        (0x79, 0, 1, 0, 1, "immediate 1 is reserved and must be 0"),
        (
            0x18,
            0,
            7,
            0,
            1,
            "source register 7 is unknown to this opcode",
        ),
    ];
    for (opcode, dst, src, off, imm, message) in cases {
        let slots = [RawInsn::new(opcode, dst, src, off, imm), RawInsn::default()];
        let error = decode(&slots, Pc(9)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("instruction 9 (opcode {opcode:#04x}): {message}")
        );
    }
}

#[test]
fn the_second_slot_is_looked_at() {
    let message = |slots: &[RawInsn]| decode(slots, Pc(0)).unwrap_err().to_string();
    let first = RawInsn::new(0x18, 1, 0, 0, 1);
    assert!(message(&[first]).ends_with("before the second slot of a 64-bit immediate"));
    let used = RawInsn::new(0, 0, 0, 1, 5);
    assert!(message(&[first, used]).contains("second slot 0x0000010005000000"));
    let map = RawInsn::new(0x18, 1, 1, 0, 1);
    assert!(
        message(&[map, RawInsn::new(0, 0, 0, 0, 5)])
            .ends_with("immediate of the second slot 5 is reserved and must be 0")
    );
    assert!(decode(&[], Pc(0)).is_err());
}

#[test]
fn reserved_fields_are_cleared_for_the_log() {
    let repaired = |raw| decode(&[raw], Pc(0)).unwrap_err().repaired();
    let text = |raw| repaired(raw).unwrap().to_string();
    assert_eq!(text(RawInsn::new(0x0f, 1, 2, 0, 9)), "r1 += r2");
    assert_eq!(text(RawInsn::new(0x87, 3, 2, 7, 9)), "r3 = -r3");
    assert_eq!(text(RawInsn::new(0x05, 3, 2, 7, 9)), "goto pc+7");
    assert_eq!(repaired(RawInsn::new(0xbf, 1, 12, 0, 0)), None);
    assert_eq!(repaired(RawInsn::new(0xff, 1, 2, 0, 0)), None);
}

/// The errors that `resolve_pseudo_ldimm64` reports.
#[test]
fn some_errors_count_in_dead_code_too() {
    let structural = |raw| {
        decode(&[raw, RawInsn::default()], Pc(0))
            .unwrap_err()
            .is_structural()
    };
    assert!(structural(RawInsn::new(0xff, 0, 0, 0, 0)));
    assert!(structural(RawInsn::new(0x79, 0, 1, 0, 5)));
    assert!(structural(RawInsn::new(0x18, 0, 9, 0, 5)));
    assert!(!structural(RawInsn::new(0x18, 0, 0, 1, 5)));
    assert!(!structural(RawInsn::new(0x0f, 1, 2, 0, 9)));
    assert!(!structural(RawInsn::new(0xdb, 1, 2, 0, 9)));
}

/// Fields that the kernel never checks must not affect the result.
#[test]
fn two_fields_are_ignored_as_in_the_kernel() {
    assert_eq!(
        decode(&[RawInsn::new(0x95, 0, 0, 7, 0)], Pc(0)),
        Ok(Insn::Exit)
    );
    let slots = [RawInsn::new(0x18, 1, 4, 0, 3), RawInsn::new(0, 0, 0, 0, 9)];
    assert!(decode(&slots, Pc(0)).is_ok());
}
