//! A sched_ext scheduler, driven by tasks that wake, run and sleep.

use std::time::Duration;

use bpflab::harness::SchedExt;
use bpflab::object::Target;
use bpflab::vm::{EngineKind, KernelObject, QueueId, World};
use bpflab::{Object, Result, Vm};

const SHARED: QueueId = QueueId(7);
const SLICE: Duration = Duration::from_millis(10);

fn machine(cpus: u32) -> Vm {
    machine_of("scheduler", cpus)
}

fn machine_of(name: &str, cpus: u32) -> Vm {
    let path = format!("tests/attach_targets/{name}.bpf.o");
    let mut object = Object::open(path).expect("an object");
    let kernel = Target::file("tests/attach_targets/scheduler_kernel.bpf.o");
    object.set_target(kernel.expect("BTF"));
    let mut vm = Vm::with_world(World::with_cpus(cpus));
    vm.load(object).expect("accepted");
    vm
}

/// Runs a test of a scheduler of `scheduler_rest.bpf.c` on every engine.
fn rest(
    ops: &str,
    cpus: u32,
    globals: &[(&str, i64)],
    test: impl Fn(SchedExt<'_>) -> Result<()>,
) -> Result<()> {
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut vm = machine_of("scheduler_rest", cpus);
        vm.set_engine(engine);
        for (name, value) in globals {
            vm.set_global(name, *value)?;
        }
        test(vm.sched_ext(ops)?)?;
    }
    Ok(())
}

/// Adds tasks of these pids, and wakes them.
fn woken(scheduler: &mut SchedExt<'_>, pids: &[u32]) -> Result<Vec<KernelObject>> {
    let mut tasks = Vec::new();
    for pid in pids {
        let task = task(scheduler, *pid, 100)?;
        scheduler.wake(&task)?;
        tasks.push(task);
    }
    Ok(tasks)
}

/// What the kfuncs of a program returned.
fn results<const N: usize>(scheduler: &mut SchedExt<'_>) -> Result<[i64; N]> {
    let mut all = [0; N];
    for (at, result) in all.iter_mut().enumerate() {
        let value = scheduler.vm().global(&format!("results[{at}]"))?;
        *result = value.as_i64().expect("a number");
    }
    Ok(all)
}

/// Adds a task of this pid and weight.
fn task(scheduler: &mut SchedExt<'_>, pid: u32, weight: u32) -> Result<KernelObject> {
    let mut task = scheduler.vm().world().new_task();
    task.set_pid(pid).set_comm(&format!("t{pid}"));
    Ok(scheduler.add(&task)?.set("scx.weight", weight)?)
}

fn pid(task: Option<KernelObject>) -> Option<u64> {
    task.map(|task| task.get("pid").expect("a task"))
}

fn pids(tasks: Vec<KernelObject>) -> Vec<u64> {
    tasks
        .into_iter()
        .filter_map(|task| pid(Some(task)))
        .collect()
}

#[test]
fn an_idle_cpu_gets_a_task_at_once() -> Result<()> {
    let mut vm = machine(2);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let (a, b) = (task(&mut scheduler, 1, 100)?, task(&mut scheduler, 2, 100)?);
    scheduler.take_calls();
    assert_eq!((scheduler.wake(&a)?, scheduler.wake(&b)?), (0, 1));
    assert_eq!(scheduler.kicked().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(pids(scheduler.queued(QueueId::local(1))), [2]);
    assert_eq!(pid(scheduler.schedule(1)?), Some(2));
    assert_eq!(pid(scheduler.running(1)), Some(2));
    let calls = scheduler.take_calls();
    let calls: Vec<_> = calls.iter().map(|call| (call.member, call.cpu)).collect();
    assert_eq!(
        calls,
        [("select_cpu", 0), ("select_cpu", 0), ("running", 1)]
    );
    assert_eq!(pid(scheduler.sleep(1)?), None);
    Ok(())
}

#[test]
fn tasks_share_a_cpu_by_their_weights() -> Result<()> {
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut vm = machine(1);
        vm.set_engine(engine);
        let mut scheduler = vm.sched_ext("by_vtime")?;
        for (pid, weight) in [(1, 200), (2, 100), (3, 100)] {
            let task = task(&mut scheduler, pid, weight)?;
            scheduler.wake(&task)?;
        }
        let mut turns = [0u32; 4];
        for _ in 0..400 {
            // The task that stops waits again only after `dispatch`: none has two turns in a row.
            let runs = pid(scheduler.schedule(0)?).expect("three tasks are runnable");
            turns[usize::try_from(runs).expect("a pid")] += 1;
            assert_eq!(scheduler.run(0, SLICE)?, 0, "the slice is used up");
        }
        let near = |turns: u32, wanted: u32| turns.abs_diff(wanted) <= 2;
        let [_, heavy, light, other] = turns;
        assert!(
            near(heavy, 200) && near(light, 100) && near(other, 100),
            "{engine}: {turns:?}"
        );
        // A task is in the queue only after `enqueue`.
        assert_eq!(scheduler.vm().global("longest")?, 1);
        assert_eq!(scheduler.vm().world().time().monotonic_ns() % 10_000_000, 0);
    }
    Ok(())
}

