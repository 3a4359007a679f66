use std::collections::BTreeSet;

use super::*;
use crate::btf::{Btf, FieldKind, Kind};
use crate::object::Target;
use crate::shared::{Need, skip, skip_part};
use crate::spec::call::{IteratorStep, RegTypes};
use crate::spec::helpers::{self, Caller};
use crate::spec::{AttachType, ProgType};

fn row(name: &str) -> &'static Kfunc {
    by_name(name).unwrap().row()
}

fn kinds(name: &str) -> Vec<ParameterKind> {
    let parameters = row(name).parameters;
    parameters.iter().map(|parameter| parameter.kind).collect()
}

#[test]
fn names_lead_to_their_rows() {
    assert_eq!(kfuncs().len(), COUNT);
    for kfunc in kfuncs() {
        assert_eq!(row(kfunc.name).name, kfunc.name);
        let declaration = kfunc.declaration();
        assert!(kfunc.c_result.ends_with(['*', ' ']), "{declaration}");
        let called = kfunc.set.hooks != Hooks::FMODRET;
        assert!(!called || kfunc.parameters.len() <= 5, "{declaration}");
    }
    assert_eq!(by_name("bpf_map_lookup_elem"), None);
}

#[test]
fn parameters_are_what_their_types_and_names_say() {
    use ParameterKind as P;
    assert_eq!(kinds("bpf_rcu_read_lock"), []);
    assert_eq!(kinds("bpf_obj_new_impl"), [P::Constant, P::Ignored]);
    assert_eq!(kinds("bpf_obj_drop_impl"), [P::Allocated, P::Ignored]);
    let add = [P::RbRoot, P::RbNode, P::Callback, P::Ignored, P::Scalar];
    assert_eq!(kinds("bpf_rbtree_add_impl"), add);
    let task = [P::Iterator, P::Object, P::Scalar];
    assert_eq!(kinds("bpf_iter_task_new"), task);
    let schedule = [P::Object, P::TaskWork, P::Map, P::Callback, P::Program];
    assert_eq!(kinds("bpf_task_work_schedule_signal_impl"), schedule);
    let slice = row("bpf_dynptr_slice").parameters;
    assert_eq!((slice[2].kind, slice[2].nullable), (P::Memory, true));
    assert_eq!(slice[3].kind, P::ConstantSize);
    let clone = row("bpf_dynptr_clone").parameters;
    assert_eq!((clone[0].uninit, clone[1].uninit), (false, true));
    assert_eq!((clone[1].base, clone[1].stars), ("struct bpf_dynptr", 1));
    assert!(row("bpf_iter_task_new").parameters[1].nullable);
}

/// Rules of `check_kfunc_call` and `btf_check_iter_kfuncs`, applied to the table.
#[test]
fn every_row_is_sound() {
    use ParameterKind as P;
    for kfunc in kfuncs() {
        let name = kfunc.name;
        let parameters = kfunc.parameters;
        for pair in parameters.windows(2) {
            let sized = matches!(pair[1].kind, P::Size | P::ConstantSize);
            assert!(!sized || pair[0].kind == P::Memory, "{name}");
        }
        let flags = kfunc.flags;
        let pointer = kfunc.result.is_pointer();
        assert!(!flags.contains(KfuncFlags::ACQUIRE) || pointer, "{name}");
        if flags.contains(KfuncFlags::RELEASE) {
            let first = parameters[0].kind;
            assert!(matches!(first, P::Object | P::Allocated), "{name}");
        }
        let any_iterator = KfuncFlags::ITER_NEW | KfuncFlags::ITER_NEXT | KfuncFlags::ITER_DESTROY;
        match kfunc.call().iterator {
            Some((kind, step)) => {
                let step = match step {
                    IteratorStep::New => "new",
                    IteratorStep::Next => "next",
                    IteratorStep::Destroy => "destroy",
                };
                assert_eq!(format!("{}_{step}", kind.structure()), name);
                assert_eq!(parameters[0].kind, P::Iterator, "{name}");
            }
            None => assert!(!flags.intersects(any_iterator), "{name}"),
        }
        let next = flags.contains(KfuncFlags::ITER_NEXT);
        assert!(!next || flags.contains(KfuncFlags::RET_NULL), "{name}");
    }
}

