//! The kinds of BTF types and the shape of their records, as one table.
//!
//! A record is a sequence of 32-bit words: name, info, size-or-type, then the kind's fixed
//! words, then `vlen` items (`include/uapi/linux/btf.h`). The table says of every word
//! whether it is a string offset, a type id or neither. The checks at open, the remapping
//! of ids and strings, and the builder all use it.

use std::fmt;

/// Meaning of one 32-bit word of a type record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// An offset into the string section.
    Name,
    /// The id of another type.
    Type,
    /// Anything else: a size, an offset, a count, a value.
    Data,
}

/// How a kind uses the 16-bit `vlen` field of the info word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vlen {
    /// Must be zero.
    Zero,
    /// Number of items after the fixed words.
    Items,
    /// A [`Linkage`](super::Linkage).
    Linkage,
}

/// The layout of a kind's record.
#[derive(Debug)]
pub(super) struct Shape {
    /// Meaning of the third word: `Type`, or `Data` for a size or unused.
    pub third: Word,
    /// The words between the three common ones and the items.
    pub fixed: &'static [Word],
    /// The words of one item; empty for a kind without items.
    pub item: &'static [Word],
    /// Use of `vlen`.
    pub vlen: Vlen,
    /// Whether bit 31 of the info word (`kind_flag`) may be set.
    pub kind_flag: bool,
}

impl Shape {
    /// Length in words of a record with this `vlen`.
    pub fn words(&self, vlen: u16) -> usize {
        HEADER_WORDS + self.fixed.len() + self.item.len() * self.items(vlen)
    }

    /// Number of items of a record with this `vlen`.
    pub fn items(&self, vlen: u16) -> usize {
        match self.vlen {
            Vlen::Items => usize::from(vlen),
            Vlen::Zero | Vlen::Linkage => 0,
        }
    }

    /// The meanings of the words that every record starts with.
    pub fn header(&self) -> [Word; HEADER_WORDS] {
        [Word::Name, Word::Data, self.third]
    }

    /// The meaning of every word of a record with this `vlen`, in order.
    pub fn meanings(&self, vlen: u16) -> impl Iterator<Item = Word> {
        self.header()
            .into_iter()
            .chain(self.fixed.iter().copied())
            .chain(
                std::iter::repeat_n(self.item, self.items(vlen))
                    .flatten()
                    .copied(),
            )
    }
}

/// Words that every record starts with: name, info, size or type.
pub(super) const HEADER_WORDS: usize = 3;

/// Expands the table of kinds into [`Kind`] and its look-up functions.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal,
        third $third:ident, fixed [$($fixed:ident)*], item [$($item:ident)*],
        vlen $vlen:ident, flag $flag:literal;)*) => {
        /// The kind of a type (`BTF_KIND_*`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// Every kind, by number.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind of this number; 0 is [`Kind::Void`], which no record has.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// The name without `BTF_KIND_`, as bpftool prints it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The layout of this kind's record.
            pub(super) const fn shape(self) -> &'static Shape {
                match self {
                    $(Self::$kind => &Shape {
                        third: Word::$third,
                        fixed: &[$(Word::$fixed),*],
                        item: &[$(Word::$item),*],
                        vlen: Vlen::$vlen,
                        kind_flag: $flag,
                    },)*
                }
            }
        }
    };
}

