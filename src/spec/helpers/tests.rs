use super::*;
use crate::btf::FieldKind;
use crate::spec::call::{Access, Extent, Precondition, RegTypes, ResultKind};
use crate::spec::{AttachType, ProgType};

/// Helpers that the kernel with the counted helpers was built without.
const OPTIONAL: &[HelperId] = &[
    id::probe_write_user,
    id::override_return,
    id::rc_repeat,
    id::rc_keydown,
    id::rc_pointer_rel,
];

fn allowed(caller: &Caller<'_>) -> usize {
    helpers()
        .iter()
        .filter(|helper| !OPTIONAL.contains(&helper.id))
        .filter(|helper| helper.prototype(caller).is_some())
        .count()
}

#[test]
fn numbers_are_dense_and_names_lead_back() {
    for (at, row) in (1..).zip(helpers()) {
        let name = row.name;
        assert_eq!(row.id, HelperId(at), "{name}");
        assert_eq!(helper(row.id).map(|found| found.name), Some(name));
        assert_eq!(
            helper_by_name(name).map(|found| found.id),
            Some(row.id),
            "names are unique"
        );
        assert!(!row.prototypes.is_empty(), "{name}");
    }
    assert!(helper(HelperId(0)).is_none());
    assert!(helper(HelperId(212)).is_none());
    assert_eq!(
        helper_by_name("bpf_loop").map(|helper| helper.id),
        Some(id::r#loop)
    );
    assert!(helper_by_name("bpf_bpf_loop").is_none());
}

#[test]
fn the_declaration_is_that_of_the_uapi_header() {
    let lookup = helper(id::map_lookup_elem).unwrap();
    assert_eq!(
        lookup.declaration(),
        "void *bpf_map_lookup_elem(struct bpf_map *map, const void *key)"
    );
    for helper in helpers() {
        assert!(
            helper.returns.ends_with(['*', ' ']),
            "{}",
            helper.declaration()
        );
        assert!(!helper.parameters.is_empty(), "{}", helper.declaration());
    }
}

/// `check_func_proto` of the kernel's verifier, applied to the table.
#[test]
fn every_prototype_is_sound() {
    for helper in helpers() {
        for prototype in helper.prototypes {
            let name = helper.name;
            assert!(prototype.args.len() <= 5, "{name}");
            let arguments = prototype.arguments;
            let filled = |arg: &&ArgSpec| arg.region().is_some_and(|region| region.uninit);
            assert!(arguments.iter().filter(filled).count() <= 1, "{name}");
            assert!(!arguments.first().is_some_and(ArgSpec::is_size), "{name}");
            for (at, arg) in prototype.args.iter().enumerate() {
                let fixed = arg.flags.contains(TypeFlags::MEM_FIXED_SIZE);
                let sized = arguments.get(at + 1).is_some_and(ArgSpec::is_size);
                let memory = arg.kind == ArgKind::PtrToMem;
                assert_eq!(
                    sized,
                    memory && !fixed,
                    "{name}: a size follows memory, and only memory"
                );
                assert_eq!(matches!(arg.detail, Detail::Size(_)), fixed, "{name}");
                let access = TypeFlags::MEM_RDONLY | TypeFlags::MEM_WRITE;
                assert!(
                    !memory || arg.flags.intersects(access),
                    "{name}: memory is read or written"
                );
            }
        }
    }
}

/// Numbers of helpers that Linux 6.18.44 on x86-64, built without `override_return`,
/// `probe_write_user` and infrared, offers to root.
#[test]
fn each_type_may_call_as_many_as_in_the_kernel() {
    use AttachType as At;
    use ProgType as P;
    let expected = [
        (P::SocketFilter, None, 88),
        (P::Kprobe, None, 81),
        (P::SchedCls, None, 139),
        (P::SchedAct, None, 139),
        (P::Tracepoint, None, 81),
        (P::Xdp, None, 104),
        (P::PerfEvent, None, 83),
        (P::CgroupSkb, None, 103),
        (P::CgroupSock, None, 82),
        (P::LwtIn, None, 90),
        (P::LwtOut, None, 89),
        (P::LwtXmit, None, 104),
        (P::SockOps, Some(At::CgroupSockOps), 97),
        (P::SkSkb, None, 97),
        (P::CgroupDevice, Some(At::CgroupDevice), 78),
        (P::SkMsg, None, 93),
        (P::RawTracepoint, None, 81),
        (P::CgroupSockAddr, Some(At::CgroupInet4Connect), 97),
        (P::CgroupSockAddr, Some(At::CgroupInet4Bind), 96),
        (P::CgroupSockAddr, Some(At::CgroupUdp4Recvmsg), 94),
        (P::LwtSeg6local, None, 92),
        (P::SkReuseport, None, 79),
        (P::FlowDissector, None, 83),
        (P::CgroupSysctl, Some(At::CgroupSysctl), 83),
        (P::RawTracepointWritable, None, 81),
        (P::CgroupSockopt, Some(At::CgroupSetsockopt), 84),
        (P::CgroupSockopt, Some(At::CgroupGetsockopt), 82),
        (P::Tracing, Some(At::TraceRawTp), 96),
        (P::Tracing, Some(At::TraceFentry), 99),
        (P::Tracing, Some(At::TraceIter), 98),
        (P::StructOps, None, 74),
        (P::Lsm, Some(At::LsmMac), 104),
        (P::Lsm, Some(At::LsmCgroup), 103),
        (P::SkLookup, Some(At::SkLookup), 85),
        (P::Syscall, None, 99),
        (P::Netfilter, Some(At::Netfilter), 74),
    ];
    for (prog_type, attach, count) in expected {
        let caller = Caller {
            attach_type: prog_type.attach_type(attach),
            ..Caller::of(prog_type)
        };
        assert_eq!(allowed(&caller), count, "{prog_type} {attach:?}");
    }
}

#[test]
fn the_prototype_depends_on_the_caller() {
    let cookie = helper(id::get_socket_cookie).unwrap();
    let first = |prog_type| {
        cookie
            .prototype(&Caller::of(prog_type))
            .map(|found| found.args[0].kind)
    };
    assert_eq!(first(ProgType::SchedCls), Some(ArgKind::PtrToCtx));
    assert_eq!(
        first(ProgType::Syscall),
        Some(ArgKind::PtrToBtfIdSockCommon)
    );
    assert_eq!(first(ProgType::Tracepoint), None);
}

#[test]
fn spot_checks() {
    let strtol = &helper(id::strtol).unwrap().prototypes[0];
    assert_eq!(strtol.args[3].detail, Detail::Size(8));
    assert_eq!(
        strtol.args[3].bits(),
        4 | 1 << 15 | 1 << 18 | 1 << 25 | 1 << 26
    );
    let reserve = helper(id::ringbuf_reserve).unwrap();
    assert!(reserve.effects.contains(Effects::ACQUIRES));
    assert_eq!(
        reserve.prototypes[0].ret.bits(),
        1286,
        "RET_PTR_TO_RINGBUF_MEM_OR_NULL"
    );
    assert!(helper(id::ringbuf_submit).unwrap().prototypes[0].releases());
    let task = helper(id::get_current_task_btf).unwrap().prototypes[0].ret;
    assert_eq!(
        (task.bits(), task.detail),
        (1_048_584, Detail::Struct("task_struct"))
    );
}

fn preconditions(helper: &Helper, argument: usize) -> &'static [Precondition] {
    helper.prototypes[0].arguments[argument].preconditions
}

