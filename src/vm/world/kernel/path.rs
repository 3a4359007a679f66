//! Resolving a path in an object, through pointers to other objects.

use std::sync::Arc;

use super::error::{KernelError, PathProblem};
use super::heap::Heap;
use super::types::is_sized;
use crate::btf::{Btf, Encoding, Kind, POINTER_SIZE, Type};
use crate::util::{TypeId, nearest_first};
use crate::vm::fields::Shape;
use crate::vm::memory::{Area, Block, BlockType};

/// What to do about a null pointer in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnNull {
    /// Return an error.
    Fail,
    /// Create an object of the pointer's target type and set the pointer.
    Make,
}

/// A part of an object: its location and type.
#[derive(Debug, Clone)]
pub(super) struct ObjectPart {
    pub block: Arc<Block>,
    /// Bits from the start of the block.
    pub bit: u64,
    /// The width in bits of a bit field.
    pub width: Option<u32>,
    pub btf: Btf,
    pub ty: TypeId,
}

/// How many nested single-member structs are unwrapped.
const MAX_WRAPPERS: usize = 8;
/// How many levels of anonymous structs are listed.
const MAX_ANONYMOUS: usize = 8;

impl ObjectPart {
    /// Offset of the first byte, from the start of the block.
    pub fn byte(&self) -> usize {
        usize::try_from(self.bit / 8).unwrap_or(usize::MAX)
    }

    /// The type in C.
    pub fn type_name(&self) -> String {
        self.btf.type_name(self.ty)
    }

    /// How its value is stored.
    pub fn shape(&self) -> Shape {
        if let Some(width) = self.width {
            let shift = u32::try_from(self.bit % 8).unwrap_or(0);
            let size = (shift + width).div_ceil(8);
            return Shape::Bits { size, shift, width };
        }
        shape(&self.btf, self.ty)
    }

    /// The number in a struct that has only one member: `kuid_t`, `atomic_t`.
    pub fn unwrapped(mut self) -> Self {
        for _ in 0..MAX_WRAPPERS {
            let Some((bit, ty)) = only_member(&self.btf, self.ty) else {
                break;
            };
            self.bit = self.bit.saturating_add(bit.into());
            self.ty = ty;
        }
        self
    }

    /// The pointer stored in it.
    pub fn pointer(&self) -> Option<u64> {
        self.block.bytes().load(self.byte(), POINTER_SIZE as usize)
    }

    /// Resolves one step of a path: `name` or `[number]`.
    fn step(self, heap: &Heap, step: &str, so_far: &str, null: OnNull) -> Result<Self, Problem> {
        let resolved = |part: &Self| {
            let ty = part.btf.resolve(part.ty);
            ty.map(|ty| (ty.id(), ty.kind()))
                .map_err(|error| Problem::Path(PathProblem::Step(error.to_string())))
        };
        let (mut part, (mut id, mut kind)) = (self.clone(), resolved(&self)?);
        if kind == Kind::Ptr {
            part = part.follow(heap, so_far, null)?;
            if step.starts_with('[') {
                return part.element(step);
            }
            (id, kind) = resolved(&part)?;
        }
        let found = if kind.is_composite() && !step.starts_with('[') {
            let member = part.btf.member(id, step);
            let member = member.map_err(|e| PathProblem::Step(e.to_string()))?;
            member.ok_or_else(|| no_member(&part.btf, part.btf.ty(id), step))?
        } else {
            let field = part.btf.field(id, step);
            field.map_err(|error| PathProblem::Step(error.to_string()))?
        };
        let width = u32::try_from(found.bit_size).ok();
        Ok(Self {
            bit: part.bit.saturating_add(found.bit_offset),
            width: width.filter(|_| found.is_bitfield),
            ty: found.ty,
            ..part
        })
    }

    /// The `[n]`th element of an array that begins here, as for indexing a pointer.
    fn element(self, step: &str) -> Result<Self, Problem> {
        let index = step.strip_prefix('[').and_then(|s| s.strip_suffix(']'));
        let index = index.and_then(|index| index.trim().parse::<u32>().ok());
        let Some(index) = index else {
            let text = format!("`{step}` is no index");
            return Err(PathProblem::Step(text).into());
        };
        let size = self.btf.size_of(self.ty);
        let size = size.map_err(|error| PathProblem::Step(error.to_string()))?;
        let bytes = u64::from(size) * u64::from(index);
        let bit = self.bit.saturating_add(bytes.saturating_mul(8));
        Ok(Self { bit, ..self })
    }

    /// The target of the pointer stored here.
    pub fn follow(&self, heap: &Heap, so_far: &str, null: OnNull) -> Result<Self, Problem> {
        let step = so_far.to_owned();
        let outside = || PathProblem::Outside(self.block.name().to_string());
        let address = self.pointer().ok_or_else(outside)?;
        let (ty, to) = self.pointee(heap);
        let opaque = |to| PathProblem::Opaque {
            step: step.clone(),
            to,
        };
        let block = match address {
            0 if null == OnNull::Fail => return Err(PathProblem::Null(step).into()),
            0 => {
                let ty = ty.clone().ok_or_else(|| opaque(to.clone()))?;
                let made = heap.make(Area::Heap, ty, 0)?;
                let stored =
                    self.block
                        .bytes()
                        .store(self.byte(), POINTER_SIZE as usize, made.address());
                stored.ok_or_else(outside)?;
                made
            }
            address => match heap.blocks.at(address) {
                Some(block) => block,
                None => return Err(PathProblem::Nowhere { step, address }.into()),
            },
        };
        let at = if address == 0 {
            block.address()
        } else {
            address
        };
        // A `void *` target has the type that the object was created with.
        let own = || block.ty().filter(|_| at == block.address()).cloned();
        let ty = ty.or_else(own).ok_or_else(|| opaque(to))?;
        Ok(Self {
            bit: (at - block.address()) * 8,
            width: None,
            btf: ty.btf,
            ty: ty.id,
            block,
        })
    }

