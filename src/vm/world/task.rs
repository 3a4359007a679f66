//! The mocked task.

use crate::spec::limits;

/// Identifies a task in its world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(pub u32);

/// A task. Events fire in the context of the world's current one. Its parent is init by
/// default. [`World::new_task`](super::World::new_task) creates others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    id: TaskId,
    pid: u32,
    tgid: u32,
    ppid: u32,
    uid: u32,
    gid: u32,
    comm: [u8; Self::COMM_LEN],
    kernel_stack: Vec<u64>,
    user_stack: Vec<u64>,
    /// Ids of its cgroup and all ancestors, the root's first.
    cgroups: Vec<u64>,
}

/// Start of the kernel's code: the only frame of the default kernel stack.
const KERNEL_TEXT: u64 = 0xffff_ffff_8100_0000;
/// The only frame of the default user stack.
const USER_TEXT: u64 = 0x40_1000;

impl Default for Task {
    fn default() -> Self {
        let mut task = Self {
            id: TaskId(0),
            pid: 1000,
            tgid: 1000,
            ppid: 1,
            uid: 1000,
            gid: 1000,
            comm: [0; Self::COMM_LEN],
            kernel_stack: vec![KERNEL_TEXT],
            user_stack: vec![USER_TEXT],
            cgroups: vec![Self::ROOT_CGROUP],
        };
        task.set_comm("bpflab");
        task
    }
}

impl Task {
    /// `TASK_COMM_LEN`: bytes of a command name, with its NUL.
    pub const COMM_LEN: usize = limits::TASK_COMM_LEN;

    /// The task's id in the world.
    pub(super) const fn id(&self) -> TaskId {
        self.id
    }

    /// A copy with another id: a different task with the same properties.
    pub(super) fn with_id(self, id: TaskId) -> Self {
        Self { id, ..self }
    }

    /// The thread's id, which the kernel calls pid.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The process's id, which the kernel calls tgid and user space pid.
    #[must_use]
    pub const fn tgid(&self) -> u32 {
        self.tgid
    }

    /// The process id of the parent.
    #[must_use]
    pub const fn ppid(&self) -> u32 {
        self.ppid
    }

    /// The user id.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// The group id.
    #[must_use]
    pub const fn gid(&self) -> u32 {
        self.gid
    }

    /// `tgid << 32 | pid`, as `bpf_get_current_pid_tgid` returns it.
    #[must_use]
    pub const fn pid_tgid(&self) -> u64 {
        (self.tgid as u64) << 32 | self.pid as u64
    }

    /// `gid << 32 | uid`, as `bpf_get_current_uid_gid` returns it.
    #[must_use]
    pub const fn uid_gid(&self) -> u64 {
        (self.gid as u64) << 32 | self.uid as u64
    }

    /// The command name, padded with NULs.
    #[must_use]
    pub const fn comm(&self) -> &[u8; Self::COMM_LEN] {
        &self.comm
    }

    /// Id of the root of the default hierarchy of cgroups.
    pub const ROOT_CGROUP: u64 = 1;

    /// Id of the task's cgroup in the default hierarchy; the root's by default.
    #[must_use]
    pub fn cgroup_id(&self) -> u64 {
        self.cgroups.last().copied().unwrap_or(Self::ROOT_CGROUP)
    }

    /// Ids of the task's cgroup and all ancestors, the root's first.
    #[must_use]
    pub fn cgroups(&self) -> &[u64] {
        &self.cgroups
    }

    /// The user or kernel stack: code addresses, innermost function first.
    #[must_use]
    pub fn stack(&self, in_user_space: bool) -> &[u64] {
        match in_user_space {
            true => &self.user_stack,
            false => &self.kernel_stack,
        }
    }

    /// Makes the task a single-threaded process: sets pid and tgid to `pid`.
    pub fn set_pid(&mut self, pid: u32) -> &mut Self {
        self.pid = pid;
        self.tgid = pid;
        self
    }

    /// Makes the task a thread of its process: sets only the kernel's pid.
    pub fn set_tid(&mut self, tid: u32) -> &mut Self {
        self.pid = tid;
        self
    }

    /// Sets the parent process; the default is init, 1.
    pub fn set_ppid(&mut self, ppid: u32) -> &mut Self {
        self.ppid = ppid;
        self
    }

    /// Sets the user id.
    pub fn set_uid(&mut self, uid: u32) -> &mut Self {
        self.uid = uid;
        self
    }

    /// Sets the group id.
    pub fn set_gid(&mut self, gid: u32) -> &mut Self {
        self.gid = gid;
        self
    }

    /// Sets the command name; like the kernel it keeps 15 bytes.
    pub fn set_comm(&mut self, comm: &str) -> &mut Self {
        self.comm = [0; Self::COMM_LEN];
        let kept = comm.bytes().take(Self::COMM_LEN - 1);
        for (to, from) in self.comm.iter_mut().zip(kept) {
            *to = from;
        }
        self
    }

    /// Sets the kernel stack, which `bpf_get_stack` and the like return: code addresses,
    /// innermost function first. The default is one frame; an empty stack has none.
    pub fn set_kernel_stack(&mut self, stack: impl Into<Vec<u64>>) -> &mut Self {
        self.kernel_stack = stack.into();
        self
    }

    /// Sets the user stack; an empty one for a kernel thread.
    pub fn set_user_stack(&mut self, stack: impl Into<Vec<u64>>) -> &mut Self {
        self.user_stack = stack.into();
        self
    }

    /// Moves the task to the cgroup with this id, a child of the root, or to the root itself.
    pub fn set_cgroup_id(&mut self, id: u64) -> &mut Self {
        self.set_cgroups(&[Self::ROOT_CGROUP, id])
    }

    /// Moves the task to the last of these cgroups, parents first. The root's id,
    /// [1](Self::ROOT_CGROUP), may be left out.
    pub fn set_cgroups(&mut self, ids: &[u64]) -> &mut Self {
        let below = ids.iter().filter(|id| **id != Self::ROOT_CGROUP);
        self.cgroups = [Self::ROOT_CGROUP].iter().chain(below).copied().collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_packed_as_helpers_return_them() {
        let mut task = Task::default();
        task.set_pid(42).set_tid(43).set_uid(1).set_gid(2);
        assert_eq!(task.pid_tgid(), 42 << 32 | 43);
        assert_eq!(task.uid_gid(), 2 << 32 | 1);
    }

    #[test]
    fn cgroups_begin_with_the_root() {
        let mut task = Task::default();
        assert_eq!((task.cgroup_id(), task.cgroups()), (1, &[1][..]));
        assert_eq!(task.set_cgroup_id(9).cgroups(), [1, 9]);
        assert_eq!(task.set_cgroups(&[4, 9, 12]).cgroups(), [1, 4, 9, 12]);
        assert_eq!(task.cgroup_id(), 12);
        assert_eq!(task.set_cgroup_id(1).cgroups(), [1]);
    }

    #[test]
    fn a_long_name_is_cut_as_in_the_kernel() {
        let mut task = Task::default();
        task.set_comm("a-very-long-command");
        assert_eq!(task.comm(), b"a-very-long-com\0");
        task.set_comm("dd");
        assert_eq!(&task.comm()[..3], b"dd\0");
    }
}
