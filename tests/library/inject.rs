//! Injected errors of helpers and kfuncs, through the `Vm`.

use crate::shared::machine;

use bpflab::Error;
use bpflab::harness::{EngineKind, Fallback, RanOn};
use bpflab::program::MapDef;
use bpflab::spec::{MapType, helpers};
use bpflab::util::Errno;
use bpflab::vm::{InjectError, Injection};

use machine::{ENGINES, event, hammer, returns, vm};

fn counts() -> MapDef {
    MapDef::new("counts", MapType::Array, 4, 8, 4)
}

/// Writes 1 to key 0 and returns the helper's error as a positive number.
const WRITES: &str = "
    *(u32 *)(r10 - 4) = 0
    *(u64 *)(r10 - 16) = 1
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    r1 = map[idx:0]
    call bpf_map_update_elem
    r0 = -r0
    exit";

#[test]
fn a_run_with_injections_is_a_checked_one() {
    for engine in ENGINES {
        let mut vm = vm(&[counts()], WRITES);
        vm.set_engine(engine);
        let program = vm.program_handle("p").unwrap();
        let chosen = vm.runner(program, &event()).unwrap().ran_on();
        let second = vm.inject(Injection::map_update().nth(2)).unwrap();
        let run = vm.runner(program, &event()).unwrap().ran_on();
        let injected = match engine {
            EngineKind::Checked => RanOn::chosen(engine),
            _ => RanOn::checked(Fallback::Injected),
        };
        assert_eq!(run, injected);
        let returned = [returns(&mut vm), returns(&mut vm), returns(&mut vm)];
        assert_eq!(returned, [0, u32::from(Errno::E2BIG.0), 0], "{engine}");
        assert_eq!((second.calls(), second.count()), (3, 1));
        vm.clear_injections();
        assert_eq!(vm.runner(program, &event()).unwrap().ran_on(), chosen);
        assert_eq!(returns(&mut vm), 0);
        assert_eq!(second.calls(), 3);
    }
}

#[test]
fn an_outcome_tells_what_was_injected() {
    let mut vm = vm(&[counts()], WRITES);
    let all = Injection::call("bpf_map_update_elem").on_map("counts");
    vm.inject(all.error(Errno::EBUSY)).unwrap();
    let outcome = vm.run("p", &event()).unwrap();
    let [injected] = &outcome.injected[..] else {
        panic!("{:?}", outcome.injected);
    };
    assert_eq!(injected.function, "bpf_map_update_elem");
    assert_eq!(injected.map.as_deref(), Some("counts"));
    assert_eq!((injected.call, injected.errno), (1, Some(Errno::EBUSY)));
    assert_eq!(
        vm.map("counts").unwrap().get::<u32, u64>(&0).unwrap(),
        Some(0)
    );
}

/// The count of calls is shared by all CPUs, so the same calls fail on any distribution.
#[test]
fn all_cpus_have_the_same_injections() {
    let reads = "call bpf_get_current_pid_tgid\nr0 = 0\nexit";
    let mut vm = vm(&[], reads);
    let some = Injection::call("get_current_pid_tgid").with_chance(0.25, 7);
    let some = vm.inject(some).unwrap();
    hammer(&mut vm, 1..4, 200);
    assert_eq!(some.calls(), 800);
    let alone = {
        let mut vm = machine::vm(&[], reads);
        let some = some.injection().clone();
        let some = vm.inject(some).unwrap();
        (0..800).for_each(|_| assert_eq!(returns(&mut vm), 0));
        some.count()
    };
    assert_eq!(some.count(), alone);
    assert!((150..250).contains(&alone), "{alone} of 800");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut vm = vm(&[counts()], WRITES);
    let unknown = vm
        .inject(Injection::call("bpf_map_updat_elem"))
        .unwrap_err();
    assert!(matches!(unknown, Error::Inject(InjectError::Unknown(_))));
    let void = vm.inject(Injection::call("bpf_spin_unlock")).unwrap_err();
    assert!(matches!(void, Error::Inject(InjectError::CannotFail(_))));
    let map = vm
        .inject(Injection::map_update().on_map("hist"))
        .unwrap_err();
    assert!(matches!(map, Error::NoMap { .. }));
}

/// Whatever its arguments, an injected failure looks like a failure in the kernel: an errno
/// or null, without other effects.
#[test]
fn every_helper_that_can_fail_can_be_made_to() {
    let mut fails = 0;
    for helper in helpers::helpers() {
        match Injection::call(helper.name).check() {
            Ok(()) => fails += 1,
            Err(error) => assert_eq!(error, InjectError::CannotFail(helper.name.into())),
        }
    }
    assert!(fails > 180, "{fails}");
}
