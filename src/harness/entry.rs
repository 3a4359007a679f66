//! Values by the names of their fields in C, through BTF.

use serde_json::Value as Json;
use zerocopy::{Immutable, IntoBytes};

use super::error::{Error, Result, list};
use super::map::MapView;
use super::vm::Vm;
use crate::btf::{Btf, Encoding, Field, Kind, SetError};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::TypeId;

/// A value of a map as it was when it was read, with its type.
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
    /// As user space sees it.
    bytes: Vec<u8>,
    typed: Typed<'a>,
}

/// A type of values.
#[derive(Debug, Clone, Copy)]
struct Typed<'a> {
    btf: &'a Btf,
    ty: TypeId,
}

impl<'a> MapView<'a> {
    /// The value under a key, to be looked at by the names that C gives its parts;
    /// `None` where there is none.
    ///
    /// # Errors
    /// As of [`get`](Self::get); [`Error::NoType`] where the object does not say the
    /// type of the map's values.
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
    /// The whole value, as JSON: structs are objects, as `bpftool map dump` shows them. Of
    /// a per-CPU map it is that of CPU 0.
    ///
    /// # Errors
    /// [`Error::Field`] where the type has no values.
    pub fn value(&self) -> Result<Json> {
        self.of_cpu(0, "")
    }

    /// A part of the value, by its path in C: `count.total`, `slots[3]`.
    ///
    /// # Errors
    /// [`Error::Field`] where there is no such part.
    pub fn field(&self, path: &str) -> Result<Json> {
        self.of_cpu(0, path)
    }

    /// A part of a CPU's value in a per-CPU map.
    ///
    /// # Errors
    /// [`Error::Field`] where there is no such part, or no such CPU.
    pub fn of_cpu(&self, cpu: u32, path: &str) -> Result<Json> {
        let at = self.place(cpu);
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let read = self.typed.read(path, bytes);
        read.map_err(|problem| self.failed(path, problem))
    }

    /// Sets a part of the value, in the map, too; in a per-CPU map that of CPU 0.
    ///
    /// # Errors
    /// [`Error::Field`] where there is no such part or it can't be this, and as of
    /// [`MapView::set`].
    pub fn set(&mut self, path: &str, value: impl Into<Json>) -> Result<()> {
        let Typed { btf, ty } = self.typed;
        let set = btf.set(ty, path, &value.into(), &mut self.bytes);
        set.map_err(|problem| self.failed(path, problem))?;
        let flags = UpdateFlags::empty();
        self.map.set_bytes(&self.key, &self.bytes, flags)
    }

    /// Where a CPU's value begins.
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
    /// The part of a value that a path names.
    fn read(&self, path: &str, bytes: &[u8]) -> std::result::Result<Json, SetError> {
        let field = self.btf.field(self.ty, path)?;
        let at = usize::try_from(field.bit_offset / 8).unwrap_or(usize::MAX);
        let bytes = bytes.get(at..).unwrap_or_default();
        if field.is_bitfield {
            return Ok(self.bits(&field, bytes));
        }
        Ok(self.btf.decode(field.ty, bytes)?.to_json())
    }

    /// A bitfield, of at most 64 bits, which begins in the first of these bytes.
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

/// A global variable: where it is, and its type.
struct Global<'a> {
    map: MapView<'a>,
    typed: Typed<'a>,
    offset: usize,
    /// The part of it that was asked for.
    rest: &'a str,
}

impl Vm {
    /// A global variable of a loaded object as it is now, or a part of it: `lost`,
    /// `limits.low`, `by_cpu[2]`. The object loaded last comes first.
    ///
    /// # Errors
    /// [`Error::NoGlobal`] with the variables there are, [`Error::Field`] where it has no
    /// such part.
    pub fn global(&self, path: &str) -> Result<Json> {
        let found = self.find_global(path)?;
        let value = found.map.get_bytes(&[0; 4])?.unwrap_or_default();
        let bytes = value.get(found.offset..).unwrap_or_default();
        let read = found.typed.read(found.rest, bytes);
        read.map_err(|problem| found.failed(path, problem))
    }

    /// Sets a global variable, or a part of it, as user space does through the map of its
    /// section. What programs only read is set before: `Object::set_global`.
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

/// The variables in a map of global data: name, type, and where in the value.
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
