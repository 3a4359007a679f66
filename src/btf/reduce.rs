//! BTF for kernels that don't know all kinds: what they don't know becomes what they know, with
//! the same ids, names of other types, sizes and offsets.
//!
//! | kind | since Linux | becomes |
//! |---|---|---|
//! | `FLOAT` | 5.13 | a struct without members, of that size |
//! | `DECL_TAG` | 5.16 | an integer of one byte, to which nothing refers |
//! | `TYPE_TAG` | 5.17 | `const` |
//! | `ENUM64`, signed `ENUM` | 6.0 | an integer of that size, an enum without the sign |

use super::blob::{self, Btf};
use super::check::join_info;
use super::kind::Kind;
use super::types::Type;

/// Kinds of types that a kernel knows, beyond those of Linux 5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownKinds {
    pub(crate) float: bool,
    pub(crate) decl_tag: bool,
    pub(crate) type_tag: bool,
    pub(crate) enum64: bool,
}

impl Btf {
    /// The bytes of the table for a kernel that knows these kinds.
    pub(crate) fn reduced(&self, known: KnownKinds) -> Vec<u8> {
        let words: Vec<u32> = self
            .own_types()
            .flat_map(|ty| {
                replacement(ty, known)
                    .unwrap_or_else(|| ty.record().map(|(word, _)| word).collect())
            })
            .collect();
        blob::to_bytes(&words, self.own_strings().as_bytes())
    }
}

/// The record in place of a type's, if the kernel does not know its kind.
fn replacement(ty: Type<'_>, known: KnownKinds) -> Option<Vec<u32>> {
    let size = ty.size().unwrap_or_default();
    let target = ty.target_id().map_or(0, |id| id.0);
    Some(match ty.kind() {
        Kind::Float if !known.float => {
            // The name of a struct must be an identifier, `long double` is none.
            vec![0, join_info(Kind::Struct, 0, false), size]
        }
        Kind::DeclTag if !known.decl_tag => integer(1, false),
        Kind::TypeTag if !known.type_tag => vec![0, join_info(Kind::Const, 0, false), target],
        Kind::Enum64 if !known.enum64 => integer(size, ty.kind_flag()),
        Kind::Enum if !known.enum64 && ty.kind_flag() => {
            let mut record: Vec<u32> = ty.record().map(|(word, _)| word).collect();
            if let Some(info) = record.get_mut(1) {
                *info = join_info(Kind::Enum, ty.vlen(), false);
            }
            record
        }
        _ => return None,
    })
}

/// An integer without a name, of this size in bytes.
fn integer(size: u32, signed: bool) -> Vec<u32> {
    let encoding = u32::from(signed) << 24;
    let info = join_info(Kind::Int, 0, false);
    vec![0, info, size, encoding | size.saturating_mul(8)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding, Enumerator};

    const NONE: KnownKinds = KnownKinds {
        float: false,
        decl_tag: false,
        type_tag: false,
        enum64: false,
    };

    fn table() -> Btf {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        b.float("long double", 16);
        let tag = b.type_tag("user", int, false);
        b.ptr(tag);
        b.decl_tag("note", int, None, false);
        let value = |name| Enumerator {
            name,
            bits: u64::MAX,
            signed: true,
        };
        b.enumeration64("big", 8, true, &[value("A")]);
        b.enumeration("small", 4, true, &[value("B")]);
        b.typedef("last", tag);
        b.build().unwrap()
    }

    #[test]
    fn ids_and_sizes_stay() {
        let table = table();
        let reduced = Btf::parse(&table.reduced(NONE)).unwrap();
        let line = |ty: Type<'_>| format!("{:?} {} {:?}", ty.kind(), ty.name(), ty.size());
        let lines: Vec<_> = reduced.own_types().map(line).collect();
        let expected = [
            "Int int Some(4)",
            "Struct  Some(16)",
            "Const  None",
            "Ptr  None",
            "Int  Some(1)",
            "Int  Some(8)",
            "Enum small Some(4)",
            "Typedef last None",
        ];
        let own: Vec<_> = lines.iter().rev().take(8).rev().collect();
        assert_eq!(own, expected);
        let last = reduced.find("last", Kind::Typedef).unwrap();
        let before = table.find("last", Kind::Typedef).unwrap();
        assert_eq!(last.target_id(), before.target_id());
        let small = reduced.find("small", Kind::Enum).unwrap();
        assert!(!small.kind_flag() && small.enumerators().next().is_some());
    }

    #[test]
    fn what_a_kernel_knows_stays() {
        let all = KnownKinds {
            float: true,
            decl_tag: true,
            type_tag: true,
            enum64: true,
        };
        let table = table();
        assert_eq!(table.reduced(all), table.to_bytes());
        let tagged = KnownKinds {
            type_tag: true,
            ..NONE
        };
        let reduced = Btf::parse(&table.reduced(tagged)).unwrap();
        let kinds = reduced.own_types().filter(|ty| ty.kind() == Kind::TypeTag);
        assert_eq!(kinds.count(), 1);
    }
}
