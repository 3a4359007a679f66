//! Values without keys: queues, stacks (`kernel/bpf/queue_stack_maps.c`) and bloom
//! filters (`kernel/bpf/bloom_filter.c`).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// What comes out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// The value that was pushed first: a queue.
    FirstOut,
    /// The value that was pushed last: a stack.
    LastOut,
    /// Nothing; one can only ask whether a value was pushed. The kernel's filter
    /// sometimes says so of a value that was not; this one never does.
    Set,
}

/// `BPF_MAP_TYPE_QUEUE`, `BPF_MAP_TYPE_STACK` and `BPF_MAP_TYPE_BLOOM_FILTER`.
#[derive(Debug)]
pub struct Queue {
    def: MapDef,
    discipline: Discipline,
    values: Mutex<VecDeque<Vec<u8>>>,
}

impl Queue {
    pub(super) fn new(def: MapDef, discipline: Discipline) -> Self {
        Self {
            def,
            discipline,
            values: Mutex::default(),
        }
    }

    fn values(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pushes a value; with `BPF_EXIST` a full queue or stack drops its oldest.
    ///
    /// # Errors
    /// `E2BIG` when full, `EINVAL` for other flags.
    pub fn push(&self, value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let mut values = self.values();
        if self.discipline == Discipline::Set {
            if !flags.is_empty() {
                return Err(Errno::EINVAL);
            }
            if !values.iter().any(|known| known == value) {
                values.push_back(value.to_vec());
            }
            return Ok(());
        }
        let replace = flags == UpdateFlags::EXIST;
        if !flags.is_empty() && !replace {
            return Err(Errno::EINVAL);
        }
        if values.len() >= self.def.max_entries as usize {
            if !replace {
                return Err(Errno::E2BIG);
            }
            values.pop_front();
        }
        values.push_back(value.to_vec());
        Ok(())
    }

    /// Takes the next value out.
    ///
    /// # Errors
    /// `ENOENT` when empty, `EOPNOTSUPP` for a bloom filter.
    pub fn pop(&self) -> Result<Vec<u8>, Errno> {
        let mut values = self.values();
        let value = match self.discipline {
            Discipline::FirstOut => values.pop_front(),
            Discipline::LastOut => values.pop_back(),
            Discipline::Set => return Err(Errno::EOPNOTSUPP),
        };
        value.ok_or(Errno::ENOENT)
    }

    /// Looks at the next value; a bloom filter looks for `value`.
    ///
    /// # Errors
    /// `ENOENT` when empty, or where the filter does not know the value.
    pub fn peek(&self, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let values = self.values();
        let value = match self.discipline {
            Discipline::FirstOut => values.front(),
            Discipline::LastOut => values.back(),
            Discipline::Set => values.iter().find(|known| *known == value),
        };
        value.cloned().ok_or(Errno::ENOENT)
    }
}

impl Map for Queue {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Queue(self)
    }

    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        Ok(None)
    }

    fn update(
        &self,
        _cpu: u32,
        _key: &[u8],
        value: &[u8],
        flags: UpdateFlags,
    ) -> Result<(), Errno> {
        self.push(value, flags)
    }

    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::EINVAL)
    }

    fn read(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.peek(&[])
    }

    fn len(&self) -> usize {
        self.values().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapType;

    const ANY: UpdateFlags = UpdateFlags::empty();

    fn queue(map_type: MapType, discipline: Discipline) -> Queue {
        Queue::new(MapDef::new("q", map_type, 0, 1, 2), discipline)
    }

    #[test]
    fn a_queue_is_first_in_first_out_and_a_stack_is_not() {
        let (queue, stack) = (
            queue(MapType::Queue, Discipline::FirstOut),
            queue(MapType::Stack, Discipline::LastOut),
        );
        for map in [&queue, &stack] {
            assert_eq!(map.pop(), Err(Errno::ENOENT));
            assert_eq!(map.push(&[1], ANY), Ok(()));
            assert_eq!(map.push(&[2], ANY), Ok(()));
            assert_eq!(map.push(&[3], ANY), Err(Errno::E2BIG));
            assert_eq!(map.push(&[3], UpdateFlags::NOEXIST), Err(Errno::EINVAL));
        }
        assert_eq!(
            (queue.peek(&[]), stack.peek(&[])),
            (Ok(vec![1]), Ok(vec![2]))
        );
        assert_eq!(queue.push(&[3], UpdateFlags::EXIST), Ok(()));
        assert_eq!((queue.pop(), queue.pop()), (Ok(vec![2]), Ok(vec![3])));
        assert_eq!((stack.pop(), stack.pop()), (Ok(vec![2]), Ok(vec![1])));
    }

    #[test]
    fn a_bloom_filter_knows_what_was_pushed() {
        let map = queue(MapType::BloomFilter, Discipline::Set);
        assert_eq!(map.push(&[5], ANY), Ok(()));
        assert_eq!(map.peek(&[5]), Ok(vec![5]));
        assert_eq!(map.peek(&[6]), Err(Errno::ENOENT));
        assert_eq!(map.pop(), Err(Errno::EOPNOTSUPP));
        assert_eq!(map.push(&[5], UpdateFlags::EXIST), Err(Errno::EINVAL));
    }
}
