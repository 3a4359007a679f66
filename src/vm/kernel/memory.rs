//! Kernel memory as a whole: objects by type, and what is at an address.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::super::memory::{Area, Block, BlockType, KernelBlocks};
use super::error::KernelError;
use super::heap::Heap;
use super::object::KernelObject;
use crate::btf::Btf;

type Result<T> = std::result::Result<T, KernelError>;

/// The mocked kernel's own memory: objects that a test makes, and the kernel's
/// variables. All CPUs of a machine see the same; cloning shares it.
#[derive(Clone, Default)]
pub struct KernelMemory {
    pub(super) heap: Heap,
    symbols: Arc<Mutex<Symbols>>,
}

/// What the kernel knows by name, and what there is once for each CPU.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    pub by_name: FxHashMap<Arc<str>, Arc<Block>>,
    /// The types that objects declare variables with.
    pub declared: FxHashMap<Arc<str>, BlockType>,
    /// The instances by address and CPU.
    pub per_cpu: FxHashMap<(u64, u32), Arc<Block>>,
}

impl KernelMemory {
    /// The objects' places in the address space.
    #[must_use]
    pub const fn blocks(&self) -> &KernelBlocks {
        &self.heap.blocks
    }

    pub(super) fn symbols(&self) -> MutexGuard<'_, Symbols> {
        self.symbols.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes these the kernel's types, which come before those of loaded objects.
    pub fn set_kernel_types(&self, btf: Btf) {
        self.heap.types.set_kernel(btf);
    }

    /// The kernel's types, if they are known.
    #[must_use]
    pub fn kernel_types(&self) -> Option<Btf> {
        self.heap.types.kernel()
    }

    /// Adds what an object was compiled with, `own`, and the kernel that it was relocated
    /// for: the first kernel counts.
    pub fn add_types(&self, own: Option<&Btf>, kernel: Option<&Btf>) {
        // Without a kernel, an object is relocated for its own types.
        let kernel = kernel.filter(|kernel| own.is_none_or(|own| !own.same(kernel)));
        if let Some(kernel) = kernel.filter(|_| !self.heap.types.has_kernel()) {
            self.set_kernel_types(kernel.clone());
        }
        if let Some(own) = own {
            self.heap.types.add(own);
        }
    }

    /// The types that programs' numbers of kernel types mean: the kernel's, or else the
    /// first object's own.
    #[must_use]
    pub fn types(&self) -> Option<Btf> {
        self.heap.types.tables().into_iter().next()
    }

    /// Takes over the types that another kernel memory knows.
    pub fn adopt_types(&self, other: &Self) {
        self.heap.types.adopt(&other.heap.types);
    }

    pub(super) fn object(&self, block: Arc<Block>) -> KernelObject {
        KernelObject::whole(&self.heap, block)
    }

    /// A zeroed object of a type, by its name in C: `task_struct`, `struct sk_buff`,
    /// `unsigned long`.
    ///
    /// # Errors
    /// [`KernelError::NoType`], [`KernelError::Layout`], [`KernelError::Full`].
    pub fn make(&self, type_name: &str) -> Result<KernelObject> {
        self.make_with_room(type_name, 0)
    }

    /// The same with `room` bytes more behind it: for a flexible array at its end, or
    /// what the kernel allocates with it.
    ///
    /// # Errors
    /// As of [`make`](Self::make).
    pub fn make_with_room(&self, type_name: &str, room: usize) -> Result<KernelObject> {
        self.make_of(self.heap.types.find(type_name)?, room)
    }

    /// The same of a type that is at hand.
    ///
    /// # Errors
    /// [`KernelError::Layout`], [`KernelError::Full`].
    pub fn make_of(&self, ty: BlockType, room: usize) -> Result<KernelObject> {
        Ok(self.object(self.heap.make(Area::Heap, ty, room)?))
    }

    /// An object of these bytes, which messages call `name`.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn make_bytes(&self, name: &str, bytes: &[u8]) -> Result<KernelObject> {
        Ok(self.object(self.heap.make_bytes(name, bytes)?))
    }

    /// A string with its NUL.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn make_text(&self, text: &str) -> Result<KernelObject> {
        Ok(self.object(self.heap.make_text(text)?))
    }

    /// The live object that an address lies in, from its first byte on, whatever the
    /// address points to in it.
    #[must_use]
    pub fn object_at(&self, address: u64) -> Option<KernelObject> {
        Some(self.object(self.heap.blocks.at(address)?))
    }

    /// What is at an address, seen as an object of a type: a member of another one, or
    /// what the kernel casts a pointer to.
    ///
    /// # Errors
    /// [`KernelError::Nowhere`] where no object is, [`KernelError::NoType`].
    pub fn view(&self, address: u64, type_name: &str) -> Result<KernelObject> {
        let there = self.object_at(address);
        let there = there.ok_or(KernelError::Nowhere(address))?;
        there.moved_to(address).cast(type_name)
    }

    /// The live objects of this struct, in the order in which they were made.
    #[must_use]
    pub fn objects_of(&self, name: &str) -> Vec<KernelObject> {
        let is_one = |block: &Arc<Block>| {
            let ty = block.ty();
            ty.and_then(|ty| Some(ty.btf.resolve(ty.id).ok()?.name() == name)) == Some(true)
        };
        let live = self.heap.blocks.live().into_iter().filter(is_one);
        live.map(|block| self.object(block)).collect()
    }

    /// Whether an address is that of a live object of this struct, or of the beginning
    /// of one: what a helper wants to know of an argument. None where an object is there
    /// whose type is not known.
    #[must_use]
    pub fn is_a(&self, address: u64, name: &str) -> Option<bool> {
        let Some(block) = self.heap.blocks.at(address) else {
            return Some(false);
        };
        let ty = block.ty()?;
        let resolved = ty.btf.resolve(ty.id).ok()?;
        Some(block.address() == address && resolved.name() == name)
    }
}

impl fmt::Debug for KernelMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heap.blocks.fmt(f)
    }
}
