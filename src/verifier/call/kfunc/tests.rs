//! Tests of programs that call kfuncs, up to the verdict.

use std::borrow::Cow;
use std::sync::Arc;

use crate::btf::{Btf, Builder, Encoding, Kind, Linkage, Param};
use crate::isa::{Names, assemble_with};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgFlags, ProgType};
use crate::util::TypeId;
use crate::verifier::{Options, verify};

/// The kfuncs of a small kernel.
fn kernel() -> Btf {
    let mut types = Builder::new();
    let word = types.int("unsigned long", 8, Encoding::Unsigned);
    let flags = types.ptr(word);
    let mask = types.structure("bpf_cpumask", 8, &[]);
    let mask = types.ptr(mask);
    let task = types.structure("task_struct", 8, &[]);
    let task = types.ptr(task);
    let void = types.ptr(TypeId(0));
    let dynptr = types.structure("bpf_dynptr", 16, &[]);
    let dynptr = types.ptr(dynptr);
    let nothing = TypeId(0);
    type Function<'a> = (&'a str, TypeId, &'a [(&'a str, TypeId)]);
    let functions: &[Function<'_>] = &[
        ("bpf_rcu_read_lock", nothing, &[]),
        ("bpf_rcu_read_unlock", nothing, &[]),
        ("bpf_preempt_disable", nothing, &[]),
        ("bpf_preempt_enable", nothing, &[]),
        ("bpf_local_irq_save", nothing, &[("flags__irq_flag", flags)]),
        (
            "bpf_local_irq_restore",
            nothing,
            &[("flags__irq_flag", flags)],
        ),
        ("bpf_cpumask_create", mask, &[]),
        ("bpf_cpumask_release", nothing, &[("cpumask", mask)]),
        ("bpf_task_release", nothing, &[("p", task)]),
        ("bpf_task_from_pid", task, &[("pid", word)]),
        (
            "bpf_copy_from_user_str",
            word,
            &[
                ("dst", void),
                ("dst__sz", word),
                ("unsafe_ptr__ign", void),
                ("flags", word),
            ],
        ),
        (
            "bpf_rdonly_cast",
            void,
            &[("obj__ign", void), ("btf_id__k", word)],
        ),
        (
            "bpf_dynptr_slice",
            void,
            &[
                ("p", dynptr),
                ("offset", word),
                ("buffer__opt", void),
                ("buffer__szk", word),
            ],
        ),
        ("schedule", nothing, &[]),
    ];
    for (name, result, params) in functions {
        let params: Vec<_> = params
            .iter()
            .map(|&(name, ty)| Param { name, ty })
            .collect();
        let prototype = types.prototype(*result, &params);
        types.function(name, prototype, Linkage::Static);
    }
    types.build().unwrap()
}

/// The kfuncs by name.
struct Kernel(Btf);

impl Names for Kernel {
    fn kfunc_named(&self, name: &str) -> Option<(TypeId, i16)> {
        Some((self.0.find(name, Kind::Func)?.id(), 0))
    }

    fn kfunc(&self, id: TypeId, _: i16) -> Option<Cow<'_, str>> {
        Some(self.0.get(id)?.name().into())
    }
}

