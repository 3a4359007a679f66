//! Borrowed, typed views of a table's records.

use std::fmt;

use super::blob::Btf;
use super::check::split_info;
use super::kind::{HEADER_WORDS, Kind, Word};
use crate::util::TypeId;

/// One type of a [`Btf`].
#[derive(Clone, Copy)]
pub struct Type<'a> {
    btf: &'a Btf,
    id: TypeId,
    kind: Kind,
    vlen: u16,
    kind_flag: bool,
    /// The words from the record on.
    words: &'a [u32],
}

/// An integer's details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    /// How to read and print it.
    pub encoding: Encoding,
    /// First bit, counted from the least significant one; 0 in today's BTF.
    pub offset: u8,
    /// Number of bits.
    pub bits: u8,
}

/// The encoding of an integer (`BTF_INT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// No flag: unsigned.
    Unsigned,
    /// `BTF_INT_SIGNED`.
    Signed,
    /// `BTF_INT_CHAR`.
    Char,
    /// `BTF_INT_BOOL`.
    Bool,
}

impl Encoding {
    /// Decodes the record's 4 bits; of a combination, which the kernel refuses, the lowest
    /// flag is used.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits {
            _ if bits & 1 != 0 => Self::Signed,
            _ if bits & 2 != 0 => Self::Char,
            _ if bits & 4 != 0 => Self::Bool,
            _ => Self::Unsigned,
        }
    }

    /// The record's 4 bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Unsigned => 0,
            Self::Signed => 1,
            Self::Char => 2,
            Self::Bool => 4,
        }
    }
}

/// An array's details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// Type of an element.
    pub element: TypeId,
    /// Type of an index.
    pub index: TypeId,
    /// Number of elements; 0 for a flexible array.
    pub len: u32,
}

/// A member of a struct or union.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Name; empty for an anonymous struct or union.
    pub name: &'a str,
    /// Type.
    pub ty: TypeId,
    /// First bit, from the start of the struct.
    pub bit_offset: u32,
    /// Number of bits if it is a bitfield.
    pub bitfield: Option<u8>,
}

/// A named value of an enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enumerator<'a> {
    /// Name.
    pub name: &'a str,
    /// Value, sign-extended from 32 bits if the enum is signed.
    pub bits: u64,
    /// Whether the value is a signed number.
    pub signed: bool,
}

impl Enumerator<'_> {
    /// The value as a number.
    #[must_use]
    pub fn value(&self) -> i128 {
        if self.signed {
            i128::from(self.bits.cast_signed())
        } else {
            i128::from(self.bits)
        }
    }
}

/// A parameter of a prototype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// Name; often empty.
    pub name: &'a str,
    /// Type; a final `void` is `...`.
    pub ty: TypeId,
}

/// A variable in a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The [`Kind::Var`], or for externs in `.ksyms` the [`Kind::Func`].
    pub ty: TypeId,
    /// Offset in bytes from the section's start; 0 until a linker or loader sets it.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// Visibility of a function or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    /// Visible in this file only.
    Static,
    /// Visible to all files.
    Global,
    /// Defined elsewhere.
    Extern,
}

impl Linkage {
    /// The linkage of this number (`BTF_FUNC_*` and `BTF_VAR_*` agree).
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Static),
            1 => Some(Self::Global),
            2 => Some(Self::Extern),
            _ => None,
        }
    }
}

/// The record of `void`, which tables don't contain.
const VOID: &[u32] = &[0; HEADER_WORDS];

impl<'a> Type<'a> {
    /// A view of the record at the start of `words`, which passed the checks.
    pub(super) fn new(btf: &'a Btf, id: TypeId, words: &'a [u32]) -> Self {
        let (kind, vlen, kind_flag) = split_info(words.get(1).copied().unwrap_or_default());
        Self {
            btf,
            id,
            kind: kind.unwrap_or(Kind::Void),
            vlen,
            kind_flag,
            words,
        }
    }