#[test]
fn arguments_are_lists_of_preconditions() {
    use Precondition as P;
    let update = helper(id::map_update_elem).unwrap();
    let start = [P::Initialised, P::PacketAccess(true)];
    let map = [
        P::Is(RegTypes::MAP_PTR),
        P::OffsetOfType,
        P::OnlyReference,
        P::Map,
    ];
    assert_eq!(preconditions(update, 0), [&start[..], &map].concat());
    assert_eq!(preconditions(update, 3), [P::Initialised]);
    let value = update.prototypes[0].arguments[2];
    let region = value.region().unwrap();
    assert_eq!(value.preconditions[2], P::MapDecides);
    assert_eq!(
        (region.extent, region.access),
        (Extent::Value, Access::Read)
    );
    let socket = Precondition::Object(Some("sock_common"));
    assert!(SOCKET_VALUE.demands(socket) && SOCKET_VALUE.region().is_none());
    assert!(FILTER_VALUE.region().is_some_and(|region| !region.uninit));

    let submit = &helper(id::ringbuf_submit).unwrap().prototypes[0].arguments[0];
    let at = |one| submit.preconditions.iter().position(|other| *other == one);
    assert!(at(P::NoOffset) < at(P::Released) && submit.releases());
    let lock = helper(id::spin_lock).unwrap();
    let field = P::Field(FieldKind::SpinLock);
    assert_eq!(preconditions(lock, 0).last(), Some(&field));
}

/// Each argument but those that take anything has types, before all other preconditions that
/// look at the type.
#[test]
fn every_argument_has_registers_that_pass() {
    for helper in helpers() {
        for prototype in helper.prototypes {
            assert_eq!(prototype.args.len(), prototype.arguments.len());
            for (arg, spec) in prototype.args.iter().zip(prototype.arguments) {
                let name = helper.name;
                assert_eq!(spec.nullable, arg.nullable(), "{name}");
                let types = spec.preconditions.iter().find_map(|one| match one {
                    Precondition::Is(types) => Some(types.types),
                    _ => None,
                });
                assert_eq!(types.is_none(), spec.takes_anything(), "{name}");
                assert_eq!(types.is_none(), arg.kind == ArgKind::Anything, "{name}");
                assert_ne!(types, Some(&[][..]), "{name}");
                let released = arg.flags.contains(TypeFlags::OBJ_RELEASE);
                assert_eq!(spec.releases(), released, "{name}");
            }
        }
    }
}

#[test]
fn a_call_has_the_facts_of_its_prototype() {
    let of = |id, prog_type| {
        let helper = helper(id).unwrap();
        let caller = Caller::of(prog_type);
        let call = helper.call(helper.prototype(&caller).unwrap());
        assert!(call.callers.include(&caller));
        call
    };
    let reserve = of(id::ringbuf_reserve, ProgType::Xdp);
    assert_eq!(reserve.name, "bpf_ringbuf_reserve");
    assert_eq!(reserve.result.kind, ResultKind::Memory);
    assert!(reserve.result.nullable && reserve.effects == Effects::ACQUIRES);
    assert_eq!(reserve.map_argument(), Some(0));
    assert_eq!(reserve.replay, Ok(CallReplay::Override));
    let cpu = of(id::get_smp_processor_id, ProgType::Xdp);
    assert_eq!(cpu.effects, Effects::FASTCALL);
    assert_eq!(cpu.replay, Ok(CallReplay::Skip));
    assert_eq!(of(id::r#loop, ProgType::Xdp).name, "bpf_loop");
    let discard = of(id::ringbuf_discard, ProgType::Xdp);
    assert_eq!(discard.effects, Effects::RELEASES);
    assert!(!discard.callers.include(&Caller::of(ProgType::LircMode2)));
}

#[test]
fn what_takes_any_arguments_is_known() {
    for helper in helpers() {
        let has_dots = helper.parameters.ends_with("...");
        assert_eq!(helper.is_variadic(), has_dots, "{}", helper.name);
    }
}
