//! The objects that programs allocated, and what is known of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::memory::Block;
use crate::btf::{FieldKind, SpecialFields};

/// Who makes such objects, and takes them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// `bpf_obj_new`.
    Object,
    /// `bpf_percpu_obj_new`: there is one for each CPU.
    PerCpu,
    /// `bpf_cpumask_create`.
    Cpumask,
}

impl Maker {
    /// What an argument is that must be one of these.
    pub(super) const fn wanted(self) -> &'static str {
        match self {
            Self::Object => "an object that bpf_obj_new() made",
            Self::PerCpu => "an object that bpf_percpu_obj_new() made",
            Self::Cpumask => "a struct bpf_cpumask that bpf_cpumask_create() made",
        }
    }

    /// How many parts such an object has on a machine of so many CPUs.
    pub(super) const fn copies(self, cpus: u32) -> u32 {
        match self {
            Self::PerCpu => cpus,
            _ => 1,
        }
    }
}

/// An object that a program allocated.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// Its size in bytes; of one CPU's part, where there is one for each.
    pub size: usize,
    /// What is special in it.
    pub fields: SpecialFields,
    /// Who made it.
    pub maker: Maker,
    /// Its memory.
    pub block: Arc<Block>,
}

impl Object {
    /// The field of this kind, of which there is one at most.
    pub(super) fn field(&self, kind: FieldKind) -> Option<u64> {
        self.fields.find(kind).map(|field| u64::from(field.off))
    }

    /// Where its parts are, from its start, on a machine of so many CPUs.
    pub(super) fn parts(&self, cpus: u32) -> impl Iterator<Item = u64> + use<> {
        let stride = stride(self.size) as u64;
        (0..u64::from(self.maker.copies(cpus))).map(move |part| part * stride)
    }
}

/// The objects that are alive, by address. All CPUs of a machine have the same.
#[derive(Clone, Default)]
pub(super) struct Objects(Arc<Mutex<BTreeMap<u64, Object>>>);

impl Objects {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object that an address lies in, and where it begins.
    pub(super) fn at(&self, address: u64) -> Option<(u64, Object)> {
        let live = self.lock();
        let (start, object) = live.range(..=address).next_back()?;
        (address - start < object.size as u64).then(|| (*start, object.clone()))
    }

    /// The object that begins at an address.
    pub(super) fn get(&self, address: u64) -> Option<Object> {
        self.lock().get(&address).cloned()
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.lock().len())
    }
}

/// Bytes from one CPU's part of an object to the next one's.
pub(super) const fn stride(size: usize) -> usize {
    size.next_multiple_of(8)
}
