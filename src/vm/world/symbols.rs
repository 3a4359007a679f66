//! Kernel symbols and build ids (`kernel/kallsyms.c`).

use std::collections::BTreeMap;
use std::ops::Range;

/// The kernel symbols that a test added, as in `/proc/kallsyms`: each reaches up to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbols {
    by_address: BTreeMap<u64, String>,
}

/// The size assumed for the last symbol.
const LAST_SIZE: u64 = 4096;

/// The symbol that contains an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// Offset of the address in the symbol.
    pub offset: u64,
    /// Size of the symbol in bytes.
    pub size: u64,
}

impl Symbols {
    /// Adds a symbol.
    pub(super) fn insert(&mut self, address: u64, name: &str) {
        self.by_address.insert(address, name.to_owned());
    }

    /// The symbol that contains an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let (start, name) = self.by_address.range(..=address).next_back()?;
        let next = start
            .checked_add(1)
            .and_then(|after| self.by_address.range(after..).next());
        let size = next.map_or(LAST_SIZE, |(next, _)| next - start);
        let offset = address - start;
        (offset < size).then_some(Symbol { name, offset, size })
    }

    /// The name of the symbol at an address, as `%ps` prints it; the number if there is none.
    #[must_use]
    pub fn name(&self, address: u64) -> String {
        match self.find(address) {
            Some(symbol) => symbol.name.to_owned(),
            None => format!("{address:#x}"),
        }
    }

    /// Symbol, offset and size, as `%pS` prints them: `vfs_read+0x1c/0x340`.
    #[must_use]
    pub fn describe(&self, address: u64) -> String {
        self.describe_near(address, 0)
    }

    /// Like [`describe`](Self::describe) for a return address, as `%pB` prints it. Looks up the
    /// call before it, which may be the last instruction of its function.
    #[must_use]
    pub fn describe_return(&self, address: u64) -> String {
        self.describe_near(address, 1)
    }

    fn describe_near(&self, address: u64, back: u64) -> String {
        match self.find(address.wrapping_sub(back)) {
            Some(Symbol { name, offset, size }) => {
                format!("{name}+{:#x}/{size:#x}", offset.wrapping_add(back))
            }
            None => format!("{address:#x}"),
        }
    }
}

/// The files with known build ids that a process has mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mappings {
    by_start: BTreeMap<u64, Mapping>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    end: u64,
    file_offset: u64,
    build_id: [u8; BuildId::SIZE],
}

/// An address as build id and file offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildId {
    /// The build id, padded with zeros.
    pub id: [u8; Self::SIZE],
    /// Offset in the file.
    pub offset: u64,
}

impl BuildId {
    /// Size of a build id in bytes (`BPF_BUILD_ID_SIZE_MAX`).
    pub const SIZE: usize = crate::spec::limits::BUILD_ID_SIZE;
}

impl Mappings {
    /// Maps a file. Replaces a mapping with the same start.
    pub(super) fn insert(&mut self, at: Range<u64>, file_offset: u64, id: &[u8]) {
        let mut build_id = [0; BuildId::SIZE];
        for (to, from) in build_id.iter_mut().zip(id) {
            *to = *from;
        }
        let mapping = Mapping {
            end: at.end,
            file_offset,
            build_id,
        };
        self.by_start.insert(at.start, mapping);
    }

    /// The build id and file offset of an address.
    pub(super) fn find(&self, address: u64) -> Option<BuildId> {
        let (start, mapping) = self.by_start.range(..=address).next_back()?;
        (address < mapping.end).then(|| BuildId {
            id: mapping.build_id,
            offset: (address - start).wrapping_add(mapping.file_offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_by_the_symbol_around_them() {
        let mut symbols = Symbols::default();
        symbols.insert(0x1000, "vfs_read");
        symbols.insert(0x1340, "vfs_write");
        assert_eq!(symbols.name(0x1000), "vfs_read");
        assert_eq!(symbols.describe(0x101c), "vfs_read+0x1c/0x340");
        assert_eq!(symbols.describe(0x1340), "vfs_write+0x0/0x1000");
        assert_eq!(symbols.describe_return(0x1340), "vfs_read+0x340/0x340");
        assert_eq!(symbols.describe_return(0x1341), "vfs_write+0x1/0x1000");
        for nowhere in [0, 0xfff, 0x2340, u64::MAX] {
            assert_eq!(symbols.name(nowhere), format!("{nowhere:#x}"));
            assert_eq!(symbols.describe(nowhere), format!("{nowhere:#x}"));
        }
    }

    #[test]
    fn addresses_become_places_in_files() {
        let mut mappings = Mappings::default();
        mappings.insert(0x1000..0x3000, 0x200, &[7; 4]);
        let found = mappings.find(0x1010).unwrap();
        assert_eq!(
            (found.id[..5].to_vec(), found.offset),
            (vec![7, 7, 7, 7, 0], 0x210)
        );
        assert_eq!(mappings.find(0xfff), None);
        assert_eq!(mappings.find(0x3000), None);
    }
}
