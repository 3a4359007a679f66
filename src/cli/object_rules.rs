//! The rules of `--type` and `--map-def`, applied to an object before it is loaded. They stand
//! for the libbpf setters that a program's own tool calls.

use super::exit::Failure;
use crate::object::Object;
use crate::program::MapDef;
use crate::spec::{AttachType, MapFlags, MapType, ProgType};
use crate::util::nearest_first;

/// Names listed for an unknown name.
const NEAREST: usize = 4;

/// `--type [PATTERN=]PROG_TYPE[:ATTACH_TYPE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeRule {
    /// Name of a program, or pattern of names and sections; none for all programs without a
    /// type.
    pattern: Option<String>,
    prog_type: ProgType,
    attach_type: Option<AttachType>,
}

impl TypeRule {
    /// Parses an option's value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (pattern, types) = match text.rsplit_once('=') {
            Some((pattern, types)) => (Some(pattern.to_owned()), types),
            None => (None, text),
        };
        let (prog_type, attach_type) = match types.split_once(':') {
            Some((prog_type, attach_type)) => (prog_type, Some(attach_type)),
            None => (types, None),
        };
        Ok(Self {
            pattern,
            prog_type: known("program type", prog_type, "bpf_prog_type_", ProgType::ALL)?,
            attach_type: attach_type
                .map(|name| known("attach type", name, "bpf_", AttachType::ALL))
                .transpose()?,
        })
    }

    /// Whether it names programs, and is not for all without a type.
    pub fn names_programs(&self) -> bool {
        self.pattern.is_some()
    }

    /// Sets the types in an object.
    pub fn apply(&self, object: &mut Object) -> Result<(), Failure> {
        match &self.pattern {
            Some(pattern) => {
                object.set_types(pattern, self.prog_type, self.attach_type)?;
            }
            None => {
                object.set_untyped(self.prog_type, self.attach_type);
            }
        }
        Ok(())
    }
}

/// `--map-def MAP.ATTRIBUTE=VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MapRule {
    map: String,
    change: Change,
}

#[derive(Debug, Clone, PartialEq)]
enum Change {
    Type(MapType),
    KeySize(u32),
    ValueSize(u32),
    MaxEntries(u32),
    Flags(MapFlags),
    Extra(u64),
    /// The given definition.
    Inner(Box<MapDef>),
    /// The definition of another map of the object.
    InnerLike(String),
    /// Defines the map that instructions name by this descriptor.
    Descriptor(i32, Box<MapDef>),
}

/// The attributes as named in `--map-def`.
const ATTRIBUTES: &[&str] = &[
    "type",
    "key_size",
    "value_size",
    "max_entries",
    "map_flags",
    "map_extra",
    "inner",
];

impl MapRule {
    /// Parses an option's value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (place, value) = text
            .split_once('=')
            .ok_or("`=` and a value are missing: MAP.ATTRIBUTE=VALUE")?;
        if let Some(fd) = place.strip_prefix("fd:") {
            let fd = fd.parse().map_err(|error| format!("`{fd}`: {error}"))?;
            return Ok(Self {
                map: place.to_owned(),
                change: Change::Descriptor(fd, Box::new(shape(place, value)?)),
            });
        }
        // The names of maps of global data contain dots.
        let (map, attribute) = place
            .rsplit_once('.')
            .ok_or("an attribute is missing: MAP.ATTRIBUTE=VALUE")?;
        let change = match attribute {
            "type" => Change::Type(map_type(value)?),
            "key_size" => Change::KeySize(number(value)?),
            "value_size" => Change::ValueSize(number(value)?),
            "max_entries" => Change::MaxEntries(number(value)?),
            "map_flags" => Change::Flags(flags(value)?),
            "map_extra" => Change::Extra(number(value)?),
            "inner" if value.contains(':') => {
                Change::Inner(Box::new(shape(&format!("{map}.inner"), value)?))
            }
            "inner" => Change::InnerLike(value.to_owned()),
            other => {
                let known = ATTRIBUTES.iter().map(|name| (*name).to_owned()).collect();
                return Err(unknown("map attribute", other, known));
            }
        };
        let map = map.to_owned();
        Ok(Self { map, change })
    }

    /// Whether it copies the definition of another map of the object.
    pub fn takes_shape(&self) -> bool {
        matches!(self.change, Change::InnerLike(_))
    }

    /// Changes the map in an object.
    pub fn apply(&self, object: &mut Object) -> Result<(), Failure> {
        let like = match &self.change {
            Change::InnerLike(name) => Some(object.map(name)?.clone()),
            _ => None,
        };
        if let Change::Descriptor(fd, shape) = &self.change {
            object.define_descriptor(*fd, (**shape).clone());
            return Ok(());
        }
        let mut map = object.map_mut(&self.map)?;
        match &self.change {
            Change::Type(map_type) => {
                map.set_type(*map_type);
            }
            Change::KeySize(size) => {
                map.set_key_size(*size)?;
            }
            Change::ValueSize(size) => {
                map.set_value_size(*size)?;
            }
            Change::MaxEntries(entries) => {
                map.set_max_entries(*entries)?;
            }
            Change::Flags(flags) => {
                map.set_flags(*flags);
            }
            Change::Extra(extra) => {
                map.set_extra(*extra);
            }
            Change::Inner(shape) => {
                map.set_inner((**shape).clone())?;
            }
            Change::Descriptor(..) => {}
            Change::InnerLike(_) => {
                if let Some(shape) = like {
                    map.set_inner(shape)?;
                }
            }
        }
        Ok(())
    }
}

