//! Sizes and alignments of types, and resolution of qualifiers and typedefs.
//!
//! References between types can form loops in hostile BTF: every traversal has a limit.
//! Pointers have 8 bytes, as in BPF.

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::blob::Btf;
use super::kind::Kind;
use super::types::{Enumerator, Type};
use crate::util::TypeId;

/// Longest chain of qualifiers, typedefs and arrays that is followed
/// (`MAX_RESOLVE_DEPTH` in the kernel and in libbpf).
pub(super) const MAX_DEPTH: usize = 32;
/// Deepest nesting of structs whose alignment is computed.
const MAX_NESTING: usize = 128;
/// Size of a pointer.
pub const POINTER_SIZE: u32 = 8;

/// Why a type has no size or can't be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// No type has this id.
    #[error("type {0} doesn't exist")]
    Missing(TypeId),
    /// A reference loop, or chains and nesting beyond the limit.
    #[error("type {0} is a loop or is nested too deeply")]
    TooDeep(TypeId),
    /// The size doesn't fit in 32 bits.
    #[error("type {0} is larger than 4 GiB")]
    TooLarge(TypeId),
    /// A type that has no size: `void`, a function, a forward declaration.
    #[error("type {id} ({kind}) has no size")]
    NoSize {
        /// The type.
        id: TypeId,
        /// Its kind.
        kind: Kind,
    },
}

impl Btf {
    /// The type without qualifiers and typedefs.
    ///
    /// # Errors
    /// [`LayoutError::Missing`], or [`LayoutError::TooDeep`] for a loop.
    pub fn resolve(&self, id: TypeId) -> Result<Type<'_>, LayoutError> {
        self.skip(id, Kind::is_modifier)
    }

    /// The type without qualifiers; typedefs are kept.
    ///
    /// # Errors
    /// As for [`Btf::resolve`].
    pub fn unqualified(&self, id: TypeId) -> Result<Type<'_>, LayoutError> {
        self.skip(id, Kind::is_qualifier)
    }

    /// Follows references while the kind matches `skipped`.
    fn skip(&self, id: TypeId, skipped: fn(Kind) -> bool) -> Result<Type<'_>, LayoutError> {
        let mut ty = self.get(id).ok_or(LayoutError::Missing(id))?;
        for _ in 0..MAX_DEPTH {
            match ty.target() {
                Some(target) if skipped(ty.kind()) => ty = target,
                _ => return Ok(ty),
            }
        }
        Err(LayoutError::TooDeep(id))
    }

    /// Size in bytes; of a variable, the size of its type.
    ///
    /// # Errors
    /// [`LayoutError`] if the type has no size.
    pub fn size_of(&self, id: TypeId) -> Result<u32, LayoutError> {
        let mut ty = self.get(id).ok_or(LayoutError::Missing(id))?;
        let mut count = 1u64;
        for _ in 0..MAX_DEPTH {
            let next = match ty.kind() {
                Kind::Array => {
                    let array = ty.array().ok_or(LayoutError::Missing(id))?;
                    count = count.saturating_mul(u64::from(array.len));
                    Some(array.element)
                }
                kind if kind.is_modifier() || matches!(kind, Kind::Var | Kind::DeclTag) => {
                    ty.target_id()
                }
                _ => None,
            };
            let Some(next) = next else {
                let size = match ty.kind() {
                    Kind::Ptr => POINTER_SIZE,
                    kind => ty.size().ok_or(LayoutError::NoSize { id: ty.id(), kind })?,
                };
                let total = count.saturating_mul(u64::from(size));
                return u32::try_from(total).map_err(|_| LayoutError::TooLarge(id));
            };
            ty = self.ty(next);
        }
        Err(LayoutError::TooDeep(id))
    }

    /// Alignment in bytes, as clang aligns for BPF: 1 for a packed struct. BTF doesn't
    /// record `aligned` attributes.
    ///
    /// # Errors
    /// [`LayoutError`] if the type has no alignment.
    pub fn align_of(&self, id: TypeId) -> Result<u32, LayoutError> {
        Alignments::default().get(self, id)
    }

    /// The first enumerator of this name, with its enum.
    #[must_use]
    pub fn enumerator(&self, name: &str) -> Option<(Type<'_>, Enumerator<'_>)> {
        let enums = self.types().filter(|ty| ty.kind().is_any_enum());
        enums
            .flat_map(|ty| ty.enumerators().map(move |value| (ty, value)))
            .find(|(_, value)| value.name == name)
    }
}

/// Cache of alignments: without it, nested structs are visited once for each path that
/// leads to them.
#[derive(Debug, Default)]
pub(super) struct Alignments {
    known: FxHashMap<TypeId, u32>,
}

impl Alignments {
    /// The alignment of a type, in bytes.
    pub fn get(&mut self, btf: &Btf, id: TypeId) -> Result<u32, LayoutError> {
        self.nested(btf, id, 0)
    }

