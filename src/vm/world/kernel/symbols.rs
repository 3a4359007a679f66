//! The kernel's variables and functions by name, and per-CPU variables.

use super::error::KernelError;
use super::memory::KernelMemory;
use super::object::KernelObject;
use super::types::name_and_size;
use crate::btf::{Btf, Kind};
use crate::util::TypeId;
use crate::vm::memory::{Area, Block, BlockType, NewBlock};

type Result<T> = std::result::Result<T, KernelError>;

/// The section of the kernel's per-CPU variables (`kernel/bpf/verifier.c`,
/// `check_pseudo_btf_id`).
const PER_CPU: &str = ".data..percpu";

/// A kernel variable's BTF.
struct Variable {
    ty: BlockType,
    /// Whether it is a per-CPU variable. Only the kernel's BTF says so.
    per_cpu: bool,
}

impl Variable {
    /// The variable of a `BTF_KIND_VAR`; `None` if its type has no size:
    /// `extern const void name` only has an address.
    fn of(btf: &Btf, id: TypeId) -> Option<Self> {
        let variable = btf.get(id).filter(|ty| ty.kind() == Kind::Var)?;
        let ty = BlockType {
            btf: btf.clone(),
            id: variable.target_id()?,
        };
        btf.size_of(ty.id).ok()?;
        let section = btf.find(PER_CPU, Kind::Datasec);
        let per_cpu = section.is_some_and(|all| all.variables().any(|place| place.ty == id));
        Some(Self { ty, per_cpu })
    }
}

impl KernelMemory {
    /// The kernel's variable of this name, created if needed. Its type comes from the kernel's
    /// BTF, or from a loaded object that declares it (`extern … __ksym`).
    ///
    /// # Errors
    /// [`KernelError::NoVariable`] if its type is unknown, [`KernelError::PerCpu`],
    /// [`KernelError::Full`].
    pub fn variable(&self, name: &str) -> Result<KernelObject> {
        let object = self.typed(name)?;
        match object.is_instanced() {
            true => Err(KernelError::PerCpu(name.to_owned())),
            false => Ok(object),
        }
    }

    /// Like [`variable`](Self::variable), with this type if it has none yet or a smaller one.
    ///
    /// # Errors
    /// As for [`make`](Self::make).
    pub fn variable_of(&self, name: &str, type_name: &str) -> Result<KernelObject> {
        let ty = self.heap.types.find(type_name)?;
        self.define(name, Variable { ty, per_cpu: false })
    }

    /// A CPU's instance of a variable. If BTF does not say that it is a per-CPU variable, each
    /// instance starts as a copy of the variable when it is first requested.
    ///
    /// # Errors
    /// As for [`variable`](Self::variable), without [`KernelError::PerCpu`].
    pub fn per_cpu(&self, name: &str, cpu: u32) -> Result<KernelObject> {
        let variable = self.typed(name)?;
        self.instance(variable.address(), cpu)
    }

    /// Creates a zeroed per-CPU object. Programs hold its address, which has no bytes; each
    /// CPU has an instance.
    ///
    /// # Errors
    /// As for [`make_of`](Self::make_of).
    pub fn make_per_cpu(&self, ty: BlockType) -> Result<KernelObject> {
        let (name, size) = name_and_size(&ty)?;
        let new = NewBlock::addresses(format!("per-CPU {name}"), size, Some(ty));
        Ok(self.object(self.heap.blocks.insert(Area::Heap, new)?))
    }

    /// The address in a CPU's instance that corresponds to an address in a per-CPU object.
    /// `None` if there is no object with a type.
    #[must_use]
    pub fn per_cpu_address(&self, address: u64, cpu: u32) -> Option<u64> {
        let block = self.heap.blocks.at(address)?;
        let instance = self.instance(block.address(), cpu).ok()?;
        Some(instance.address() + (address - block.address()))
    }

    /// The CPU's instance of the object at exactly this address.
    fn instance(&self, address: u64, cpu: u32) -> Result<KernelObject> {
        let block = self.heap.blocks.at(address);
        let block = block.ok_or(KernelError::Nowhere(address))?;
        let untyped = || KernelError::Untyped(block.name().to_string());
        let ty = block.ty().cloned().ok_or_else(untyped)?;
        let mut symbols = self.symbols();
        let there = symbols.per_cpu.get(&(address, cpu));
        if let Some(there) = there.filter(|there| there.is_live()) {
            return Ok(self.object(there.clone()));
        }
        let name = format!("{} of CPU {cpu}", block.name());
        let new = NewBlock::bytes(name, block.len(), Some(ty));
        let made = self.heap.blocks.insert(Area::Heap, new)?;
        if !block.is_empty() {
            made.bytes().write(0, &block.bytes().to_vec());
        }
        symbols.per_cpu.insert((address, cpu), made.clone());
        Ok(self.object(made))
    }