#[test]
fn arguments_are_lists_of_preconditions() {
    use Precondition as P;
    let of = |name, argument: usize| row(name).arguments[argument].preconditions;
    let release = [
        P::NotNull,
        P::OnlyReference,
        P::Is(RegTypes::OBJECT),
        P::Trusted,
        P::NoOffset,
        P::Released,
        P::Object(Some("task_struct")),
    ];
    assert_eq!(of("bpf_task_release", 0), release);
    assert!(of("bpf_cpumask_populate", 0).contains(&P::TrustedOrRcu));
    let optional = of("bpf_iter_task_new", 1);
    assert!(optional.contains(&P::Trusted) && !optional.contains(&P::NotNull));
    assert_eq!(of("bpf_iter_task_new", 2), [P::Is(RegTypes::SCALAR)]);
    let size = [P::Is(RegTypes::SCALAR), P::Constant, P::Size { zero: true }];
    assert_eq!(of("bpf_dynptr_slice", 3), size);
    assert_eq!(of("bpf_obj_new_impl", 1), []);
    let node = P::Field(FieldKind::RbNode);
    assert_eq!(of("bpf_rbtree_add_impl", 1).last(), Some(&node));
    for kfunc in kfuncs() {
        for argument in kfunc.arguments {
            let is_type = |one: &&P| matches!(one, P::Is(_));
            let types = argument.preconditions.iter().filter(is_type).count();
            assert_eq!(types == 0, argument.takes_anything(), "{}", kfunc.name);
            assert!(types <= 1, "{}", kfunc.name);
        }
    }
}

#[test]
fn a_call_has_the_effects_of_its_row() {
    let of = |name| row(name).call();
    let acquire = of("bpf_task_acquire");
    assert_eq!(acquire.effects, Effects::ACQUIRES);
    assert!(acquire.result.nullable && acquire.result.kind == ResultKind::Kernel);
    let caller = |prog_type| Caller::of(prog_type);
    assert!(acquire.callers.include(&caller(ProgType::Tracepoint)));
    assert!(!acquire.callers.include(&caller(ProgType::Kprobe)));
    assert_eq!(of("bpf_dynptr_slice").result.kind, ResultKind::Memory);
    assert_eq!(of("bpf_iter_num_next").result.kind, ResultKind::Memory);
    assert_eq!(of("bpf_xdp_pull_data").effects, Effects::CHANGES_PACKET);
    // A function is run at once or later.
    let calls = Effects::CALLS_BACK | Effects::CALLS_BACK_LATER;
    for kfunc in kfuncs() {
        let call = kfunc.call();
        let is_callback = |argument: &ArgSpec| argument.demands(Precondition::Callback);
        let takes = call.arguments.iter().any(is_callback);
        assert_eq!(takes, call.effects.intersects(calls), "{}", kfunc.name);
        let released = call.arguments.iter().any(ArgSpec::releases);
        assert_eq!(
            released,
            call.effects.contains(Effects::RELEASES),
            "{}",
            kfunc.name
        );
    }
}

/// The structures that arguments must be, in the BTF of the judging kernel.
#[test]
fn structures_of_arguments_are_those_of_the_kernel() {
    let Some(path) = crate::shared::corpus() else {
        return;
    };
    let path = path.with_file_name("vmlinux-6.18.44.btf.xz");
    let Ok(Target::Kernel(btf)) = Target::file(&path) else {
        panic!("{} is not there", path.display());
    };
    let helpers = helpers::helpers().iter().flat_map(|helper| {
        let prototypes = helper.prototypes.iter();
        prototypes.map(|prototype| (helper.kernel_name, prototype.arguments))
    });
    let own = kfuncs().iter().filter(|kfunc| !kfunc.is_optional());
    let own = own.map(|kfunc| (kfunc.name, kfunc.arguments));
    let mut found = 0;
    for (name, arguments) in helpers.chain(own) {
        for one in arguments.iter().flat_map(|argument| argument.preconditions) {
            let structure = match one {
                Precondition::Object(Some(structure)) => structure,
                Precondition::Iterator(Some(kind)) => kind.structure(),
                _ => continue,
            };
            assert!(
                btf.find(structure, Kind::Struct).is_some(),
                "{name}: {structure}"
            );
            found += 1;
        }
    }
    assert!(found > 100, "{found}");
}

