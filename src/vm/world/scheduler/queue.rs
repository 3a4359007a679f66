//! Dispatch queues: first in, first out, or by virtual time, but not both at once.

use std::fmt;

/// A dispatch queue's number (`enum scx_dsq_id_flags`, `kernel/sched/ext_internal.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u64);

/// `SCX_DSQ_FLAG_BUILTIN`, `SCX_DSQ_FLAG_LOCAL_ON`, `SCX_DSQ_LOCAL`.
const BUILTIN: u64 = 1 << 63;
const LOCAL_ON: u64 = 1 << 62;
const LOCAL: u64 = BUILTIN | 2;

impl QueueId {
    /// The global queue (`SCX_DSQ_GLOBAL`).
    pub const GLOBAL: Self = Self(BUILTIN | 1);

    /// A CPU's local queue (`SCX_DSQ_LOCAL_ON | cpu`).
    #[must_use]
    pub const fn local(cpu: u32) -> Self {
        Self(BUILTIN | LOCAL_ON | cpu as u64)
    }

    /// The queue that a number stands for where `SCX_DSQ_LOCAL` is the local queue of `cpu`.
    pub(crate) const fn on(number: u64, cpu: u32) -> Self {
        if number == LOCAL {
            Self::local(cpu)
        } else {
            Self(number)
        }
    }

    /// Whether it is a built-in queue.
    #[must_use]
    pub const fn is_builtin(self) -> bool {
        self.0 & BUILTIN != 0
    }

    /// The CPU whose local queue it is.
    #[must_use]
    pub fn cpu(self) -> Option<u32> {
        let flags = BUILTIN | LOCAL_ON;
        let cpu = u32::try_from(self.0 & !flags).ok();
        cpu.filter(|_| self.0 & flags == flags)
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.cpu()) {
            (Self::GLOBAL, _) => f.write_str("the global queue"),
            (_, Some(cpu)) => write!(f, "the local queue of CPU {cpu}"),
            _ => write!(f, "queue {:#x}", self.0),
        }
    }
}

/// `SCX_ENQ_HEAD`, `SCX_ENQ_PREEMPT`.
const HEAD: u64 = 1 << 4;
const PREEMPT: u64 = 1 << 32;

/// How a task is put into a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Insert {
    /// At the front.
    pub head: bool,
    /// In a local queue: before what runs on the CPU, whose slice ends.
    pub preempt: bool,
    /// By this virtual time.
    pub vtime: Option<u64>,
}

impl Insert {
    /// At the front.
    pub(crate) const HEAD: Self = Self::new(HEAD, None);

    /// With these flags (`SCX_ENQ_…`).
    pub(crate) const fn new(flags: u64, vtime: Option<u64>) -> Self {
        Self {
            head: flags & (HEAD | PREEMPT) != 0,
            preempt: flags & PREEMPT != 0,
            vtime,
        }
    }
}

/// Why a task can't be put into a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueError {
    /// There is no such queue.
    None,
    /// The queue has tasks in the other order: by virtual time, or not.
    Order {
        /// Whether the tasks there are ordered by virtual time.
        by_vtime: bool,
    },
}

/// A dispatch queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct DispatchQueue {
    /// Tasks with their virtual times, the next one first.
    tasks: Vec<(u64, Option<u64>)>,
}

impl DispatchQueue {
    /// The addresses of its tasks, the next one first.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = u64> + '_ {
        self.tasks.iter().map(|(task, _)| *task)
    }

    /// Whether it has no task.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Puts a task into it.
    pub(super) fn insert(&mut self, task: u64, insert: Insert) -> Result<(), QueueError> {
        let by_vtime = self.tasks.first().map(|(_, vtime)| vtime.is_some());
        if let Some(by_vtime) = by_vtime.filter(|it| *it != insert.vtime.is_some()) {
            return Err(QueueError::Order { by_vtime });
        }
        let at = match insert.vtime {
            // Virtual times wrap around (`time_before64`).
            Some(vtime) => self.tasks.partition_point(|(_, other)| {
                other.is_some_and(|other| vtime.wrapping_sub(other).cast_signed() >= 0)
            }),
            None if insert.head => 0,
            None => self.tasks.len(),
        };
        self.tasks.insert(at, (task, insert.vtime));
        Ok(())
    }

    /// Takes a task out of it.
    pub(super) fn remove(&mut self, task: u64) {
        self.tasks.retain(|(other, _)| *other != task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(inserts: &[Insert]) -> Result<Vec<u64>, QueueError> {
        let mut queue = DispatchQueue::default();
        for (task, insert) in (1..).zip(inserts) {
            queue.insert(task, *insert)?;
        }
        Ok(queue.tasks().collect())
    }

    #[test]
    fn tasks_wait_in_the_order_of_arrival_or_by_virtual_time() {
        let (tail, head) = (Insert::default(), Insert::new(HEAD, None));
        assert_eq!(order(&[tail, tail, head]), Ok(vec![3, 1, 2]));
        let at = |vtime| Insert::new(0, Some(vtime));
        assert_eq!(
            order(&[at(9), at(3), at(9), at(u64::MAX)]),
            Ok(vec![4, 2, 1, 3])
        );
        let mixed = QueueError::Order { by_vtime: true };
        assert_eq!(order(&[at(9), tail]), Err(mixed));
    }

    #[test]
    fn numbers_name_queues() {
        assert_eq!(QueueId::on(0x8000_0000_0000_0002, 3), QueueId::local(3));
        assert_eq!(QueueId(0xc000_0000_0000_0001).cpu(), Some(1));
        assert_eq!((QueueId(5).cpu(), QueueId::GLOBAL.cpu()), (None, None));
        assert!(QueueId::GLOBAL.is_builtin() && !QueueId(5).is_builtin());
    }
}
