//! An object of the mocked kernel, as a test holds it.

use std::fmt;
use std::sync::Arc;

use super::super::events::{FieldValue, Shape, ValueProblem};
use super::super::memory::{Block, BlockType};
use super::error::{KernelError, PathProblem};
use super::heap::Heap;
use super::place::{OnNull, Place, walk};
use super::types::name_and_size;
use crate::btf::Kind;

type Result<T> = std::result::Result<T, KernelError>;

/// The longest text that is read behind a pointer.
const MAX_TEXT: usize = 4096;

/// An object in kernel memory: of a BTF type, or just bytes. Cloning gives another
/// handle of the same object, which lives until it is [freed](Self::free), or the
/// machine goes.
///
/// A path leads to a part of it as in C: members, those of nested and anonymous structs
/// and unions, elements (`comm[0]`), and what pointers point to, by `.` or `->`.
///
/// Programs see what is written here at once, also those that run on other threads: as
/// in the kernel, aligned numbers are never torn, more than that may be. Nothing that
/// the verifier proves rests on what is in an object.
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
    /// The whole of a block.
    pub(super) fn whole(heap: &Heap, block: Arc<Block>) -> Self {
        Self {
            heap: heap.clone(),
            ty: block.ty().cloned(),
            block,
            offset: 0,
        }
    }

    /// What is at this address, which lies in it, and of which no more is known.
    pub(super) fn moved_to(self, address: u64) -> Self {
        let offset = address.saturating_sub(self.block.address());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        Self {
            offset: offset.min(self.block.len()),
            ty: None,
            ..self
        }
    }

    /// Whether it has addresses only, and each CPU an instance of it.
    pub(super) fn is_instanced(&self) -> bool {
        self.block.is_empty()
    }

    /// The address of its first byte: what a program holds as a pointer to it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.block.address() + self.offset as u64
    }

    /// What it is: its type in C (`struct task_struct`), or what its bytes are.
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

    /// Whether its type is known, and so its fields.
    #[must_use]
    pub const fn has_type(&self) -> bool {
        self.ty.is_some()
    }

    /// Whether it was not freed.
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

    /// Writes bytes from its start on.
    ///
    /// # Errors
    /// [`KernelError::Path`] where they don't fit, [`KernelError::Freed`].
    pub fn write(self, bytes: &[u8]) -> Result<Self> {
        self.check_live()?;
        if bytes.len() > self.size() {
            let problem = PathProblem::Outside(self.name());
            return Err(self.path_error("", problem));
        }
        self.block.bytes().write(self.offset, bytes);
        Ok(self)
    }

    /// Sets a part. A pointer takes the address of another object (`&object`), a number,
    /// or text, of which it gets a copy in kernel memory; an array of `char` takes text,
    /// an enum the name of a value too, a struct of one number (`kuid_t`, `atomic_t`)
    /// that number.
    ///
    /// A pointer on the way that is null is made to point to a new object of its type.
    ///
    /// # Errors
    /// [`KernelError::Path`] where the path leads nowhere, [`KernelError::Value`] where
    /// the value does not fit, [`KernelError::Freed`].
    pub fn set(self, path: &str, value: impl Into<FieldValue>) -> Result<Self> {
        self.put(path, &value.into())?;
        Ok(self)
    }

    /// The same where the type has such a part: an object may define as little of the
    /// kernel's structs as it reads.
    pub(in crate::vm) fn set_if_there(
        &self,
        path: &str,
        value: impl Into<FieldValue>,
    ) -> Result<()> {
        match self.put(path, &value.into()) {
            Err(KernelError::Path { .. } | KernelError::Value { .. }) => Ok(()),
            done => done,
        }
    }

    fn put(&self, path: &str, value: &FieldValue) -> Result<()> {
        let place = self.place(path, OnNull::Make)?;
        let is_bytes = matches!(value, FieldValue::Bytes(_));
        let place = if is_bytes { place } else { place.unwrapped() };
        let shape = place.shape();
        let value = match (&shape, value) {
            (Shape::Pointer, FieldValue::Text(text)) => {
                FieldValue::from(self.heap.make_text(text)?.address())
            }
            (Shape::Int { .. } | Shape::Bits { .. }, FieldValue::Text(text)) => {
                match enumerator(&place, text) {
                    Some(number) => FieldValue::Int(number),
                    None => value.clone(),
                }
            }
            _ => value.clone(),
        };
        let outside =
            || self.path_error(path, PathProblem::Outside(place.block.name().to_string()));
        let (bytes, at, size) = (place.block.bytes(), place.byte(), shape.size() as usize);
        let mut buffer = bytes.copy(at, size).ok_or_else(outside)?;
        let encoded = shape.encode(&value, &mut buffer);
        encoded.map_err(|problem| self.value_error(path, problem))?;
        bytes.write(at, &buffer).ok_or_else(outside)
    }

    /// The number in a part, zero-extended: of an integer, an enum, a pointer, a bit
    /// field, a struct of one number.
    ///
    /// # Errors
    /// [`KernelError::Path`] where the path leads nowhere, over a null pointer, or to
    /// what is no number.
    pub fn get(&self, path: &str) -> Result<u64> {
        let place = self.place(path, OnNull::Fail)?.unwrapped();
        let shape = place.shape();
        let outside =
            || self.path_error(path, PathProblem::Outside(place.block.name().to_string()));
        let (bytes, at) = (place.block.bytes(), place.byte());
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
            _ => Err(self.path_error(path, PathProblem::NoNumber(place.type_name()))),
        }
    }

    /// The text in an array of `char`, or behind a pointer to `char`, up to its NUL.
    /// Bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// As of [`get`](Self::get).
    pub fn text(&self, path: &str) -> Result<String> {
        let place = self.place(path, OnNull::Fail)?;
        let no_text = |place: &Place| self.path_error(path, PathProblem::NoText(place.type_name()));
        let (block, at, most) = match place.shape() {
            Shape::Array { element, count } if element.size() == 1 => {
                (place.block.clone(), place.byte(), count as usize)
            }
            Shape::Pointer => {
                let address = place.pointer().unwrap_or_default();
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
            _ => return Err(no_text(&place)),
        };
        let room = block.len().saturating_sub(at).min(most);
        let bytes = block
            .bytes()
            .copy(at, room)
            .ok_or_else(|| no_text(&place))?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// A part as an object of its own: a member, an element; what a pointer points to.
    ///
    /// # Errors
    /// As of [`get`](Self::get).
    pub fn at(&self, path: &str) -> Result<Self> {
        let mut place = self.place(path, OnNull::Fail)?;
        if place.shape() == Shape::Pointer {
            // As if a member of it were wanted.
            let from = place.clone();
            place = walk(&self.heap, from, "[0]", OnNull::Fail).map_err(|error| match error {
                KernelError::Path { problem, .. } => self.path_error(path, *problem),
                other => other,
            })?;
        }
        let object = Self {
            heap: self.heap.clone(),
            offset: place.byte(),
            block: place.block,
            ty: Some(BlockType {
                btf: place.btf,
                id: place.ty,
            }),
        };
        if object.offset > object.block.len() {
            let name = object.block.name().to_string();
            return Err(self.path_error(path, PathProblem::Outside(name)));
        }
        Ok(object)
    }

    /// The same place as an object of another type: a `struct sock` that is the start of
    /// a `struct tcp_sock`. Parts that lie beyond the object can't be reached.
    ///
    /// # Errors
    /// [`KernelError::NoType`].
    pub fn cast(&self, type_name: &str) -> Result<Self> {
        Ok(Self {
            ty: Some(self.heap.types.find(type_name)?),
            ..self.clone()
        })
    }

    /// Lets programs write to the whole object, as they may to what they allocate
    /// themselves. Otherwise a store is a fault.
    #[must_use]
    pub fn writable(self) -> Self {
        self.block.set_writable(true);
        self
    }

    /// Ends the object's life, whichever part this is: nothing is at its addresses from
    /// now on. A program that still has one of them reads nothing there, as the kernel's
    /// fault-tolerant loads do, and the outcome says so; no other object gets them.
    /// False where it was freed already.
    pub fn free(&self) -> bool {
        self.heap.blocks.free(&self.block)
    }

    fn check_live(&self) -> Result<()> {
        match self.is_live() {
            true => Ok(()),
            false => Err(KernelError::Freed(self.name())),
        }
    }

    fn place(&self, path: &str, null: OnNull) -> Result<Place> {
        self.check_live()?;
        let Some(ty) = &self.ty else {
            return Err(KernelError::Untyped(self.name()));
        };
        let from = Place {
            block: self.block.clone(),
            bit: self.offset as u64 * 8,
            width: None,
            btf: ty.btf.clone(),
            ty: ty.id,
        };
        walk(&self.heap, from, path, null)
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

/// The number of an enum's value by its name.
fn enumerator(place: &Place, name: &str) -> Option<i128> {
    let ty = place.btf.resolve(place.ty).ok()?;
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

/// Two handles of the same place are equal.
impl PartialEq for KernelObject {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.block, &other.block) && self.offset == other.offset
    }
}

impl Eq for KernelObject {}

#[cfg(test)]
mod tests;
