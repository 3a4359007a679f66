//! The maps of aimed programs, and the fields of their contexts.

use std::sync::{Arc, LazyLock};

use crate::program::{Initial, MapDef};
use crate::spec::context::{self, Arch};
use crate::spec::{MapFlags, MapType, ProgType};

/// Bytes of the map value, and of the stack that is used.
pub(super) const AREA: i32 = 64;

/// The maps by index.
pub(super) const VALUES: i32 = 0;
pub(super) const HASH: i32 = 1;
pub(super) const RECORDS: i32 = 2;

/// The maps of all programs: the same object, so that a kernel's can be used again.
pub(super) static MAPS: LazyLock<Arc<[MapDef]>> = LazyLock::new(|| {
    let maps: Arc<[MapDef]> = Arc::new([
        MapDef::new("values", MapType::Array, 4, AREA.cast_unsigned(), 1),
        MapDef::new("hash", MapType::Hash, 8, AREA.cast_unsigned(), 4),
        MapDef::new("records", MapType::Ringbuf, 0, 0, 4096),
    ]);
    maps
});

/// Frozen, and not.
pub(super) const FROZEN: i32 = 3;
pub(super) const OPEN: i32 = 4;

/// The maps of programs that load constants: those of the others, and two that they may only read.
pub(super) static WITH_CONSTANTS: LazyLock<Arc<[MapDef]>> = LazyLock::new(|| {
    let read_only = |name: &str, frozen| {
        let len = AREA.cast_unsigned();
        let mut map = MapDef::new(name, MapType::Array, 4, len, 1);
        map.flags = MapFlags::RDONLY_PROG;
        map.frozen = frozen;
        map.initial = vec![Initial::Bytes {
            key: vec![0; 4],
            value: CONTENTS.into(),
        }];
        map
    };
    let maps = MAPS.iter().cloned();
    maps.chain([read_only("frozen", true), read_only("open", false)])
        .collect()
});

/// The offset of a field of the context; 0 if there is no such field.
pub(super) fn field(of: ProgType, name: &str) -> i16 {
    let layout = context::layout(of.info().context, Arch::HOST);
    let found = layout.and_then(|layout| layout.find(name));
    found.map_or(0, |(offset, _)| i16::try_from(offset).unwrap_or(0))
}

/// Positive and negative numbers of all sizes.
const CONTENTS: [u8; 16] = [
    0x01, 0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x80, 0x05, 0x00, 0x00, 0x00,
];
