//! Handles of the mocked kernel's objects.

use std::fmt;
use std::sync::Arc;

use super::error::{KernelError, PathProblem};
use super::heap::Heap;
use super::path::{ObjectPart, OnNull, resolve_path};
use super::types::name_and_size;
use crate::btf::Kind;
use crate::vm::fields::{FieldValue, Shape, ValueProblem};
use crate::vm::memory::{Block, BlockType};

type Result<T> = std::result::Result<T, KernelError>;

/// The longest string that is read through a pointer, in bytes.
const MAX_TEXT: usize = 4096;

/// A handle of an object in kernel memory, with or without a BTF type. Clones refer to the same
/// object, which lives until it is [freed](Self::free) or the machine is dropped.
///
/// A path selects a part as in C: members (also of nested and anonymous structs and unions),
/// elements (`comm[0]`), and targets of pointers, by `.` or `->`.
///
/// Programs see changes at once, also on other threads. As in the kernel, aligned numbers are
/// never torn, larger accesses may be. The verifier proves nothing from an object's contents.
///
/// ```
/// use bpflab::{Object, Vm};
/// use bpflab::object::Target;
///
/// # fn main() -> bpflab::Result<()> {
/// let mut object = Object::open("tests/objects/kernel_memory.bpf.o")?;
/// object.set_target(Target::Own); // its own types, whatever kernel runs here
/// let mut vm = Vm::unverified(object)?;
/// let parent = vm.world().kernel("task_struct")?.set("tgid", 1)?;
/// let task = vm.world().kernel("task_struct")?
///     .set("pid", 7)?
///     .set("comm", "dd")?
///     .set("real_parent", &parent)?;
/// assert_eq!(task.get("real_parent->tgid")?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct KernelObject {
    heap: Heap,
    block: Arc<Block>,
    /// Bytes from the start of the block.
    offset: usize,
    ty: Option<BlockType>,
}

impl KernelObject {
    /// A handle of a whole block.
    pub(super) fn whole(heap: &Heap, block: Arc<Block>) -> Self {
        Self {
            heap: heap.clone(),
            ty: block.ty().cloned(),
            block,
            offset: 0,
        }
    }

    /// A handle of the memory at this address in the block, without a type.
    pub(super) fn moved_to(self, address: u64) -> Self {
        let offset = address.saturating_sub(self.block.address());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        Self {
            offset: offset.min(self.block.len()),
            ty: None,
            ..self
        }
    }

    /// Whether it is a per-CPU object, with addresses only and an instance for each CPU.
    pub(super) fn is_instanced(&self) -> bool {
        self.block.is_empty()
    }