#[test]
fn a_slice_that_is_left_goes_on() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let (a, b) = (task(&mut scheduler, 1, 100)?, task(&mut scheduler, 2, 100)?);
    scheduler.wake(&a)?;
    scheduler.schedule(0)?;
    scheduler.wake(&b)?;
    assert_eq!(scheduler.run(0, SLICE / 2)?, 5_000_000);
    assert_eq!(pid(scheduler.schedule(0)?), Some(1));
    assert_eq!(pids(scheduler.queued(SHARED)), [2]);
    assert_eq!(pid(scheduler.yields(0)?), Some(2));
    scheduler.sleep(0)?;
    assert_eq!(pid(scheduler.running(0)), Some(1));
    Ok(())
}

#[test]
fn a_task_runs_where_it_may() -> Result<()> {
    let mut vm = machine(2);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let mask = scheduler
        .vm()
        .world()
        .kernel_bytes(&[2, 0, 0, 0, 0, 0, 0, 0])?;
    let pinned = task(&mut scheduler, 1, 100)?.set("cpus_ptr", &mask)?;
    assert_eq!(scheduler.wake(&pinned)?, 1);
    // It waits for its CPU, which another task has.
    scheduler.schedule(1)?;
    let other = task(&mut scheduler, 2, 100)?.set("cpus_ptr", &mask)?;
    scheduler.wake(&other)?;
    assert_eq!(pid(scheduler.schedule(0)?), None);
    assert_eq!(pid(scheduler.sleep(1)?), Some(2));
    Ok(())
}

#[test]
fn without_members_the_kernel_schedules() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("plain")?;
    let (a, b) = (task(&mut scheduler, 1, 100)?, task(&mut scheduler, 2, 100)?);
    scheduler.wake(&a)?;
    scheduler.wake(&b)?;
    assert_eq!(pids(scheduler.queued(QueueId::GLOBAL)), [2]);
    assert_eq!(pid(scheduler.schedule(0)?), Some(1));
    assert_eq!(scheduler.run(0, Duration::from_millis(20))?, 0);
    assert_eq!(pid(scheduler.schedule(0)?), Some(2));
    assert_eq!(pid(scheduler.sleep(0)?), Some(1));
    // Alone it gets another slice.
    assert_eq!(scheduler.run(0, Duration::from_secs(1))?, 0);
    assert_eq!(pid(scheduler.schedule(0)?), Some(1));
    assert_eq!(scheduler.run(0, Duration::from_millis(19))?, 1_000_000);
    assert_eq!(scheduler.finish()?, None);
    Ok(())
}

#[test]
fn a_mistake_ends_the_scheduler() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let (a, b) = (task(&mut scheduler, 1, 100)?, task(&mut scheduler, 2, 100)?);
    scheduler.wake(&a)?;
    scheduler.vm().set_global("other_queue", 99)?;
    scheduler.wake(&b)?;
    assert_eq!(scheduler.ended(), Some("non-existent DSQ 0x63"));
    let error = scheduler.schedule(0).unwrap_err().to_string();
    assert_eq!(
        error,
        "sched_ext: the scheduler has ended: non-existent DSQ 0x63"
    );
    let why = scheduler.finish()?;
    assert_eq!(why.as_deref(), Some("non-existent DSQ 0x63"));
    // `SCX_EXIT_ERROR`
    assert_eq!(vm.global("exit_kind")?, 1024);
    Ok(())
}

