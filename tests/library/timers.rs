//! Timers in map values, started and cancelled by programs and fired when a test advances
//! time, on every engine.

use std::time::Duration;

use bpflab::harness::{EngineKind, RanOn};
use bpflab::vm::deferred::{DeferredKind, TimerClock};
use bpflab::vm::events::Event;
use bpflab::{Error, Object, Vm};
use zerocopy::{FromBytes, Immutable, IntoBytes};

#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::shared::{self, here};

#[derive(Debug, Clone, Copy, Default, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Session {
    fired: u64,
    last: u64,
    period: u64,
    rounds: u64,
    said: i64,
    timer: [u64; 2],
}

#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Request {
    what: u32,
    key: u32,
    ns: u64,
    flags: u64,
    in_array: u64,
}

const INIT: u32 = 0;
const SET_COUNTING: u32 = 1;
const SET_CANCELLING: u32 = 2;
const SET_DELETING: u32 = 3;
const START: u32 = 4;
const CANCEL: u32 = 5;

const MONOTONIC: u64 = 1;
const ABS: u64 = 1;
const MS: u64 = 1_000_000;

const EPERM: i32 = -1;
const EBUSY: i32 = -16;
const EINVAL: i32 = -22;
const EDEADLK: i64 = -35;

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// A machine with the test program, and methods that make single calls.
struct Lab(Vm);

impl Lab {
    fn on(engine: EngineKind) -> Self {
        let object = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects/timers.bpf.o");
        let mut vm = Vm::new(Object::open(object).unwrap()).unwrap();
        vm.set_engine(engine);
        Self(vm)
    }

    fn ask(&mut self, request: Request) -> i32 {
        let requests = self.0.map("requests").unwrap();
        requests.set(&0u32, &request).unwrap();
        let outcome = self.0.run("timer", &Event::packet([0; 64])).unwrap();
        outcome.returned("timer").unwrap().cast_signed()
    }

    fn call(&mut self, what: u32, key: u32) -> i32 {
        let flags = if what == INIT { MONOTONIC } else { 0 };
        self.ask(Request {
            what,
            key,
            flags,
            ..Request::default()
        })
    }

    fn start(&mut self, key: u32, ns: u64, flags: u64) -> i32 {
        self.ask(Request {
            what: START,
            key,
            ns,
            flags,
            in_array: 0,
        })
    }

    /// Stores a session with a timer whose callback is set.
    fn session(&mut self, key: u32, callback: u32, session: Session) {
        self.0.map("sessions").unwrap().set(&key, &session).unwrap();
        assert_eq!(self.call(INIT, key), 0);
        assert_eq!(self.call(callback, key), 0);
    }

    fn get(&self, key: u32) -> Option<Session> {
        self.0.map("sessions").unwrap().get(&key).unwrap()
    }

    fn advance(&mut self, ns: u64) -> Vec<String> {
        let outcome = self.0.advance(Duration::from_nanos(ns)).unwrap();
        outcome.runs.into_iter().map(|run| run.program).collect()
    }
}

#[test]
fn a_timer_fires_when_its_time_has_come_and_may_start_itself_anew() {
    for engine in ENGINES {
        let mut lab = Lab::on(engine);
        assert_eq!(lab.0.engine_of("timer").unwrap(), RanOn::chosen(engine));
        let counted = Session {
            period: 10 * MS,
            rounds: 3,
            ..Session::default()
        };
        lab.session(7, SET_COUNTING, counted);
        let begin = lab.0.world().clock().monotonic_ns();
        assert_eq!(lab.start(7, 5 * MS, 0), 0);
        let pending = lab.0.pending();
        assert_eq!(pending.len(), 1);
        assert_eq!(pending[0].kind, DeferredKind::Timer(TimerClock::Monotonic));
        assert_eq!(
            (pending[0].map.as_str(), pending[0].in_ns),
            ("sessions", 5 * MS)
        );
        assert_eq!(pending[0].key, 7u32.to_le_bytes());

        assert!(lab.advance(5 * MS - 1).is_empty());
        let outcome = lab.0.advance(Duration::from_nanos(1)).unwrap();
        assert_eq!(outcome.returned("count_expiry"), Some(0));
        assert_eq!(outcome.printk().collect::<Vec<_>>(), ["7 fired"]);
        assert_eq!(lab.get(7).unwrap().last, begin + 5 * MS);
        // Two more periods, each at its own time, in one step.
        assert_eq!(lab.advance(1000 * MS).len(), 2);
        let session = lab.get(7).unwrap();
        assert_eq!((session.fired, session.last), (3, begin + 25 * MS));
        assert_eq!(lab.0.world().clock().monotonic_ns(), begin + 1005 * MS);
        assert!(lab.0.pending().is_empty());
    }
}

