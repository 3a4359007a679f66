//! `task_struct` objects in kernel memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cgroups::Cgroups;
use super::kernel::{KernelError, KernelMemory, KernelObject};
use super::task::{Task, TaskId};

/// The `task_struct` objects that were requested. Clones share them: tasks belong to the
/// machine, not to a CPU.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    state: Arc<Mutex<State>>,
    /// Whether there are any objects. Checked before every program run, so it must be cheap.
    is_used: Arc<AtomicBool>,
    /// The tasks' cgroups.
    pub cgroups: Cgroups,
}

#[derive(Debug, Default)]
struct State {
    /// The last task id; the first task has 0.
    last: u32,
    objects: BTreeMap<TaskId, Known>,
    /// Processes that are not tasks of the world, by pid: parents, group leaders.
    others: BTreeMap<u32, KernelObject>,
}

/// A task's object.
#[derive(Debug, Clone)]
struct Known {
    object: KernelObject,
    /// The task's values that were last written to the object.
    task: Option<Task>,
}

/// Members of `struct cred` with user ids; the ones of `GROUPS` have group ids.
const USERS: [&str; 4] = ["uid", "euid", "suid", "fsuid"];
const GROUPS: [&str; 4] = ["gid", "egid", "sgid", "fsgid"];

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a task id.
    pub fn next_id(&self) -> TaskId {
        let mut state = self.lock();
        state.last += 1;
        TaskId(state.last)
    }

    /// The task's object, up to date. If nothing defines `task_struct` and `or_opaque` is set,
    /// the object has only an address.
    pub fn object(
        &self,
        memory: &KernelMemory,
        task: &Task,
        or_opaque: bool,
    ) -> Result<KernelObject, KernelError> {
        let known = self.lock().objects.get(&task.id()).cloned();
        let usable =
            known.filter(|known| known.object.is_live() && (known.object.has_type() || or_opaque));
        let mut known = match usable {
            Some(known) => known,
            None => Known {
                object: match memory.make("struct task_struct") {
                    Err(KernelError::NoType { .. }) if or_opaque => {
                        memory.make_bytes("struct task_struct", &[])?
                    }
                    made => made?,
                },
                task: None,
            },
        };
        if known.task.as_ref() != Some(task) {
            if known.object.has_type() {
                self.fill(memory, &known, task)?;
            }
            known.task = Some(task.clone());
            self.lock().objects.insert(task.id(), known.clone());
            self.is_used.store(true, Ordering::Relaxed);
        }
        Ok(known.object)
    }

    /// Updates the task's object, if there is one.
    #[inline]
    pub fn refresh(&self, memory: &KernelMemory, task: &Task) {
        if self.is_used.load(Ordering::Relaxed) {
            self.catch_up(memory, task);
        }
    }

    #[cold]
    #[inline(never)]
    fn catch_up(&self, memory: &KernelMemory, task: &Task) {
        if self.is_behind(task) {
            // Errors were reported when the object was created.
            let _ = self.object(memory, task, true);
        }
    }

    /// Whether the task has an object that is out of date.
    fn is_behind(&self, task: &Task) -> bool {
        let state = self.lock();
        let known = state.objects.get(&task.id());
        known.is_some_and(|known| known.task.as_ref() != Some(task))
    }

    /// The object of the task with this pid; if there are several, that of the first task.
    pub fn by_pid(&self, pid: u32) -> Option<KernelObject> {
        let state = self.lock();
        let is_it = |known: &&Known| {
            let has_pid = known.task.as_ref().is_some_and(|task| task.pid() == pid);
            has_pid && known.object.is_live()
        };
        let other = || state.others.get(&pid).filter(|other| other.is_live());
        let task = state.objects.values().find(is_it);
        task.map(|known| &known.object).or_else(other).cloned()
    }

    /// The task whose object is at an address, as of the last update of the object.
    pub fn at(&self, address: u64) -> Option<Task> {
        let state = self.lock();
        let mut found = state
            .objects
            .values()
            .filter(|known| known.object.is_live() && known.object.address() == address);
        found.next().and_then(|known| known.task.clone())
    }

    /// Writes what has changed since the last update; fields that the test wrote stay.
    fn fill(&self, memory: &KernelMemory, known: &Known, task: &Task) -> Result<(), KernelError> {
        let (object, old) = (&known.object, known.task.as_ref());
        let changed = |of: fn(&Task) -> u32| old.map(of) != Some(of(task));
        if changed(Task::pid) {
            object.set_if_there("pid", task.pid())?;
        }
        if changed(Task::tgid) {
            object.set_if_there("tgid", task.tgid())?;
        }
        if old.map(Task::comm) != Some(task.comm()) {
            object.set_if_there("comm", task.comm())?;
        }
        for (names, id, of) in [
            (USERS, task.uid(), Task::uid as fn(&Task) -> u32),
            (GROUPS, task.gid(), Task::gid),
        ] {
            for name in names.iter().filter(|_| changed(of)) {
                object.set_if_there(&format!("cred.{name}"), id)?;
            }
        }
        if old.is_none()
            && let Ok(cred) = object.get("cred")
        {
            object.set_if_there("real_cred", cred)?;
        }
        if old.is_none() {
            set_affinity(object)?;
        }
        if changed(Task::pid) || changed(Task::tgid) {
            let leader = match task.pid() == task.tgid() {
                true => object.clone(),
                false => self.relative(memory, task.tgid())?,
            };
            object.set_if_there("group_leader", &leader)?;
        }
        if old.map(Task::cgroups) != Some(task.cgroups()) {
            self.set_cgroup(memory, object, task)?;
        }
        if changed(Task::ppid) {
            let parent = self.relative(memory, task.ppid())?;
            object.set_if_there("real_parent", &parent)?;
            object.set_if_there("parent", &parent)?;
        }
        Ok(())
    }

    /// The object of a process: an existing one, or a new one whose parent is init (or the idle
    /// task, for init).
    fn relative(&self, memory: &KernelMemory, pid: u32) -> Result<KernelObject, KernelError> {
        if let Some(there) = self.by_pid(pid) {
            return Ok(there);
        }
        let object = memory.make("struct task_struct")?;
        self.lock().others.insert(pid, object.clone());
        object.set_if_there("pid", pid)?;
        object.set_if_there("tgid", pid)?;
        object.set_if_there("group_leader", &object)?;
        let (comm, parent) = match pid {
            0 => ("swapper/0", 0),
            1 => ("init", 0),
            _ => ("", 1),
        };
        object.set_if_there("comm", comm)?;
        let parent = self.relative(memory, parent)?;
        object.set_if_there("real_parent", &parent)?;
        object.set_if_there("parent", &parent)?;
        set_affinity(&object)?;
        self.set_cgroup(memory, &object, &Task::default())?;
        Ok(object)
    }

    /// Puts an object into a task's cgroup.
    fn set_cgroup(
        &self,
        memory: &KernelMemory,
        object: &KernelObject,
        task: &Task,
    ) -> Result<(), KernelError> {
        match self.cgroups.at(memory, task.cgroups()) {
            Ok(cgroup) => object.set_if_there("cgroups.dfl_cgrp", &cgroup),
            // The types have no cgroups.
            Err(_) => Ok(()),
        }
    }
}

/// Lets the CPU mask be the task's own: the pointer to it is never null (`dup_task_struct`,
/// `kernel/fork.c`), and the verifier relies on that.
fn set_affinity(object: &KernelObject) -> Result<(), KernelError> {
    match object.at("cpus_mask") {
        Ok(mask) => object.set_if_there("cpus_ptr", mask.address()),
        Err(_) => Ok(()),
    }
}