    /// The type that a pointer points to, if it has a layout, and its name.
    fn pointee(&self, heap: &Heap) -> (Option<BlockType>, String) {
        let pointer = self.btf.resolve(self.ty).ok();
        let target = pointer.and_then(|ty| ty.target_id()).unwrap_or_default();
        let name = self.btf.type_name(target);
        let ty = match self.btf.resolve(target) {
            Ok(ty) if ty.kind() == Kind::Fwd => heap.types.find(&name).ok(),
            Ok(ty) if is_sized(&self.btf, ty) => Some(BlockType {
                btf: self.btf.clone(),
                id: target,
            }),
            _ => None,
        };
        (ty, name)
    }
}

/// Why a step can't be resolved.
pub(super) enum Problem {
    /// The path is wrong.
    Path(PathProblem),
    /// Anything else.
    Other(KernelError),
}

impl From<PathProblem> for Problem {
    fn from(problem: PathProblem) -> Self {
        Self::Path(problem)
    }
}

impl From<KernelError> for Problem {
    fn from(error: KernelError) -> Self {
        Self::Other(error)
    }
}

/// Resolves a path that begins at `from`. If the result is a pointer, it is not followed;
/// other pointers in the path are, by `.` as by `->`.
pub(super) fn resolve_path(
    heap: &Heap,
    from: ObjectPart,
    path: &str,
    null: OnNull,
) -> Result<ObjectPart, KernelError> {
    let dotted = path.trim().replace("->", ".");
    let root = from.type_name();
    let mut part = from;
    let mut rest = dotted.as_str();
    while !rest.is_empty() {
        let so_far = dotted.strip_suffix(rest).unwrap_or_default().to_owned();
        let wrong = |problem| KernelError::Path {
            ty: root.clone(),
            path: path.to_owned(),
            problem: Box::new(problem),
        };
        let taken = first_step(rest, so_far.is_empty());
        let Some((step, after)) = taken else {
            let text = format!("no step at `{rest}`: `name`, `.name` or `[number]` expected");
            return Err(wrong(PathProblem::Step(text)));
        };
        part = match part.step(heap, step, &so_far, null) {
            Ok(part) => part,
            Err(Problem::Path(problem)) => return Err(wrong(problem)),
            Err(Problem::Other(error)) => return Err(error),
        };
        rest = after;
    }
    Ok(part)
}

/// The first step of a path, and the rest.
fn first_step(path: &str, is_first: bool) -> Option<(&str, &str)> {
    if path.starts_with('[') {
        return path.split_at_checked(path.find(']')? + 1);
    }
    let name = match path.strip_prefix('.') {
        Some(name) => name,
        None if is_first => path,
        None => return None,
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    name.split_at_checked(end)
        .filter(|(name, _)| !name.is_empty())
}

/// Bit offset and type of a struct's only member; `None` if it has several.
fn only_member(btf: &Btf, id: TypeId) -> Option<(u32, TypeId)> {
    let ty = btf.resolve(id).ok()?;
    let only = ty.member(0)?;
    let is_only = ty.kind() == Kind::Struct && ty.member(1).is_none() && only.bitfield.is_none();
    is_only.then_some((only.bit_offset, only.ty))
}

/// How values of a type are stored. A struct's members are ignored.
fn shape(btf: &Btf, id: TypeId) -> Shape {
    let size = btf.size_of(id).unwrap_or(0);
    let Ok(ty) = btf.resolve(id) else {
        return Shape::Opaque { size };
    };
    match ty.kind() {
        Kind::Int => {
            let encoding = ty.int().map_or(Encoding::Unsigned, |int| int.encoding);
            if size == 1 && (ty.name() == "char" || encoding == Encoding::Char) {
                Shape::Char
            } else {
                Shape::number(size, encoding == Encoding::Signed)
            }
        }
        Kind::Enum | Kind::Enum64 => Shape::number(size, ty.is_signed_enum()),
        Kind::Ptr => Shape::Pointer,
        Kind::Array => match ty.array() {
            Some(array) => shape(btf, array.element).times(array.len),
            None => Shape::Opaque { size },
        },
        Kind::Struct | Kind::Union => Shape::Struct {
            size,
            members: Vec::new(),
        },
        _ => Shape::Opaque { size },
    }
}

/// The error for a name that a struct does not have.
fn no_member(btf: &Btf, ty: Type<'_>, name: &str) -> PathProblem {
    let mut names = Vec::new();
    collect_names(btf, ty, &mut names, 0);
    PathProblem::NoMember {
        within: btf.type_name(ty.id()),
        name: name.to_owned(),
        known: nearest_first(name, names),
    }
}

/// Collects the names of members, including those of anonymous structs and unions.
fn collect_names(btf: &Btf, ty: Type<'_>, names: &mut Vec<String>, depth: usize) {
    for member in ty.members() {
        if !member.name.is_empty() {
            names.push(member.name.to_owned());
        } else if depth < MAX_ANONYMOUS
            && let Ok(inner) = btf.resolve(member.ty)
        {
            collect_names(btf, inner, names, depth + 1);
        }
    }
}
