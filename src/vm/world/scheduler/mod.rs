//! What a sched_ext scheduler works on: dispatch queues, the state of tasks, idle CPUs
//! (`kernel/sched/ext.c`, `kernel/sched/ext_idle.c` of Linux 6.18). One scheduler at a time; its
//! CPUs are plain, without siblings, caches or nodes.

mod queue;

use std::collections::BTreeMap;

use queue::QueueError;

pub(crate) use queue::DispatchQueue;
pub(crate) use queue::Insert;
pub use queue::QueueId;

/// The time slice that a task gets by default, in nanoseconds (`SCX_SLICE_DFL`).
pub(crate) const DEFAULT_SLICE: u64 = 20_000_000;
/// A slice that is never used up (`SCX_SLICE_INF`).
pub(crate) const INFINITE_SLICE: u64 = u64::MAX;

/// A call into the scheduler, as far as kfuncs depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// `select_cpu` for a task, which may be dispatched directly.
    SelectCpu(u64),
    /// `enqueue` for a task, which may be dispatched directly.
    Enqueue(u64),
    /// `dispatch` on the current CPU.
    Dispatch,
    /// `cpu_release` on the current CPU.
    CpuRelease,
    /// Any other member that is called with a run queue locked.
    Rest,
    /// Any other member, or none.
    #[default]
    Unlocked,
}

impl Phase {
    /// `SCX_KF_CPU_RELEASE`, `SCX_KF_DISPATCH`, `SCX_KF_ENQUEUE`, `SCX_KF_SELECT_CPU`,
    /// `SCX_KF_REST` (`enum scx_kf_mask`, `include/linux/sched/ext.h`).
    pub(crate) const CPU_RELEASE: u32 = 1;
    pub(crate) const DISPATCH: u32 = 1 << 1;
    pub(crate) const ENQUEUE: u32 = 1 << 2;
    const SELECT_CPU: u32 = 1 << 3;
    const REST: u32 = 1 << 4;

    /// The sets of kfuncs that the member may call, 0 for those of any.
    pub(crate) const fn mask(self) -> u32 {
        match self {
            Self::SelectCpu(_) => Self::ENQUEUE | Self::SELECT_CPU,
            Self::Enqueue(_) => Self::ENQUEUE,
            Self::Dispatch => Self::DISPATCH,
            Self::CpuRelease => Self::CPU_RELEASE,
            Self::Rest => Self::REST,
            Self::Unlocked => 0,
        }
    }

    /// The task that may be dispatched directly.
    pub(crate) const fn direct(self) -> Option<u64> {
        match self {
            Self::SelectCpu(task) | Self::Enqueue(task) => Some(task),
            _ => None,
        }
    }

    /// Whether the kernel holds the lock of a run queue during the call (the argument `rq` of
    /// `SCX_CALL_OP`).
    pub(crate) const fn is_locked(self) -> bool {
        !matches!(self, Self::SelectCpu(_) | Self::Unlocked)
    }
}

/// A task that `dispatch` dispatched, before it is in its queue (`struct scx_dsp_buf_ent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    pub task: u64,
    /// The queue's number, which may be `SCX_DSQ_LOCAL`.
    pub number: u64,
    pub insert: Insert,
}

/// How often something happened (`struct scx_event_stats`, `kernel/sched/ext_internal.h`). The
/// other counters of Linux 6.18 are about what is not modelled: CPUs that are offline, tasks that
/// exit or can't migrate, and bypass mode, which the kernel also enters while it starts a
/// scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Events {
    /// A task woke on another CPU than `select_cpu` returned.
    pub select_cpu_fallback: u64,
    /// A task ran on, since no other one was there.
    pub dispatch_keep_last: u64,
    /// A task got the default slice from the kernel.
    pub refill_slice_dfl: u64,
}

/// What sched_ext knows of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TaskState {
    /// The CPU that it runs on, or ran on last.
    pub cpu: u32,
    /// Whether it runs.
    pub running: bool,
    /// The queue that it is in.
    pub queue: Option<QueueId>,
    /// Whether the scheduler was given it and has not dispatched it yet.
    pub owned: bool,
    /// The queue to which `select_cpu` or `enqueue` dispatched it.
    pub direct: Option<(u64, Insert)>,
}

