//! The text of every kind of instruction, compared with the kernel's and LLVM's own.

use std::borrow::Cow;

use bpflab::isa::{Names, NoNames, RawInsn, assemble, assemble_with, decode};
use bpflab::util::{HelperId, Pc};

/// Knows the one helper of the cases.
struct Helper;

impl Names for Helper {
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        (id.0 == 1).then_some("bpf_map_lookup_elem".into())
    }
}

struct Case<'a> {
    bytes: &'a str,
    slots: Vec<RawInsn>,
    kernel: Option<&'a str>,
    llvm: Option<&'a str>,
}

fn cases() -> Vec<Case<'static>> {
    let lines = include_str!("isa_text.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split(" | ").collect();
            let &[bytes, kernel, llvm] = &columns[..] else {
                panic!("three columns: {line}")
            };
            let code: Vec<u8> = bytes
                .split(' ')
                .map(|byte| u8::from_str_radix(byte, 16).unwrap())
                .collect();
            let some = |text| (text != "-").then_some(text);
            let (slots, rest) = RawInsn::slots(&code);
            assert!(rest.is_empty(), "{line}");
            Case {
                bytes,
                slots,
                kernel: some(kernel),
                llvm: some(llvm),
            }
        })
        .collect()
}

#[test]
fn printed_as_the_kernel_prints() {
    let mut count = 0;
    for case in cases() {
        let insn = decode(&case.slots, Pc(0)).unwrap();
        assert_eq!(insn.encode().to_vec(), case.slots);
        if let Some(kernel) = case.kernel {
            assert_eq!(insn.text(&Helper).to_string(), kernel, "{}", case.bytes);
            count += 1;
        }
    }
    assert!(count > 180, "{count} cases have the kernel's text");
}

#[test]
fn the_kernels_text_is_read() {
    for case in cases() {
        let Some(kernel) = case.kernel else { continue };
        // As in the verifier's log, including the register state.
        let line = format!("  7: {kernel}    ; R1=scalar() R10=fp0");
        assert_eq!(
            assemble_with(&line, &Helper).unwrap().slots,
            case.slots,
            "{kernel}"
        );
    }
}

#[test]
fn llvms_text_is_read() {
    let mut count = 0;
    for case in cases() {
        let Some(llvm) = case.llvm else { continue };
        let line = format!("       7:\t{}\t{llvm}", case.bytes);
        assert_eq!(assemble(&line).unwrap(), case.slots, "{llvm}");
        // Only the bytes distinguish helper and subprogram in `call 5`.
        if case.slots[0].opcode != 0x85 {
            assert_eq!(
                assemble_with(llvm, &NoNames).unwrap().slots,
                case.slots,
                "{llvm}"
            );
            count += 1;
        }
    }
    assert!(count > 170, "{count} cases have LLVM's text");
}