#[test]
fn a_task_is_not_sent_where_it_may_not_run() -> Result<()> {
    let mut vm = machine(2);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let mask = scheduler
        .vm()
        .world()
        .kernel_bytes(&[1, 0, 0, 0, 0, 0, 0, 0])?;
    let pinned = task(&mut scheduler, 1, 100)?.set("cpus_ptr", &mask)?;
    // Its CPU is busy, and the scheduler sends it to the other one.
    let other = task(&mut scheduler, 2, 100)?;
    scheduler.wake(&other)?;
    let local = QueueId::local(1).0;
    scheduler.vm().set_global("other_queue", local)?;
    scheduler.wake(&pinned)?;
    let why = "SCX_DSQ_LOCAL[_ON] cannot move t1[1] to CPU 1, where it may not run";
    assert_eq!(scheduler.ended(), Some(why));
    Ok(())
}

#[test]
fn a_scheduler_gives_its_own_reason() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let task = task(&mut scheduler, 5, 0)?;
    scheduler.wake(&task)?;
    scheduler.schedule(0)?;
    // It ends while the task goes to sleep: the CPU schedules no more.
    assert!(scheduler.sleep(0).is_err());
    assert_eq!(scheduler.ended(), Some("task 5 has no weight"));
    scheduler.finish()?;
    // `SCX_EXIT_ERROR_BPF`
    assert_eq!(vm.global("exit_kind")?, 1025);
    Ok(())
}

#[test]
fn a_scheduler_ends_without_an_error() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let task = task(&mut scheduler, 5, 100)?;
    scheduler.wake(&task)?;
    scheduler.schedule(0)?;
    scheduler.vm().set_global("ends", 1)?;
    assert!(scheduler.sleep(0).is_err());
    scheduler.finish()?;
    // `SCX_EXIT_UNREG_BPF`
    assert_eq!(vm.global("exit_kind")?, 65);
    Ok(())
}

#[test]
fn a_task_preempts_another() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let (a, b) = (task(&mut scheduler, 1, 100)?, task(&mut scheduler, 2, 100)?);
    scheduler.wake(&a)?;
    assert_eq!(pid(scheduler.schedule(0)?), Some(1));
    let local = QueueId::local(0).0;
    scheduler.vm().set_global("other_queue", local)?;
    // `SCX_ENQ_PREEMPT`
    scheduler.vm().set_global("other_flags", 1u64 << 32)?;
    scheduler.wake(&b)?;
    assert_eq!(scheduler.kicked().collect::<Vec<_>>(), [0]);
    assert_eq!(pid(scheduler.schedule(0)?), Some(2));
    Ok(())
}

#[test]
fn the_last_task_runs_on_if_the_scheduler_says_so() -> Result<()> {
    let mut vm = machine(1);
    let mut scheduler = vm.sched_ext("asks_last")?;
    let task = task(&mut scheduler, 1, 100)?;
    scheduler.wake(&task)?;
    assert_eq!(pid(scheduler.schedule(0)?), Some(1));
    scheduler.run(0, Duration::from_millis(20))?;
    assert_eq!(scheduler.vm().global("last")?, 0);
    assert_eq!(pid(scheduler.schedule(0)?), Some(1));
    assert_eq!(scheduler.vm().global("last")?, 1);
    Ok(())
}

#[test]
fn what_can_not_be_is_said() -> Result<()> {
    let mut vm = machine(1);
    let error = vm.sched_ext("nothing").unwrap_err().to_string();
    assert!(error.contains("by_vtime"), "{error}");
    let mut scheduler = vm.sched_ext("by_vtime")?;
    let said = |error: bpflab::Error| error.to_string();
    assert_eq!(
        said(scheduler.schedule(1).unwrap_err()),
        "sched_ext: there is no CPU 1, only 1"
    );
    assert_eq!(
        said(scheduler.sleep(0).unwrap_err()),
        "sched_ext: no task runs on CPU 0"
    );
    let task = task(&mut scheduler, 1, 100)?;
    scheduler.wake(&task)?;
    let error = said(scheduler.wake(&task).unwrap_err());
    assert_eq!(error, "sched_ext: the task does not sleep");
    scheduler.schedule(0)?;
    let error = said(scheduler.remove(&task).unwrap_err());
    assert_eq!(error, "sched_ext: the task runs: let it sleep first");
    scheduler.sleep(0)?;
    scheduler.remove(&task)?;
    Ok(())
}

