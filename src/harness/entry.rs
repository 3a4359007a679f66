//! Map values and global variables by the names of their C fields, through BTF.

use serde_json::Value as Json;
use zerocopy::{Immutable, IntoBytes};

use super::error::{Error, Result, list};
use super::map::MapView;
use super::vm::Vm;
use crate::btf::{Btf, Encoding, Field, Kind, SetError};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::TypeId;

/// A copy of a map's value with its BTF type.
///
/// ```
/// use bpflab::{Object, Vm};
///
/// # fn main() -> bpflab::Result<()> {
/// let vm = Vm::new(Object::open("tests/objects/globals.bpf.o")?)?;
/// let mut data = vm.map(".data.tagged")?.entry(&0u32)?.expect("it is always there");
/// assert_eq!(data.field("tagged[1]")?, 2);
/// data.set("tagged[1]", 7)?;
/// assert_eq!(vm.global("tagged[1]")?, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Entry<'a> {
    map: MapView<'a>,
    key: Vec<u8>,
    /// As user space reads it: for per-CPU maps the values of all CPUs.
    bytes: Vec<u8>,
    typed: Typed<'a>,
}

/// The BTF type of a value.
#[derive(Debug, Clone, Copy)]
struct Typed<'a> {
    btf: &'a Btf,
    ty: TypeId,
}

impl<'a> MapView<'a> {
    /// The value under a key, with access to its C fields; `None` if the key is not in the
    /// map.
    ///
    /// # Errors
    /// As of [`get`](Self::get); [`Error::NoType`] where the object does not give the type
    /// of the map's values.
    pub fn entry<K>(&self, key: &K) -> Result<Option<Entry<'a>>>
    where
        K: IntoBytes + Immutable + ?Sized,
    {
        let typed = self.value_type()?;
        let key = key.as_bytes();
        let bytes = self.get_bytes(key)?;
        Ok(bytes.map(|bytes| Entry {
            map: self.clone(),
            key: key.to_vec(),
            bytes,
            typed,
        }))
    }

    fn value_type(&self) -> Result<Typed<'a>> {
        let typed = self.btf().zip(self.def().value_type);
        let typed = typed.map(|(btf, ty)| Typed { btf, ty });
        typed.ok_or_else(|| Error::NoType(self.def().name.clone()))
    }
}

impl Entry<'_> {
    /// The whole value as JSON: structs are objects, as in `bpftool map dump`. For a
    /// per-CPU map it is the value of CPU 0.
    ///
    /// # Errors
    /// [`Error::Field`] where values of the type can't be shown.
    pub fn value(&self) -> Result<Json> {
        self.of_cpu(0, "")
    }

    /// A field of the value by its C path: `count.total`, `slots[3]`.
    ///
    /// # Errors
    /// [`Error::Field`] where there is no such field.
    pub fn field(&self, path: &str) -> Result<Json> {
        self.of_cpu(0, path)
    }

    /// A field of one CPU's value in a per-CPU map.
    ///
    /// # Errors
    /// [`Error::Field`] where there is no such field or CPU.
    pub fn of_cpu(&self, cpu: u32, path: &str) -> Result<Json> {
        let at = self.place(cpu);
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let read = self.typed.read(path, bytes);
        read.map_err(|problem| self.failed(path, problem))
    }

    /// Sets a field of the value, also in the map; in a per-CPU map that of CPU 0.
    ///
    /// # Errors
    /// [`Error::Field`] where there is no such field or it can't have this value, and as of
    /// [`MapView::set`].
    pub fn set(&mut self, path: &str, value: impl Into<Json>) -> Result<()> {
        let Typed { btf, ty } = self.typed;
        let set = btf.set(ty, path, &value.into(), &mut self.bytes);
        set.map_err(|problem| self.failed(path, problem))?;
        let flags = UpdateFlags::empty();
        self.map.set_bytes(&self.key, &self.bytes, flags)
    }

    /// The offset of a CPU's value.
    fn place(&self, cpu: u32) -> usize {
        let def = self.map.def();
        match def.map_type.info().per_cpu {
            true => (def.value_size as usize).next_multiple_of(8) * cpu as usize,
            false => 0,
        }
    }

    fn failed(&self, path: &str, problem: SetError) -> Error {
        Error::Field {
            map: self.map.def().name.clone(),
            path: path.to_owned(),
            problem: Box::new(problem),
        }
    }
}

