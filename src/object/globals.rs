//! Global variables: look-up by name, reading, and setting before programs are built.

use serde_json::Value as Json;

use super::error::{ErrorLocation, ObjectError, Problem};
use super::maps_data;
use super::model::{Global, Object, unknown};
use crate::program::{MapDef, MapOrigin};
use crate::util::TypeId;

/// Bytes of a section in which variables can be set: a section of zeros takes no file
/// space, and may claim any size.
const MAX_SET: u32 = 8 << 20;
/// Bytes of the largest value that is shown: JSON takes many times as much.
const MAX_SHOWN: u32 = 256 << 10;

/// The target of a path: bytes of a map's value, and their type.
#[derive(Clone, Copy)]
struct Part<'p> {
    offset: u32,
    size: u32,
    ty: Option<TypeId>,
    /// The path to a bitfield in these bytes; empty for all of them.
    rest: &'p str,
}

impl Part<'_> {
    fn end(&self) -> u32 {
        self.offset.saturating_add(self.size)
    }
}

impl Object {
    /// The global variables, static ones included.
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Sets the initial value of a global variable or a part of one. `path` is written as
    /// in C: `target_pid`, `conf.limits[2]`; [`Btf::encode`](crate::btf::Btf::encode)
    /// describes the values of each type. Read-only data can be set, too: it is frozen only
    /// at load.
    ///
    /// Without BTF, a variable takes integers of its size.
    ///
    /// ```
    /// # fn main() -> Result<(), bpflab::ObjectError> {
    /// let mut object = bpflab::Object::open("tests/objects/globals.bpf.o")?;
    /// object.set_global("wanted_pid", 42)?;
    /// object.set_global("limits.high", 1000)?;
    /// assert_eq!(object.global("limits")?["high"], 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No such variable or part, or a value that doesn't fit it.
    pub fn set_global(&mut self, path: &str, value: impl Into<Json>) -> Result<(), ObjectError> {
        let value = value.into();
        let (global, rest) = self.find_global(path)?;
        let fault = |text: String| self.global_fault(path, Problem::Value(text));
        let part = self.part(path, global, rest)?;
        if part.end() > MAX_SET {
            return Err(fault(format!(
                "it ends {} bytes into its section; only the first {MAX_SET} bytes can be set",
                part.end()
            )));
        }
        let (id, offset) = (global.map, part.offset);
        let mut bytes = self.bytes_of(global, part);
        match (&self.btf, part.ty) {
            (Some(btf), Some(ty)) => btf
                .set(ty, part.rest, &value, &mut bytes)
                .map_err(|error| fault(error.to_string()))?,
            _ => plain(&value, &mut bytes).map_err(fault)?,
        }
        if let Some(map) = self.maps.get_mut(id.index()) {
            maps_data::write(map, offset as usize, &bytes);
        }
        Ok(())
    }

    /// Sets the initial bytes of a section of global data, from its start: what
    /// `bpftool map dump` shows of its map in another process. Bytes after them stay.
    ///
    /// # Errors
    /// No such section, or more bytes than it has.
    pub fn set_data(&mut self, section: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        let fault = |text: String| self.global_fault(section, Problem::Value(text));
        let is_it =
            |map: &&mut MapDef| matches!(&map.origin, MapOrigin::Section(name) if name == section);
        let sizes = self.maps.iter().filter_map(|map| match &map.origin {
            MapOrigin::Section(name) => Some((name.clone(), map.value_size)),
            _ => None,
        });
        let sizes: Vec<_> = sizes.collect();
        let Some((_, size)) = sizes.iter().find(|(name, _)| name == section) else {
            let known: Vec<_> = sizes.into_iter().map(|(name, _)| name).collect();
            return Err(fault(match known.as_slice() {
                [] => "the object has no section of global data".to_owned(),
                known => format!("there is no such section; there is {}", known.join(", ")),
            }));
        };
        if bytes.len() > *size as usize {
            return Err(fault(format!("{} bytes; it has {size}", bytes.len())));
        }
        if let Some(map) = self.maps.iter_mut().find(is_it) {
            maps_data::write(map, 0, bytes);
        }
        Ok(())
    }

    /// The initial value of a global variable, or a part of one, as JSON.
    ///
    /// # Errors
    /// No such variable or part, or a type without values.
    pub fn global(&self, path: &str) -> Result<Json, ObjectError> {
        let (global, rest) = self.find_global(path)?;
        let fault = |text: String| self.global_fault(path, Problem::Value(text));
        let part = self.part(path, global, rest)?;
        if part.size > MAX_SHOWN {
            return Err(fault(format!(
                "{} bytes are too large for one value; select a part of it",
                part.size
            )));
        }
        let bytes = self.bytes_of(global, part);
        let (Some(btf), Some(ty)) = (&self.btf, part.ty) else {
            let number = bytes
                .iter()
                .take(8)
                .rev()
                .fold(0u64, |n, b| n << 8 | u64::from(*b));
            return Ok(Json::from(number));
        };
        let value = btf
            .decode(ty, &bytes)
            .map_err(|error| fault(error.to_string()))?;
        member(value.to_json(), part.rest)
            .ok_or_else(|| fault("a bitfield of an array can't be read alone".to_owned()))
    }

