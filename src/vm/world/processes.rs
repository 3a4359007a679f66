//! User-space state of tasks in the kernel: registers and memory areas.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::kernel::{KernelError, KernelMemory, KernelObject};

/// Registers and memory areas of tasks. Clones share them, and so do the CPUs of a machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Processes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By the task's address.
    registers: FxHashMap<u64, KernelObject>,
    areas: Vec<Area>,
}

/// A `vm_area_struct`.
#[derive(Debug)]
struct Area {
    tgid: u32,
    at: Range<u64>,
    object: KernelObject,
}

/// Size of `struct pt_regs` if its type is unknown: enough for x86-64's 168 and arm64's 336.
const REGISTERS: usize = 336;

impl Processes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `struct pt_regs` with which a task entered the kernel, zeroed at first.
    pub fn registers(&self, memory: &KernelMemory, task: u64) -> Result<KernelObject, KernelError> {
        let mut state = self.lock();
        let there = state.registers.get(&task);
        if let Some(there) = there.filter(|there| there.is_live()) {
            return Ok(there.clone());
        }
        let object = match memory.make("struct pt_regs") {
            Err(KernelError::NoType { .. }) => {
                memory.make_bytes("struct pt_regs", &[0; REGISTERS])?
            }
            made => made?,
        };
        state.registers.insert(task, object.clone());
        Ok(object)
    }

    /// Adds a memory area to a process.
    pub fn add(&self, tgid: u32, at: Range<u64>, object: KernelObject) {
        self.lock().areas.push(Area { tgid, at, object });
    }

    /// The memory area of a process that contains an address; the latest one added.
    pub fn area(&self, tgid: u32, address: u64) -> Option<KernelObject> {
        let state = self.lock();
        let mut areas = state.areas.iter().rev();
        let found = areas
            .find(|area| area.tgid == tgid && area.at.contains(&address) && area.object.is_live());
        found.map(|area| area.object.clone())
    }
}
