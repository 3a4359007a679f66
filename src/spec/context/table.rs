//! Fields of a context structure, and the macro for tables of them.

use super::access::{Access, Mode, Parts, Yield};

/// Type of a field or its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// An unsigned number of this many bytes.
    Number(u8),
    /// A pointer; eight bytes on all architectures.
    Pointer,
}

impl FieldType {
    /// Its size in bytes.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Number(size) => size as u32,
            Self::Pointer => 8,
        }
    }
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in C.
    pub name: &'static str,
    /// Its offset in bytes.
    pub offset: u32,
    /// Type of the field, or of its elements.
    pub element: FieldType,
    /// Number of elements: 1, or an array's length.
    pub count: u32,
    /// The allowed accesses, by the table's columns.
    access: &'static [Access],
}

impl Field {
    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.element.size() * self.count
    }

    /// The accesses that programs of a column may make.
    #[must_use]
    pub fn access(&self, column: usize) -> Access {
        self.access.get(column).copied().unwrap_or(Access::NONE)
    }

    /// The result of the access if this field allows it.
    fn check(&self, column: usize, offset: u32, size: u32, mode: Mode) -> Option<Yield> {
        let access = self.access(column);
        let from = offset.checked_sub(self.offset)?;
        let parts = match mode {
            Mode::Read => access.read,
            Mode::ReadSigned if access.yields == Yield::Scalar => access.read,
            Mode::ReadSigned => return None,
            Mode::Write => access.write,
        };
        self.covers(parts, from, size).then_some(access.yields)
    }

    /// Whether `size` bytes, `from` bytes into the field, are among `parts`.
    fn covers(&self, parts: Parts, from: u32, size: u32) -> bool {
        let element = self.element.size();
        let fits = |end: u32| from.checked_add(size).is_some_and(|last| last <= end);
        let within = fits(self.size()) && size <= element && from.is_multiple_of(size);
        let low = from.is_multiple_of(element);
        parts.contains(Parts::WHOLE) && within && low && size == element
            || parts.contains(Parts::LOW) && within && low
            || parts.contains(Parts::HALVES) && within && size >= 2
            || parts.contains(Parts::ALL) && within
            || parts.contains(Parts::PAIRS)
                && size == 2 * element
                && fits(self.size())
                && (self.offset + from).is_multiple_of(8)
            || parts.contains(Parts::UPPER_HALF) && within && !low && 2 * size == element
            || parts.contains(Parts::AND_PADDING) && from == 0 && size == 4
            || parts.contains(Parts::PADDING_PARTS) && fits(4) && from.is_multiple_of(size)
    }
}

/// A structure that programs see.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Layout {
    /// Its name in C, after `struct`.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: u32,
    /// Its fields by ascending offset; fields of a union have the same offset.
    pub fields: &'static [Field],
}

impl Layout {
    /// Offset and size of `name`, or of one element (`cb[2]`).
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(u32, u32)> {
        let (name, index) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((name, index)) => (name, Some(index.parse::<u32>().ok()?)),
            None => (name, None),
        };
        let field = self.fields.iter().find(|field| field.name == name)?;
        match index {
            None => Some((field.offset, field.size())),
            Some(index) if index < field.count && field.count > 1 => {
                let size = field.element.size();
                Some((field.offset + index * size, size))
            }
            Some(_) => None,
        }
    }

    /// The field at this offset; for a union, the first one.
    #[must_use]
    pub fn at(&self, offset: u32) -> Option<&'static Field> {
        self.fields
            .iter()
            .find(|field| (field.offset..field.offset + field.size()).contains(&offset))
    }

    /// The result of an access by programs of this column, or `None` if it is rejected.
    /// `size` is 1, 2, 4 or 8.
    #[must_use]
    pub fn check(&self, column: usize, offset: u32, size: u32, mode: Mode) -> Option<Yield> {
        self.fields
            .iter()
            .find_map(|field| field.check(column, offset, size, mode))
    }
}