/// A CPU of the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuState {
    /// The task that runs on it.
    pub current: Option<u64>,
    /// Whether the idle mask has it. An idle CPU that a task was given to is taken out.
    pub idle: bool,
    /// Whether a task of a higher class runs on it.
    pub taken: bool,
    /// Whether the scheduler was told that, and not yet that it has the CPU again.
    pub released: bool,
    /// Whether it was asked to schedule again (`scx_bpf_kick_cpu`, `SCX_ENQ_PREEMPT`).
    pub kicked: bool,
    /// Its `struct rq`, once a program or a test asked for it.
    pub rq: Option<u64>,
    /// The performance target, of 1024 (`scx_bpf_cpuperf_set`).
    pub performance: u32,
}

/// How a scheduler ends (`enum scx_exit_kind`, `kernel/sched/ext_internal.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitKind {
    /// User space ends it.
    Unreg = 64,
    /// It ends itself.
    UnregBpf = 65,
    /// The kernel ends it for a mistake.
    Error = 1024,
    /// It reports an error.
    ErrorBpf = 1025,
}

/// Why a scheduler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub kind: ExitKind,
    /// Its own code.
    pub code: i64,
    pub why: String,
}

/// The state of sched_ext.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scheduler {
    pub(crate) phase: Phase,
    pub(crate) tasks: BTreeMap<u64, TaskState>,
    pub(crate) cpus: Vec<CpuState>,
    queues: BTreeMap<QueueId, DispatchQueue>,
    /// The CPU whose run queue the kernel has locked for the current call.
    pub(crate) locked: Option<u32>,
    /// How many tasks may be [pending](Self::pending).
    pub(crate) batch: u32,
    /// The tasks that the current call of `dispatch` dispatched, and that are in no queue yet.
    pub(crate) pending: Vec<Pending>,
    /// How many tasks the current call of `dispatch` put into queues.
    pub(crate) dispatched: u32,
    /// Tasks that `cpu_release` took from the local queue, for `enqueue`.
    pub(crate) reenqueued: Vec<u64>,
    /// Whether idle CPUs are tracked for each node (`SCX_OPS_BUILTIN_IDLE_PER_NODE`).
    pub(crate) per_node: bool,
    pub(crate) events: Events,
    /// Why the scheduler was ended.
    pub(crate) ended: Option<Ended>,
}

impl Scheduler {
    /// A scheduler of so many CPUs, all of them idle, with the built-in queues.
    pub(crate) fn new(cpus: u32) -> Self {
        let idle = CpuState {
            idle: true,
            performance: 1024,
            ..CpuState::default()
        };
        let local = (0..cpus).map(QueueId::local);
        let queues = local.chain([QueueId::GLOBAL]);
        Self {
            cpus: vec![idle; cpus as usize],
            queues: queues.map(|id| (id, DispatchQueue::default())).collect(),
            ..Self::default()
        }
    }