impl Typed<'_> {
    /// The field at a path.
    fn read(&self, path: &str, bytes: &[u8]) -> std::result::Result<Json, SetError> {
        let field = self.btf.field(self.ty, path)?;
        let at = usize::try_from(field.bit_offset / 8).unwrap_or(usize::MAX);
        let bytes = bytes.get(at..).unwrap_or_default();
        if field.is_bitfield {
            return Ok(self.bits(&field, bytes));
        }
        Ok(self.btf.decode(field.ty, bytes)?.to_json())
    }

    /// The bitfield, at most 64 bits, that begins in the first of these bytes.
    fn bits(&self, field: &Field, bytes: &[u8]) -> Json {
        let low_first = bytes.iter().take(9).rev();
        let word = low_first.fold(0u128, |word, byte| word << 8 | u128::from(*byte));
        let unused = 64u32.saturating_sub(u32::try_from(field.bit_size).unwrap_or(64));
        let shifted = word >> (field.bit_offset % 8);
        let word = u64::try_from(shifted & u128::from(u64::MAX)).unwrap_or_default();
        let top = word.unbounded_shl(unused);
        let int = self.btf.resolve(field.ty).ok().and_then(|ty| ty.int());
        match int.is_some_and(|int| int.encoding == Encoding::Signed) {
            true => Json::from(top.cast_signed() >> unused.min(63)),
            false => Json::from(top.unbounded_shr(unused)),
        }
    }
}

/// A global variable: its map and type.
struct Global<'a> {
    map: MapView<'a>,
    typed: Typed<'a>,
    offset: usize,
    /// The path within the variable.
    rest: &'a str,
}

impl Vm {
    /// The current value of a global variable or of a part of it: `lost`, `limits.low`,
    /// `by_cpu[2]`. The object loaded last is searched first.
    ///
    /// # Errors
    /// [`Error::NoGlobal`] with the existing variables, [`Error::Field`] where the variable
    /// has no such part.
    pub fn global(&self, path: &str) -> Result<Json> {
        let found = self.find_global(path)?;
        let value = found.map.get_bytes(&[0; 4])?.unwrap_or_default();
        let bytes = value.get(found.offset..).unwrap_or_default();
        let read = found.typed.read(found.rest, bytes);
        read.map_err(|problem| found.failed(path, problem))
    }

    /// Sets a global variable or a part of it, as user space does through the map of its
    /// section. Constants (`.rodata`) are set before loading: `Object::set_global`.
    ///
    /// # Errors
    /// As of [`global`](Self::global); `EPERM` in [`Error::MapOperation`] for constants.
    pub fn set_global(&self, path: &str, value: impl Into<Json>) -> Result<()> {
        let found = self.find_global(path)?;
        let mut bytes = found.map.get_bytes(&[0; 4])?.unwrap_or_default();
        let Typed { btf, ty } = found.typed;
        let place = bytes.get_mut(found.offset..).unwrap_or_default();
        let set = btf.set(ty, found.rest, &value.into(), place);
        set.map_err(|problem| found.failed(path, problem))?;
        found.map.set_bytes(&[0; 4], &bytes, UpdateFlags::empty())
    }

    fn find_global<'a>(&'a self, path: &'a str) -> Result<Global<'a>> {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (name, rest) = path.split_at(end);
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        let mut names = Vec::new();
        let mut found = None;
        for map in self.maps() {
            let Some((btf, def)) = map.btf().map(|btf| (btf, map.def())) else {
                continue;
            };
            for (variable, ty, offset) in variables(btf, def) {
                if variable == name {
                    let typed = Typed { btf, ty };
                    found = Some((map.clone(), typed, offset));
                }
                names.push(variable);
            }
        }
        let (map, typed, offset) = found.ok_or_else(|| Error::NoGlobal {
            name: name.to_owned(),
            there: list(names.into_iter()),
        })?;
        Ok(Global {
            map,
            typed,
            offset,
            rest,
        })
    }
}

impl Global<'_> {
    fn failed(&self, path: &str, problem: SetError) -> Error {
        Error::Field {
            map: self.map.def().name.clone(),
            path: path.to_owned(),
            problem: Box::new(problem),
        }
    }
}

/// The variables in a map of global data: name, type and offset.
fn variables<'a>(
    btf: &'a Btf,
    def: &MapDef,
) -> impl Iterator<Item = (&'a str, TypeId, usize)> + use<'a> {
    let section = def.value_type.and_then(|ty| btf.get(ty));
    let section = section.filter(|ty| ty.kind() == Kind::Datasec);
    let variables = section.into_iter().flat_map(|section| section.variables());
    variables.filter_map(|place| {
        let variable = btf.get(place.ty)?;
        Some((
            variable.name(),
            variable.target_id()?,
            place.offset as usize,
        ))
    })
}
