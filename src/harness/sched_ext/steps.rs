//! The steps of the kernel between calls of members: where a task goes, what a CPU runs next.

use super::SchedExt;
use crate::harness::error::{Error, Result};
use crate::vm::kfuncs::{dispatch_task, flush_dispatches, may_run_on};
use crate::vm::world::kernel::KernelObject;
use crate::vm::world::{Insert, Phase, QueueId};

/// How often `dispatch` is called until there is something to run (`SCX_DSP_MAX_LOOPS`).
const MAX_LOOPS: u32 = 32;

impl SchedExt<'_> {
    /// The kernel's own choice: an idle CPU, whose local queue gets the task.
    pub(super) fn select(&mut self, task: &KernelObject, previous: u32) -> Result<u32> {
        let cpus = self.vm.machine.world.cpus();
        let mut wanted = std::iter::once(previous).chain(0..cpus);
        let found = wanted.find(|cpu| self.is_allowed(task, *cpu) && self.state().claim(*cpu));
        if let Some(cpu) = found {
            self.refill(task.address())?;
            self.task(task.address()).direct = Some((QueueId::local(cpu).0, Insert::default()));
        }
        Ok(found.unwrap_or(previous))
    }

    /// The CPU for a task that a scheduler selected, or one on which it may run
    /// (`select_fallback_rq`, `kernel/sched/core.c`).
    pub(super) fn fallback(&self, task: &KernelObject, selected: u32) -> u32 {
        let cpus = self.vm.machine.world.cpus();
        let mut wanted = std::iter::once(selected).chain(0..cpus);
        let found = wanted.find(|cpu| self.is_allowed(task, *cpu));
        found.unwrap_or(selected)
    }

    fn is_allowed(&self, task: &KernelObject, cpu: u32) -> bool {
        may_run_on(&self.vm.machine, task.address(), cpu)
    }

    /// Gives a runnable task to the scheduler, unless it was dispatched already
    /// (`do_enqueue_task`).
    pub(super) fn enqueue(&mut self, task: u64, flags: u64) -> Result<()> {
        if self.task(task).direct.is_none() {
            self.task(task).owned = true;
            let called = self.call("enqueue", Phase::Enqueue(task), &[task, flags])?;
            if called.is_none() {
                self.refill(task)?;
                self.task(task).direct = Some((QueueId::GLOBAL.0, Insert::default()));
            }
        }
        let state = *self.task(task);
        if let Some((number, insert)) = state.direct {
            self.task(task).direct = None;
            let id = QueueId::on(number, state.cpu);
            dispatch_task(&mut self.vm.machine, task, id, insert);
        }
        Ok(())
    }

    /// Finds a task for a CPU's local queue; false if what runs there goes on.
    pub(super) fn find(&mut self, cpu: u32, previous: Option<u64>) -> Result<bool> {
        let local = QueueId::local(cpu);
        for _ in 0..MAX_LOOPS {
            if self.has(local) || self.take_global(cpu) {
                return Ok(true);
            }
            let state = self.state();
            state.dispatched = 0;
            state.pending.clear();
            let args = [cpu.into(), previous.unwrap_or(0)];
            let called = self.call_on(cpu, "dispatch", Phase::Dispatch, &args)?;
            flush_dispatches(&mut self.vm.machine);
            if previous.is_some_and(|task| self.slice(task) != 0) {
                return Ok(false);
            }
            if called.is_none() || self.state().dispatched == 0 {
                return Ok(self.has(local) || self.take_global(cpu));
            }
        }
        if self.has(local) || self.take_global(cpu) {
            return Ok(true);
        }
        // The kernel looks again soon.
        self.state().kick(cpu);
        Ok(false)
    }

    fn has(&mut self, id: QueueId) -> bool {
        self.state()
            .queue(id)
            .is_some_and(|queue| !queue.is_empty())
    }

    /// Moves the first task of the global queue that may run on a CPU to its local queue.
    pub(super) fn take_global(&mut self, cpu: u32) -> bool {
        let found = self.queued(QueueId::GLOBAL);
        let found = found.into_iter().find(|task| self.is_allowed(task, cpu));
        match found {
            Some(task) => {
                let local = QueueId::local(cpu);
                self.state()
                    .dispatch(task.address(), local, Insert::default());
                true
            }
            None => false,
        }
    }

    /// A task begins to run on a CPU.
    pub(super) fn begin(&mut self, cpu: u32, task: u64) -> Result<KernelObject> {
        if self.slice(task) == 0 {
            self.refill(task)?;
        }
        if std::mem::take(&mut self.cpu(cpu).idle) {
            self.call_on(cpu, "update_idle", Phase::Rest, &[cpu.into(), 0])?;
        }
        self.cpu(cpu).current = Some(task);
        let state = self.task(task);
        (state.cpu, state.running) = (cpu, true);
        let world = &mut self.vm.machine.world;
        if let Some(known) = world.task_at(task) {
            world.run_task(&known);
        }
        self.call_on(cpu, "running", Phase::Rest, &[task])?;
        self.object(task)
            .ok_or_else(|| Error::SchedExt("the task that is to run was freed".to_owned()))
    }

    /// The task that runs on a CPU stops, stays runnable, and goes to the scheduler.
    pub(super) fn put(&mut self, cpu: u32, task: u64, flags: u64) -> Result<()> {
        self.stop(cpu, task)?;
        self.enqueue(task, flags)
    }

    /// The task that runs on a CPU stops, and stays runnable.
    pub(super) fn stop(&mut self, cpu: u32, task: u64) -> Result<()> {
        self.call_on(cpu, "stopping", Phase::Rest, &[task, 1])?;
        self.task(task).running = false;
        self.cpu(cpu).current = None;
        Ok(())
    }
}
