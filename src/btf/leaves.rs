//! The parts of a type that have no parts of their own, with their C paths.

use super::blob::Btf;
use super::kind::Kind;
use crate::util::TypeId;

/// The most leaves of one type: the elements of longer arrays of structs are one leaf.
const MAX_LEAVES: usize = 4096;
/// The deepest nesting.
const MAX_DEPTH: usize = 32;

/// A number, pointer, array of those, or bitfield in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Its C path in the object: `stat.reads[2]`; empty for the object itself.
    pub path: String,
    /// Its first bit.
    pub bit: u64,
    /// Its number of bits.
    pub bits: u64,
    /// Its type.
    pub ty: TypeId,
    /// Whether it is an array.
    pub is_array: bool,
}

impl Btf {
    /// The leaves of a type in the order of their positions. Of an anonymous union, those of its
    /// largest member; a named union is one leaf.
    pub(crate) fn leaves(&self, ty: TypeId) -> Vec<Leaf> {
        let mut found = Vec::new();
        self.add_leaves(ty, String::new(), 0, &mut found, 0);
        found.sort_by_key(|leaf| leaf.bit);
        found
    }

    fn add_leaves(
        &self,
        id: TypeId,
        path: String,
        bit: u64,
        found: &mut Vec<Leaf>,
        depth: usize,
    ) -> Option<()> {
        let ty = self.resolve(id).ok()?;
        let bits = match ty.kind() {
            Kind::Datasec => 0,
            _ => u64::from(self.size_of(id).ok()?) * 8,
        };
        let whole = |is_array| Leaf {
            path: path.clone(),
            bit,
            bits,
            ty: id,
            is_array,
        };
        if found.len() >= MAX_LEAVES || depth >= MAX_DEPTH {
            found.push(whole(false));
            return Some(());
        }
        match ty.kind() {
            Kind::Union if !path.is_empty() => found.push(whole(false)),
            Kind::Struct | Kind::Union => {
                let mut members: Vec<_> = ty.members().collect();
                if ty.kind() == Kind::Union {
                    let size = |ty| self.size_of(ty).unwrap_or_default();
                    members.sort_by_key(|member| std::cmp::Reverse(size(member.ty)));
                    members.truncate(1);
                }
                for member in members {
                    let at = bit + u64::from(member.bit_offset);
                    let inner = join(&path, member.name);
                    match member.bitfield {
                        Some(width) => found.push(Leaf {
                            path: inner,
                            bit: at,
                            bits: width.into(),
                            ty: member.ty,
                            is_array: false,
                        }),
                        None if member.name.is_empty() => {
                            self.add_anonymous(member.ty, &path, at, found, depth + 1);
                        }
                        None => {
                            self.add_leaves(member.ty, inner, at, found, depth + 1);
                        }
                    }
                }
            }
            Kind::Datasec => {
                for place in ty.variables() {
                    let variable = self.get(place.ty)?;
                    let at = bit + u64::from(place.offset) * 8;
                    let inner = join(&path, variable.name());
                    self.add_leaves(variable.target_id()?, inner, at, found, depth + 1);
                }
            }
            Kind::Array => {
                let array = ty.array()?;
                let element = self.resolve(array.element).ok()?;
                let room = MAX_LEAVES - found.len();
                let has_parts = matches!(element.kind(), Kind::Struct | Kind::Array);
                if !has_parts || array.len as usize > room {
                    found.push(whole(true));
                    return Some(());
                }
                let step = u64::from(self.size_of(array.element).ok()?) * 8;
                for index in 0..array.len {
                    let inner = format!("{path}[{index}]");
                    let at = bit + u64::from(index) * step;
                    self.add_leaves(array.element, inner, at, found, depth + 1);
                }
            }
            _ => found.push(whole(false)),
        }
        Some(())
    }

    /// The leaves of an anonymous member, whose names are those of the type around it.
    fn add_anonymous(
        &self,
        id: TypeId,
        path: &str,
        bit: u64,
        found: &mut Vec<Leaf>,
        depth: usize,
    ) -> Option<()> {
        let first = found.len();
        self.add_leaves(id, String::new(), bit, found, depth)?;
        for leaf in found.get_mut(first..)? {
            leaf.path = join(path, &leaf.path);
        }
        Some(())
    }
}

/// The path of a member.
fn join(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Array, Builder, Encoding, Member};
    use super::*;

    #[test]
    fn leaves_have_paths_and_positions() {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let long = b.int("long", 8, Encoding::Signed);
        let byte = b.int("char", 1, Encoding::Char);
        let member = |name, ty, bit_offset, bitfield| Member {
            name,
            ty,
            bit_offset,
            bitfield,
        };
        let plain = |name, ty, bit_offset| member(name, ty, bit_offset, None);
        let inner = b.structure("inner", 8, &[plain("a", int, 0), plain("b", byte, 32)]);
        let array = |element, len| Array {
            element,
            index: int,
            len,
        };
        let pair = b.array(array(inner, 2));
        let text = b.array(array(byte, 16));
        let either = b.union("", 8, &[plain("small", int, 0), plain("large", long, 0)]);
        let outer = b.structure(
            "outer",
            48,
            &[
                plain("pair", pair, 0),
                plain("text", text, 128),
                plain("", either, 256),
                plain("named", either, 320),
                member("flag", int, 384 - 32, Some(3)),
            ],
        );
        let btf = b.build().unwrap();
        let leaves = btf.leaves(outer);
        let seen: Vec<_> = leaves
            .iter()
            .map(|leaf| (leaf.path.as_str(), leaf.bit, leaf.bits))
            .collect();
        assert_eq!(
            seen,
            [
                ("pair[0].a", 0, 32),
                ("pair[0].b", 32, 8),
                ("pair[1].a", 64, 32),
                ("pair[1].b", 96, 8),
                ("text", 128, 128),
                ("large", 256, 64),
                ("named", 320, 64),
                ("flag", 352, 3),
            ]
        );
        assert!(leaves[4].is_array);
        assert_eq!(btf.leaves(int).len(), 1);
        assert_eq!(btf.leaves(TypeId(0)), []);
    }
}
