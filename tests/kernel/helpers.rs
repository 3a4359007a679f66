//! Compares the table of helpers with the running kernel: which program may call which helper,
//! for every helper and every program type that can be loaded.
//!
//! A program of `call N` and `exit` is usually rejected, but for different reasons: the kernel
//! first checks whether the program type has the helper at all.

use super::verdicts::none_differ;
use crate::shared::here;

use bpflab::btf::Kind;
use bpflab::isa::RawInsn;
use bpflab::kernel::{LoadOptions, LoadedMaps, NoVerdict, load, running_config};
use bpflab::object::Target;
use bpflab::program::Program;
use bpflab::spec::helpers::{Attributes, Caller, Helper, helpers};
use bpflab::spec::{AttachRule, AttachType, KernelConfig, ProgFlags, ProgType, Traits};
use bpflab::util::TypeId;

/// A program that calls helpers or kfuncs.
pub struct Candidate {
    pub caller: Caller<'static>,
    attach_btf_id: Option<TypeId>,
}

impl Candidate {
    fn of(prog_type: ProgType, attach_type: Option<AttachType>) -> Self {
        Self {
            caller: Caller::of(prog_type).with_attach_type(prog_type.attach_type(attach_type)),
            attach_btf_id: None,
        }
    }

    pub fn program(&self, body: &[RawInsn]) -> Program {
        let result = RawInsn::new(0xb7, 0, 0, 0, 1);
        let exit = RawInsn::new(0x95, 0, 0, 0, 0);
        let insns = body.iter().copied().chain([result, exit]).collect();
        let mut program = Program::new("helper", self.caller.prog_type, insns);
        program.expected_attach_type = self.caller.attach_type;
        program.attach_btf_id = self.attach_btf_id;
        program.license = "GPL".to_owned();
        if self.caller.prog_type == ProgType::Syscall {
            program.flags = ProgFlags::SLEEPABLE;
        }
        program
    }

    /// The error line for this program if it calls the helper; empty if it is accepted.
    fn ask(&self, body: &[RawInsn]) -> Result<String, NoVerdict> {
        let maps = LoadedMaps::create(&[], None)?;
        let loaded = load(&self.program(body), &maps, &LoadOptions::default())?;
        Ok(loaded.verdict.message)
    }
}

/// The programs that this kernel loads: every type with each attach type that may matter for
/// helpers.
pub fn candidates() -> Vec<Candidate> {
    let mut all = Vec::new();
    // Types that attach through BTF are tried with hooks, below.
    let hooked = |ty: &&ProgType| ty.info().traits.contains(Traits::ATTACH_BTF);
    for prog_type in ProgType::ALL.iter().filter(|ty| !hooked(ty)) {
        match prog_type.info().attach {
            AttachRule::OneOf(list) => {
                all.extend(list.iter().map(|at| Candidate::of(*prog_type, Some(*at))));
            }
            _ => all.push(Candidate::of(*prog_type, None)),
        }
    }
    let kprobe = [AttachType::TraceKprobeMulti, AttachType::TraceKprobeSession];
    all.extend(kprobe.map(|at| Candidate::of(ProgType::Kprobe, Some(at))));
    if let Ok(Target::Kernel(btf)) = Target::file("/sys/kernel/btf/vmlinux") {
        let find = |name, kind| btf.find(name, kind).map(|ty| ty.id());
        let hooks = [
            (
                ProgType::Tracing,
                AttachType::TraceFentry,
                "vfs_read",
                Kind::Func,
            ),
            (
                ProgType::Tracing,
                AttachType::TraceRawTp,
                "btf_trace_sched_switch",
                Kind::Typedef,
            ),
            (
                ProgType::Tracing,
                AttachType::TraceIter,
                "bpf_iter_task",
                Kind::Func,
            ),
            (
                ProgType::Lsm,
                AttachType::LsmMac,
                "bpf_lsm_file_open",
                Kind::Func,
            ),
        ];
        for (prog_type, attach_type, name, kind) in hooks {
            all.push(Candidate {
                attach_btf_id: find(name, kind),
                ..Candidate::of(prog_type, Some(attach_type))
            });
        }
    }
    // Iterators and fentry programs return 0; everything else may return 1.
    all.retain(|candidate| {
        candidate
            .ask(&[])
            .is_ok_and(|line| !line.contains("attach_btf_id"))
    });
    all
}

/// The difference between the table's row and the kernel, if there is one.
fn differs(helper: &Helper, candidate: &Candidate, config: &KernelConfig) -> Option<String> {
    let call = RawInsn::new(0x85, 0, 0, 0, helper.id.0.cast_signed());
    let line = match candidate.ask(&[call]) {
        Ok(line) => line,
        Err(none) => return Some(none.to_string()),
    };
    let prototype = helper.prototype(&candidate.caller);
    let refused = line.contains("program of this type cannot use helper")
        || line.contains("unknown func")
        || line.contains("invalid func");
    // Helpers of sleepable programs can't be compared here.
    let may_miss =
        prototype.is_some_and(|prototype| prototype.attributes.contains(Attributes::MIGHT_SLEEP));
    let built_in = prototype.filter(|_| config.has_helper(helper.id));
    let differs = match (built_in, refused) {
        (Some(_), true) => !may_miss,
        (None, false) => true,
        (Some(_), false) | (None, true) => false,
    };
    differs.then(|| {
        let (table, caller) = (prototype.is_some(), &candidate.caller);
        format!(
            "{} for {caller:?}: table {table}, kernel: {line}",
            helper.name
        )
    })
}

#[test]
fn every_helper_for_every_type() {
    if here::judge().is_none() {
        return;
    }
    let candidates = candidates();
    let config = running_config().expect("a kernel that gives verdicts");
    let mut different = Vec::new();
    for candidate in &candidates {
        different.extend(
            helpers()
                .iter()
                .filter_map(|helper| differs(helper, candidate, &config)),
        );
    }
    eprintln!(
        "{} helpers, {} kinds of program, {} differences",
        helpers().len(),
        candidates.len(),
        different.len()
    );
    assert!(candidates.len() > 40, "{}", candidates.len());
    none_differ(&different);
}
