//! Drives a sched_ext scheduler: a test plays tasks that wake, run and sleep, and the members are
//! called as Linux 6.18 calls them (`kernel/sched/ext.c`).

mod steps;

use std::time::Duration;

use super::error::{Error, Result};
use super::vm::Vm;
use crate::vm::Outcome;
use crate::vm::events::FieldValue;
use crate::vm::kfuncs::{make_mask, run_queue};
use crate::vm::world::kernel::{KernelError, KernelObject};
use crate::vm::world::{
    CpuState, DEFAULT_SLICE, Ended, ExitKind, INFINITE_SLICE, Insert, Phase, QueueId, Scheduler,
    Task, TaskState,
};

/// `SCX_WAKE_TTWU`.
const WAKE_TTWU: u64 = 8;
/// `SCX_ENQ_WAKEUP`, `SCX_ENQ_CPU_SELECTED`, `SCX_ENQ_REENQ`, `SCX_ENQ_LAST`.
const ENQ_WAKEUP: u64 = 1;
const ENQ_CPU_SELECTED: u64 = 1 << 10;
const ENQ_REENQ: u64 = 1 << 40;
const ENQ_LAST: u64 = 1 << 41;
/// `SCX_DEQ_SLEEP`.
const DEQ_SLEEP: u64 = 1;
/// `SCX_OPS_ENQ_LAST`, `SCX_OPS_BUILTIN_IDLE_PER_NODE`: flags of the structure.
const OPS_ENQ_LAST: u64 = 1 << 1;
const OPS_IDLE_PER_NODE: u64 = 1 << 6;
/// `SCX_CPU_PREEMPT_RT`.
const PREEMPT_RT: u64 = 0;
/// Tasks that one call of `dispatch` may dispatch (`SCX_DSP_DFL_MAX_BATCH`).
const BATCH: u32 = 32;

/// A call of a member.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberCall {
    /// The member: `enqueue`.
    pub member: &'static str,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// What happened: output, the result in r0.
    pub outcome: Outcome,
}

/// A running scheduler, and the tasks and CPUs that it schedules. [`Vm::sched_ext`] starts one.
#[derive(Debug)]
pub struct SchedExt<'v> {
    vm: &'v mut Vm,
    ops: String,
    flags: u64,
    calls: Vec<MemberCall>,
}

impl Vm {
    /// Starts the sched_ext scheduler in a `struct sched_ext_ops` variable: calls its `init`. All
    /// CPUs ([`World::cpus`](crate::vm::World::cpus)) are idle, and there are no tasks.
    ///
    /// The test plays the kernel: it [adds](SchedExt::add) tasks, [wakes](SchedExt::wake) them,
    /// lets a CPU [choose](SchedExt::schedule) what runs, lets time [pass](SchedExt::run), lets a
    /// task [sleep](SchedExt::sleep), or a higher class [get](SchedExt::release) a CPU. CPUs are
    /// plain: without siblings, caches or nodes. Constants that a scheduler's loader fills in
    /// (`__SCX_DSQ_LOCAL`) are globals of the object
    /// ([`Object::set_global`](crate::Object::set_global)).
    ///
    /// The calls and their order follow the sources; no kernel's scheduler was run beside it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bpflab::object::Target;
    /// use bpflab::{Object, Vm};
    ///
    /// let mut object = Object::open("tests/attach_targets/scheduler.bpf.o")?;
    /// object.set_target(Target::file("tests/attach_targets/scheduler_kernel.bpf.o")?);
    /// let mut vm = Vm::new(object)?;
    /// let dd = vm.world().new_task();
    ///
    /// let mut scheduler = vm.sched_ext("by_vtime")?;
    /// let dd = scheduler.add(&dd)?;
    /// let cpu = scheduler.wake(&dd)?;
    /// let next = scheduler.schedule(cpu)?;
    /// assert_eq!(next.map(|task| task.address()), Some(dd.address()));
    /// let left = scheduler.run(cpu, Duration::from_millis(4))?;
    /// assert_eq!(left, 6_000_000);
    /// assert!(scheduler.sleep(cpu)?.is_none());
    /// # Ok::<(), bpflab::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`struct_ops`](Self::struct_ops); [`Error::SchedExt`] where `init` fails; as of
    /// [`run`](Self::run).
    pub fn sched_ext(&mut self, ops: &str) -> Result<SchedExt<'_>> {
        self.struct_ops(ops)?;
        let number = |vm: &Self, field: &str| {
            let view = vm.map(ops).ok()?;
            let entry = view.entry(&0u32).ok()??;
            entry
                .field(&format!("data.{field}"))
                .or_else(|_| entry.field(field))
                .ok()?
                .as_u64()
        };
        let flags = number(self, "flags").unwrap_or(0);
        let batch = number(self, "dispatch_max_batch").filter(|most| *most != 0);
        let cpus = self.machine.world.cpus();
        let mut scheduler = Scheduler::new(cpus);
        scheduler.batch = batch.map_or(BATCH, |most| u32::try_from(most).unwrap_or(u32::MAX));
        scheduler.per_node = flags & OPS_IDLE_PER_NODE != 0;
        self.machine.world.set_scheduler(Some(scheduler));
        let mut this = SchedExt {
            vm: self,
            ops: ops.to_owned(),
            flags,
            calls: Vec::new(),
        };
        match this.call("init", Phase::Unlocked, &[])? {
            Some(result) if low(result) < 0 => {
                let why = format!("{ops}: init returned {}", low(result));
                Err(Error::SchedExt(why))
            }
            _ => Ok(this),
        }
    }
}

