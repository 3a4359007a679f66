//! Builds BTF: adds types one by one, or appends whole tables and remaps their ids and
//! strings.

use rustc_hash::FxHashMap;

use super::blob::{self, Btf};
use super::check::join_info;
use super::error::{BtfError, Problem};
use super::kind::{Kind, Word};
use super::types::{Array, Encoding, Enumerator, Int, Linkage, Member, Param, Type, Variable};
use crate::util::TypeId;

/// Largest bit offset of a member in a struct with bitfields (24 bits).
const MAX_FLAGGED_OFFSET: u32 = 0x00ff_ffff;

/// A type table under construction.
///
/// A type may refer to one that is added later: ids count up from
/// [`next_id`](Self::next_id). [`build`](Self::build) runs the same checks as
/// [`Btf::parse`].
#[derive(Debug, Clone)]
pub struct Builder {
    base: Option<Btf>,
    words: Vec<u32>,
    next_id: u32,
    strings: Vec<u8>,
    first_string: u32,
    /// Offset of each string in the table.
    known: FxHashMap<Box<str>, u32>,
    /// The first type that the format can't represent.
    too_big: Option<TypeId>,
}

/// Maps the ids of an appended table to ids of the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMap {
    /// Ids below it are `void` and the common base; they are not changed.
    first: u32,
    /// Added to all other ids.
    shift: u32,
}