    /// The bytes and the type at a path.
    fn part<'p>(
        &self,
        path: &str,
        global: &Global,
        rest: &'p str,
    ) -> Result<Part<'p>, ObjectError> {
        let whole = Part {
            offset: global.offset,
            size: global.size,
            ty: global.ty,
            rest: "",
        };
        let fault = |text: String| self.global_fault(path, Problem::Value(text));
        let (Some(btf), Some(ty)) = (&self.btf, global.ty) else {
            return match rest {
                "" => Ok(whole),
                _ => Err(fault(
                    "its parts are unknown without BTF: compile with -g".to_owned(),
                )),
            };
        };
        let field = btf
            .field(ty, rest)
            .map_err(|error| fault(error.to_string()))?;
        if field.is_bitfield {
            // It shares bytes with its neighbours.
            return Ok(Part { rest, ..whole });
        }
        let offset = u32::try_from(field.bit_offset / 8).ok();
        let size = u32::try_from(field.bit_size.div_ceil(8)).ok();
        let inside = offset.zip(size).filter(|(offset, size)| {
            offset
                .checked_add(*size)
                .is_some_and(|end| end <= global.size)
        });
        let (offset, size) = inside
            .ok_or_else(|| fault(format!("outside of the variable's {} bytes", global.size)))?;
        Ok(Part {
            offset: global.offset.saturating_add(offset),
            size,
            ty: Some(field.ty),
            rest: "",
        })
    }

    /// The variable that a path begins with, and the rest of the path.
    fn find_global<'p>(&self, path: &'p str) -> Result<(&Global, &'p str), ObjectError> {
        // Names of a function's static variables contain a dot, so the longest prefix that
        // is a name is used.
        let ends = path
            .char_indices()
            .filter(|(_, c)| matches!(c, '.' | '['))
            .map(|(at, _)| at);
        for end in std::iter::once(path.len()).chain(ends.rev()) {
            let (name, rest) = path.split_at(end);
            let mut found: Vec<&Global> = self.globals.iter().filter(|g| g.name == name).collect();
            if found.len() > 1 {
                // A global variable takes precedence over static ones of the same name.
                found.retain(|global| global.global);
            }
            match (
                found.as_slice(),
                self.globals.iter().any(|g| g.name == name),
            ) {
                ([global], _) => return Ok((global, rest.strip_prefix('.').unwrap_or(rest))),
                (_, true) => {
                    let text = "several static variables have this name".to_owned();
                    return Err(self.global_fault(path, Problem::Value(text)));
                }
                (_, false) => {}
            }
        }
        let known = self.globals.iter().map(|global| &*global.name);
        Err(self.global_fault(path, unknown("no such variable", known)))
    }

    /// The initial bytes of a part of a variable.
    fn bytes_of(&self, global: &Global, part: Part<'_>) -> Vec<u8> {
        let map = self.maps.get(global.map.index());
        let value = map.and_then(|map| map.initial_value(&maps_data::KEY));
        let value = value.unwrap_or_default();
        let end = (part.end() as usize).min(value.len());
        let mut bytes = value
            .get(part.offset as usize..end)
            .unwrap_or_default()
            .to_vec();
        bytes.resize(part.size as usize, 0);
        bytes
    }

    fn global_fault(&self, path: &str, problem: Problem) -> ObjectError {
        let path = path.to_owned();
        ObjectError::new(ErrorLocation::Global { path }, problem).of(&self.file)
    }

    /// The variable at a byte of a map of global data, to explain an access.
    #[must_use]
    pub fn global_at(&self, map: &MapDef, offset: u32) -> Option<&Global> {
        if !matches!(map.origin, MapOrigin::Section(_)) {
            return None;
        }
        let id = self
            .maps
            .iter()
            .position(|known| known.origin == map.origin)?;
        self.globals.iter().find(|global| {
            global.map.index() == id
                && (global.offset..global.offset.saturating_add(global.size)).contains(&offset)
        })
    }
}

/// Encodes a number in all bytes of a variable of unknown type.
pub(crate) fn plain(value: &Json, bytes: &mut [u8]) -> Result<(), String> {
    let number = match value {
        Json::Bool(value) => i128::from(*value),
        Json::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .ok_or_else(|| format!("{number} is not an integer"))?,
        other => {
            return Err(format!(
                "{other} is not a number, and without BTF the variable takes only numbers"
            ));
        }
    };
    let bits = bytes.len().saturating_mul(8).min(64);
    let (low, high) = (-(1i128 << (bits.saturating_sub(1))), 1i128 << bits);
    if number < low || number >= high {
        return Err(format!("{number} doesn't fit in {} bytes", bytes.len()));
    }
    let fill = if number < 0 { 0xff } else { 0 };
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = number.to_le_bytes().get(at).copied().unwrap_or(fill);
    }
    Ok(())
}

/// The member of a JSON object at a path of names.
fn member(mut value: Json, path: &str) -> Option<Json> {
    for name in path.split('.').filter(|name| !name.is_empty()) {
        value = value.get_mut(name)?.take();
    }
    Some(value)
}