#[test]
fn pending_dispatches_can_be_taken_back() -> Result<()> {
    let second = Insertion {
        cancels: 1,
        results: [3, 1, 2, 0],
        waits: &[],
        runs: 2,
    };
    let both = Insertion {
        cancels: 0,
        results: [3, 1, 1, 0],
        waits: &[3],
        runs: 2,
    };
    for Insertion {
        cancels,
        results: wanted,
        waits,
        runs,
    } in [second, both]
    {
        rest("holds", 1, &[("cancels", cancels)], |mut scheduler| {
            woken(&mut scheduler, &[2, 3])?;
            assert_eq!(pid(scheduler.schedule(0)?), Some(runs));
            assert_eq!(results::<4>(&mut scheduler)?, wanted);
            assert_eq!(pids(scheduler.queued(QueueId::local(0))), waits);
            Ok(())
        })?;
    }
    Ok(())
}

/// Of two dispatches some are cancelled.
struct Insertion {
    cancels: i64,
    results: [i64; 4],
    waits: &'static [u64],
    runs: u64,
}

#[test]
fn a_dispatch_that_is_not_pending_can_not_be_taken_back() -> Result<()> {
    rest("holds", 1, &[("cancels", 3)], |mut scheduler| {
        woken(&mut scheduler, &[2, 3])?;
        scheduler.schedule(0)?;
        assert_eq!(scheduler.ended(), Some("dispatch buffer underflow"));
        Ok(())
    })?;
    // To move a task to the local queue sends the pending ones to theirs.
    let globals = [("cancels", 1), ("moves_between", 1)];
    rest("holds", 1, &globals, |mut scheduler| {
        woken(&mut scheduler, &[2, 3])?;
        scheduler.schedule(0)?;
        assert_eq!(scheduler.ended(), Some("dispatch buffer underflow"));
        assert_eq!(results::<4>(&mut scheduler)?, [3, 1, 3, 2]);
        Ok(())
    })?;
    rest("holds", 1, &[], |mut scheduler| {
        woken(&mut scheduler, &[2, 3, 4, 5])?;
        scheduler.schedule(0)?;
        assert_eq!(scheduler.ended(), Some("dispatch buffer overflow"));
        Ok(())
    })?;
    rest("holds", 1, &[], |mut scheduler| {
        woken(&mut scheduler, &[2])?;
        scheduler.schedule(0)?;
        scheduler.run(0, SLICE / 2)?;
        let why = "kfunc with mask 0x2 called from an operation only allowing 0x10";
        assert_eq!(scheduler.ended(), Some(why));
        Ok(())
    })
}