#[test]
fn timers_fire_in_the_order_in_which_they_expire() {
    let mut lab = Lab::on(EngineKind::Jit);
    let times = [(1, 30), (2, 10), (3, 20), (4, 10)];
    for (key, after) in times {
        lab.session(key, SET_COUNTING, Session::default());
        assert_eq!(lab.start(key, after * MS, 0), 0);
    }
    // After a restart it expires only at the later time.
    assert_eq!(lab.start(2, 25 * MS, 0), 0);
    let outcome = lab.0.advance(Duration::from_secs(1)).unwrap();
    let fired: Vec<_> = outcome.printk().collect();
    assert_eq!(fired, ["4 fired", "3 fired", "2 fired", "1 fired"]);
    assert_eq!(lab.get(2).unwrap().fired, 1);
}

#[test]
fn errors_are_the_kernels() {
    for engine in ENGINES {
        let mut lab = Lab::on(engine);
        lab.0
            .map("sessions")
            .unwrap()
            .set(&1u32, &Session::default())
            .unwrap();
        for what in [SET_COUNTING, START, CANCEL] {
            assert_eq!(lab.call(what, 1), EINVAL, "{what} before it is made ready");
        }
        for flags in [2, 3, 8, 9, 16, 1 << 32] {
            let request = Request {
                what: INIT,
                key: 1,
                flags,
                ..Request::default()
            };
            assert_eq!(lab.ask(request), EINVAL, "clock {flags}");
        }
        assert_eq!(lab.call(INIT, 1), 0);
        assert_eq!(lab.call(INIT, 1), EBUSY);
        assert_eq!(lab.call(START, 1), EINVAL, "without a callback");
        assert_eq!(lab.call(SET_COUNTING, 1), 0);
        assert_eq!(lab.start(1, MS, 4), EINVAL);
        assert_eq!(lab.call(CANCEL, 1), 0, "not started");
        assert_eq!(
            lab.start(1, MS, 0),
            EINVAL,
            "cancelling forgets the callback"
        );
        assert_eq!(lab.call(SET_COUNTING, 1), 0);
        assert_eq!(lab.start(1, MS, 2), 0, "on this CPU");
        assert_eq!(lab.call(CANCEL, 1), 1, "started");
        assert!(lab.advance(10 * MS).is_empty());
    }
}

#[test]
fn absolute_times_and_those_that_are_over() {
    let mut lab = Lab::on(EngineKind::Interp);
    lab.session(1, SET_COUNTING, Session::default());
    let now = lab.0.world().clock().monotonic_ns();
    assert_eq!(lab.start(1, now + 2 * MS, ABS), 0);
    assert_eq!(lab.advance(MS).len(), 0);
    assert_eq!(lab.advance(MS).len(), 1);
    assert_eq!(lab.start(1, now, ABS), 0);
    assert_eq!(lab.0.pending()[0].in_ns, 0);
    assert_eq!(lab.advance(0).len(), 1);
    assert_eq!(lab.get(1).unwrap().last, now + 2 * MS);
    // The clock was set past the timer's expiry.
    assert_eq!(lab.start(1, MS, 0), 0);
    lab.0.world().clock().advance(Duration::from_millis(5));
    assert_eq!(lab.advance(0).len(), 1);
    assert_eq!(lab.get(1).unwrap().last, now + 7 * MS);
}