kinds! {
    /// `void`: type 0, which has no record.
    Void = 0, "VOID", third Data, fixed [], item [], vlen Zero, flag false;
    /// An integer, `bool` and `char` included.
    Int = 1, "INT", third Data, fixed [Data], item [], vlen Zero, flag false;
    /// A pointer.
    Ptr = 2, "PTR", third Type, fixed [], item [], vlen Zero, flag false;
    /// An array: element type, index type, number of elements.
    Array = 3, "ARRAY", third Data, fixed [Type Type Data], item [], vlen Zero, flag false;
    /// A struct; the kind flag: members may be bitfields.
    Struct = 4, "STRUCT", third Data, fixed [], item [Name Type Data], vlen Items, flag true;
    /// A union; the kind flag: members may be bitfields.
    Union = 5, "UNION", third Data, fixed [], item [Name Type Data], vlen Items, flag true;
    /// An enum of up to 32 bits; the kind flag: it is signed.
    Enum = 6, "ENUM", third Data, fixed [], item [Name Data], vlen Items, flag true;
    /// A forward declaration; the kind flag: of a union.
    Fwd = 7, "FWD", third Data, fixed [], item [], vlen Zero, flag true;
    /// A typedef.
    Typedef = 8, "TYPEDEF", third Type, fixed [], item [], vlen Zero, flag false;
    /// The qualifier `volatile`.
    Volatile = 9, "VOLATILE", third Type, fixed [], item [], vlen Zero, flag false;
    /// The qualifier `const`.
    Const = 10, "CONST", third Type, fixed [], item [], vlen Zero, flag false;
    /// The qualifier `restrict`.
    Restrict = 11, "RESTRICT", third Type, fixed [], item [], vlen Zero, flag false;
    /// A function with its prototype.
    Func = 12, "FUNC", third Type, fixed [], item [], vlen Linkage, flag false;
    /// A function's prototype: return type and parameters.
    FuncProto = 13, "FUNC_PROTO", third Type, fixed [], item [Name Type], vlen Items, flag false;
    /// A global variable.
    Var = 14, "VAR", third Type, fixed [Data], item [], vlen Zero, flag false;
    /// A section with its variables.
    Datasec = 15, "DATASEC", third Data, fixed [], item [Type Data Data], vlen Items, flag false;
    /// A floating-point number.
    Float = 16, "FLOAT", third Data, fixed [], item [], vlen Zero, flag false;
    /// A tag on a declaration, its member or its parameter; the kind flag: it is a whole
    /// attribute.
    DeclTag = 17, "DECL_TAG", third Type, fixed [Data], item [], vlen Zero, flag true;
    /// A tag on a type; the kind flag: it is a whole attribute.
    TypeTag = 18, "TYPE_TAG", third Type, fixed [], item [], vlen Zero, flag true;
    /// A 64-bit enum; the kind flag: it is signed.
    Enum64 = 19, "ENUM64", third Data, fixed [], item [Name Data Data], vlen Items, flag true;
}

impl Kind {
    /// Whether this is a qualifier of another type: `const`, `volatile`, `restrict`, a type
    /// tag.
    #[must_use]
    pub const fn is_qualifier(self) -> bool {
        matches!(
            self,
            Self::Volatile | Self::Const | Self::Restrict | Self::TypeTag
        )
    }

    /// Whether this is a qualifier or a typedef of another type.
    #[must_use]
    pub const fn is_modifier(self) -> bool {
        self.is_qualifier() || matches!(self, Self::Typedef)
    }

    /// Struct or union.
    #[must_use]
    pub const fn is_composite(self) -> bool {
        matches!(self, Self::Struct | Self::Union)
    }

    /// Enum of either width.
    #[must_use]
    pub const fn is_any_enum(self) -> bool {
        matches!(self, Self::Enum | Self::Enum64)
    }

    /// Whether the third word of the record is a size in bytes.
    #[must_use]
    pub const fn has_size(self) -> bool {
        matches!(
            self,
            Self::Int
                | Self::Struct
                | Self::Union
                | Self::Enum
                | Self::Enum64
                | Self::Float
                | Self::Datasec
        )
    }

    /// Whether the third word of the record is the id of a type.
    #[must_use]
    pub fn has_target(self) -> bool {
        self.shape().third == Word::Type
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_numbers_come_back() {
        for (number, kind) in (0u8..).zip(Kind::ALL) {
            assert_eq!(Kind::from_number(number), Some(*kind));
            assert_eq!(*kind as u8, number);
        }
        assert_eq!(Kind::from_number(20), None);
    }

    #[test]
    fn a_record_is_as_long_as_its_meanings() {
        for kind in Kind::ALL {
            let shape = kind.shape();
            assert_eq!(shape.meanings(3).count(), shape.words(3), "{kind}");
            assert_eq!(shape.vlen == Vlen::Items, !shape.item.is_empty(), "{kind}");
            assert!(!(kind.has_size() && kind.has_target()), "{kind}");
        }
    }
}