    /// Whether a struct or union is packed: a member isn't aligned to its natural
    /// alignment, or the size isn't a multiple of the alignment.
    pub fn is_packed(&mut self, btf: &Btf, ty: Type<'_>) -> Result<bool, LayoutError> {
        Ok(self.natural(btf, ty, 0)?.is_none())
    }

    fn nested(&mut self, btf: &Btf, id: TypeId, depth: usize) -> Result<u32, LayoutError> {
        if depth > MAX_NESTING {
            return Err(LayoutError::TooDeep(id));
        }
        let ty = btf.resolve(id)?;
        match ty.kind() {
            Kind::Ptr => Ok(POINTER_SIZE),
            Kind::Array => {
                let element = ty.array().map_or(TypeId(0), |array| array.element);
                self.nested(btf, element, depth + 1)
            }
            Kind::Struct | Kind::Union => {
                if let Some(&known) = self.known.get(&ty.id()) {
                    return Ok(known);
                }
                let align = self.natural(btf, ty, depth)?.unwrap_or(1);
                self.known.insert(ty.id(), align);
                Ok(align)
            }
            Kind::Int | Kind::Enum | Kind::Enum64 | Kind::Float => {
                Ok(ty.size().unwrap_or(1).clamp(1, 16))
            }
            kind => Err(LayoutError::NoSize { id: ty.id(), kind }),
        }
    }

    /// The natural alignment of the members, if the layout honours it.
    fn natural(
        &mut self,
        btf: &Btf,
        ty: Type<'_>,
        depth: usize,
    ) -> Result<Option<u32>, LayoutError> {
        let mut align = 1;
        for member in ty.members() {
            let own = self.nested(btf, member.ty, depth + 1)?;
            let unit = own.saturating_mul(8);
            let fits = match member.bitfield {
                None => member.bit_offset % unit == 0,
                // A bitfield doesn't cross a storage unit of its type.
                Some(bits) => member.bit_offset % unit + u32::from(bits) <= unit,
            };
            if !fits {
                return Ok(None);
            }
            align = align.max(own);
        }
        Ok((ty.size().unwrap_or_default().is_multiple_of(align)).then_some(align))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Array, Builder, Encoding, Member};
    use super::*;

    #[test]
    fn sizes_and_alignments() {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let big = b.int("__int128", 16, Encoding::Signed);
        let ptr = b.ptr(TypeId(0));
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        let tidy = b.structure("tidy", 16, &[member("i", int, 0), member("p", ptr, 64)]);
        let packed = b.structure("packed", 12, &[member("i", int, 0), member("p", ptr, 32)]);
        let array = b.array(Array {
            element: tidy,
            index: int,
            len: 5,
        });
        let typedef = b.typedef("t", array);
        let constant = b.constant(typedef);
        let huge = b.array(Array {
            element: tidy,
            index: int,
            len: u32::MAX,
        });
        let forward = b.forward("f", false);
        let looped = TypeId(b.next_id().0 + 1);
        b.constant(looped);
        b.volatile(TypeId(looped.0 - 1));
        let btf = b.build().unwrap();

        let layout = |id| (btf.size_of(id), btf.align_of(id));
        assert_eq!(layout(big), (Ok(16), Ok(16)));
        assert_eq!(layout(ptr), (Ok(8), Ok(8)));
        assert_eq!(layout(packed), (Ok(12), Ok(1)));
        assert_eq!(layout(constant), (Ok(80), Ok(8)));
        assert_eq!(btf.resolve(constant).unwrap().id(), array);
        assert_eq!(btf.unqualified(constant).unwrap().id(), typedef);
        assert_eq!(btf.size_of(huge), Err(LayoutError::TooLarge(huge)));
        let no_size = LayoutError::NoSize {
            id: forward,
            kind: Kind::Fwd,
        };
        assert_eq!(layout(forward), (Err(no_size.clone()), Err(no_size)));
        assert_eq!(
            btf.resolve(looped).unwrap_err(),
            LayoutError::TooDeep(looped)
        );
        assert_eq!(btf.size_of(looped), Err(LayoutError::TooDeep(looped)));
        assert_eq!(
            btf.size_of(TypeId(99)),
            Err(LayoutError::Missing(TypeId(99)))
        );
    }

    #[test]
    fn nesting_that_doubles_at_each_level_stays_linear() {
        let mut b = Builder::new();
        let mut inner = b.int("char", 1, Encoding::Char);
        for _ in 0..100 {
            let twice = [0, 0].map(|bit_offset| Member {
                name: "x",
                ty: inner,
                bit_offset,
                bitfield: None,
            });
            inner = b.union("", 1, &twice);
        }
        let btf = b.build().unwrap();
        assert_eq!(btf.align_of(inner), Ok(1));
    }
}
