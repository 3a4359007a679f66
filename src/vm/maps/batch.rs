//! Batch commands and look-up with deletion: `BPF_MAP_*_BATCH` and
//! `BPF_MAP_LOOKUP_AND_DELETE_ELEM` (`kernel/bpf/syscall.c`).
//!
//! A batch of look-ups returns the position of the next batch. For most kinds that is the last
//! key. For hashes it is a bucket number: they are read bucket by bucket, each atomically. A
//! bucket that does not fit into the remaining space is left to the next batch
//! (`__htab_map_lookup_and_delete_batch`, `kernel/bpf/hashtab.c`).

use super::{Kind, Map};
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;

/// The result of a batch of look-ups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The keys, concatenated.
    pub keys: Vec<u8>,
    /// The values, concatenated, as user space sees them.
    pub values: Vec<u8>,
    /// The position of the next batch.
    pub next: Vec<u8>,
    /// `ENOENT` at the end of the map, `ENOSPC` if a hash's next bucket has more elements than
    /// the batch may have. Elements that were read before are valid.
    pub result: Result<(), Errno>,
}

impl Batch {
    const fn refused(errno: Errno) -> Self {
        Self {
            keys: Vec::new(),
            values: Vec::new(),
            next: Vec::new(),
            result: Err(errno),
        }
    }
}

/// The elements of one bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    /// The keys, concatenated.
    pub keys: Vec<u8>,
    /// The values, concatenated.
    pub values: Vec<u8>,
    /// The number of elements.
    pub count: u32,
}

/// Options of look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Hold each value's lock while reading it.
    pub lock: bool,
    /// Remove the elements that were read.
    pub delete: bool,
}

/// The batch commands of a map type (`map_*_batch` of its operations).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commands {
    None,
    /// Look-ups and updates, key by key.
    ReadAndWrite,
    /// Deletions as well.
    ByKey,
    /// All commands; look-ups go bucket by bucket.
    ByBucket,
    /// All commands.
    All,
}

const fn commands(map_type: MapType) -> Commands {
    match map_type {
        MapType::Array | MapType::PercpuArray | MapType::ArrayOfMaps => Commands::ReadAndWrite,
        MapType::LpmTrie => Commands::ByKey,
        MapType::Hash | MapType::PercpuHash | MapType::LruHash | MapType::LruPercpuHash => {
            Commands::ByBucket
        }
        MapType::HashOfMaps => Commands::All,
        _ => Commands::None,
    }
}

/// Whether the type has `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
const fn takes(map_type: MapType) -> bool {
    matches!(
        map_type,
        MapType::Queue
            | MapType::Stack
            | MapType::StackTrace
            | MapType::Hash
            | MapType::PercpuHash
            | MapType::LruHash
            | MapType::LruPercpuHash
    )
}

