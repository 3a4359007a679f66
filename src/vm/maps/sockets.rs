//! Maps of sockets, for redirects, look-ups and selecting a listener
//! (`net/core/sock_map.c`, `net/xdp/xskmap.c`, `kernel/bpf/reuseport_array.c`).

use super::base::{Base, Mode};
use super::keyed::Keyed;
use super::objects::Slots;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_SOCKMAP`, `SOCKHASH`, `XSKMAP` and `REUSEPORT_SOCKARRAY`. There are no file
/// descriptors: sockets are identified by their address, and a test inserts them with
/// [`set`](Self::set).
///
/// If values have 8 bytes, user space reads a socket's address, where the kernel returns the
/// socket's cookie.
#[derive(Debug)]
pub struct Sockets {
    base: Base,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// By index.
    Array(Slots),
    /// By key.
    Hash(Keyed<u64>),
}

impl Sockets {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let entries = match def.map_type {
            MapType::Sockhash => Entries::Hash(Keyed::new(def.max_entries)),
            _ => Entries::Array(Slots::new(def.max_entries)),
        };
        Self {
            base: Base::new(def, cpus),
            entries,
        }
    }

    /// The socket of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        match &self.entries {
            Entries::Array(slots) => slots.get(Base::index(key).ok()?),
            Entries::Hash(keyed) => keyed.get(key),
        }
    }

    /// Whether look-ups by programs acquire a reference that must be released; `None` if programs
    /// can't look up in this type of map.
    #[must_use]
    pub const fn lookup_acquires(&self) -> Option<bool> {
        match self.base.def().map_type {
            MapType::Sockmap | MapType::Sockhash => Some(true),
            MapType::Xskmap => Some(false),
            _ => None,
        }
    }

    /// Sets the socket of a key, as user space does.
    ///
    /// # Errors
    /// As for [`update`](Self::update); `EPERM` if user space may not write.
    pub fn set(&self, key: &[u8], socket: u64, flags: UpdateFlags) -> Result<(), Errno> {
        self.base.user_writes()?;
        self.update(key, socket, flags)
    }

    /// Sets the socket of a key, as a program does.
    ///
    /// # Errors
    /// `EINVAL` for flags and for a null pointer, `E2BIG` past the end or if full, `EEXIST` and
    /// `ENOENT` by flag, `EBUSY` if the reuseport array already has the socket.
    pub fn update(&self, key: &[u8], socket: u64, flags: UpdateFlags) -> Result<(), Errno> {
        let mode = Mode::of(flags)?;
        self.base.check_key(key)?;
        if socket == 0 {
            return Err(Errno::EINVAL);
        }
        let slots = match &self.entries {
            Entries::Array(slots) => slots,
            Entries::Hash(keyed) => return keyed.set(key, socket, mode),
        };
        let index = self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
        let old = slots.get(index);
        match self.base.def().map_type {
            MapType::Xskmap if old == Some(socket) => return Ok(()),
            MapType::ReuseportSockarray => {
                mode.check(old.is_some())?;
                if slots.contains(socket) {
                    return Err(Errno::EBUSY);
                }
            }
            _ => mode.check(old.is_some())?,
        }
        slots.set(index, socket)
    }

    /// The error for a file descriptor in a value: there are none.
    fn no_descriptor(value: &[u8]) -> Errno {
        let wide = value.try_into().map(u64::from_le_bytes);
        match wide {
            Ok(number) if i32::try_from(number).is_err() => Errno::EINVAL,
            _ => Errno::EBADF,
        }
    }
}

impl Map for Sockets {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Sockets(self)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let slots = match &self.entries {
            Entries::Array(slots) => slots,
            Entries::Hash(keyed) => return keyed.remove(key),
        };
        let index = self.base.index_within(key)?;
        let (past, empty) = match self.base.def().map_type {
            MapType::Sockmap => (Errno::EINVAL, Some(Errno::EINVAL)),
            MapType::Xskmap => (Errno::EINVAL, None),
            _ => (Errno::E2BIG, Some(Errno::ENOENT)),
        };
        match (slots.take(index.ok_or(past)?), empty) {
            (None, Some(errno)) => Err(errno),
            _ => Ok(()),
        }
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        if self.base.def().map_type == MapType::Xskmap {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.base.def().value_size != 8 {
            return Err(Errno::ENOSPC);
        }
        let socket = self.get(key).ok_or(Errno::ENOENT)?;
        Ok(socket.to_le_bytes().to_vec())
    }

    /// Always fails: there are no file descriptors of sockets. Sockmaps check the descriptor
    /// first, the others last.
    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        if matches!(
            self.base.def().map_type,
            MapType::Xskmap | MapType::ReuseportSockarray
        ) {
            Mode::of(flags)?;
            self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
        }
        Err(Self::no_descriptor(value))
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        match &self.entries {
            Entries::Array(_) => self.base.next_index(key),
            Entries::Hash(keyed) => keyed.next_key(key),
        }
    }
}