#[test]
fn sets_know_their_programs() {
    use AttachType as At;
    let may = |name, prog_type, attach: Option<At>| {
        row(name).allows(&Caller::of(prog_type).with_attach_type(attach))
    };
    assert!(may("bpf_iter_num_new", ProgType::LircMode2, None));
    assert!(may("bpf_obj_new_impl", ProgType::SchedCls, None));
    assert!(may("bpf_task_acquire", ProgType::Tracepoint, None));
    assert!(!may("bpf_task_acquire", ProgType::Kprobe, None));
    assert!(!may("bpf_task_acquire", ProgType::RawTracepoint, None));
    assert!(!may("bpf_cpumask_create", ProgType::Xdp, None));
    assert!(may("bpf_get_file_xattr", ProgType::Lsm, Some(At::LsmMac)));
    assert!(!may(
        "bpf_get_file_xattr",
        ProgType::Tracing,
        Some(At::TraceFentry)
    ));
    let session = Some(At::TraceKprobeSession);
    assert!(may("bpf_session_cookie", ProgType::Kprobe, session));
    assert!(!may("bpf_session_cookie", ProgType::Kprobe, None));
    assert!(!may("bpf_modify_return_test", ProgType::Tracing, None));
    let member = |name, structure, member| {
        let caller = Caller::of(ProgType::StructOps);
        row(name).allows(&caller.with_target(structure).with_member(member))
    };
    let tells = "bpf_qdisc_bstats_update";
    assert!(member(tells, "Qdisc_ops", "dequeue") && !member(tells, "Qdisc_ops", "enqueue"));
    assert!(!member("bpf_kfree_skb", "tcp_congestion_ops", "init"));
    assert!(!member("bpf_qdisc_init_prologue", "Qdisc_ops", "init"));
    assert!(member("bpf_dynptr_from_skb", "Qdisc_ops", "enqueue"));
    assert!(!member("bpf_dynptr_from_skb", "sched_ext_ops", "enqueue"));
    assert!(may("bpf_dynptr_from_skb", ProgType::SchedCls, None));
}

/// The running kernel's BTF, if it marks kfuncs.
fn running_kernel() -> Option<Btf> {
    let path = "/sys/kernel/btf/vmlinux";
    let bytes = std::fs::read(path);
    let bytes = bytes.inspect_err(|error| skip(Need::Kernel, format_args!("{path}: {error}")));
    Btf::parse(&bytes.ok()?).ok()
}

/// A declaration without attributes for compilers.
fn plain(declaration: &str) -> String {
    let mut text = declaration.to_owned();
    while let Some(start) = text.find("__attribute__((") {
        let Some(end) = text[start..].find(")) ").map(|end| start + end + 3) else {
            break;
        };
        text.replace_range(start..end, "");
    }
    text.replace("long unsigned int", "unsigned long")
}

#[test]
fn the_running_kernel_declares_the_same() {
    let Some(btf) = running_kernel() else { return };
    let marks = btf.types().filter(|ty| ty.kind() == Kind::DeclTag);
    let marked: BTreeSet<_> = marks
        .filter(|ty| ty.name() == "bpf_kfunc" && ty.component().is_none())
        .filter_map(|ty| ty.target())
        .map(|ty| (ty.name(), ty.target_id().unwrap()))
        .collect();
    if marked.is_empty() {
        skip(
            Need::Feature,
            "the running kernel's BTF marks no kernel functions",
        );
        return;
    }
    for (name, prototype) in &marked {
        let Some(id) = by_name(name) else {
            // Later kernels have more.
            assert!(!is_6_18(), "{name} has no row");
            skip_part(
                Need::Release,
                format_args!("{name}, which 6.18 does not have"),
            );
            continue;
        };
        let declared = btf.c_declaration(*prototype, name).unwrap();
        assert_eq!(plain(&id.row().declaration()), plain(&declared));
    }
    let names: BTreeSet<_> = marked.iter().map(|(name, _)| *name).collect();
    for kfunc in kfuncs().iter().filter(|kfunc| !kfunc.is_optional()) {
        assert!(names.contains(kfunc.name), "{} is not there", kfunc.name);
    }
}

fn is_6_18() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.is_ok_and(|release| release.starts_with("6.18."))
}
