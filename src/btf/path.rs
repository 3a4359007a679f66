//! Field look-up by C path: `args[2]`, `a.b.c`, `[1].x`.

use rustc_hash::FxHashSet;
use thiserror::Error;

use super::blob::Btf;
use super::kind::Kind;
use super::layout::LayoutError;
use super::types::{Member, Type};
use crate::util::TypeId;

/// Maximum nesting of anonymous structs to search.
const MAX_ANONYMOUS: usize = 64;
/// Maximum number of names an error lists.
const LISTED: usize = 12;

/// A part of an object: its position and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// First bit, from the start of the object.
    pub bit_offset: u64,
    /// Number of bits.
    pub bit_size: u64,
    /// Type, qualifiers and typedefs included.
    pub ty: TypeId,
    /// Whether it is a bitfield.
    pub is_bitfield: bool,
}

/// Why a path doesn't lead to a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// No member of this name.
    #[error("`{path}`: {within} has no member `{name}`; it has {listed}")]
    NoMember {
        /// The path asked for.
        path: String,
        /// The struct or union that was searched.
        within: String,
        /// The unknown name.
        name: String,
        /// The existing members.
        listed: String,
    },
    /// A `.name` on something without members, or an `[index]` on something that
    /// isn't an array.
    #[error("`{path}`: cannot apply `{step}` to {found}: {wanted} expected")]
    WrongKind {
        /// The path asked for.
        path: String,
        /// The step that fails.
        step: String,
        /// The type it is applied to.
        found: String,
        /// The kind of type it requires.
        wanted: &'static str,
    },
    /// An index outside of the array.
    #[error("`{path}`: index {index} is outside of the array's {len} elements")]
    Index {
        /// The path asked for.
        path: String,
        /// The index.
        index: u32,
        /// The array's length.
        len: u32,
    },
    /// The text is not a path.
    #[error("invalid field path `{path}` at `{rest}`: `name`, `.name` or `[number]` expected")]
    Syntax {
        /// The path asked for.
        path: String,
        /// The unparsed rest.
        rest: String,
    },
    /// A type along the path has no layout.
    #[error("`{path}`: {source}")]
    Layout {
        /// The path asked for.
        path: String,
        /// Why.
        source: LayoutError,
    },
}

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    Name(&'a str),
    Index(u32),
}

/// Takes the first step off a path; `None` if there is none.
fn step(path: &str, first: bool) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = path.strip_prefix('[') {
        let (number, rest) = rest.split_once(']')?;
        let number = number.trim();
        let index = match number.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return Some((Step::Index(index.ok()?), rest));
    }
    let name = match path.strip_prefix('.') {
        Some(rest) => rest,
        None if first => path,
        None => return None,
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    (!name.is_empty()).then_some((Step::Name(name), rest))
}

/// Whether a type of this kind has named parts; the parts of a section are its variables.
const fn has_names(kind: Kind) -> bool {
    kind.is_composite() || matches!(kind, Kind::Datasec)
}

impl Btf {
    /// The field at a C path in an object of type `root`. Members of anonymous structs and
    /// unions are found as in C; in a section the first name is a variable; an empty path
    /// is the whole object.
    ///
    /// # Errors
    /// [`PathError`] with the path and the reason.
    pub fn field(&self, root: TypeId, path: &str) -> Result<Field, PathError> {
        let layout = |source| PathError::Layout {
            path: path.to_owned(),
            source,
        };
        let mut rest = path.trim();
        let mut field = Field {
            bit_offset: 0,
            bit_size: u64::from(self.size_of(root).map_err(layout)?) * 8,
            ty: root,
            is_bitfield: false,
        };
        let mut first = true;
        while !rest.is_empty() {
            let (step, after) = step(rest, first).ok_or_else(|| PathError::Syntax {
                path: path.to_owned(),
                rest: rest.to_owned(),
            })?;
            let taken = rest.strip_suffix(after).unwrap_or(rest);
            let ty = self.resolve(field.ty).map_err(layout)?;
            let wrong = |wanted| PathError::WrongKind {
                path: path.to_owned(),
                step: taken.to_owned(),
                found: self.type_name(field.ty),
                wanted,
            };
            field = match step {
                Step::Name(_) if !has_names(ty.kind()) => return Err(wrong("struct or union")),
                Step::Name(name) => {
                    let found = self.member(ty.id(), name).map_err(layout)?;
                    let found = found.ok_or_else(|| self.no_member(path, ty, name))?;
                    Field {
                        bit_offset: field.bit_offset.saturating_add(found.bit_offset),
                        ..found
                    }
                }
                Step::Index(index) => {
                    let array = ty.array().ok_or_else(|| wrong("array"))?;
                    // A flexible array has no length in BTF.
                    if index >= array.len && array.len != 0 {
                        let path = path.to_owned();
                        return Err(PathError::Index {
                            path,
                            index,
                            len: array.len,
                        });
                    }
                    let bits = u64::from(self.size_of(array.element).map_err(layout)?) * 8;
                    Field {
                        bit_offset: u64::from(index)
                            .saturating_mul(bits)
                            .saturating_add(field.bit_offset),
                        bit_size: bits,
                        ty: array.element,
                        is_bitfield: false,
                    }
                }
            };
            first = false;
            rest = after;
        }
        Ok(field)
    }

