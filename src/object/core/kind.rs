//! Kinds of CO-RE relocations.

use std::fmt;

/// Expands the table of kinds (`enum bpf_core_relo_kind`,
/// `include/uapi/linux/bpf.h`).
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $group:ident, $name:literal;)*) => {
        /// The property of an access that is relocated.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum RelocationKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl RelocationKind {
            /// Every kind, by number.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind of this number.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// libbpf's name for it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The form of its access string.
            #[must_use]
            pub const fn group(self) -> Group {
                match self {
                    $(Self::$kind => Group::$group,)*
                }
            }
        }
    };
}

/// The form of a relocation's access string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// A path to a field: an index, then members and elements.
    Field,
    /// Nothing: the relocation is of the type itself.
    Type,
    /// The index of an enumerator.
    Enumerator,
}

kinds! {
    /// Offset of the field in bytes.
    FieldByteOffset = 0, Field, "byte_off";
    /// Size of the field in bytes.
    FieldByteSize = 1, Field, "byte_sz";
    /// Whether the target has the field.
    FieldExists = 2, Field, "field_exists";
    /// Whether the field is signed.
    FieldSigned = 3, Field, "signed";
    /// Left shift that brings a bitfield's top bit to bit 63.
    FieldLshiftU64 = 4, Field, "lshift_u64";
    /// Right shift that then brings its lowest bit to bit 0.
    FieldRshiftU64 = 5, Field, "rshift_u64";
    /// Id of the type in the object's own BTF.
    TypeIdLocal = 6, Type, "local_type_id";
    /// Id of the type in the target's BTF.
    TypeIdTarget = 7, Type, "target_type_id";
    /// Whether the target has a type of this name and kind.
    TypeExists = 8, Type, "type_exists";
    /// Size of the type in bytes.
    TypeSize = 9, Type, "type_size";
    /// Whether the target has the enumerator.
    EnumvalExists = 10, Enumerator, "enumval_exists";
    /// Value of the enumerator.
    EnumvalValue = 11, Enumerator, "enumval_value";
    /// Whether the target has a matching type.
    TypeMatches = 12, Type, "type_matches";
}

impl fmt::Display for RelocationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for kind in RelocationKind::ALL {
            assert_eq!(RelocationKind::from_number(*kind as u32), Some(*kind));
        }
        assert_eq!(RelocationKind::from_number(13), None);
    }
}