#[test]
fn a_moved_task_gets_the_slice_and_virtual_time_of_the_iterator() -> Result<()> {
    const OTHER: QueueId = QueueId(8);
    for (by_vtime, order) in [(0, [1, 2, 3]), (1, [2, 3, 1])] {
        rest("moves", 1, &[("by_vtime", by_vtime)], |mut scheduler| {
            let tasks = woken(&mut scheduler, &[1, 2, 3])?;
            assert_eq!(pids(scheduler.queued(SHARED)), [1, 2, 3]);
            assert_eq!(pid(scheduler.schedule(0)?), Some(order[0]));
            assert_eq!(pids(scheduler.queued(OTHER)), order[1..]);
            // Only the first task that was moved.
            let mut given = Vec::new();
            for task in &tasks {
                given.push((task.get("scx.slice")?, task.get("scx.dsq_vtime")?));
            }
            let slice = 10_000_000;
            assert_eq!(given, [(slice / 2, 100), (slice, 2), (slice, 3)]);
            assert_eq!(results::<1>(&mut scheduler)?, [0]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_released_cpu_gives_its_tasks_back() -> Result<()> {
    rest("releases", 1, &[], |mut scheduler| {
        let mut fifo = scheduler.vm().world().new_task();
        fifo.set_pid(99);
        woken(&mut scheduler, &[1])?;
        assert_eq!(pid(scheduler.schedule(0)?), Some(1));
        woken(&mut scheduler, &[2])?;
        scheduler.take_calls();

        scheduler.release(0, &fifo)?;
        let calls = scheduler.take_calls();
        let calls: Vec<_> = calls.iter().map(|call| call.member).collect();
        assert_eq!(calls, ["cpu_release", "enqueue", "enqueue"]);
        // The task that ran is before the one that waited.
        assert_eq!(pids(scheduler.queued(SHARED)), [1, 2]);
        assert!(scheduler.queued(QueueId::local(0)).is_empty());
        assert_eq!(results::<1>(&mut scheduler)?, [2]);
        assert_eq!(scheduler.vm().global("reenqueued")?, 2);
        assert_eq!(scheduler.vm().global("reason")?, 0);
        assert_eq!(scheduler.vm().global("by")?, 99);
        assert_eq!(scheduler.vm().world().task().pid(), 99);
        assert_eq!(pid(scheduler.running(0)), None);
        let error = scheduler.release(0, &fifo).unwrap_err().to_string();
        assert_eq!(error, "sched_ext: CPU 0 is released already");

        // A task that wakes meanwhile does not get the CPU.
        woken(&mut scheduler, &[3])?;
        assert_eq!(scheduler.kicked().count(), 0);
        assert_eq!(scheduler.vm().global("acquired")?, 0);
        assert_eq!(pid(scheduler.schedule(0)?), Some(3));
        assert_eq!(scheduler.vm().global("acquired")?, 1);
        assert_eq!(pid(scheduler.sleep(0)?), Some(1));
        assert_eq!(pid(scheduler.sleep(0)?), Some(2));
        assert_eq!(scheduler.vm().global("acquired")?, 1);
        Ok(())
    })
}

#[test]
fn an_idle_cpu_has_nothing_to_release() -> Result<()> {
    rest("releases", 2, &[], |mut scheduler| {
        let fifo = scheduler.vm().world().new_task();
        scheduler.release(0, &fifo)?;
        assert_eq!(scheduler.vm().global("reason")?, -1);
        // It is not idle: the kernel's choice is the other CPU.
        let task = task(&mut scheduler, 1, 100)?;
        assert_eq!(scheduler.wake(&task)?, 1);
        assert_eq!(pid(scheduler.schedule(0)?), None);
        assert_eq!(scheduler.vm().global("acquired")?, 0);
        assert_eq!(pid(scheduler.schedule(1)?), Some(1));
        // A slice that is used up is given back to the scheduler, which has the task's CPU locked.
        scheduler.run(1, SLICE * 2)?;
        scheduler.release(1, &fifo)?;
        assert_eq!(results::<2>(&mut scheduler)?, [1, 1]);
        assert_eq!(pids(scheduler.queued(SHARED)), [1]);
        Ok(())
    })
}

#[test]
fn run_queues_are_objects() -> Result<()> {
    rest("reads", 2, &[], |mut scheduler| {
        scheduler.vm().set_global("other_cpu", 1)?;
        woken(&mut scheduler, &[1, 2])?;
        assert_eq!(pid(scheduler.schedule(1)?), Some(1));
        scheduler.rq(1)?.set("scx.cpuperf_target", 512)?;
        // The second task waits in the global queue.
        scheduler.schedule(0)?;
        scheduler.run(0, SLICE)?;
        assert_eq!(results::<2>(&mut scheduler)?, [1, 0]);
        assert_eq!(scheduler.vm().global("current_pid")?, 1);
        let (other, own) = (scheduler.rq(1)?, scheduler.rq(0)?);
        assert_eq!(other.get("scx.cpuperf_target"), Ok(512));
        let addresses = [other.address(), own.address()];
        for (at, wanted) in addresses.into_iter().enumerate() {
            let seen = scheduler.vm().global(&format!("addresses[{at}]"))?;
            assert_eq!(seen, wanted);
        }
        assert!(scheduler.rq(2).is_err());

        scheduler.vm().set_global("other_cpu", 2)?;
        scheduler.run(0, SLICE / 2)?;
        assert_eq!(scheduler.ended(), Some("invalid CPU 2"));
        assert_eq!(scheduler.vm().global("addresses[0]")?, 0);
        Ok(())
    })?;
    rest("reads", 1, &[("asks_unlocked", 1)], |mut scheduler| {
        let task = task(&mut scheduler, 1, 100)?;
        scheduler.wake(&task)?;
        let why = "accessing rq without holding rq lock";
        assert_eq!(scheduler.ended(), Some(why));
        Ok(())
    })?;
    rest("reads", 1, &[("reenqueues", 1)], |mut scheduler| {
        woken(&mut scheduler, &[1])?;
        scheduler.schedule(0)?;
        scheduler.run(0, SLICE)?;
        let why = "kfunc with mask 0x1 called from an operation only allowing 0x10";
        assert_eq!(scheduler.ended(), Some(why));
        Ok(())
    })
}

#[test]
fn events_are_counted() -> Result<()> {
    rest("reads", 2, &[], |mut scheduler| {
        scheduler.vm().set_global("other_cpu", 1)?;
        let here = scheduler.vm().world().kernel_bytes(&[1; 8])?;
        let pinned = task(&mut scheduler, 1, 100)?.set("cpus_ptr", &here)?;
        // `select_cpu` returned a CPU on which it may not run. It has no `enqueue`: the kernel
        // gives the task a slice.
        assert_eq!(scheduler.wake(&pinned)?, 0);
        assert_eq!(pid(scheduler.schedule(0)?), Some(1));
        for _ in 0..2 {
            scheduler.run(0, SLICE * 2)?;
            assert_eq!(pid(scheduler.schedule(0)?), Some(1));
        }
        scheduler.run(0, SLICE)?;
        let mut stat = |name: &str| scheduler.vm().global(&format!("stats.SCX_EV_{name}"));
        assert_eq!(stat("SELECT_CPU_FALLBACK")?, 1);
        assert_eq!(stat("DISPATCH_KEEP_LAST")?, 2);
        assert_eq!(stat("REFILL_SLICE_DFL")?, 3);
        assert_eq!(stat("ENQ_SKIP_EXITING")?, 0);
        // A program that knows fewer counters gets fewer.
        assert_eq!(scheduler.vm().global("first_stat")?, 1);
        Ok(())
    })
}

#[test]
fn cpus_are_picked_from_a_node() -> Result<()> {
    const EBUSY: i64 = -16;
    const NO_NODE: i64 = -1;
    rest("picks", 2, &[], |mut scheduler| {
        let mask = scheduler
            .vm()
            .world()
            .kernel_bytes(&[2, 0, 0, 0, 0, 0, 0, 0])?;
        let pinned = task(&mut scheduler, 1, 100)?.set("cpus_ptr", &mask)?;
        assert_eq!(scheduler.wake(&pinned)?, 1);
        assert_eq!(results::<1>(&mut scheduler)?, [1]);
        // No CPU of the mask is idle now; any of them will do.
        let other = task(&mut scheduler, 2, 100)?.set("cpus_ptr", &mask)?;
        assert_eq!(scheduler.wake(&other)?, 1);
        assert_eq!(results::<2>(&mut scheduler)?, [EBUSY, 1]);
        assert_eq!(scheduler.ended(), None);
        // Those of all nodes together are not tracked.
        scheduler.schedule(1)?;
        scheduler.run(1, SLICE)?;
        assert_eq!(results::<3>(&mut scheduler)?, [EBUSY, 1, EBUSY]);
        let why = "per-node idle tracking is enabled";
        assert_eq!(scheduler.ended(), Some(why));
        Ok(())
    })?;
    for (ops, node, result, why) in [
        ("picks", 1, -22, Some("invalid node 1")),
        ("picks", NO_NODE - 1, -22, Some("invalid node -2")),
        // `NUMA_NO_NODE` is no mistake.
        ("picks", NO_NODE, -2, None),
        (
            "picks_globally",
            0,
            -95,
            Some("per-node idle tracking is disabled"),
        ),
    ] {
        rest(ops, 1, &[("node", node)], |mut scheduler| {
            let task = task(&mut scheduler, 1, 100)?;
            assert_eq!(scheduler.wake(&task)?, 0);
            assert_eq!(results::<2>(&mut scheduler)?, [result, result]);
            assert_eq!(scheduler.ended(), why);
            Ok(())
        })?;
    }
    Ok(())
}