    /// The address of the symbol for a type id of the kernel's BTF: a variable, created if
    /// needed, or a function. `None` for other types.
    #[must_use]
    pub fn symbol(&self, btf: &Btf, id: TypeId) -> Option<u64> {
        let ty = btf.get(id)?;
        if let Some(address) = self.symbol_named(ty.name(), false) {
            return Some(address);
        }
        let made = match ty.kind() {
            Kind::Var => match self.typed(ty.name()) {
                Err(KernelError::NoVariable(_)) => match Variable::of(btf, id) {
                    Some(variable) => self.define(ty.name(), variable),
                    None => return self.new_symbol(ty.name(), Area::Data).ok(),
                },
                typed => typed,
            },
            Kind::Func => return self.new_symbol(ty.name(), Area::Text).ok(),
            _ => return None,
        };
        made.ok().map(|object| object.address())
    }

    /// Records the type that an object declares a variable with, for variables that the
    /// kernel's BTF lacks. (In an object's own BTF libbpf has changed the type to `int`.)
    pub fn declare(&self, name: &str, ty: BlockType) {
        let mut symbols = self.symbols();
        symbols.declared.entry(name.into()).or_insert(ty);
    }

    /// The address of the symbol with this name. If there is none and `make` is set, creates
    /// one that has only an address.
    #[must_use]
    pub fn symbol_named(&self, name: &str, make: bool) -> Option<u64> {
        let there = self
            .symbols()
            .by_name
            .get(name)
            .map(|block| block.address());
        match there {
            None if make => {
                let is_function = self.heap.types.has(name, Kind::Func);
                let area = if is_function { Area::Text } else { Area::Data };
                self.new_symbol(name, area).ok()
            }
            there => there,
        }
    }

    /// The name of the symbol that an address lies in, and the offset in it.
    #[must_use]
    pub fn symbol_at(&self, address: u64) -> Option<(String, u64)> {
        let block = self.heap.blocks.at(address)?;
        let symbols = self.symbols();
        let mut names = symbols.by_name.iter();
        let (name, _) = names.find(|(_, there)| there.address() == block.address())?;
        Some((name.to_string(), address - block.address()))
    }

    /// Adds a symbol that has only an address, as from `/proc/kallsyms`. False if the name has
    /// another address, or the address is occupied.
    pub fn place_symbol(&self, name: &str, address: u64) -> bool {
        let mut symbols = self.symbols();
        if let Some(block) = symbols.by_name.get(name) {
            return block.address() == address;
        }
        let new = NewBlock::addresses(name, 0, None);
        let Ok(block) = self.heap.blocks.insert_at(address, new) else {
            return false;
        };
        symbols.by_name.insert(name.into(), block);
        true
    }

    /// Creates a symbol that has only an address.
    fn new_symbol(&self, name: &str, area: Area) -> Result<u64> {
        let new = NewBlock::addresses(name, 0, None);
        let block = self.heap.blocks.insert(area, new)?;
        let address = block.address();
        self.symbols().by_name.insert(name.into(), block);
        Ok(address)
    }

    /// The variable with this name, if its type is known.
    fn typed(&self, name: &str) -> Result<KernelObject> {
        let there = self.symbols().by_name.get(name).cloned();
        if let Some(block) = there.filter(|block| block.ty().is_some()) {
            return Ok(self.object(block));
        }
        let of = |btf: &Btf| Variable::of(btf, btf.find(name, Kind::Var)?.id());
        let declared = || {
            let ty = self.symbols().declared.get(name).cloned()?;
            Some(Variable { ty, per_cpu: false })
        };
        let kernel = self.heap.types.kernel();
        let known = kernel.as_ref().and_then(of).or_else(declared);
        let variable = known.ok_or_else(|| KernelError::NoVariable(name.to_owned()))?;
        self.define(name, variable)
    }

    /// The variable with this name and type; keeps an existing one if it is large enough.
    fn define(&self, name: &str, variable: Variable) -> Result<KernelObject> {
        let (_, size) = name_and_size(&variable.ty)?;
        let mut symbols = self.symbols();
        let there = symbols.by_name.get(name);
        let fits = |block: &&std::sync::Arc<Block>| block.ty().is_some() && block.len() >= size;
        if let Some(block) = there.filter(fits) {
            return Ok(self.object(block.clone()));
        }
        let title = format!("variable {name}");
        let new = match variable.per_cpu {
            true => NewBlock::addresses(title, size, Some(variable.ty)),
            false => NewBlock::bytes(title, size, Some(variable.ty)),
        };
        let block = match there {
            // Keep the address: programs may hold it already.
            Some(symbol) => self.heap.blocks.replace(symbol.address(), new)?,
            None => self.heap.blocks.insert(Area::Data, new)?,
        };
        symbols.by_name.insert(name.into(), block.clone());
        Ok(self.object(block))
    }
}
