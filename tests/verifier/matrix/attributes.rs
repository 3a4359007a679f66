//! Each program type with each attribute of a load.

use bpflab::isa::assemble;
use bpflab::program::{AttachProgram, Program};
use bpflab::spec::{AttachRule, AttachType, ProgFlags, ProgType};
use bpflab::util::TypeId;

use super::Case;

/// The smallest program of a type, with its first valid attach type.
fn smallest(prog_type: ProgType) -> Program {
    let mut program = Program::new("smallest", prog_type, assemble("r0 = 1\nexit").unwrap());
    "GPL".clone_into(&mut program.license);
    if let AttachRule::OneOf([first, ..]) = prog_type.info().attach {
        program.expected_attach_type = Some(*first);
    }
    if prog_type == ProgType::Syscall {
        program.flags = ProgFlags::SLEEPABLE;
    }
    program
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for prog_type in ProgType::ALL {
        let mut add = |what: String, change: &dyn Fn(&mut Program)| {
            let mut program = smallest(*prog_type);
            change(&mut program);
            cases.push(Case {
                name: format!("{prog_type}: {what}"),
                program,
            });
        };
        add("nothing else".into(), &|_| {});
        for id in [1, 2, 0x000f_ffff, 0x0010_0000, u32::MAX] {
            add(format!("attach_btf_id {id}"), &|program| {
                program.attach_btf_id = Some(TypeId(id));
            });
        }
        add("attach_prog_fd".into(), &|program| {
            program.attach_prog = AttachProgram::Unknown
        });
        add("attach_prog_fd and attach_btf_id 1".into(), &|program| {
            program.attach_prog = AttachProgram::Unknown;
            program.attach_btf_id = Some(TypeId(1));
        });
        for bit in 0..32 {
            add(format!("prog_flags bit {bit}"), &|program| {
                program.flags |= ProgFlags::from_bits_retain(1 << bit);
            });
        }
        // `None` is number 0.
        for number in 0..u32::from(u8::MAX) {
            let Some(attach_type) = AttachType::from_number(number) else {
                break;
            };
            add(format!("expected_attach_type {attach_type}"), &|program| {
                program.expected_attach_type = (number != 0).then_some(attach_type);
            });
        }
        add("no instructions".into(), &|program| program.insns.clear());
        add("no instructions, unknown flag".into(), &|program| {
            program.insns.clear();
            program.flags = ProgFlags::from_bits_retain(1 << 30);
        });
        add("no instructions, attach_btf_id 1".into(), &|program| {
            program.insns.clear();
            program.attach_btf_id = Some(TypeId(1));
        });
    }
    cases
}
