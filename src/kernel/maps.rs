//! An object's maps and BTF in the kernel.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::cpus;
use super::error::{Command, KernelError, NoVerdict, NoVerdictKind};
use super::kernel_map::KernelMap;
use super::keys::for_each_key;
use super::loaded_program::LoadedProgram;
use super::loader::Loader;
use super::machine::Uname;
use super::sys::{BtfFd, MapFd, MapRequest, NAME_LEN, TokenFd, unlimit_locked_memory};
use super::typed::load_btf;
use super::usdt_specs::{self, UsdtSpecs};
use crate::btf::Btf;
use crate::program::{Initial, MapDef, kernel_name};
use crate::spec::MapType;
use crate::util::{Errno, MapId};

type Result<T> = std::result::Result<T, KernelError>;

/// The maps of an object, created and filled, and its BTF. They live as long as this value, or
/// longer if a loaded program uses them.
#[derive(Debug)]
pub struct LoadedMaps {
    maps: Vec<Option<MapFd>>,
    names: Vec<String>,
    btf: Option<BtfFd>,
    btf_refused: Option<KernelError>,
    usdt_specs: Option<Arc<UsdtSpecs>>,
}

impl LoadedMaps {
    /// Creates the maps `defs` in the kernel and fills them as libbpf does: with BTF types of
    /// keys and values where the kernel supports that, frozen where the definition says so.
    /// Elements of prog arrays are set when their programs are loaded
    /// ([`set_program`](Self::set_program)). Maps with autocreate off are left out, and
    /// `struct_ops` tables in the object's layout: no instruction may refer to one.
    ///
    /// # Errors
    /// A map that can't be created or filled: [`NoVerdictKind::Map`] unless permissions or
    /// memory are missing. BTF that the kernel refuses is no error: programs are loaded without
    /// it, and [`btf_refused`](Self::btf_refused) has the reason.
    pub fn create(defs: &[MapDef], btf: Option<&Btf>) -> std::result::Result<Self, NoVerdict> {
        Self::create_as(defs, btf, &Loader::default())
    }

    /// The same as this loader.
    ///
    /// # Errors
    /// As of [`create`](Self::create).
    pub fn create_as(
        defs: &[MapDef],
        btf: Option<&Btf>,
        loader: &Loader,
    ) -> std::result::Result<Self, NoVerdict> {
        loader.call(Command::MapCreate, || {
            Self::create_all(defs, btf, loader.token())
        })?
    }

    fn create_all(
        defs: &[MapDef],
        btf: Option<&Btf>,
        token: Option<&TokenFd>,
    ) -> std::result::Result<Self, NoVerdict> {
        // Before Linux 5.11 maps and programs count as locked memory, of which a process may have
        // little, root's, too. Later kernels count them for the control group.
        if Uname::here().is_before((5, 11)) {
            unlimit_locked_memory();
        }
        let (btf, btf_refused) = match btf.map(|btf| load_btf(btf, token)) {
            None => (None, None),
            Some(Ok(btf)) => (Some(btf), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let mut loaded = Self {
            maps: Vec::with_capacity(defs.len()),
            names: defs.iter().map(|def| def.name.clone()).collect(),
            btf,
            btf_refused,
            usdt_specs: None,
        };
        let no_map = |error| NoVerdict::of(error, NoVerdictKind::Map);
        for def in defs {
            let own_layout = def.map_type == MapType::StructOps && def.kernel_value_type.is_none();
            let made = (def.autocreate && !own_layout).then(|| loaded.make_whole(def, token));
            let made = made.transpose();
            loaded.maps.push(made.map_err(no_map)?);
        }
        for (def, map) in defs.iter().zip(&loaded.maps) {
            if let Some(map) = map {
                loaded.fill(def, map).map_err(no_map)?;
            }
        }
        loaded.usdt_specs = loaded.share_usdt_specs().map_err(no_map)?;
        Ok(loaded)
    }

    /// The map that holds the locations of USDT arguments, if there is one.
    fn share_usdt_specs(&self) -> Result<Option<Arc<UsdtSpecs>>> {
        let index = self.names.iter().position(|name| name == usdt_specs::MAP);
        let map = index.and_then(|index| self.maps.get(index)?.as_ref());
        let again = map.map(MapFd::try_clone).transpose();
        let again = again.map_err(|errno| failed(Command::MapCreate, usdt_specs::MAP, errno))?;
        Ok(again.map(UsdtSpecs::new))
    }

    pub(super) fn usdt_specs(&self) -> Option<Arc<UsdtSpecs>> {
        self.usdt_specs.clone()
    }

    /// Why the kernel refused the object's BTF, if it did.
    #[must_use]
    pub const fn btf_refused(&self) -> Option<&KernelError> {
        self.btf_refused.as_ref()
    }

    pub(super) const fn btf(&self) -> Option<&BtfFd> {
        self.btf.as_ref()
    }

    /// The file descriptors by map index.
    pub(super) fn descriptors(&self) -> Vec<Option<BorrowedFd<'_>>> {
        self.maps
            .iter()
            .map(|map| map.as_ref().map(MapFd::as_fd))
            .collect()
    }

    /// Stores a program in the elements of prog arrays that name it.
    ///
    /// # Errors
    /// The program is not compatible with the others in the array.
    pub fn set_program(&self, defs: &[MapDef], program: &LoadedProgram) -> Result<()> {
        for (def, map) in defs.iter().zip(&self.maps) {
            let Some(map) = map.as_ref().filter(|_| def.map_type == MapType::ProgArray) else {
                continue;
            };
            for entry in &def.initial {
                if let Initial::Program { index, name } = entry
                    && *name == program.name()
                {
                    map.update_fd(&index.to_ne_bytes(), program.as_fd(), 0)
                        .map_err(|errno| failed(Command::MapUpdateElem, &def.name, errno))?;
                }
            }
        }
        Ok(())
    }

    /// The current value of a key; for a per-CPU map the values of all CPUs, each padded to
    /// eight bytes. `None` if there is no such element.
    ///
    /// # Errors
    /// The map was not created or can't be read, or the key has the wrong size.
    pub fn lookup(&self, map: MapId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let command = Command::MapLookupElem;
        let (fd, name) = self.get(map, command)?;
        match fd.lookup(key, 0) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(failed(command, name, errno)),
        }
    }