    /// `void`.
    pub(super) const fn void(btf: &'a Btf) -> Self {
        Self {
            btf,
            id: TypeId(0),
            kind: Kind::Void,
            vlen: 0,
            kind_flag: false,
            words: VOID,
        }
    }

    /// A base type, as a type of the split BTF.
    pub(super) const fn seen_from(self, btf: &'a Btf) -> Self {
        Self { btf, ..self }
    }

    fn word(&self, at: usize) -> u32 {
        self.words.get(at).copied().unwrap_or_default()
    }

    fn string(&self, offset: u32) -> &'a str {
        self.btf.string(offset).unwrap_or_default()
    }

    /// The fixed words and items after the common words.
    fn tail(&self) -> &'a [u32] {
        let len = self.kind.shape().words(self.vlen);
        self.words.get(HEADER_WORDS..len).unwrap_or_default()
    }

    /// The words of its record, with their meanings.
    pub(super) fn record(&self) -> impl Iterator<Item = (u32, Word)> + use<'a> {
        self.words
            .iter()
            .copied()
            .zip(self.kind.shape().meanings(self.vlen))
    }

    /// The table of this type; for a base type found through a split table, the split
    /// table.
    #[must_use]
    pub const fn btf(&self) -> &'a Btf {
        self.btf
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> TypeId {
        self.id
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name; empty for an anonymous type and for kinds without names.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.string(self.word(0))
    }

    /// Offset of its name in the string table.
    #[must_use]
    pub fn name_offset(&self) -> u32 {
        self.word(0)
    }

    /// Number of members, values, parameters or variables; the linkage's number for
    /// a function.
    #[must_use]
    pub const fn vlen(&self) -> u16 {
        self.vlen
    }

    /// The kind flag: bitfields in a struct, signed values in an enum, a forward
    /// declaration of a union, an attribute in a tag.
    #[must_use]
    pub const fn kind_flag(&self) -> bool {
        self.kind_flag
    }

    /// The size in bytes in the record itself; [`Btf::size_of`](Btf::size_of) works for any
    /// type.
    #[must_use]
    pub fn size(&self) -> Option<u32> {
        self.kind.has_size().then(|| self.word(2))
    }

    /// Id of the referenced type: a pointer's, typedef's, qualifier's or tag's target, a
    /// function's prototype, a prototype's return type, a variable's type.
    #[must_use]
    pub fn target_id(&self) -> Option<TypeId> {
        self.kind.has_target().then(|| TypeId(self.word(2)))
    }

    /// An integer's details.
    #[must_use]
    pub fn int(&self) -> Option<Int> {
        (self.kind == Kind::Int).then(|| {
            let [bits, _, offset, encoding] = self.word(HEADER_WORDS).to_le_bytes();
            Int {
                encoding: Encoding::from_bits(encoding),
                offset,
                bits,
            }
        })
    }

    /// An array's details.
    #[must_use]
    pub fn array(&self) -> Option<Array> {
        (self.kind == Kind::Array).then(|| Array {
            element: TypeId(self.word(HEADER_WORDS)),
            index: TypeId(self.word(HEADER_WORDS + 1)),
            len: self.word(HEADER_WORDS + 2),
        })
    }

    /// A function's or variable's linkage.
    #[must_use]
    pub fn linkage(&self) -> Option<Linkage> {
        match self.kind {
            Kind::Func => Linkage::from_number(u32::from(self.vlen)),
            Kind::Var => Linkage::from_number(self.word(HEADER_WORDS)),
            _ => None,
        }
    }

    /// The index of the member or parameter that a declaration tag is on; `None` for the
    /// whole type.
    #[must_use]
    pub fn component(&self) -> Option<u32> {
        (self.kind == Kind::DeclTag)
            .then(|| self.word(HEADER_WORDS))
            .filter(|index| index.cast_signed() >= 0)
    }

    /// Whether an enum's values are signed.
    #[must_use]
    pub fn is_signed_enum(&self) -> bool {
        self.kind.is_any_enum() && self.kind_flag
    }

    /// Whether this struct or enum is only declared: a [`Kind::Fwd`], or an enum without
    /// values.
    #[must_use]
    pub fn is_forward(&self) -> bool {
        self.kind == Kind::Fwd || (self.kind.is_any_enum() && self.vlen == 0)
    }

    /// The items of a type of this kind, `N` words each; none for other kinds.
    fn items<const N: usize>(
        &self,
        here: bool,
    ) -> impl DoubleEndedIterator<Item = &'a [u32; N]> + ExactSizeIterator + Clone + use<'a, N>
    {
        let tail = if here { self.tail() } else { &[] };
        tail.as_chunks().0.iter()
    }

    /// The members of a struct or union; none for other kinds.
    pub fn members(
        &self,
    ) -> impl DoubleEndedIterator<Item = Member<'a>> + ExactSizeIterator + Clone + use<'a> {
        let this = *self;
        self.items(self.kind.is_composite())
            .map(move |item| this.to_member(item))
    }

    /// The member of this index.
    #[must_use]
    pub fn member(&self, index: u32) -> Option<Member<'a>> {
        let item = self.items(self.kind.is_composite()).nth(index as usize);
        item.map(|item| self.to_member(item))
    }

    fn to_member(self, &[name, ty, offset]: &[u32; 3]) -> Member<'a> {
        let [.., bits] = offset.to_le_bytes();
        Member {
            name: self.string(name),
            ty: TypeId(ty),
            bit_offset: if self.kind_flag {
                offset & 0x00ff_ffff
            } else {
                offset
            },
            bitfield: (self.kind_flag && bits != 0).then_some(bits),
        }
    }

    /// The values of an enum; none for other kinds.
    pub fn enumerators(&self) -> impl DoubleEndedIterator<Item = Enumerator<'a>> + Clone + use<'a> {
        let this = *self;
        let narrow = self
            .items(self.kind == Kind::Enum)
            .map(move |item| this.to_narrow(item));
        let wide = self
            .items(self.kind == Kind::Enum64)
            .map(move |item| this.to_wide(item));
        narrow.chain(wide)
    }

    /// The enum's value of this index.
    #[must_use]
    pub fn enumerator(&self, index: u32) -> Option<Enumerator<'a>> {
        let index = index as usize;
        match self.kind {
            Kind::Enum => self.items(true).nth(index).map(|item| self.to_narrow(item)),
            Kind::Enum64 => self.items(true).nth(index).map(|item| self.to_wide(item)),
            _ => None,
        }
    }

    fn to_narrow(self, &[name, value]: &[u32; 2]) -> Enumerator<'a> {
        let (name, signed) = (self.string(name), self.kind_flag);
        let extended = i64::from(value.cast_signed()).cast_unsigned();
        let bits = if signed { extended } else { u64::from(value) };
        Enumerator { name, bits, signed }
    }

    fn to_wide(self, &[name, low, high]: &[u32; 3]) -> Enumerator<'a> {
        let (name, signed) = (self.string(name), self.kind_flag);
        Enumerator {
            name,
            bits: u64::from(low) | u64::from(high) << 32,
            signed,
        }
    }

    /// The parameters of a prototype; none for other kinds.
    pub fn params(
        &self,
    ) -> impl DoubleEndedIterator<Item = Param<'a>> + ExactSizeIterator + Clone + use<'a> {
        let btf = self.btf;
        self.items(self.kind == Kind::FuncProto)
            .map(move |&[name, ty]| Param {
                name: btf.string(name).unwrap_or_default(),
                ty: TypeId(ty),
            })
    }

    /// The variables of a section; none for other kinds.
    pub fn variables(
        &self,
    ) -> impl DoubleEndedIterator<Item = Variable> + ExactSizeIterator + Clone + use<'a> {
        self.items(self.kind == Kind::Datasec)
            .map(|&[ty, offset, size]| Variable {
                ty: TypeId(ty),
                offset,
                size,
            })
    }
}

impl fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {} '{}'", self.id, self.kind, self.name())
    }
}