#[test]
fn a_sleeping_machine_lets_boot_time_pass() {
    let mut lab = Lab::on(EngineKind::Interp);
    for (key, clock) in [(0, 0), (1, 1), (2, 7)] {
        lab.0
            .map("sessions")
            .unwrap()
            .set(&key, &Session::default())
            .unwrap();
        let request = Request {
            what: INIT,
            key,
            flags: clock,
            ..Request::default()
        };
        assert_eq!(lab.ask(request), 0);
        assert_eq!(lab.call(SET_COUNTING, key), 0);
        assert_eq!(lab.start(key, 10 * MS, 0), 0);
    }
    lab.0.world().clock().suspend(Duration::from_millis(10));
    let outcome = lab.0.advance(Duration::ZERO).unwrap();
    assert_eq!(outcome.printk().collect::<Vec<_>>(), ["0 fired", "2 fired"]);
    assert_eq!(lab.advance(10 * MS).len(), 1);
}

#[test]
fn what_becomes_of_the_element_becomes_of_its_timer() {
    let mut lab = Lab::on(EngineKind::Jit);
    for key in [1, 2] {
        lab.session(key, SET_COUNTING, Session::default());
        assert_eq!(lab.start(key, MS, 0), 0);
    }
    lab.0.map("sessions").unwrap().delete(&1u32).unwrap();
    // Replacing the value creates a new element.
    lab.0
        .map("sessions")
        .unwrap()
        .set(&2u32, &Session::default())
        .unwrap();
    assert!(lab.0.pending().is_empty());
    assert!(lab.advance(10 * MS).is_empty());
    assert_eq!(lab.call(START, 2), EINVAL);
    assert_eq!(lab.call(INIT, 2), 0);
}

#[test]
fn an_array_keeps_its_elements_and_not_their_timers() {
    let mut lab = Lab::on(EngineKind::Jit);
    let ask = |lab: &mut Lab, what, key| {
        let flags = u64::from(what == INIT);
        lab.ask(Request {
            what,
            key,
            ns: MS,
            flags,
            in_array: 1,
        })
    };
    for key in [0, 3] {
        for what in [INIT, SET_COUNTING, START] {
            assert_eq!(ask(&mut lab, what, key), 0);
        }
    }
    lab.0
        .map("slots")
        .unwrap()
        .set(&0u32, &Session::default())
        .unwrap();
    let outcome = lab.0.advance(Duration::from_millis(1)).unwrap();
    assert_eq!(outcome.printk().collect::<Vec<_>>(), ["3 fired"]);
    assert_eq!(ask(&mut lab, INIT, 3), EBUSY);
    assert_eq!(ask(&mut lab, INIT, 0), 0);
    let seen = lab.0.map("slots").unwrap().get::<u32, Session>(&3).unwrap();
    assert_eq!(
        seen.unwrap().timer,
        [0, 0],
        "user space does not see into it"
    );
}

#[test]
fn a_callback_can_not_wait_for_itself_but_may_delete_itself() {
    let mut lab = Lab::on(EngineKind::Jit);
    lab.session(1, SET_CANCELLING, Session::default());
    assert_eq!(lab.start(1, MS, 0), 0);
    assert_eq!(lab.advance(MS), ["cancel_itself"]);
    assert_eq!(lab.get(1).unwrap().said, EDEADLK);
    assert_eq!(lab.start(1, MS, 0), 0, "its callback is still set");
    assert_eq!(lab.advance(MS).len(), 1);

    lab.session(2, SET_DELETING, Session::default());
    assert_eq!(lab.start(2, MS, 0), 0);
    assert_eq!(lab.advance(MS), ["delete_itself"]);
    assert_eq!(lab.get(2), None);
    assert!(lab.0.pending().is_empty(), "what is gone can't be started");
}

#[test]
fn without_user_space_there_are_no_timers() {
    let mut lab = Lab::on(EngineKind::Jit);
    lab.session(1, SET_COUNTING, Session::default());
    assert_eq!(lab.start(1, MS, 0), 0);
    lab.0.release_map("sessions").unwrap();
    assert!(lab.advance(MS).is_empty());
    assert_eq!(lab.call(INIT, 1), EPERM);
    let error = lab.0.release_map("session").unwrap_err();
    assert!(matches!(error, Error::NoMap { .. }));
}