/// Defines layouts. A row is `offset name: type | [access…];`, with one access for each
/// column of the table:
///
/// | access | loads | stores |
/// |---|---|---|
/// | `-` | none | none |
/// | `r`, `rw` | the whole | `w`: the whole |
/// | `p`, `pw` | any part | `w`: the whole |
/// | `l` | any part at the start | none |
/// | `h` | parts of two bytes or more | none |
/// | `c`, `cw` | any part, or eight bytes of the array | `w`: the same |
/// | `aw` | any part, or eight bytes of the array | an element, or eight bytes |
/// | `u` | the whole, or the upper half | none |
/// | `port` | any part, or with the two bytes of padding | none |
/// | `pad` | any part of field and padding | none |
/// | any other | the whole: a pointer of that name below | none |
macro_rules! layouts {
    ($(
        $(#[$doc:meta])*
        $name:ident: $text:literal, $size:literal bytes {
            $($offset:literal $field:ident: $type:tt | [$($access:tt)+];)*
        }
    )*) => {
        $(
            $(#[$doc])*
            pub static $name: $crate::spec::context::table::Layout = $crate::spec::context::table::Layout {
                name: $text,
                size: $size,
                fields: &[$($crate::spec::context::table::field(
                    stringify!($field),
                    $offset,
                    $crate::spec::context::table::element!($type),
                    &[$($crate::spec::context::table::access!($access)),+],
                )),*],
            };
        )*
    };
}

pub(super) const fn field(
    name: &'static str,
    offset: u32,
    (element, count): (FieldType, u32),
    access: &'static [Access],
) -> Field {
    Field {
        name,
        offset,
        element,
        count,
        access,
    }
}

macro_rules! element {
    ([$type:tt; $count:literal]) => {
        ($crate::spec::context::table::element!($type).0, $count)
    };
    (u8) => {
        ($crate::spec::context::table::FieldType::Number(1), 1)
    };
    (u16) => {
        ($crate::spec::context::table::FieldType::Number(2), 1)
    };
    (u32) => {
        ($crate::spec::context::table::FieldType::Number(4), 1)
    };
    (u64) => {
        ($crate::spec::context::table::FieldType::Number(8), 1)
    };
    (ptr) => {
        ($crate::spec::context::table::FieldType::Pointer, 1)
    };
}

macro_rules! access {
    (-) => {
        $crate::spec::context::access::Access::NONE
    };
    ($code:ident) => {
        $crate::spec::context::table::codes::$code
    };
}

pub(super) use {access, element, layouts};

/// The codes of the tables.
#[allow(
    non_upper_case_globals,
    reason = "they are read as words of a table's notation"
)]
pub(super) mod codes {
    use super::{Access, Parts, Yield};

    pub const r: Access = Access::read(Parts::WHOLE);
    pub const rw: Access = r.write(Parts::WHOLE);
    pub const p: Access = Access::read(Parts::ALL);
    pub const pw: Access = p.write(Parts::WHOLE);
    pub const l: Access = Access::read(Parts::LOW);
    pub const h: Access = Access::read(Parts::HALVES);
    pub const u: Access = Access::read(Parts::WHOLE.union(Parts::UPPER_HALF));
    pub const c: Access = Access::read(Parts::ALL.union(Parts::PAIRS));
    pub const cw: Access = c.write(Parts::ALL.union(Parts::PAIRS));
    pub const aw: Access = c.write(Parts::WHOLE.union(Parts::PAIRS));
    pub const port: Access = Access::read(Parts::ALL.union(Parts::AND_PADDING));
    pub const pad: Access = Access::read(Parts::PADDING_PARTS);
    pub const packet: Access = Access::pointer(Yield::Packet);
    pub const end: Access = Access::pointer(Yield::PacketEnd);
    pub const meta: Access = Access::pointer(Yield::PacketMeta);
    pub const live: Access = Access::pointer(Yield::Socket);
    pub const socket: Access = Access::pointer(Yield::SocketOrNull);
    pub const common: Access = Access::pointer(Yield::SockCommonOrNull);
    pub const keys: Access = Access::pointer(Yield::FlowKeys);
    pub const hook_state: Access = Access::pointer(Yield::Kernel("nf_hook_state"));
    pub const skb: Access = Access::pointer(Yield::Kernel("sk_buff"));
}