/// Batches, and look-up with deletion, as user space does them.
impl dyn Map + '_ {
    /// Reads a value and removes its key atomically, as the system call does; for queues and
    /// stacks, pops a value. The only valid flag is `BPF_F_LOCK`.
    ///
    /// # Errors
    /// As for `read_with` and `remove`; `ENOTSUPP` if the type does not support it.
    pub fn take(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>, Errno> {
        if !UpdateFlags::LOCK.contains(flags) {
            return Err(Errno::EINVAL);
        }
        self.base().user_reads()?;
        self.base().user_writes()?;
        self.base().check_read(flags)?;
        self.base().check_key(key)?;
        match self.kind() {
            Kind::Queue(queue) => queue.pop(),
            _ if takes(self.def().map_type) => {
                self.sys_lookup_and_delete(key, flags.contains(UpdateFlags::LOCK))
            }
            _ => Err(Errno::ENOTSUPP),
        }
    }

    /// Reads at most `count` elements, from the position of an earlier batch
    /// ([`next`](Batch::next)), or from the start.
    #[must_use]
    pub fn read_batch(&self, from: Option<&[u8]>, count: u32, flags: UpdateFlags) -> Batch {
        self.batch(from, count, flags, false)
    }

    /// Like `read_batch`, and removes the elements.
    #[must_use]
    pub fn take_batch(&self, from: Option<&[u8]>, count: u32, flags: UpdateFlags) -> Batch {
        self.batch(from, count, flags, true)
    }

    fn batch(&self, from: Option<&[u8]>, count: u32, flags: UpdateFlags, delete: bool) -> Batch {
        let commands = commands(self.def().map_type);
        let has = match commands {
            Commands::None => false,
            Commands::ReadAndWrite | Commands::ByKey => !delete,
            Commands::ByBucket | Commands::All => true,
        };
        let may = || {
            self.base().user_reads()?;
            if delete {
                self.base().user_writes()?;
            }
            has.then_some(()).ok_or(Errno::ENOTSUPP)?;
            self.base().check_read(flags)
        };
        if let Err(errno) = may() {
            return Batch::refused(errno);
        }
        let reading = Reading {
            lock: flags.contains(UpdateFlags::LOCK),
            delete,
        };
        match commands {
            Commands::ByBucket => self.batch_by_bucket(from, count, reading),
            _ => self.batch_by_key(from, count, reading),
        }
    }

    /// Reads key by key (`generic_map_lookup_batch`); keys that are deleted meanwhile are skipped.
    fn batch_by_key(&self, from: Option<&[u8]>, count: u32, reading: Reading) -> Batch {
        let mut batch = Batch {
            result: Ok(()),
            ..Batch::refused(Errno::ENOENT)
        };
        let mut last = from.map(<[u8]>::to_vec);
        let mut done = 0;
        while done < count {
            let key = match self.sys_next_key(last.as_deref()) {
                Ok(key) => key,
                Err(errno) => {
                    batch.result = Err(errno);
                    break;
                }
            };
            let value = match reading.lock {
                true => self.sys_lookup_locked(&key),
                false => self.sys_lookup(&key),
            };
            match value {
                Ok(value) => {
                    batch.keys.extend(&key);
                    batch.values.extend(value);
                    done += 1;
                }
                Err(Errno::ENOENT) => {}
                Err(errno) => {
                    batch.result = Err(errno);
                    break;
                }
            }
            // Continue from the key before the one that is removed.
            if !reading.delete || self.sys_delete(&key).is_err() {
                last = Some(key);
            }
        }
        batch.next = last.unwrap_or_default();
        batch
    }

    fn batch_by_bucket(&self, from: Option<&[u8]>, count: u32, reading: Reading) -> Batch {
        let mut batch = Batch {
            result: Ok(()),
            ..Batch::refused(Errno::ENOENT)
        };
        if count == 0 {
            return batch;
        }
        let first = from.map(|from| from.first_chunk().copied().map(u32::from_le_bytes));
        let Some(mut at) = first.unwrap_or(Some(0)) else {
            return Batch::refused(Errno::EINVAL);
        };
        let mut room = count;
        loop {
            match self.sys_bucket(at, room, reading) {
                Ok(Some(bucket)) => {
                    room = room.saturating_sub(bucket.count);
                    batch.keys.extend(bucket.keys);
                    batch.values.extend(bucket.values);
                    at += 1;
                }
                Ok(None) => {
                    batch.result = Err(Errno::ENOENT);
                    break;
                }
                // The bucket does not fit into this batch.
                Err(Errno::ENOSPC) if room < count => break,
                Err(errno) => {
                    batch.result = Err(errno);
                    break;
                }
            }
        }
        batch.next = at.to_le_bytes().to_vec();
        batch
    }

    /// Writes elements until one fails. Returns the result and the number of elements written.
    /// The only valid flag is `BPF_F_LOCK`.
    ///
    /// `keys` and `values` (as user space sees them) are concatenated; `EINVAL` if their numbers
    /// differ.
    pub fn write_batch(
        &self,
        keys: &[u8],
        values: &[u8],
        flags: UpdateFlags,
    ) -> (Result<(), Errno>, usize) {
        let size = self.user_value_size();
        let has = commands(self.def().map_type) != Commands::None;
        let keys = match self.may_write_batch(keys, flags, has) {
            Ok(keys) => keys,
            Err(errno) => return (Err(errno), 0),
        };
        if size == 0 || keys.len() * size != values.len() {
            return (Err(Errno::EINVAL), 0);
        }
        let mut done = 0;
        for (key, value) in keys.zip(values.chunks_exact(size)) {
            if let Err(errno) = self.sys_update(key, value, flags) {
                return (Err(errno), done);
            }
            done += 1;
        }
        (Ok(()), done)
    }

    /// Removes elements until one fails. Returns the result and the number of elements removed.
    pub fn remove_batch(&self, keys: &[u8], flags: UpdateFlags) -> (Result<(), Errno>, usize) {
        let commands = commands(self.def().map_type);
        let has = !matches!(commands, Commands::None | Commands::ReadAndWrite);
        let keys = match self.may_write_batch(keys, flags, has) {
            Ok(keys) => keys,
            Err(errno) => return (Err(errno), 0),
        };
        let mut done = 0;
        for key in keys {
            if let Err(errno) = self.sys_delete(key) {
                return (Err(errno), done);
            }
            done += 1;
        }
        (Ok(()), done)
    }

    /// Splits `keys`, after checking that a batch of them may be written.
    fn may_write_batch<'k>(
        &self,
        keys: &'k [u8],
        flags: UpdateFlags,
        has: bool,
    ) -> Result<std::slice::ChunksExact<'k, u8>, Errno> {
        self.base().user_writes()?;
        has.then_some(()).ok_or(Errno::ENOTSUPP)?;
        self.base().check_read(flags)?;
        let size = self.def().key_size as usize;
        if size == 0 || !keys.len().is_multiple_of(size) {
            return Err(Errno::EINVAL);
        }
        Ok(keys.chunks_exact(size))
    }
}