#[test]
fn a_table_of_what_was_seen_lately_forgets() {
    for engine in ENGINES {
        let mut lab = Lab::on(engine);
        for mark in [3u32, 4, 3] {
            let event = Event::packet([0; 64]).set("mark", mark).unwrap();
            assert_eq!(
                lab.0.run("track", &event).unwrap().returned("track"),
                Some(0)
            );
            lab.advance(20_000 * MS);
        }
        // 3 was used again at 40 s and stays for 30 s more; 4 was removed at 50 s.
        let there = |lab: &Lab| [3, 4].map(|key| lab.get(key).is_some());
        assert_eq!(there(&lab), [true, false]);
        assert_eq!(lab.advance(9_999 * MS).len(), 0);
        assert_eq!(lab.advance(MS).len(), 1);
        assert_eq!(there(&lab), [false, false]);
    }
}

#[test]
fn timers_without_end_are_told() {
    let mut lab = Lab::on(EngineKind::Jit);
    let endless = Session {
        rounds: u64::MAX,
        ..Session::default()
    };
    lab.session(1, SET_COUNTING, endless);
    assert_eq!(lab.start(1, 0, 0), 0);
    let error = lab.0.advance(Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Deferred(_)), "{error}");
}

#[test]
fn callbacks_run_on_the_cpu_that_asked() {
    let mut lab = Lab::on(EngineKind::Jit);
    lab.session(1, SET_COUNTING, Session::default());
    lab.0.world().set_cpu(2);
    assert_eq!(lab.start(1, MS, 0), 0);
    lab.0.world().set_cpu(0);
    assert_eq!(lab.0.pending()[0].cpu, 2);
    // Another thread has that CPU: its own clock applies.
    lab.advance(0);
    let mut other = lab.0.cpu(2).unwrap();
    assert!(lab.advance(MS).is_empty());
    assert_eq!(
        other.advance(Duration::from_nanos(MS)).unwrap().runs.len(),
        1
    );
    drop(other);
    lab.0.world().set_cpu(2);
    assert_eq!(lab.start(1, MS, 0), 0);
    lab.0.world().set_cpu(0);
    assert_eq!(lab.advance(MS).len(), 1);
    assert_eq!(lab.0.world().cpu(), 0);
}

#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Job {
    runs: u64,
    again: u64,
    said: i64,
    work: [u64; 2],
    task_work: u64,
}

fn workqueues() -> Vm {
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/objects/workqueues.bpf.o"
    );
    Vm::unverified(Object::open(object).unwrap()).unwrap()
}

fn job(vm: &Vm, key: u32) -> Job {
    vm.map("jobs").unwrap().get(&key).unwrap().unwrap()
}

#[test]
fn work_runs_as_soon_as_time_may_pass() {
    let mut vm = workqueues();
    let packet = |key: u32, rounds: u32| {
        let event = Event::packet([0; 64]).set("priority", key).unwrap();
        event.set("mark", rounds).unwrap()
    };
    for (key, rounds) in [(5, 1), (3, 3)] {
        let outcome = vm.run("queue", &packet(key, rounds)).unwrap();
        assert_eq!(outcome.returned("queue").unwrap().cast_signed(), EBUSY);
    }
    let kinds: Vec<_> = vm.pending().iter().map(|pending| pending.kind).collect();
    assert_eq!(kinds, [DeferredKind::Work; 2]);
    assert_eq!(job(&vm, 5).runs, 0);
    let before = vm.world().clock().monotonic_ns();
    let outcome = vm.advance(Duration::ZERO).unwrap();
    // Requeued work goes to the end of the queue.
    let lines: Vec<_> = outcome.printk().collect();
    assert_eq!(lines, ["job 5", "job 3", "job 3", "job 3"]);
    assert_eq!((job(&vm, 3).runs, job(&vm, 5).runs), (3, 1));
    assert_eq!(vm.world().clock().monotonic_ns(), before);
    assert_eq!(
        vm.run("queue", &packet(5, 1)).unwrap().returned("queue"),
        Some(0)
    );
    assert_eq!(vm.advance(Duration::ZERO).unwrap().runs.len(), 1);
}

