//! LZ4 compression of blocks: fast enough to run while recording, and similar ring buffer
//! records shrink to a fraction.

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

/// Packs blocks and reuses its memory.
pub(super) struct Packer {
    table: CompressTable,
    room: Vec<u8>,
}

impl Packer {
    pub fn new() -> Self {
        Self {
            table: CompressTable::large(),
            room: Vec::new(),
        }
    }

    /// The packed bytes; `None` if that saves nothing.
    pub fn pack(&mut self, plain: &[u8]) -> Option<&[u8]> {
        let room = get_maximum_output_size(plain.len());
        if self.room.len() < room {
            self.room.resize(room, 0);
        }
        let len = compress_into_with_table(plain, &mut self.room, &mut self.table).ok()?;
        self.room
            .get(..len)
            .filter(|packed| packed.len() < plain.len())
    }
}

/// Unpacks into `plain`, which becomes `len` bytes long; the caller has checked `len` against
/// the limits.
pub(super) fn unpack(stored: &[u8], plain: &mut Vec<u8>, len: usize) -> Result<(), String> {
    plain.resize(len, 0);
    match decompress_into(stored, plain) {
        Ok(found) if found == len => Ok(()),
        Ok(found) => Err(format!("expected {len} bytes when unpacked, found {found}")),
        Err(error) => Err(format!("can't be unpacked: {error}")),
    }
}