/// `TYPE:KEY_SIZE:VALUE_SIZE:MAX_ENTRIES[:FLAGS]`.
fn shape(name: &str, text: &str) -> Result<MapDef, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (given, given_flags) = match parts.as_slice() {
        [given @ .., last] if parts.len() == 5 => (given, flags(last)?),
        given => (given, MapFlags::empty()),
    };
    let &[kind, key, value, entries] = given else {
        return Err(format!(
            "invalid map definition `{text}`: TYPE:KEY_SIZE:VALUE_SIZE:MAX_ENTRIES[:FLAGS]"
        ));
    };
    let mut shape = MapDef::new(
        name,
        map_type(kind)?,
        number(key)?,
        number(value)?,
        number(entries)?,
    );
    shape.flags = given_flags;
    Ok(shape)
}

fn map_type(text: &str) -> Result<MapType, String> {
    known("map type", text, "bpf_map_type_", MapType::ALL)
}

/// Parses names of flags separated by `|`, or a number.
fn flags(text: &str) -> Result<MapFlags, String> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(MapFlags::from_bits_retain(number(text)?));
    }
    text.split('|').try_fold(MapFlags::empty(), |flags, name| {
        let upper = name.to_ascii_uppercase();
        let bare = upper.strip_prefix("BPF_F_").unwrap_or(&upper);
        let flag = MapFlags::from_name(bare).ok_or_else(|| {
            let all = MapFlags::all();
            let known = all.iter_names().map(|(name, _)| name.to_owned()).collect();
            unknown("map flag", name, known)
        })?;
        Ok(flags | flag)
    })
}

/// Parses a number, decimal or hexadecimal with `0x`.
fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let parsed = parsed.map_err(|error| format!("invalid number `{text}`: {error}"))?;
    T::try_from(parsed).map_err(|_| format!("{text} is too large"))
}

/// The row of a table by its name or the kernel's (`BPF_PROG_TYPE_XDP`).
fn known<T: Copy + std::fmt::Display>(
    what: &str,
    name: &str,
    prefix: &str,
    all: &[T],
) -> Result<T, String> {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix(prefix).unwrap_or(&lower);
    let found = all.iter().find(|row| row.to_string() == bare);
    found
        .copied()
        .ok_or_else(|| unknown(what, name, all.iter().map(T::to_string).collect()))
}

fn unknown(what: &str, name: &str, known: Vec<String>) -> String {
    let mut nearest = nearest_first(name, known);
    nearest.truncate(NEAREST);
    format!(
        "unknown {what} `{name}`; the nearest are {}",
        nearest.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_by_either_name_with_a_pattern() {
        let rule = |pattern: Option<&str>, prog_type, attach_type| TypeRule {
            pattern: pattern.map(str::to_owned),
            prog_type,
            attach_type,
        };
        for (text, wanted) in [
            ("sched_cls", rule(None, ProgType::SchedCls, None)),
            ("BPF_PROG_TYPE_XDP", rule(None, ProgType::Xdp, None)),
            ("2/*=sched_cls", rule(Some("2/*"), ProgType::SchedCls, None)),
            (
                "f=cgroup_sock_addr:cgroup_inet4_connect",
                rule(
                    Some("f"),
                    ProgType::CgroupSockAddr,
                    Some(AttachType::CgroupInet4Connect),
                ),
            ),
        ] {
            assert_eq!(TypeRule::parse(text), Ok(wanted), "{text}");
        }
        for (text, nearest) in [
            (
                "shed_cls",
                "unknown program type `shed_cls`; the nearest are sched_cls",
            ),
            ("xdp:xpd", "unknown attach type `xpd`; the nearest are xdp"),
            ("f=", "unknown program type ``"),
        ] {
            let error = TypeRule::parse(text).unwrap_err();
            assert!(error.starts_with(nearest), "{text}: {error}");
        }
    }

    #[test]
    fn attributes_of_maps_are_read() {
        let rule = |map: &str, change| MapRule {
            map: map.to_owned(),
            change,
        };
        let inner = MapDef {
            flags: MapFlags::NO_PREALLOC,
            ..MapDef::new("o.inner", MapType::Hash, 4, 8, 16)
        };
        for (text, wanted) in [
            ("m.max_entries=0x10", rule("m", Change::MaxEntries(16))),
            ("a.bss.value_size=8", rule("a.bss", Change::ValueSize(8))),
            ("m.type=hash", rule("m", Change::Type(MapType::Hash))),
            (
                "m.map_flags=NO_PREALLOC",
                rule("m", Change::Flags(MapFlags::NO_PREALLOC)),
            ),
            (
                "fd:3=array:4:8:2",
                rule(
                    "fd:3",
                    Change::Descriptor(3, Box::new(MapDef::new("fd:3", MapType::Array, 4, 8, 2))),
                ),
            ),
            ("o.inner=m", rule("o", Change::InnerLike("m".to_owned()))),
            (
                "o.inner=hash:4:8:16:no_prealloc",
                rule("o", Change::Inner(Box::new(inner))),
            ),
        ] {
            assert_eq!(MapRule::parse(text), Ok(wanted), "{text}");
        }
        for (text, wrong) in [
            ("m.max_entries", "`=` and a value are missing"),
            ("m=1", "an attribute is missing"),
            ("fd:x=array:4:8:2", "`x`: "),
            (
                "m.entries=1",
                "unknown map attribute `entries`; the nearest are max_entries",
            ),
            ("m.max_entries=x", "invalid number `x`"),
            ("m.max_entries=4294967296", "4294967296 is too large"),
            ("o.inner=hash:4", "invalid map definition `hash:4`"),
            ("m.map_flags=nope", "unknown map flag `nope`"),
            (
                "m.type=hush",
                "unknown map type `hush`; the nearest are hash",
            ),
        ] {
            let error = MapRule::parse(text).unwrap_err();
            assert!(error.starts_with(wrong), "{text}: {error}");
        }
    }
}