#[test]
fn task_work_is_scheduled_once_at_a_time() {
    let mut vm = workqueues();
    let event = vm.raw_tracepoint("sys_enter").unwrap();
    for runs in [1, 2] {
        let outcome = vm.run("at_return", &event).unwrap();
        let said = outcome.returned("at_return").unwrap().cast_signed();
        assert_eq!(said, EBUSY, "the second time it waits already");
        assert_eq!(vm.pending()[0].kind, DeferredKind::TaskWork);
        let outcome = vm.advance(Duration::ZERO).unwrap();
        assert_eq!(outcome.returned("on_return"), Some(0));
        let job = job(&vm, 7);
        assert_eq!(
            (job.runs, job.said),
            (runs, EBUSY.into()),
            "it runs, and can't wait"
        );
    }
}

/// Random calls, with elements added and deleted in between: the kernel returns the same.
/// Nothing expires: the times are hours away.
#[test]
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn the_kernel_answers_the_same() {
    use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load};
    use bpflab::spec::UpdateFlags;
    use bpflab::util::MapId;
    use bpflab::vm::Random;

    const ENOMEM: i32 = -12;
    if here::kernel().is_none() {
        return;
    }
    let mut lab = Lab::on(EngineKind::Jit);
    let program = lab.0.programs().find(|program| program.name == "timer");
    let program = program.unwrap().clone();
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
    let loaded = load(&program, &maps, &LoadOptions::default()).unwrap();
    let there = loaded.program.expect(&loaded.verdict.message);
    let named = |name: &str| {
        let at = program
            .maps
            .iter()
            .position(|def| def.name == name)
            .unwrap();
        maps.map(MapId(u32::try_from(at).unwrap())).unwrap()
    };
    let (requests, sessions, slots) = (named("requests"), named("sessions"), named("slots"));
    let any = UpdateFlags::empty();
    let mut random = Random::new(11);
    let mut below = |n: u32| random.next_u32() % n;
    let mut answers = std::collections::BTreeMap::new();
    for step in 0..3000 {
        let key = below(3);
        let fresh = Session::default();
        match below(12) {
            0 => {
                let ours = lab.0.map("sessions").unwrap().delete(&key).unwrap();
                let theirs = sessions.delete(&key.to_le_bytes()).is_ok();
                assert_eq!(ours, theirs, "step {step}");
            }
            1 => {
                lab.0.map("sessions").unwrap().set(&key, &fresh).unwrap();
                sessions
                    .update(&key.to_le_bytes(), fresh.as_bytes(), any)
                    .unwrap();
            }
            2 => {
                lab.0.map("slots").unwrap().set(&key, &fresh).unwrap();
                slots
                    .update(&key.to_le_bytes(), fresh.as_bytes(), any)
                    .unwrap();
            }
            _ => {
                let what = below(CANCEL + 1);
                let request = Request {
                    what,
                    key,
                    ns: 3_600_000 * MS + u64::from(below(1000)),
                    flags: match (what, below(8)) {
                        (INIT, 0) => below(20).into(),
                        (INIT, _) => MONOTONIC,
                        (_, 0) => below(8).into(),
                        _ => 0,
                    },
                    in_array: below(2).into(),
                };
                requests
                    .update(&0u32.to_le_bytes(), request.as_bytes(), any)
                    .unwrap();
                // An absolute time in the past would fire.
                if what == START && request.flags & ABS != 0 {
                    continue;
                }
                // Linux allocates a timer's memory without waiting (kmalloc_nolock), so the
                // call may fail for a while, without an effect.
                let mut said = (0..500u64).map(|attempt| {
                    std::thread::sleep(Duration::from_millis(attempt.min(1)));
                    let run = there.test_run(&TestRun::packet(&[0; 64])).unwrap();
                    run.retval.cast_signed()
                });
                let Some(theirs) = said.find(|said| *said != ENOMEM) else {
                    shared::skip_part(
                        shared::Need::Feature,
                        format_args!("from step {step} on the kernel has no memory for a timer"),
                    );
                    return;
                };
                assert_eq!(lab.ask(request), theirs, "step {step}: {request:?}");
                *answers.entry((what, theirs)).or_insert(0u32) += 1;
            }
        }
    }
    for wanted in [
        (INIT, 0),
        (INIT, EBUSY),
        (START, 0),
        (START, EINVAL),
        (CANCEL, 1),
    ] {
        assert!(answers.contains_key(&wanted), "{wanted:?} of {answers:?}");
    }
}
