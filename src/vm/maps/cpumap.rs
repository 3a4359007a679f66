//! Maps of CPUs to redirect to (`kernel/bpf/cpumap.c`).

use super::base::{Base, Mode};
use super::handle::ProgramHandle;
use super::redirect_value::RedirectValue;
use super::values::Values;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_CPUMAP`. The key is a CPU. The value (`struct bpf_cpumap_val`) has the queue
/// length and, if it has 8 bytes, the id of a program that runs on the CPU. There are no file
/// descriptors: a test sets both with [`set`](Self::set).
#[derive(Debug)]
pub struct CpuMap {
    base: Base,
    values: Values,
}

/// The maximum length of a queue.
const MAX_QUEUE: u32 = 16384;

impl CpuMap {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            values: Values::array(def.value_size, def.max_entries as usize, None),
        }
    }

    /// The queue length and program of a CPU; `None` if packets can't be redirected to it.
    #[must_use]
    pub fn get(&self, cpu: u32) -> Option<RedirectValue> {
        RedirectValue::read(&self.sys_lookup(&cpu.to_le_bytes()).ok()?)
    }

    /// Sets the queue length of a CPU, and the program to run there; length 0 removes the
    /// entry.
    ///
    /// # Errors
    /// `EINVAL` for flags, and for a program if values have 4 bytes; `E2BIG` past the end,
    /// `EEXIST` by flag, `EOVERFLOW` for a length above 16384, `ENODEV` for a CPU that the
    /// machine does not have, `EPERM` if user space may not write.
    pub fn set(
        &self,
        cpu: u32,
        queue: u32,
        program: Option<ProgramHandle>,
        flags: UpdateFlags,
    ) -> Result<(), Errno> {
        self.base.user_writes()?;
        let value = RedirectValue::new(queue, program);
        self.store(
            &cpu.to_le_bytes(),
            &value.write(self.base.def().value_size)?,
            flags,
        )
    }

    fn store(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let mode = Mode::of(flags)?;
        let cpu = self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
        mode.check(true)?;
        let queue = RedirectValue::read(value).map_or(0, |value| value.target);
        if queue > MAX_QUEUE {
            return Err(Errno::EOVERFLOW);
        }
        if cpu >= self.base.cpus() {
            return Err(Errno::ENODEV);
        }
        self.values.set(0, cpu as usize, value)
    }
}

impl Map for CpuMap {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Cpus(self)
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let index = self.base.index_within(key)?.ok_or(Errno::ENOENT)?;
        let value = self.values.read(index as usize)?;
        let there = RedirectValue::read(&value).is_some();
        there.then_some(value).ok_or(Errno::ENOENT)
    }

    /// There are no file descriptors of programs: values with one above 0 are rejected, as the
    /// kernel rejects an invalid descriptor.
    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let mut bare = value.to_vec();
        RedirectValue::forget_program(&mut bare);
        if RedirectValue::descriptor(value).is_none() {
            return self.store(key, &bare, flags);
        }
        // The kernel checks everything else first; then creating the entry fails with ENOMEM.
        self.store(key, &bare, flags)?;
        self.sys_delete(key)?;
        Err(Errno::ENOMEM)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.base.index_within(key)?.ok_or(Errno::EINVAL)?;
        let zeros = vec![0; self.base.def().value_size as usize];
        self.values.set(0, index as usize, &zeros)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