/// The error line of a sleepable syscall program; empty if it is accepted. The text has an
/// instruction between `;`, and `save N` or `restore N` for calls with a stack slot. Map 0 is a
/// ring buffer.
fn message(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split(';').map(str::trim) {
        match line.split_once(' ') {
            Some((what @ ("save" | "restore"), slot)) => {
                lines.push("r1 = r10".to_owned());
                lines.push(format!("r1 += {slot}"));
                lines.push(format!("call bpf_local_irq_{what}"));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.extend(["r0 = 0".to_owned(), "exit".to_owned()]);
    let kernel = Kernel(kernel());
    let insns = assemble_with(&lines.join("\n"), &kernel).unwrap().slots;
    let mut program = Program::new("p", ProgType::Syscall, insns);
    program.kernel_btf = Some(kernel.0);
    program.maps = vec![MapDef::new("events", MapType::Ringbuf, 0, 0, 4096)].into();
    program.flags |= ProgFlags::SLEEPABLE;
    program.license = "GPL".to_owned();
    verify(&Arc::new(program), &Options::default())
        .verdict
        .message
}

#[test]
fn sections_are_entered_and_left() {
    for (text, error) in [
        ("call bpf_rcu_read_lock; call bpf_rcu_read_unlock", ""),
        (
            "call bpf_rcu_read_lock; call bpf_rcu_read_lock",
            "nested rcu read lock (kernel function bpf_rcu_read_lock)",
        ),
        (
            "call bpf_rcu_read_unlock",
            "unmatched rcu read unlock (kernel function bpf_rcu_read_unlock)",
        ),
        (
            "call bpf_preempt_disable; call bpf_preempt_disable; call bpf_preempt_enable",
            "BPF_EXIT instruction in main prog cannot be used inside bpf_preempt_disable-ed region",
        ),
        (
            "call bpf_preempt_enable",
            "unmatched attempt to enable preemption (kernel function bpf_preempt_enable)",
        ),
        (
            "call bpf_rcu_read_lock; r1 = r10; r1 += -8; r2 = 8; r3 = 0; r4 = 0; \
             call bpf_copy_from_user_str",
            "kernel func bpf_copy_from_user_str is sleepable within rcu_read_lock region",
        ),
    ] {
        assert_eq!(message(text), error, "{text}");
    }
}

#[test]
fn interrupt_states_are_restored_in_order() {
    for (text, error) in [
        (
            "save -8; save -16; restore -16; save -24; restore -24; restore -8",
            "",
        ),
        (
            "save -8; save -16; restore -8",
            "cannot restore irq state out of order, expected id=2 acquired at insn_idx=5",
        ),
        (
            "save -8; save -8",
            "expected uninitialized irq flag as arg#0",
        ),
        ("restore -8", "expected an initialized irq flag as arg#0"),
        (
            "save -8; restore 0",
            "expected an initialized irq flag as arg#0",
        ),
        ("save 0", "invalid write to stack R1 off=0 size=8"),
        (
            "save -8; r1 = *(u64 *)(r10 -8)",
            "invalid read from stack off -8+0 size 8",
        ),
        (
            "save -8",
            "BPF_EXIT instruction in main prog cannot be used inside bpf_local_irq_save-ed region",
        ),
    ] {
        assert_eq!(message(text), error, "{text}");
    }
}

#[test]
fn a_slice_of_a_record_goes_with_the_record() {
    // `bpf_ringbuf_reserve_dynptr` and `bpf_ringbuf_submit_dynptr`.
    let reserve = "r1 = map[idx:0]; r2 = 8; r3 = 0; r4 = r10; r4 += -16; \
                   call 198";
    let slice = "r1 = r10; r1 += -16; r2 = 0; r3 = 0; r4 = 8; call bpf_dynptr_slice; r6 = r0";
    let load = "if r6 == 0 goto pc+1; r7 = *(u8 *)(r6 +0)";
    let submit = "r1 = r10; r1 += -16; r2 = 0; call 199";
    let before = format!("{reserve}; {slice}; {load}; {submit}");
    assert_eq!(message(&before), "");
    let after = format!("{reserve}; {slice}; {submit}; {load}");
    assert_eq!(message(&after), "R6 invalid mem access 'scalar'");
}

#[test]
fn arguments_have_the_types_of_the_parameters() {
    let create = "call bpf_cpumask_create";
    let release = "r1 = r0; call bpf_cpumask_release";
    for (text, error) in [
        (format!("{create}; if r0 == 0 goto pc+2; {release}"), ""),
        (
            format!("{create}; {release}"),
            "Possibly NULL pointer passed to trusted arg0",
        ),
        (
            create.to_owned(),
            "BPF_EXIT instruction in main prog would lead to reference leak",
        ),
        (
            format!("{create}; if r0 == 0 goto pc+2; r1 = r0; call bpf_task_release"),
            "kernel function bpf_task_release args#0 expected pointer to STRUCT task_struct but \
             R1 has a pointer to STRUCT bpf_cpumask",
        ),
        ("call bpf_task_from_pid".to_owned(), "R1 is not a scalar"),
        (
            "r1 = r10; r1 += -8; r2 = 16; r3 = 0; r4 = 0; call bpf_copy_from_user_str".to_owned(),
            "arg#0 arg#1 memory, len pair leads to invalid memory access",
        ),
        (
            "r2 = *(u32 *)(r1 +0); call bpf_rdonly_cast".to_owned(),
            "R2 must be a known constant",
        ),
        (
            "r1 = 0; r2 = 0; call bpf_rdonly_cast; r1 = -8; r1 += r0; \
             r2 = r10; r2 += r1; *(u8 *)(r2 +0) = 0"
                .to_owned(),
            "math between fp pointer and register with unbounded min value is not allowed",
        ),
        (
            "call schedule".to_owned(),
            "calling kernel function schedule is not allowed",
        ),
    ] {
        assert_eq!(message(&text), error, "{text}");
    }
}
