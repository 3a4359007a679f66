//! A sched_ext scheduler, driven by tasks that wake, run and sleep.

use std::time::Duration;

use bpflab::harness::SchedExt;
use bpflab::object::Target;
use bpflab::vm::{EngineKind, KernelObject, QueueId, World};
use bpflab::{Object, Result, Vm};

const SHARED: QueueId = QueueId(7);
const SLICE: Duration = Duration::from_millis(10);

fn machine(cpus: u32) -> Vm {
    let mut object = Object::open("tests/attach_targets/scheduler.bpf.o").expect("an object");
    let kernel = Target::file("tests/attach_targets/scheduler_kernel.bpf.o");
    object.set_target(kernel.expect("BTF"));
    let mut vm = Vm::with_world(World::with_cpus(cpus));
    vm.load(object).expect("accepted");
    vm
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