/// A member's result of type `s32`.
const fn low(r0: u64) -> i32 {
    crate::isa::low32(r0).cast_signed()
}

impl SchedExt<'_> {
    /// Adds a task, which sleeps on CPU 0: calls `init_task` and `enable`. It may run on all
    /// CPUs unless its `cpus_ptr` was set.
    ///
    /// # Errors
    /// [`Error::Kernel`] where no type of tasks is known, [`Error::SchedExt`] where `init_task`
    /// fails or the scheduler has ended.
    pub fn add(&mut self, task: &Task) -> Result<KernelObject> {
        self.check_live()?;
        // The verifier checks what of it a scheduler may write.
        let task = self.vm.machine.world.task_object(task)?.writable();
        let cpus = self.vm.machine.world.cpus();
        for (path, value) in [
            ("scx.weight", 100),
            ("scx.slice", DEFAULT_SLICE),
            ("nr_cpus_allowed", cpus.into()),
        ] {
            set(&task, path, value)?;
        }
        if task.get("cpus_ptr") == Ok(0) {
            set(&task, "cpus_ptr", &make_mask(&self.vm.machine, |_| true)?)?;
        }
        let known = &mut self.state().tasks;
        known.insert(task.address(), TaskState::default());
        let args = self.vm.machine.world.kernel("struct scx_init_task_args");
        let args = args.map_or(0, |args| args.address());
        let result = self.call("init_task", Phase::Unlocked, &[task.address(), args])?;
        if let Some(result) = result.filter(|result| low(*result) != 0) {
            let why = format!("{}: init_task returned {}", self.ops, low(result));
            return Err(Error::SchedExt(why));
        }
        self.call("enable", Phase::Rest, &[task.address()])?;
        Ok(task)
    }

    /// Wakes a task: calls `select_cpu`, `runnable` and, unless it was dispatched already,
    /// `enqueue`. Returns the CPU that was selected, or one on which the task may run.
    ///
    /// # Errors
    /// [`Error::SchedExt`] where the scheduler has ended, or the task does not sleep; as of
    /// [`Vm::run`].
    pub fn wake(&mut self, task: &KernelObject) -> Result<u32> {
        self.check_live()?;
        let at = task.address();
        let state = *self.task(at);
        if state.running || state.owned || state.queue.is_some() {
            return Err(Error::SchedExt("the task does not sleep".to_owned()));
        }
        let previous = state.cpu;
        let phase = Phase::SelectCpu(at);
        let args = [at, previous.into(), WAKE_TTWU];
        let (selected, cpu) = match self.call("select_cpu", phase, &args)? {
            Some(selected) => match u32::try_from(low(selected)) {
                Ok(cpu) if cpu < self.vm.machine.world.cpus() => (Some(cpu), cpu),
                _ => {
                    let why = format!("select_cpu returned {}, no CPU", low(selected));
                    self.state().fail(why);
                    (None, previous)
                }
            },
            None => {
                let cpu = self.select(task, previous)?;
                (Some(cpu), cpu)
            }
        };
        let cpu = self.fallback(task, cpu);
        self.task(at).cpu = cpu;
        let flags = ENQ_WAKEUP | ENQ_CPU_SELECTED;
        self.call("runnable", Phase::Rest, &[at, flags])?;
        self.enqueue(at, flags)?;
        if selected != Some(cpu) {
            self.state().events.select_cpu_fallback += 1;
        }
        Ok(cpu)
    }

    /// Lets a CPU choose what runs next, as when its slice is used up or it is idle
    /// (`balance_one`, `pick_task_scx`): the task that runs on it afterwards. A task with slice
    /// left goes on running. Calls `cpu_acquire` if the CPU was [released](Self::release),
    /// `dispatch` if no task waits, then `stopping`, `enqueue` and `running`, or `update_idle`.
    ///
    /// # Errors
    /// As of [`wake`](Self::wake); [`Error::SchedExt`] for a CPU that does not exist.
    pub fn schedule(&mut self, cpu: u32) -> Result<Option<KernelObject>> {
        self.check_live()?;
        self.check_cpu(cpu)?;
        let state = self.cpu(cpu);
        (state.kicked, state.taken) = (false, false);
        let previous = state.current;
        if std::mem::take(&mut state.released) {
            // Its arguments are null in the kernel, too.
            self.call_on(cpu, "cpu_acquire", Phase::Rest, &[cpu.into(), 0])?;
        }
        if let Some(task) = previous
            && self.slice(task) != 0
        {
            return Ok(self.object(task));
        }
        let mut keeps = !self.find(cpu, previous)?;
        if keeps && let Some(task) = previous.filter(|task| self.slice(*task) == 0) {
            if self.flags & OPS_ENQ_LAST == 0 {
                self.state().events.dispatch_keep_last += 1;
                self.refill(task)?;
            } else {
                // Only the scheduler decides whether it runs on.
                self.put(cpu, task, ENQ_LAST)?;
                keeps = false;
            }
        }
        if keeps && previous.is_some() {
            return Ok(previous.and_then(|task| self.object(task)));
        }
        let local = QueueId::local(cpu);
        let next = self
            .state()
            .queue(local)
            .and_then(|queue| queue.tasks().next());
        if let Some(task) = next {
            self.state().remove(task);
        }
        if let Some(task) = self.cpu(cpu).current {
            self.put(cpu, task, 0)?;
        }
        match next {
            Some(task) => self.begin(cpu, task).map(Some),
            None => {
                if !std::mem::replace(&mut self.cpu(cpu).idle, true) {
                    self.call_on(cpu, "update_idle", Phase::Rest, &[cpu.into(), 1])?;
                }
                Ok(None)
            }
        }
    }

    /// Lets time pass while a task runs on a CPU: clocks and timers advance, its slice gets
    /// shorter, and `tick` is called once, at the end. Returns the slice that is left, in
    /// nanoseconds; when it is 0, the CPU has to [schedule](Self::schedule).
    ///
    /// # Errors
    /// As of [`schedule`](Self::schedule) and [`Vm::advance`]; [`Error::SchedExt`] where nothing runs
    /// on the CPU.
    pub fn run(&mut self, cpu: u32, time: Duration) -> Result<u64> {
        let task = self.current(cpu)?;
        self.vm.machine.world.set_cpu(cpu);
        self.vm.advance(time)?;
        let slice = self.slice(task);
        if slice != INFINITE_SLICE {
            let used = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.set_slice(task, slice.saturating_sub(used))?;
        }
        self.call_on(cpu, "tick", Phase::Rest, &[task])?;
        Ok(self.slice(task))
    }

    /// The task that runs on a CPU sleeps: calls `stopping` and `quiescent`. Then the CPU
    /// [chooses](Self::schedule) what runs next.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn sleep(&mut self, cpu: u32) -> Result<Option<KernelObject>> {
        let task = self.current(cpu)?;
        self.call_on(cpu, "stopping", Phase::Rest, &[task, 0])?;
        self.call_on(cpu, "quiescent", Phase::Rest, &[task, DEQ_SLEEP])?;
        self.task(task).running = false;
        self.cpu(cpu).current = None;
        self.schedule(cpu)
    }

    /// The task that runs on a CPU yields: calls `yield`, or ends its slice. Then the CPU
    /// [chooses](Self::schedule) what runs next.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn yields(&mut self, cpu: u32) -> Result<Option<KernelObject>> {
        let task = self.current(cpu)?;
        if self
            .call_on(cpu, "yield", Phase::Rest, &[task, 0])?
            .is_none()
        {
            self.set_slice(task, 0)?;
        }
        self.schedule(cpu)
    }

    /// A task of a higher class, as of `SCHED_FIFO`, gets a CPU until the CPU
    /// [schedules](Self::schedule) again (`put_prev_task_scx`, `switch_class`). Calls `stopping` for
    /// the task that runs there, which goes to the front of the local queue, or to `enqueue` if its
    /// slice is used up, and `cpu_release`, then `enqueue` for each task of
    /// `scx_bpf_reenqueue_local`. On an idle CPU it calls only `update_idle`.
    ///
    /// # Errors
    /// As of [`schedule`](Self::schedule); [`Error::SchedExt`] where such a task has the CPU already.
    pub fn release(&mut self, cpu: u32, by: &Task) -> Result<()> {
        self.check_live()?;
        self.check_cpu(cpu)?;
        if std::mem::replace(&mut self.cpu(cpu).taken, true) {
            let why = format!("CPU {cpu} is released already");
            return Err(Error::SchedExt(why));
        }
        let Some(task) = self.cpu(cpu).current else {
            if std::mem::take(&mut self.cpu(cpu).idle) {
                self.call_on(cpu, "update_idle", Phase::Rest, &[cpu.into(), 0])?;
            }
            self.vm.machine.world.run_task(by);
            return Ok(());
        };
        self.stop(cpu, task)?;
        if self.slice(task) == 0 {
            self.enqueue(task, 0)?;
        } else {
            let local = QueueId::local(cpu);
            self.state().dispatch(task, local, Insert::HEAD);
        }
        let args = self.vm.machine.world.kernel("struct scx_cpu_release_args");
        if let Ok(args) = &args {
            set(args, "reason", PREEMPT_RT)?;
            set(args, "task", &self.vm.machine.world.task_object(by)?)?;
        }
        let args = args.map_or(0, |args| args.address());
        self.cpu(cpu).released = true;
        self.call_on(cpu, "cpu_release", Phase::CpuRelease, &[cpu.into(), args])?;
        for task in std::mem::take(&mut self.state().reenqueued) {
            self.enqueue(task, ENQ_REENQ)?;
        }
        self.vm.machine.world.run_task(by);
        Ok(())
    }

    /// A CPU's `struct rq`, as `scx_bpf_cpu_rq` returns it. Its `cpu`, `curr` and
    /// `scx.local_dsq.nr` are those of the CPU; a test may set the others.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the type is not known, [`Error::SchedExt`] for a CPU that does not
    /// exist.
    pub fn rq(&mut self, cpu: u32) -> Result<KernelObject> {
        self.check_cpu(cpu)?;
        Ok(run_queue(&mut self.vm.machine, cpu)?)
    }

    /// Removes a task that does not run: calls `dequeue` if the scheduler has it, then `disable`
    /// and `exit_task`.
    ///
    /// # Errors
    /// As of [`wake`](Self::wake); [`Error::SchedExt`] where the task runs.
    pub fn remove(&mut self, task: &KernelObject) -> Result<()> {
        self.check_live()?;
        let at = task.address();
        if self.task(at).running {
            return Err(Error::SchedExt(
                "the task runs: let it sleep first".to_owned(),
            ));
        }
        if self.task(at).owned {
            self.call("dequeue", Phase::Rest, &[at, 0])?;
        }
        self.state().remove(at);
        self.call("disable", Phase::Rest, &[at])?;
        let args = self.vm.machine.world.kernel("struct scx_exit_task_args");
        let args = args.map_or(0, |args| args.address());
        self.call("exit_task", Phase::Rest, &[at, args])?;
        self.state().tasks.remove(&at);
        Ok(())
    }

    /// Ends the scheduler: calls `exit` with the reason, of which it returns the text: the one
    /// that the scheduler gave, if it ended itself.
    ///
    /// # Errors
    /// As of [`Vm::run`].
    pub fn finish(mut self) -> Result<Option<String>> {
        let ended = self.state().ended.take();
        let kind = ended.as_ref().map_or(ExitKind::Unreg, |ended| ended.kind);
        let mut address = 0;
        if let Ok(info) = self.vm.machine.world.kernel("struct scx_exit_info") {
            set(&info, "kind", kind as u64)?;
            if let Some(Ended { code, why, .. }) = &ended {
                set(&info, "exit_code", code.cast_unsigned())?;
                set(&info, "msg", &self.vm.machine.world.kernel_cstr(why)?)?;
            }
            address = info.address();
        }
        self.call("exit", Phase::Unlocked, &[address])?;
        Ok(ended.map(|ended| ended.why))
    }

    /// Why the scheduler has ended, by its own request or for an error in its calls.
    #[must_use]
    pub fn ended(&self) -> Option<&str> {
        let scheduler = self.vm.machine.world.scheduler()?;
        scheduler.ended.as_ref().map(|ended| ended.why.as_str())
    }

    /// The task that runs on a CPU.
    #[must_use]
    pub fn running(&self, cpu: u32) -> Option<KernelObject> {
        let scheduler = self.vm.machine.world.scheduler()?;
        self.object(scheduler.current(cpu)?)
    }

    /// The CPUs that were asked to schedule, in ascending order.
    pub fn kicked(&self) -> impl Iterator<Item = u32> + '_ {
        let scheduler = self.vm.machine.world.scheduler();
        let cpus = scheduler.map_or(&[][..], |scheduler| &scheduler.cpus);
        (0..)
            .zip(cpus)
            .filter(|(_, cpu)| cpu.kicked)
            .map(|(number, _)| number)
    }

    /// The tasks in a dispatch queue, the next one first; none if there is no such queue.
    #[must_use]
    pub fn queued(&self, id: QueueId) -> Vec<KernelObject> {
        let scheduler = self.vm.machine.world.scheduler();
        let queue = scheduler.and_then(|scheduler| scheduler.queue(id));
        let tasks = queue.into_iter().flat_map(|queue| queue.tasks());
        tasks.filter_map(|task| self.object(task)).collect()
    }

    /// Takes the calls of members since the last time, in their order.
    pub fn take_calls(&mut self) -> Vec<MemberCall> {
        std::mem::take(&mut self.calls)
    }

    /// The machine, for its maps and its world.
    pub const fn vm(&mut self) -> &mut Vm {
        self.vm
    }

    /// Calls a member on the current CPU; `None` if the scheduler does not have it.
    fn call(&mut self, member: &'static str, phase: Phase, args: &[u64]) -> Result<Option<u64>> {
        let cpu = self.vm.machine.world.cpu();
        self.call_on(cpu, member, phase, args)
    }

    fn call_on(
        &mut self,
        cpu: u32,
        member: &'static str,
        phase: Phase,
        args: &[u64],
    ) -> Result<Option<u64>> {
        let there = self.vm.struct_ops(&self.ops)?;
        if there.iter().all(|function| function.member != member) {
            return Ok(None);
        }
        self.vm.machine.world.set_cpu(cpu);
        let state = self.state();
        // A task's members are called with the run queue of its CPU locked, others with their CPU's.
        let of = args.first().and_then(|first| state.tasks.get(first));
        let of = of.map_or(cpu, |task| task.cpu);
        state.locked = phase.is_locked().then_some(of);
        state.phase = phase;
        let outcome = self.vm.call_struct_ops(&self.ops, member, args);
        self.state().phase = Phase::Unlocked;
        self.state().locked = None;
        let outcome = outcome?;
        let r0 = outcome.runs.first().map(|run| run.r0);
        self.calls.push(MemberCall {
            member,
            cpu,
            outcome,
        });
        Ok(r0)
    }

    fn check_live(&self) -> Result<()> {
        match self.ended() {
            Some(why) => Err(Error::SchedExt(format!("the scheduler has ended: {why}"))),
            None => Ok(()),
        }
    }

    fn check_cpu(&self, cpu: u32) -> Result<()> {
        let cpus = self.vm.machine.world.cpus();
        if cpu < cpus {
            return Ok(());
        }
        Err(Error::SchedExt(format!(
            "there is no CPU {cpu}, only {cpus}"
        )))
    }

    /// The task that runs on a CPU, of a scheduler that has not ended.
    fn current(&mut self, cpu: u32) -> Result<u64> {
        self.check_live()?;
        self.check_cpu(cpu)?;
        let current = self.cpu(cpu).current;
        current.ok_or_else(|| Error::SchedExt(format!("no task runs on CPU {cpu}")))
    }

    fn state(&mut self) -> &mut Scheduler {
        self.vm.machine.world.scheduler_or_new()
    }

    fn task(&mut self, task: u64) -> &mut TaskState {
        self.state().tasks.entry(task).or_default()
    }

    fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        self.state().cpu(cpu)
    }

    fn object(&self, task: u64) -> Option<KernelObject> {
        self.vm.machine.world.kernel_memory().object_at(task)
    }

    fn slice(&self, task: u64) -> u64 {
        let slice = self
            .object(task)
            .and_then(|task| task.get("scx.slice").ok());
        slice.unwrap_or(DEFAULT_SLICE)
    }

    fn set_slice(&self, task: u64, slice: u64) -> Result<()> {
        match self.object(task) {
            Some(task) => set(&task, "scx.slice", slice),
            None => Ok(()),
        }
    }

    fn refill(&mut self, task: u64) -> Result<()> {
        self.state().events.refill_slice_dfl += 1;
        self.set_slice(task, DEFAULT_SLICE)
    }
}

impl Drop for SchedExt<'_> {
    fn drop(&mut self) {
        self.vm.machine.world.set_scheduler(None);
    }
}

/// Sets a field that not every kernel has.
fn set(object: &KernelObject, path: &str, value: impl Into<FieldValue>) -> Result<()> {
    object.set_if_there(path, value).map_err(KernelError::into)
}