impl IdMap {
    /// The new id of a type of the appended table.
    #[must_use]
    pub const fn get(self, old: TypeId) -> TypeId {
        if old.0 < self.first {
            old
        } else {
            TypeId(old.0.wrapping_add(self.shift))
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self {
            base: None,
            words: Vec::new(),
            next_id: 1,
            strings: vec![0],
            first_string: 0,
            known: FxHashMap::default(),
            too_big: None,
        }
    }

    /// An empty split table on top of `base`.
    #[must_use]
    pub fn split(base: &Btf) -> Self {
        Self {
            base: Some(base.clone()),
            next_id: base.count(),
            first_string: base.string_end(),
            strings: Vec::new(),
            ..Self::new()
        }
    }

    /// Id of the next type added.
    #[must_use]
    pub const fn next_id(&self) -> TypeId {
        TypeId(self.next_id)
    }

    /// The offset of a string; adds the string if it is missing. Text after a NUL is
    /// dropped: the format can't represent it.
    pub fn string(&mut self, string: &str) -> u32 {
        let string = string.split('\0').next().unwrap_or_default();
        if string.is_empty() {
            return 0;
        }
        if let Some(&offset) = self.known.get(string) {
            return offset;
        }
        let own = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
        let offset = self.first_string.saturating_add(own);
        self.strings.extend(string.as_bytes());
        self.strings.push(0);
        self.known.insert(string.into(), offset);
        offset
    }

    /// Adds a record; `tail` contains its fixed words and items.
    fn record(
        &mut self,
        kind: Kind,
        name: &str,
        vlen: u16,
        flag: bool,
        third: u32,
        tail: &[u32],
    ) -> TypeId {
        let name = self.string(name);
        self.words
            .extend([name, join_info(kind, vlen, flag), third]);
        self.words.extend(tail);
        let id = self.next_id();
        self.next_id = self.next_id.saturating_add(1);
        id
    }

    /// Adds a record of items of `N` words each.
    fn with_items<const N: usize>(
        &mut self,
        kind: Kind,
        name: &str,
        flag: bool,
        third: u32,
        items: &[[u32; N]],
    ) -> TypeId {
        let vlen = u16::try_from(items.len()).unwrap_or_else(|_| self.overflow());
        let items = items.get(..usize::from(vlen)).unwrap_or_default();
        self.record(kind, name, vlen, flag, third, items.as_flattened())
    }

    /// Records that the type under construction doesn't fit the format.
    fn overflow(&mut self) -> u16 {
        self.too_big.get_or_insert(TypeId(self.next_id));
        0
    }

    /// Adds an integer that fills its `size` bytes.
    pub fn int(&mut self, name: &str, size: u8, encoding: Encoding) -> TypeId {
        self.int_of(
            name,
            u32::from(size),
            Int {
                encoding,
                offset: 0,
                bits: size.saturating_mul(8),
            },
        )
    }

    /// Adds an integer with all its details.
    pub fn int_of(&mut self, name: &str, size: u32, int: Int) -> TypeId {
        let word = u32::from_le_bytes([int.bits, 0, int.offset, int.encoding.bits()]);
        self.record(Kind::Int, name, 0, false, size, &[word])
    }

    /// Adds a floating-point number.
    pub fn float(&mut self, name: &str, size: u32) -> TypeId {
        self.record(Kind::Float, name, 0, false, size, &[])
    }

    /// Adds a pointer.
    pub fn ptr(&mut self, to: TypeId) -> TypeId {
        self.record(Kind::Ptr, "", 0, false, to.0, &[])
    }

    /// Adds a typedef.
    pub fn typedef(&mut self, name: &str, of: TypeId) -> TypeId {
        self.record(Kind::Typedef, name, 0, false, of.0, &[])
    }

    /// Adds `const`.
    pub fn constant(&mut self, of: TypeId) -> TypeId {
        self.record(Kind::Const, "", 0, false, of.0, &[])
    }

    /// Adds `volatile`.
    pub fn volatile(&mut self, of: TypeId) -> TypeId {
        self.record(Kind::Volatile, "", 0, false, of.0, &[])
    }

    /// Adds `restrict`.
    pub fn restrict(&mut self, of: TypeId) -> TypeId {
        self.record(Kind::Restrict, "", 0, false, of.0, &[])
    }

    /// Adds a type tag; `attribute`: the text is a whole attribute.
    pub fn type_tag(&mut self, text: &str, of: TypeId, attribute: bool) -> TypeId {
        self.record(Kind::TypeTag, text, 0, attribute, of.0, &[])
    }

    /// Adds a declaration tag on a type, or on its member or parameter of that index;
    /// `attribute`: the text is a whole attribute.
    pub fn decl_tag(
        &mut self,
        text: &str,
        on: TypeId,
        component: Option<u32>,
        attribute: bool,
    ) -> TypeId {
        self.record(
            Kind::DeclTag,
            text,
            0,
            attribute,
            on.0,
            &[component.unwrap_or(u32::MAX)],
        )
    }

    /// Adds an array.
    pub fn array(&mut self, array: Array) -> TypeId {
        let tail = [array.element.0, array.index.0, array.len];
        self.record(Kind::Array, "", 0, false, 0, &tail)
    }

    /// Adds a struct of `size` bytes.
    pub fn structure(&mut self, name: &str, size: u32, members: &[Member<'_>]) -> TypeId {
        self.composite(Kind::Struct, name, size, members)
    }

    /// Adds a union of `size` bytes.
    pub fn union(&mut self, name: &str, size: u32, members: &[Member<'_>]) -> TypeId {
        self.composite(Kind::Union, name, size, members)
    }

    fn composite(&mut self, kind: Kind, name: &str, size: u32, members: &[Member<'_>]) -> TypeId {
        let flag = members.iter().any(|member| member.bitfield.is_some());
        let items: Vec<_> = members
            .iter()
            .map(|member| {
                if flag && member.bit_offset > MAX_FLAGGED_OFFSET {
                    self.overflow();
                }
                let width = u32::from(member.bitfield.unwrap_or_default()) << 24;
                [
                    self.string(member.name),
                    member.ty.0,
                    member.bit_offset | width,
                ]
            })
            .collect();
        self.with_items(kind, name, flag, size, &items)
    }

    /// Adds a forward declaration of a struct, or of a union.
    pub fn forward(&mut self, name: &str, union: bool) -> TypeId {
        self.record(Kind::Fwd, name, 0, union, 0, &[])
    }

    /// Adds an enum of at most 4 bytes. `signed` alone decides whether it is signed; only
    /// the low 32 bits of values are used.
    pub fn enumeration(
        &mut self,
        name: &str,
        size: u32,
        signed: bool,
        values: &[Enumerator<'_>],
    ) -> TypeId {
        let items: Vec<_> = values
            .iter()
            .map(|value| {
                let [a, b, c, d, ..] = value.bits.to_le_bytes();
                [self.string(value.name), u32::from_le_bytes([a, b, c, d])]
            })
            .collect();
        self.with_items(Kind::Enum, name, signed, size, &items)
    }

    /// Adds an enum of 64-bit values.
    pub fn enumeration64(
        &mut self,
        name: &str,
        size: u32,
        signed: bool,
        values: &[Enumerator<'_>],
    ) -> TypeId {
        let items: Vec<_> = values
            .iter()
            .map(|value| {
                let [a, b, c, d, e, f, g, h] = value.bits.to_le_bytes();
                let (low, high) = ([a, b, c, d], [e, f, g, h]);
                [
                    self.string(value.name),
                    u32::from_le_bytes(low),
                    u32::from_le_bytes(high),
                ]
            })
            .collect();
        self.with_items(Kind::Enum64, name, signed, size, &items)
    }

    /// Adds a prototype.
    pub fn prototype(&mut self, result: TypeId, params: &[Param<'_>]) -> TypeId {
        let items: Vec<_> = params
            .iter()
            .map(|param| [self.string(param.name), param.ty.0])
            .collect();
        self.with_items(Kind::FuncProto, "", false, result.0, &items)
    }

    /// Adds a function of this prototype.
    pub fn function(&mut self, name: &str, prototype: TypeId, linkage: Linkage) -> TypeId {
        self.record(Kind::Func, name, linkage as u16, false, prototype.0, &[])
    }

    /// Adds a global variable.
    pub fn variable(&mut self, name: &str, ty: TypeId, linkage: Linkage) -> TypeId {
        self.record(Kind::Var, name, 0, false, ty.0, &[linkage as u32])
    }

    /// Adds a section of `size` bytes.
    pub fn section(&mut self, name: &str, size: u32, variables: &[Variable]) -> TypeId {
        let items: Vec<_> = variables
            .iter()
            .map(|place| [place.ty.0, place.offset, place.size])
            .collect();
        self.with_items(Kind::Datasec, name, false, size, &items)
    }

    /// Adds the own types of another table, with strings and references remapped. If
    /// `other` is a split table, its base must be this builder's base, too: references into
    /// the base are not changed.
    pub fn append(&mut self, other: &Btf) -> IdMap {
        let first = other.first_id().0;
        let map = IdMap {
            first,
            shift: self.next_id.wrapping_sub(first),
        };
        for ty in other.own_types() {
            self.copy(ty, |id| map.get(id));
        }
        map
    }

    /// Adds a copy of another table's type, its references remapped.
    pub fn copy(&mut self, ty: Type<'_>, map: impl Fn(TypeId) -> TypeId) -> TypeId {
        for (word, meaning) in ty.record() {
            let word = match meaning {
                Word::Name => self.string(ty.btf().string(word).unwrap_or_default()),
                Word::Type => map(TypeId(word)).0,
                Word::Data => word,
            };
            self.words.push(word);
        }
        let id = self.next_id();
        self.next_id = self.next_id.saturating_add(1);
        id
    }

    /// Returns the finished table.
    ///
    /// # Errors
    /// [`BtfError`] if the types fail the checks of [`Btf::parse`]: an id that was never
    /// added, a size that a kind can't have, more than 65,535 items.
    pub fn build(&self) -> Result<Btf, BtfError> {
        if let Some(id) = self.too_big {
            return Err(BtfError::btf(0, Problem::Unrepresentable(id)));
        }
        let bytes = blob::to_bytes(&self.words, &self.strings);
        match &self.base {
            Some(base) => Btf::parse_split(&bytes, base),
            None => Btf::parse(&bytes),
        }
    }
}
