//! Kernel memory: creating objects by type and finding them by address.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::error::KernelError;
use super::heap::Heap;
use super::object::KernelObject;
use crate::btf::Btf;
use crate::vm::memory::{Area, Block, BlockType, KernelBlocks, NewBlock};

type Result<T> = std::result::Result<T, KernelError>;

/// The mocked kernel's own memory: objects that a test creates, and the kernel's variables.
/// All CPUs of a machine share it, and so do clones.
#[derive(Clone, Default)]
pub struct KernelMemory {
    pub(super) heap: Heap,
    symbols: Arc<Mutex<Symbols>>,
}

/// Kernel symbols by name, and instances of per-CPU variables.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    pub by_name: FxHashMap<Arc<str>, Arc<Block>>,
    /// The types of variables that loaded objects declare.
    pub declared: FxHashMap<Arc<str>, BlockType>,
    /// Per-CPU instances, by the variable's address and CPU.
    pub per_cpu: FxHashMap<(u64, u32), Arc<Block>>,
}

impl KernelMemory {
    /// The objects by address.
    #[must_use]
    pub const fn blocks(&self) -> &KernelBlocks {
        &self.heap.blocks
    }

    pub(super) fn symbols(&self) -> MutexGuard<'_, Symbols> {
        self.symbols.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the kernel's types. They take precedence over those of loaded objects.
    pub fn set_kernel_types(&self, btf: Btf) {
        self.heap.types.set_kernel(btf);
    }

    /// The kernel's types, if they are known.
    #[must_use]
    pub fn kernel_types(&self) -> Option<Btf> {
        self.heap.types.kernel()
    }

    /// Adds an object's own types, and those of the kernel that it was relocated for, if no
    /// kernel's types are set yet.
    pub fn add_types(&self, own: Option<&Btf>, kernel: Option<&Btf>) {
        // Without a kernel, an object is relocated against its own types.
        let kernel = kernel.filter(|kernel| own.is_none_or(|own| !own.same(kernel)));
        if let Some(kernel) = kernel.filter(|_| !self.heap.types.has_kernel()) {
            self.set_kernel_types(kernel.clone());
        }
        if let Some(own) = own {
            self.heap.types.add(own);
        }
    }

    /// The types that programs' kernel BTF ids refer to: the kernel's, or else the first
    /// object's own.
    #[must_use]
    pub fn types(&self) -> Option<Btf> {
        self.heap.types.tables().into_iter().next()
    }

    /// Adds all types of another kernel memory.
    pub fn adopt_types(&self, other: &Self) {
        self.heap.types.adopt(&other.heap.types);
    }

    pub(super) fn object(&self, block: Arc<Block>) -> KernelObject {
        KernelObject::whole(&self.heap, block)
    }

    /// Creates a zeroed object of a type, by its name in C: `task_struct`, `struct sk_buff`,
    /// `unsigned long`.
    ///
    /// # Errors
    /// [`KernelError::NoType`], [`KernelError::Layout`], [`KernelError::Full`].
    pub fn make(&self, type_name: &str) -> Result<KernelObject> {
        self.make_with_room(type_name, 0)
    }

    /// Like [`make`](Self::make), followed by `room` extra bytes: for a flexible array at the
    /// end, or for memory that the kernel allocates with the object.
    ///
    /// # Errors
    /// As for [`make`](Self::make).
    pub fn make_with_room(&self, type_name: &str, room: usize) -> Result<KernelObject> {
        self.make_of(self.heap.types.find(type_name)?, room)
    }

    /// Creates an object of this type, followed by `room` extra bytes.
    ///
    /// # Errors
    /// [`KernelError::Layout`], [`KernelError::Full`].
    pub fn make_of(&self, ty: BlockType, room: usize) -> Result<KernelObject> {
        Ok(self.object(self.heap.make(Area::Heap, ty, room)?))
    }

    /// Creates an object with these bytes; `name` is its name in messages.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn make_bytes(&self, name: &str, bytes: &[u8]) -> Result<KernelObject> {
        Ok(self.object(self.heap.make_bytes(name, bytes)?))
    }

    /// Creates a string with its NUL.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn make_text(&self, text: &str) -> Result<KernelObject> {
        Ok(self.object(self.heap.make_text(text)?))
    }

    /// Puts bytes at an address of one's own. The same bytes stay where they are; an object of
    /// other bytes at exactly this address is replaced.
    ///
    /// # Errors
    /// [`KernelError::Full`] if there is no room.
    pub fn put_bytes(&self, address: u64, name: &str, bytes: &[u8]) -> Result<()> {
        let blocks = &self.heap.blocks;
        let known = blocks.at(address).filter(|known| {
            known.address() == address
                && known.len() == bytes.len()
                && known.bytes().to_vec() == bytes
        });
        if known.is_none() {
            let block = blocks.replace(address, NewBlock::bytes(name, bytes.len(), None))?;
            block.bytes().write(0, bytes);
        }
        Ok(())
    }

    /// The whole live object that contains an address.
    #[must_use]
    pub fn object_at(&self, address: u64) -> Option<KernelObject> {
        Some(self.object(self.heap.blocks.at(address)?))
    }

    /// The memory at an address as an object of this type: for a member of another object, or
    /// for a pointer that the kernel casts.
    ///
    /// # Errors
    /// [`KernelError::Nowhere`] if there is no object, [`KernelError::NoType`].
    pub fn view(&self, address: u64, type_name: &str) -> Result<KernelObject> {
        let there = self.object_at(address);
        let there = there.ok_or(KernelError::Nowhere(address))?;
        there.moved_to(address).cast(type_name)
    }

    /// The live objects of this struct, in the order in which they were created.
    #[must_use]
    pub fn objects_of(&self, name: &str) -> Vec<KernelObject> {
        let is_one = |block: &Arc<Block>| {
            let ty = block.ty();
            ty.and_then(|ty| Some(ty.btf.resolve(ty.id).ok()?.name() == name)) == Some(true)
        };
        let live = self.heap.blocks.live().into_iter().filter(is_one);
        live.map(|block| self.object(block)).collect()
    }

    /// Whether a live object of this struct begins at an address, to check a helper's argument.
    /// `None` if the type of the object there is not known.
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
