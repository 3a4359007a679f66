//! The objects that programs allocated.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::btf::{FieldKind, SpecialFields};
use crate::vm::memory::Block;

/// The kfunc that allocates an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum Maker {
    /// `bpf_obj_new`.
    Object,
    /// `bpf_percpu_obj_new`: one part per CPU.
    PerCpu,
    /// `bpf_cpumask_create`.
    Cpumask,
}

impl Maker {
    /// The expected argument, for errors.
    pub(in crate::vm) const fn wanted(self) -> &'static str {
        match self {
            Self::Object => "an object that bpf_obj_new() made",
            Self::PerCpu => "an object that bpf_percpu_obj_new() made",
            Self::Cpumask => "a struct bpf_cpumask that bpf_cpumask_create() made",
        }
    }

    /// Number of parts of an object on a machine with this many CPUs.
    pub(in crate::vm) const fn copies(self, cpus: u32) -> u32 {
        match self {
            Self::PerCpu => cpus,
            _ => 1,
        }
    }
}

/// An object that a program allocated.
#[derive(Debug, Clone)]
pub(in crate::vm) struct Object {
    /// Size in bytes; of one CPU's part for a per-CPU object.
    pub size: usize,
    /// Special fields of the type.
    pub fields: SpecialFields,
    /// The kfunc that allocated it.
    pub maker: Maker,
    /// Its memory.
    pub block: Arc<Block>,
}

impl Object {
    /// Offset of the field of this kind; there is at most one.
    pub(in crate::vm) fn field(&self, kind: FieldKind) -> Option<u64> {
        self.fields.find(kind).map(|field| u64::from(field.off))
    }

    /// Offsets of its parts on a machine with this many CPUs.
    pub(in crate::vm) fn parts(&self, cpus: u32) -> impl Iterator<Item = u64> + use<> {
        let stride = stride(self.size) as u64;
        (0..u64::from(self.maker.copies(cpus))).map(move |part| part * stride)
    }
}

/// Live objects by address, shared by all CPUs of a machine.
#[derive(Clone, Default)]
pub(in crate::vm) struct Objects(Arc<Mutex<BTreeMap<u64, Object>>>);

impl Objects {
    pub(in crate::vm) fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object that contains an address, and the object's start.
    pub(in crate::vm) fn at(&self, address: u64) -> Option<(u64, Object)> {
        let live = self.lock();
        let (start, object) = live.range(..=address).next_back()?;
        (address - start < object.size as u64).then(|| (*start, object.clone()))
    }

    /// The object at a start address.
    pub(in crate::vm) fn get(&self, address: u64) -> Option<Object> {
        self.lock().get(&address).cloned()
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.lock().len())
    }
}

/// Distance between the parts of consecutive CPUs in bytes.
pub(in crate::vm) const fn stride(size: usize) -> usize {
    size.next_multiple_of(8)
}