    /// The address of its first byte, as programs hold it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.block.address() + self.offset as u64
    }

    /// Its type in C (`struct task_struct`), or its name if it has no type.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.ty {
            Some(ty) => ty.btf.type_name(ty.id),
            None => self.block.name().to_string(),
        }
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let room = self.block.len() - self.offset;
        match &self.ty {
            Some(ty) if self.offset > 0 => name_and_size(ty).map_or(room, |(_, size)| size),
            _ => room,
        }
    }

    /// Its type, if it has one.
    #[must_use]
    pub(crate) const fn block_type(&self) -> Option<&BlockType> {
        self.ty.as_ref()
    }

    /// Whether its type, and so its fields, are known.
    #[must_use]
    pub const fn has_type(&self) -> bool {
        self.ty.is_some()
    }

    /// Whether it has not been freed.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.block.is_live()
    }

    /// A copy of its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let bytes = self.block.bytes().copy(self.offset, self.size());
        bytes.unwrap_or_default()
    }

    /// Writes bytes at its start.
    ///
    /// # Errors
    /// [`KernelError::Path`] if they don't fit, [`KernelError::Freed`].
    pub fn write(self, bytes: &[u8]) -> Result<Self> {
        self.check_live()?;
        if bytes.len() > self.size() {
            let problem = PathProblem::Outside(self.name());
            return Err(self.path_error("", problem));
        }
        self.block.bytes().write(self.offset, bytes);
        Ok(self)
    }

    /// Sets a part. A pointer takes the address of another object (`&object`), a number, or
    /// text, which is copied to kernel memory. An array of `char` takes text. An enum also
    /// takes the name of a value. A struct with a single number (`kuid_t`, `atomic_t`) takes
    /// that number.
    ///
    /// If a pointer in the path is null, a new object of its type is created for it.
    ///
    /// # Errors
    /// [`KernelError::Path`] if the path is invalid, [`KernelError::Value`] if the value does
    /// not fit, [`KernelError::Freed`].
    pub fn set(self, path: &str, value: impl Into<FieldValue>) -> Result<Self> {
        self.put(path, &value.into())?;
        Ok(self)
    }

    /// Like [`set`](Self::set), but does nothing if the type lacks this part: an object file
    /// may define only those members of the kernel's structs that it reads.
    pub(crate) fn set_if_there(&self, path: &str, value: impl Into<FieldValue>) -> Result<()> {
        match self.put(path, &value.into()) {
            Err(KernelError::Path { .. } | KernelError::Value { .. }) => Ok(()),
            done => done,
        }
    }

    fn put(&self, path: &str, value: &FieldValue) -> Result<()> {
        let part = self.part(path, OnNull::Make)?;
        let is_bytes = matches!(value, FieldValue::Bytes(_));
        let part = if is_bytes { part } else { part.unwrapped() };
        let shape = part.shape();
        let value = match (&shape, value) {
            (Shape::Pointer, FieldValue::Text(text)) => {
                FieldValue::from(self.heap.make_text(text)?.address())
            }
            (Shape::Int { .. } | Shape::Bits { .. }, FieldValue::Text(text)) => {
                match enumerator(&part, text) {
                    Some(number) => FieldValue::Int(number),
                    None => value.clone(),
                }
            }
            _ => value.clone(),
        };
        let outside = || self.path_error(path, PathProblem::Outside(part.block.name().to_string()));
        let (bytes, at, size) = (part.block.bytes(), part.byte(), shape.size() as usize);
        let mut buffer = bytes.copy(at, size).ok_or_else(outside)?;
        let encoded = shape.encode(&value, &mut buffer);
        encoded.map_err(|problem| self.value_error(path, problem))?;
        bytes.write(at, &buffer).ok_or_else(outside)
    }

    /// The number in a part, zero-extended: an integer, an enum, a pointer, a bit field, or a
    /// struct with a single number.
    ///
    /// # Errors
    /// [`KernelError::Path`] if the path is invalid, contains a null pointer, or the part is
    /// not a number.
    pub fn get(&self, path: &str) -> Result<u64> {
        let part = self.part(path, OnNull::Fail)?.unwrapped();
        let shape = part.shape();
        let outside = || self.path_error(path, PathProblem::Outside(part.block.name().to_string()));
        let (bytes, at) = (part.block.bytes(), part.byte());
        match shape {
            Shape::Int {
                size: 1 | 2 | 4 | 8,
                ..
            }
            | Shape::Char
            | Shape::Pointer => bytes.load(at, shape.size() as usize).ok_or_else(outside),
            Shape::Bits { size, shift, width } => {
                let copied = bytes.copy(at, size as usize).ok_or_else(outside)?;
                let number = copied
                    .iter()
                    .rev()
                    .fold(0u128, |number, byte| number << 8 | u128::from(*byte));
                let mask = (1u128 << width.min(64)) - 1;
                Ok(u64::try_from(number >> shift & mask).unwrap_or_default())
            }
            _ => Err(self.path_error(path, PathProblem::NoNumber(part.type_name()))),
        }
    }

    /// The text in an array of `char`, or behind a pointer to `char`, up to its NUL. Invalid
    /// UTF-8 is replaced.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn text(&self, path: &str) -> Result<String> {
        let part = self.part(path, OnNull::Fail)?;
        let no_text =
            |part: &ObjectPart| self.path_error(path, PathProblem::NoText(part.type_name()));
        let (block, at, most) = match part.shape() {
            Shape::Array { element, count } if element.size() == 1 => {
                (part.block.clone(), part.byte(), count as usize)
            }
            Shape::Pointer => {
                let address = part.pointer().unwrap_or_default();
                let step = path.to_owned();
                if address == 0 {
                    return Err(self.path_error(path, PathProblem::Null(step)));
                }
                let Some(block) = self.heap.blocks.at(address) else {
                    let nowhere = PathProblem::Nowhere { step, address };
                    return Err(self.path_error(path, nowhere));
                };
                let at = usize::try_from(address - block.address()).unwrap_or(usize::MAX);
                (block, at, MAX_TEXT)
            }
            _ => return Err(no_text(&part)),
        };
        let room = block.len().saturating_sub(at).min(most);
        let bytes = block.bytes().copy(at, room).ok_or_else(|| no_text(&part))?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// A part as an object: a member, an element, or the target of a pointer.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn at(&self, path: &str) -> Result<Self> {
        let mut part = self.part(path, OnNull::Fail)?;
        if part.shape() == Shape::Pointer {
            // Follow the pointer as if the path went on.
            let from = part.clone();
            part = resolve_path(&self.heap, from, "[0]", OnNull::Fail).map_err(
                |error| match error {
                    KernelError::Path { problem, .. } => self.path_error(path, *problem),
                    other => other,
                },
            )?;
        }
        let object = Self {
            heap: self.heap.clone(),
            offset: part.byte(),
            block: part.block,
            ty: Some(BlockType {
                btf: part.btf,
                id: part.ty,
            }),
        };
        if object.offset > object.block.len() {
            let name = object.block.name().to_string();
            return Err(self.path_error(path, PathProblem::Outside(name)));
        }
        Ok(object)
    }

    /// The same memory as an object of another type: a `struct sock` that is the start of a
    /// `struct tcp_sock`. Parts beyond the end of the object can't be accessed.
    ///
    /// # Errors
    /// [`KernelError::NoType`].
    pub fn cast(&self, type_name: &str) -> Result<Self> {
        Ok(Self {
            ty: Some(self.heap.types.find(type_name)?),
            ..self.clone()
        })
    }

    /// Lets programs write to the whole object, like one that they allocated. Without it, a
    /// store is a fault.
    #[must_use]
    pub fn writable(self) -> Self {
        self.block.set_writable(true);
        self
    }

    /// Frees the whole object, even if this handle refers to a part. Programs that still have
    /// its address read 0 there, as with the kernel's fault-tolerant loads, and the outcome
    /// lists these loads. The addresses are not reused. False if it was freed already.
    pub fn free(&self) -> bool {
        self.heap.blocks.free(&self.block)
    }

    fn check_live(&self) -> Result<()> {
        match self.is_live() {
            true => Ok(()),
            false => Err(KernelError::Freed(self.name())),
        }
    }

    fn part(&self, path: &str, null: OnNull) -> Result<ObjectPart> {
        self.check_live()?;
        let Some(ty) = &self.ty else {
            return Err(KernelError::Untyped(self.name()));
        };
        let from = ObjectPart {
            block: self.block.clone(),
            bit: self.offset as u64 * 8,
            width: None,
            btf: ty.btf.clone(),
            ty: ty.id,
        };
        resolve_path(&self.heap, from, path, null)
    }

    fn path_error(&self, path: &str, problem: PathProblem) -> KernelError {
        KernelError::Path {
            ty: self.name(),
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    fn value_error(&self, path: &str, problem: ValueProblem) -> KernelError {
        KernelError::Value {
            ty: self.name(),
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

/// The number of an enum value, by its name.
fn enumerator(part: &ObjectPart, name: &str) -> Option<i128> {
    let ty = part.btf.resolve(part.ty).ok()?;
    if !matches!(ty.kind(), Kind::Enum | Kind::Enum64) {
        return None;
    }
    let mut values = ty.enumerators();
    let found = values.find(|value| value.name == name)?;
    Some(found.value())
}

impl From<&KernelObject> for FieldValue {
    /// The object's address.
    fn from(object: &KernelObject) -> Self {
        Self::from(object.address())
    }
}

impl fmt::Debug for KernelObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.name(), self.address())
    }
}

/// Two handles of the same memory are equal.
impl PartialEq for KernelObject {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.block, &other.block) && self.offset == other.offset
    }
}

impl Eq for KernelObject {}

#[cfg(test)]
mod tests;