    /// The member of this name of a struct or union, including anonymous ones inside; the
    /// variable of a section.
    ///
    /// # Errors
    /// [`LayoutError`] if the member's type has no size.
    pub fn member(&self, within: TypeId, name: &str) -> Result<Option<Field>, LayoutError> {
        let ty = self.resolve(within)?;
        if ty.kind() == Kind::Datasec {
            return self.variable(ty, name);
        }
        let Some((member, base)) = self.search(within, name, &mut FxHashSet::default(), 0)? else {
            return Ok(None);
        };
        let bit_size = match member.bitfield {
            Some(bits) => u64::from(bits),
            None => u64::from(self.size_of(member.ty)?) * 8,
        };
        Ok(Some(Field {
            bit_offset: base + u64::from(member.bit_offset),
            bit_size,
            ty: member.ty,
            is_bitfield: member.bitfield.is_some(),
        }))
    }

    /// The variable of this name in a section.
    fn variable(&self, section: Type<'_>, name: &str) -> Result<Option<Field>, LayoutError> {
        let places = section.variables();
        let mut named = places.filter_map(|place| {
            let variable = self.get(place.ty)?;
            (variable.name() == name).then_some((place.offset, variable.target_id()?))
        });
        let Some((offset, ty)) = named.next() else {
            return Ok(None);
        };
        Ok(Some(Field {
            bit_offset: u64::from(offset) * 8,
            bit_size: u64::from(self.size_of(ty)?) * 8,
            ty,
            is_bitfield: false,
        }))
    }

    /// The member, and the bit at which the struct that contains it starts. Types that were
    /// searched already are skipped.
    fn search(
        &self,
        within: TypeId,
        name: &str,
        searched: &mut FxHashSet<TypeId>,
        depth: usize,
    ) -> Result<Option<(Member<'_>, u64)>, LayoutError> {
        let ty = self.resolve(within)?;
        if depth > MAX_ANONYMOUS {
            return Err(LayoutError::TooDeep(within));
        }
        if !searched.insert(ty.id()) {
            return Ok(None);
        }
        for member in ty.members() {
            if member.name == name {
                return Ok(Some((member, 0)));
            }
            if member.name.is_empty()
                && let Some((found, base)) = self.search(member.ty, name, searched, depth + 1)?
            {
                return Ok(Some((found, base + u64::from(member.bit_offset))));
            }
        }
        Ok(None)
    }

    fn no_member(&self, path: &str, ty: Type<'_>, name: &str) -> PathError {
        let names = || {
            let variables = ty.variables().filter_map(|place| self.get(place.ty));
            ty.members()
                .map(|member| member.name)
                .chain(variables.map(|variable| variable.name()))
                .filter(|name| !name.is_empty())
        };
        let mut listed: Vec<_> = names().take(LISTED).collect();
        if names().nth(LISTED).is_some() {
            listed.push("…");
        }
        let listed = if listed.is_empty() {
            "none".to_owned()
        } else {
            listed.join(", ")
        };
        PathError::NoMember {
            path: path.to_owned(),
            within: self.type_name(ty.id()),
            name: name.to_owned(),
            listed,
        }
    }