    /// The map's current keys, each once; keys that programs add or delete during the iteration
    /// may or may not be among them.
    ///
    /// # Errors
    /// The map was not created or can't be iterated.
    pub fn keys(&self, map: MapId) -> Result<Vec<Vec<u8>>> {
        let command = Command::MapGetNextKey;
        let (fd, name) = self.get(map, command)?;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let iterated = for_each_key(
            fd.max_entries(),
            |key| fd.next_key(key),
            |key| {
                keys.push(key.to_vec());
                Ok(())
            },
        );
        iterated.map_err(|errno| failed(command, name, errno))?;
        Ok(keys)
    }

    /// A map, for single operations; none if it was not created.
    #[must_use]
    pub fn map(&self, map: MapId) -> Option<KernelMap<'_>> {
        let fd = self.maps.get(map.index()).and_then(Option::as_ref);
        fd.map(KernelMap::new)
    }

    fn get(&self, map: MapId, command: Command) -> Result<(&MapFd, &str)> {
        let name = self.names.get(map.index()).map_or("?", String::as_str);
        let fd = self.maps.get(map.index()).and_then(Option::as_ref);
        fd.map(|fd| (fd, name))
            .ok_or_else(|| failed(command, name, Errno::EBADF))
    }

    /// Creates a map and writes an arena's global variables.
    fn make_whole(&self, def: &MapDef, token: Option<&TokenFd>) -> Result<MapFd> {
        let mut map = self.make(def, token)?;
        for entry in &def.initial {
            if let (MapType::Arena, Initial::Bytes { value, .. }) = (def.map_type, entry) {
                map.write_arena(value)
                    .map_err(|errno| failed(Command::MapUpdateElem, &def.name, errno))?;
            }
        }
        Ok(map)
    }

    /// Creates a map; a map of maps also gets the definition of its inner maps.
    fn make(&self, def: &MapDef, token: Option<&TokenFd>) -> Result<MapFd> {
        let inner = def.inner.as_deref().map(|inner| self.make(inner, token));
        let inner = inner.transpose()?;
        let id = |ty: Option<crate::util::TypeId>| ty.map_or(0, |ty| ty.0);
        let typed = def.key_type.is_some() || def.value_type.is_some();
        let types = self.btf.as_ref().filter(|_| typed);
        let mut request = MapRequest {
            map_type: def.map_type,
            key_size: def.key_size,
            value_size: def.value_size,
            max_entries: match (def.map_type, def.max_entries) {
                (MapType::PerfEventArray, 0) => cpus::possible(),
                (_, entries) => entries,
            },
            flags: def.flags.bits(),
            extra: def.extra,
            numa_node: def.numa_node,
            name: name_field(&def.name),
            inner: inner.as_ref(),
            types: types.map(|btf| (btf, id(def.key_type), id(def.value_type))),
            kernel_value_type: id(def.kernel_value_type),
            token,
        };
        let mut made = MapFd::create(&request);
        if made.is_err() && request.types.take().is_some() {
            // Several map types take no BTF types.
            made = MapFd::create(&request);
        }
        made.map_err(|errno| failed(Command::MapCreate, &def.name, errno))
    }

    /// Writes a map's initial elements.
    fn fill(&self, def: &MapDef, map: &MapFd) -> Result<()> {
        for entry in &def.initial {
            let updated = match entry {
                _ if def.map_type == MapType::Arena => Ok(()),
                Initial::Bytes { key, value } => {
                    map.update(key, &whole(value, map.value_size()), 0)
                }
                Initial::Map { index, map: inner } => {
                    let inner = self.maps.get(inner.index()).and_then(Option::as_ref);
                    inner.map_or(Err(Errno::EBADF), |inner| {
                        map.update_fd(&index.to_ne_bytes(), inner.as_fd(), 0)
                    })
                }
                Initial::Program { .. } => Ok(()),
            };
            updated.map_err(|errno| failed(Command::MapUpdateElem, &def.name, errno))?;
        }
        if def.frozen {
            map.freeze()
                .map_err(|errno| failed(Command::MapFreeze, &def.name, errno))?;
        }
        Ok(())
    }
}

/// The value, padded with the zeros that its definition leaves out.
fn whole(value: &[u8], size: usize) -> Cow<'_, [u8]> {
    if value.len() >= size {
        return value.into();
    }
    let mut whole = value.to_vec();
    whole.resize(size, 0);
    whole.into()
}

fn failed(command: Command, map: &str, errno: Errno) -> KernelError {
    KernelError::new(command, format!("map {map}"), errno)
}

/// A name as a NUL-padded field of a request.
pub(super) fn name_field(name: &str) -> [u8; NAME_LEN] {
    let mut field = [0; NAME_LEN];
    let name = kernel_name(name);
    field[..name.len()].copy_from_slice(name.as_bytes());
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_kernel_takes() {
        assert_eq!(&name_field(".rodata.str"), b".rodata.str\0\0\0\0\0");
        assert_eq!(&name_field("a-name$longer-than-it"), b"a_name_longer_t\0");
        assert_eq!(*whole(&[1], 3), [1, 0, 0]);
        assert_eq!(*whole(&[1, 2], 2), [1, 2]);
    }
}
