//! Kinds of map without an implementation: objects that declare one open and load,
//! and programs run until they use it.

use super::Map;
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// A map that answers everything with "not supported".
#[derive(Debug)]
pub(super) struct Placeholder {
    def: MapDef,
}

impl Placeholder {
    pub const fn new(def: MapDef) -> Self {
        Self { def }
    }
}

impl Map for Placeholder {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn is_placeholder(&self) -> bool {
        true
    }

    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn update(
        &self,
        _cpu: u32,
        _key: &[u8],
        _value: &[u8],
        _flags: UpdateFlags,
    ) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