    /// The name of a type in C: `struct sk_buff *`, `unsigned int[4]`.
    #[must_use]
    pub fn type_name(&self, id: TypeId) -> String {
        let mut suffix = String::new();
        let mut ty = self.ty(id);
        for _ in 0..super::layout::MAX_DEPTH {
            let next = match ty.kind() {
                Kind::Ptr => {
                    suffix.insert(0, '*');
                    ty.target_id()
                }
                Kind::Array => ty.array().map(|array| {
                    let old = std::mem::take(&mut suffix);
                    let inner = if old.starts_with('*') {
                        format!("({old})")
                    } else {
                        old
                    };
                    suffix = format!("{inner}[{}]", array.len);
                    array.element
                }),
                kind if kind.is_qualifier() || matches!(kind, Kind::Var | Kind::DeclTag) => {
                    ty.target_id()
                }
                _ => None,
            };
            let Some(next) = next else { break };
            ty = self.ty(next);
        }
        let keyword = match ty.kind() {
            Kind::Struct => "struct ",
            Kind::Union => "union ",
            Kind::Enum | Kind::Enum64 => "enum ",
            Kind::Fwd if ty.kind_flag() => "union ",
            Kind::Fwd => "struct ",
            _ => "",
        };
        let name = match (ty.kind(), ty.name()) {
            (Kind::Void, _) => "void",
            (Kind::FuncProto, _) => "function",
            (_, "") => "(anonymous)",
            (_, name) => name,
        };
        let space = if suffix.starts_with(['*', '(']) {
            " "
        } else {
            ""
        };
        format!("{keyword}{name}{space}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Array, Builder, Encoding, Linkage, Variable};
    use super::*;

    fn member(name: &str, ty: TypeId, bit_offset: u32) -> Member<'_> {
        Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        }
    }

    fn table() -> (Btf, TypeId) {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let long = b.int("unsigned long", 8, Encoding::Unsigned);
        let args = b.array(Array {
            element: long,
            index: int,
            len: 6,
        });
        let low = Member {
            name: "low",
            ty: int,
            bit_offset: 0,
            bitfield: Some(3),
        };
        let inner = b.structure("", 8, &[low, member("hidden", int, 32)]);
        let point = b.structure("point", 8, &[member("x", int, 0), member("y", int, 32)]);
        let points = b.array(Array {
            element: point,
            index: int,
            len: 2,
        });
        let grid = b.array(Array {
            element: points,
            index: int,
            len: 2,
        });
        let root = b.structure(
            "event",
            96,
            &[
                member("id", int, 0),
                member("args", args, 64),
                member("", inner, 448),
                member("grid", grid, 512),
            ],
        );
        let typedef = b.typedef("event_t", root);
        (b.build().unwrap(), typedef)
    }

    #[test]
    fn paths_lead_through_members_arrays_and_anonymous_structs() {
        let (btf, root) = table();
        let at = |path| {
            btf.field(root, path)
                .map(|f| (f.bit_offset, f.bit_size))
                .unwrap()
        };
        assert_eq!(at(""), (0, 768));
        assert_eq!(at("args"), (64, 384));
        assert_eq!(at("args[2]"), (192, 64));
        assert_eq!(at("hidden"), (480, 32));
        assert_eq!(at("low"), (448, 3));
        assert_eq!(at("grid[1][0].y"), (512 + 128 + 32, 32));
        assert!(btf.field(root, "low").unwrap().is_bitfield);
        assert_eq!(
            btf.type_name(btf.field(root, "grid").unwrap().ty),
            "struct point[2][2]"
        );
    }

    #[test]
    fn a_section_is_entered_by_its_variables() {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let three = b.array(Array {
            element: int,
            index: int,
            len: 3,
        });
        let place = |ty, offset, size| Variable { ty, offset, size };
        let first = b.variable("first", int, Linkage::Static);
        let rest = b.variable("rest", three, Linkage::Global);
        let data = b.section(".data", 16, &[place(first, 0, 4), place(rest, 4, 12)]);
        let btf = b.build().unwrap();
        let found = btf.field(data, "rest[2]").unwrap();
        assert_eq!((found.bit_offset, found.bit_size, found.ty), (96, 32, int));
        assert_eq!(
            btf.field(data, "last").unwrap_err().to_string(),
            "`last`: .data has no member `last`; it has first, rest"
        );
    }

    #[test]
    fn errors_name_the_path_and_what_would_do() {
        let (btf, root) = table();
        let error = |path| btf.field(root, path).unwrap_err().to_string();
        assert_eq!(
            error("arg"),
            "`arg`: struct event has no member `arg`; it has id, args, grid"
        );
        assert_eq!(
            error("args[6]"),
            "`args[6]`: index 6 is outside of the array's 6 elements"
        );
        assert_eq!(
            error("id.x"),
            "`id.x`: cannot apply `.x` to int: struct or union expected"
        );
        assert_eq!(
            error("id[0]"),
            "`id[0]`: cannot apply `[0]` to int: array expected"
        );
        for bad in ["args[", "args[x]", "args]2", "a..b", ".", "args[1]x"] {
            assert!(btf.field(root, bad).is_err(), "{bad}");
        }
    }
}