    /// The state of a CPU.
    pub(crate) fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        let at = cpu as usize;
        if at >= self.cpus.len() {
            self.cpus.resize(at + 1, CpuState::default());
        }
        &mut self.cpus[at]
    }

    /// The task that runs on a CPU.
    pub(crate) fn current(&self, cpu: u32) -> Option<u64> {
        self.cpus.get(cpu as usize)?.current
    }

    /// Whether a task runs on a CPU, also one of a higher class.
    pub(crate) fn is_busy(&self, cpu: u32) -> bool {
        let cpu = self.cpus.get(cpu as usize);
        cpu.is_some_and(|cpu| cpu.current.is_some() || cpu.taken)
    }

    /// How many tasks `dispatch` may still dispatch before the pending ones go to their queues.
    pub(crate) fn slots(&self) -> u32 {
        let pending = u32::try_from(self.pending.len()).unwrap_or(u32::MAX);
        self.batch.saturating_sub(pending)
    }

    /// Takes all tasks out of a CPU's local queue, for `enqueue`; their number.
    pub(crate) fn reenqueue(&mut self, cpu: u32) -> u32 {
        let queue = self.queue(QueueId::local(cpu));
        let tasks: Vec<_> = queue.into_iter().flat_map(DispatchQueue::tasks).collect();
        for task in &tasks {
            self.remove(*task);
        }
        let count = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        self.reenqueued.extend(tasks);
        count
    }

    /// The queue of this number.
    #[must_use]
    pub(crate) fn queue(&self, id: QueueId) -> Option<&DispatchQueue> {
        self.queues.get(&id)
    }

    /// Creates a queue; whether there was none.
    pub(crate) fn create(&mut self, id: QueueId) -> bool {
        let is_new = !self.queues.contains_key(&id);
        self.queues.entry(id).or_default();
        is_new
    }

    /// Removes an empty queue; `None` if there is none or it has tasks.
    pub(crate) fn destroy(&mut self, id: QueueId) -> Option<()> {
        if !self.queues.get(&id)?.is_empty() {
            return None;
        }
        self.queues.remove(&id).map(drop)
    }

    /// Puts a task into a queue.
    pub(crate) fn insert(
        &mut self,
        task: u64,
        id: QueueId,
        insert: Insert,
    ) -> Result<(), QueueError> {
        self.remove(task);
        let queue = self.queues.get_mut(&id).ok_or(QueueError::None)?;
        queue.insert(task, insert)?;
        let state = self.tasks.entry(task).or_default();
        (state.queue, state.owned) = (Some(id), false);
        // `set_task_cpu`: the task migrates when it gets into the local queue.
        state.cpu = id.cpu().unwrap_or(state.cpu);
        Ok(())
    }

    /// Puts a task into a queue. What the kernel does not do ends the scheduler, and the task goes
    /// into the global queue.
    pub(crate) fn dispatch(&mut self, task: u64, id: QueueId, insert: Insert) {
        let why = match self.insert(task, id, insert) {
            _ if id.is_builtin() && insert.vtime.is_some() => {
                "cannot use vtime ordering for built-in DSQs".to_owned()
            }
            Ok(()) => return,
            Err(QueueError::None) => format!("non-existent DSQ {:#x}", id.0),
            Err(QueueError::Order { by_vtime }) => {
                let order = if by_vtime { "PRIQ" } else { "FIFO" };
                format!("DSQ ID {:#018x} already had {order}-enqueued tasks", id.0)
            }
        };
        self.fail(why);
        // It is always there, and its tasks are in the order of arrival.
        let _ = self.insert(task, QueueId::GLOBAL, Insert::default());
    }

    /// Takes a task out of the queue that it is in.
    pub(crate) fn remove(&mut self, task: u64) {
        let Some(state) = self.tasks.get_mut(&task) else {
            return;
        };
        if let Some(queue) = state.queue.take().and_then(|id| self.queues.get_mut(&id)) {
            queue.remove(task);
        }
    }

    /// Asks a CPU to schedule again, unless a task of a higher class has it.
    pub(crate) fn kick(&mut self, cpu: u32) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.kicked |= !cpu.taken;
        }
    }

    /// Takes the idle mark from a CPU; whether it was there.
    pub(crate) fn claim(&mut self, cpu: u32) -> bool {
        let cpu = self.cpus.get_mut(cpu as usize);
        cpu.is_some_and(|cpu| std::mem::take(&mut cpu.idle))
    }

    /// Ends the scheduler for a mistake, as `scx_error` does.
    pub(crate) fn fail(&mut self, why: impl Into<String>) {
        self.end(ExitKind::Error, 0, why);
    }

    /// Ends the scheduler, if nothing has ended it yet.
    pub(crate) fn end(&mut self, kind: ExitKind, code: i64, why: impl Into<String>) {
        self.ended.get_or_insert_with(|| Ended {
            kind,
            code,
            why: why.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_in_one_queue() {
        let mut scheduler = Scheduler::new(2);
        let (local, own) = (QueueId::local(1), QueueId(7));
        assert!(scheduler.create(own) && !scheduler.create(own));
        scheduler.insert(40, own, Insert::default()).unwrap();
        scheduler.insert(40, local, Insert::default()).unwrap();
        let tasks = |scheduler: &Scheduler, id| scheduler.queue(id).unwrap().tasks().count();
        assert_eq!((tasks(&scheduler, own), tasks(&scheduler, local)), (0, 1));
        assert_eq!(scheduler.destroy(own), Some(()));
        assert_eq!(scheduler.destroy(local), None);
        scheduler.remove(40);
        assert_eq!(tasks(&scheduler, local), 0);
        let lost = scheduler.insert(40, own, Insert::default());
        assert_eq!(lost, Err(QueueError::None));
    }

    #[test]
    fn tasks_of_a_local_queue_are_enqueued_again() {
        let mut scheduler = Scheduler::new(2);
        for task in [40, 41] {
            let queued = scheduler.insert(task, QueueId::local(1), Insert::default());
            queued.unwrap();
        }
        assert_eq!((scheduler.reenqueue(0), scheduler.reenqueue(1)), (0, 2));
        assert_eq!(scheduler.reenqueued, [40, 41]);
        // The tasks have left the queue, and stay on its CPU.
        assert_eq!(scheduler.reenqueue(1), 0);
        let state = scheduler.tasks[&40];
        assert_eq!((state.queue, state.cpu), (None, 1));
    }

    #[test]
    fn an_idle_cpu_is_claimed_once() {
        let mut scheduler = Scheduler::new(1);
        assert!(scheduler.claim(0) && !scheduler.claim(0) && !scheduler.claim(1));
    }
}
