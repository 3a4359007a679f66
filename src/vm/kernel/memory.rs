//! Kernel memory as a whole: objects by type, variables by name.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::super::memory::{Area, Block, BlockType, KernelBlocks, NewBlock};
use super::error::KernelError;
use super::heap::Heap;
use super::object::KernelObject;
use super::types::name_and_size;
use crate::btf::{Btf, Kind};
use crate::util::TypeId;

type Result<T> = std::result::Result<T, KernelError>;

/// The mocked kernel's own memory: objects that a test makes, and the kernel's
/// variables. All CPUs of a machine see the same; cloning shares it.
#[derive(Clone, Default)]
pub struct KernelMemory {
    heap: Heap,
    symbols: Arc<Mutex<Symbols>>,
}

/// What the kernel knows by name.
#[derive(Debug, Default)]
struct Symbols {
    by_name: FxHashMap<Arc<str>, Arc<Block>>,
}

impl KernelMemory {
    /// The objects' places in the address space.
    #[must_use]
    pub const fn blocks(&self) -> &KernelBlocks {
        &self.heap.blocks
    }

    fn symbols(&self) -> MutexGuard<'_, Symbols> {
        self.symbols.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes these the kernel's types, which come before those of loaded objects.
    pub fn set_kernel_types(&self, btf: Btf) {
        self.heap.types.set_kernel(btf);
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

    /// Takes over the types that another kernel memory knows.
    pub fn adopt_types(&self, other: &Self) {
        self.heap.types.adopt(&other.heap.types);
    }

    fn object(&self, block: Arc<Block>) -> KernelObject {
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

    /// The kernel's variable of this name, made with the type that the kernel's BTF, or a
    /// loaded object that declares it (`extern … __ksym`), gives it.
    ///
    /// # Errors
    /// [`KernelError::NoVariable`] where nothing does, [`KernelError::Full`].
    pub fn variable(&self, name: &str) -> Result<KernelObject> {
        let there = self.symbols().by_name.get(name).cloned();
        if let Some(block) = there.filter(|block| block.ty().is_some()) {
            return Ok(self.object(block));
        }
        let ty = self.variable_type(name);
        let ty = ty.ok_or_else(|| KernelError::NoVariable(name.to_owned()))?;
        self.define(name, ty)
    }

    /// The same of a type that the test gives it.
    ///
    /// # Errors
    /// As of [`make`](Self::make).
    pub fn variable_of(&self, name: &str, type_name: &str) -> Result<KernelObject> {
        let ty = self.heap.types.find(type_name)?;
        self.define(name, ty)
    }

    /// The address of a symbol that a type of the kernel's BTF stands for: a variable,
    /// made if it is not there yet, or a function. None for any other type.
    #[must_use]
    pub fn symbol(&self, btf: &Btf, id: TypeId) -> Option<u64> {
        let ty = btf.get(id)?;
        let there = self.symbols().by_name.get(ty.name()).cloned();
        if let Some(block) = there {
            return Some(block.address());
        }
        match ty.kind() {
            Kind::Var => {
                let id = ty.target_id()?;
                let btf = btf.clone();
                let made = self.define(ty.name(), BlockType { btf, id });
                made.ok().map(|object| object.address())
            }
            Kind::Func => self.address_of(ty.name(), Area::Text).ok(),
            _ => None,
        }
    }

    /// The address of a symbol of this name; if there is none and `make`, a new one of a
    /// symbol of which no more is known.
    #[must_use]
    pub fn symbol_named(&self, name: &str, make: bool) -> Option<u64> {
        let there = self
            .symbols()
            .by_name
            .get(name)
            .map(|block| block.address());
        match there {
            None if make => self.address_of(name, Area::Data).ok(),
            there => there,
        }
    }

    /// Puts a symbol of which no more is known at an address, as in a kernel's list of
    /// symbols. False where it has another one, or something else is there.
    pub fn place_symbol(&self, name: &str, address: u64) -> bool {
        let mut symbols = self.symbols();
        if let Some(block) = symbols.by_name.get(name) {
            return block.address() == address;
        }
        let new = NewBlock {
            name: name.into(),
            len: 0,
            ty: None,
        };
        let Ok(block) = self.heap.blocks.insert_at(address, new) else {
            return false;
        };
        symbols.by_name.insert(name.into(), block);
        true
    }

    /// The address of a symbol, made if it is not there yet.
    fn address_of(&self, name: &str, area: Area) -> Result<u64> {
        let mut symbols = self.symbols();
        if let Some(block) = symbols.by_name.get(name) {
            return Ok(block.address());
        }
        let new = NewBlock {
            name: name.into(),
            len: 0,
            ty: None,
        };
        let block = self.heap.blocks.insert(area, new)?;
        let address = block.address();
        symbols.by_name.insert(name.into(), block);
        Ok(address)
    }

    /// The type of a variable.
    fn variable_type(&self, name: &str) -> Option<BlockType> {
        let tables = self.heap.types.tables();
        tables.into_iter().find_map(|btf| {
            let id = btf.find(name, Kind::Var)?.target_id()?;
            // `extern const void name` is an address.
            btf.size_of(id).ok()?;
            Some(BlockType { btf, id })
        })
    }

    /// A variable of this name and type: the one there is if it has that many bytes.
    fn define(&self, name: &str, ty: BlockType) -> Result<KernelObject> {
        let (_, size) = name_and_size(&ty)?;
        let mut symbols = self.symbols();
        let there = symbols.by_name.get(name);
        if let Some(block) = there.filter(|block| block.len() >= size) {
            return Ok(KernelObject::whole(&self.heap, block.clone()));
        }
        let new = NewBlock {
            name: format!("variable {name}").into(),
            len: size,
            ty: Some(ty),
        };
        let block = match there {
            // It has an address already, which programs may hold.
            Some(symbol) => {
                let at = symbol.address();
                self.heap.blocks.replace(at, new)?
            }
            None => self.heap.blocks.insert(Area::Data, new)?,
        };
        symbols.by_name.insert(name.into(), block.clone());
        Ok(self.object(block))
    }
}

impl fmt::Debug for KernelMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heap.blocks.fmt(f)
    }
}
