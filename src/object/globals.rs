//! Global variables: found by name, read and set before programs are taken out.

use serde_json::Value as Json;

use super::error::{ObjectError, Place, Problem};
use super::maps_data;
use super::model::{Global, Object, unknown};
use crate::program::{MapDef, MapOrigin};

impl Object {
    /// The global variables, static ones included.
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Sets a global variable, or a part of one, to a value that programs find when
    /// they start. `path` is written as in C: `target_pid`, `conf.limits[2]`; what a
    /// value of which type looks like says [`Btf::encode`](crate::btf::Btf::encode).
    /// Read-only data can be set too: it is frozen only when it is loaded.
    ///
    /// Without BTF a variable takes whole numbers of its size.
    ///
    /// ```
    /// use bpflab::Object;
    ///
    /// # fn example(object: &mut Object) -> Result<(), bpflab::ObjectError> {
    /// object.set_global("target_pid", 42)?;
    /// object.set_global("conf.comm", "dd")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No such variable or part, or a value that doesn't fit it.
    pub fn set_global(&mut self, path: &str, value: impl Into<Json>) -> Result<(), ObjectError> {
        let value = value.into();
        let (global, rest) = self.find_global(path)?;
        let btf = self.btf.clone();
        let (map, offset, size, ty) = (global.map, global.offset, global.size, global.ty);
        let fault = |text: String| self.global_fault(path, Problem::Value(text));
        let mut bytes = self.global_bytes(&self.globals_map(global)?.clone(), offset, size);
        match (btf, ty) {
            (Some(btf), Some(ty)) => btf
                .set(ty, rest, &value, &mut bytes)
                .map_err(|error| fault(error.to_string()))?,
            _ if !rest.is_empty() => {
                return Err(fault(
                    "its parts are known only with BTF: compile with -g".to_owned(),
                ));
            }
            _ => plain(&value, &mut bytes).map_err(fault)?,
        }
        let map = self.maps.get_mut(map.index());
        if let Some(map) = map {
            maps_data::write(map, offset as usize, &bytes);
        }
        Ok(())
    }

    /// The value that a global variable, or a part of one, starts with, as JSON.
    ///
    /// # Errors
    /// No such variable or part, or a type without values.
    pub fn global(&self, path: &str) -> Result<Json, ObjectError> {
        let (global, rest) = self.find_global(path)?;
        let fault = |text: String| self.global_fault(path, Problem::Value(text));
        let bytes = self.global_bytes(self.globals_map(global)?, global.offset, global.size);
        let (Some(btf), Some(ty)) = (&self.btf, global.ty) else {
            let number = bytes
                .iter()
                .take(8)
                .rev()
                .fold(0u64, |n, b| n << 8 | u64::from(*b));
            return Ok(Json::from(number));
        };
        let field = btf
            .field(ty, rest)
            .map_err(|error| fault(error.to_string()))?;
        if field.is_bitfield {
            let whole = btf
                .decode(ty, &bytes)
                .map_err(|error| fault(error.to_string()))?;
            return member(whole.to_json(), rest)
                .ok_or_else(|| fault("a bitfield of an array can't be read alone".to_owned()));
        }
        let start = usize::try_from(field.bit_offset / 8).unwrap_or(usize::MAX);
        let part = bytes.get(start..).unwrap_or_default();
        let value = btf
            .decode(field.ty, part)
            .map_err(|error| fault(error.to_string()))?;
        Ok(value.to_json())
    }

    /// The variable that a path begins with, and the rest of the path.
    fn find_global<'p>(&self, path: &'p str) -> Result<(&Global, &'p str), ObjectError> {
        // Static variables of functions have a dot in their own name, so the longest
        // beginning that is a name counts.
        let ends = path
            .char_indices()
            .filter(|(_, c)| matches!(c, '.' | '['))
            .map(|(at, _)| at);
        for end in std::iter::once(path.len()).chain(ends.rev()) {
            let (name, rest) = path.split_at(end);
            let mut found: Vec<&Global> = self.globals.iter().filter(|g| g.name == name).collect();
            if found.len() > 1 {
                // A global one wins over static ones of the same name.
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

    fn globals_map(&self, global: &Global) -> Result<&MapDef, ObjectError> {
        self.maps.get(global.map.index()).ok_or_else(|| {
            self.global_fault(&global.name, Problem::Value("its map is gone".to_owned()))
        })
    }

    /// The bytes that a variable starts with.
    fn global_bytes(&self, map: &MapDef, offset: u32, size: u32) -> Vec<u8> {
        let value = map.initial_value(&maps_data::KEY).unwrap_or_default();
        let start = offset as usize;
        let end = start.saturating_add(size as usize).min(value.len());
        let mut bytes = value.get(start..end).unwrap_or_default().to_vec();
        bytes.resize(size as usize, 0);
        bytes
    }

    fn global_fault(&self, path: &str, problem: Problem) -> ObjectError {
        let path = path.to_owned();
        ObjectError::new(Place::Global { path }, problem).of(&self.file)
    }

    /// The name and type of the variable at a byte of a map of global data, for
    /// whoever explains an access to it.
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

/// A number in all bytes of a variable whose type isn't known.
fn plain(value: &Json, bytes: &mut [u8]) -> Result<(), String> {
    let number = match value {
        Json::Bool(value) => i128::from(*value),
        Json::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .ok_or_else(|| format!("{number} is no whole number"))?,
        other => {
            return Err(format!(
                "{other} is no number, and there is no BTF to say more"
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

/// The member of a JSON object that a path of names leads to.
fn member(mut value: Json, path: &str) -> Option<Json> {
    for name in path.split('.') {
        value = value.get_mut(name)?.take();
    }
    Some(value)
}
