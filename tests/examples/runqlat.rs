//! `runqlat`: how long tasks wait for a CPU.

use std::time::Duration;

use bpflab::{Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

/// States in which a task leaves its CPU, as sched_switch tells them.
const RUNNING: u32 = 0;
const SLEEPS: u32 = 1;
const PREEMPTED: u32 = 0x100;

fn wakes(vm: &mut Vm, event: &str, pid: u32) -> Result<()> {
    let event = vm.tracepoint(event)?.set("pid", pid)?;
    vm.fire(event)?;
    Ok(())
}

/// A CPU switches from a task, which leaves it in this state, to another.
fn switches(vm: &mut Vm, prev: u32, state: u32, next: u32) -> Result<()> {
    let event = vm.tracepoint("sched/sched_switch")?;
    let event = event.set("prev_pid", prev)?.set("prev_state", state)?;
    vm.fire(event.set("next_pid", next)?)?;
    Ok(())
}

fn wait(vm: &mut Vm, micros: u64) {
    vm.world().clock().advance(Duration::from_micros(micros));
}

/// The slots that counted something.
fn hist(vm: &Vm) -> Result<Vec<(u32, u64)>> {
    let slots = vm.map("hist")?.entries::<u32, u64>()?.into_iter();
    Ok(slots.filter(|(_, count)| *count > 0).collect())
}

fn waiting(vm: &Vm) -> Result<Vec<u32>> {
    let tasks = vm.map("waiting")?.entries::<u32, u64>()?.into_iter();
    Ok(tasks.map(|(pid, _)| pid).collect())
}

#[test]
fn a_task_waits_from_its_wakeup_to_its_switch() {
    on_every_engine("runqlat", |vm| {
        vm.attach_all()?;
        wakes(vm, "sched/sched_wakeup", 42)?;
        wait(vm, 20);
        switches(vm, 0, RUNNING, 42)?;
        assert_eq!(hist(vm)?, [(4, 1)]);
        assert!(waiting(vm)?.is_empty());

        // A new task, and on another CPU.
        wakes(vm, "sched/sched_wakeup_new", 43)?;
        wait(vm, 300);
        vm.world().set_cpu(2);
        switches(vm, 0, RUNNING, 43)?;
        assert_eq!(hist(vm)?, [(4, 1), (8, 1)]);
        Ok(())
    });
}

/// A task that is taken off its CPU while it could go on waits again; one that sleeps
/// does not.
#[test]
fn a_preempted_task_waits_and_a_sleeping_one_does_not() {
    on_every_engine("runqlat", |vm| {
        vm.attach_all()?;
        switches(vm, 42, PREEMPTED, 50)?;
        switches(vm, 43, SLEEPS, 51)?;
        switches(vm, 44, RUNNING, 52)?;
        let mut tasks = waiting(vm)?;
        tasks.sort_unstable();
        assert_eq!(tasks, [42, 44]);

        wait(vm, 8);
        switches(vm, 50, SLEEPS, 42)?;
        assert_eq!(hist(vm)?, [(3, 1)]);
        // Nobody saw 43 wake.
        switches(vm, 51, SLEEPS, 43)?;
        assert_eq!(hist(vm)?, [(3, 1)]);
        Ok(())
    });
}

/// What is preempted and chosen again at once has waited no time.
#[test]
fn a_switch_to_the_same_task_takes_no_time() {
    on_every_engine("runqlat", |vm| {
        vm.attach_all()?;
        switches(vm, 42, PREEMPTED, 42)?;
        assert_eq!(hist(vm)?, [(0, 1)]);
        assert!(waiting(vm)?.is_empty());
        Ok(())
    });
}

#[test]
fn of_two_wakeups_the_first_counts() {
    on_every_engine("runqlat", |vm| {
        vm.attach_all()?;
        wakes(vm, "sched/sched_wakeup", 42)?;
        wait(vm, 1000);
        wakes(vm, "sched/sched_wakeup", 42)?;
        wait(vm, 24);
        switches(vm, 0, RUNNING, 42)?;
        assert_eq!(hist(vm)?, [(10, 1)]);
        Ok(())
    });
}

#[test]
fn the_idle_task_never_waits() {
    on_every_engine("runqlat", |vm| {
        vm.attach_all()?;
        switches(vm, 0, RUNNING, 42)?;
        wakes(vm, "sched/sched_wakeup", 0)?;
        wait(vm, 100);
        switches(vm, 42, SLEEPS, 0)?;
        assert_eq!((hist(vm)?, waiting(vm)?), (vec![], vec![]));
        Ok(())
    });
}

/// A global variable that is set before the object is loaded.
#[test]
fn only_the_task_that_is_wanted() {
    on_every_engine_with(
        "runqlat",
        |object| Ok(object.set_global("wanted_pid", 42)?),
        |vm| {
            vm.attach_all()?;
            for pid in [41, 42, 43] {
                wakes(vm, "sched/sched_wakeup", pid)?;
            }
            assert_eq!(waiting(vm)?, [42]);
            wait(vm, 2);
            for pid in [41, 42, 43] {
                switches(vm, 0, RUNNING, pid)?;
            }
            assert_eq!(hist(vm)?, [(1, 1)]);
            Ok(())
        },
    );
}
