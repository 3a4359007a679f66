//! Queries of maps and pointers (`kernel/bpf/map_iter.c`, `kernel/bpf/helpers.c`).

use crate::spec::MapType;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// `bpf_map_sum_elem_count(map)`: the number of entries; only hash maps count them
/// (`elem_count`).
pub(super) fn sum_elem_count(call: &mut Call<'_>) -> Result {
    let (_, map) = call.map(1)?;
    let def = map.def();
    let counts = matches!(
        def.map_type,
        MapType::Hash
            | MapType::PercpuHash
            | MapType::LruHash
            | MapType::LruPercpuHash
            | MapType::HashOfMaps
    );
    if !counts || def.key_size == 0 {
        return Ok(0);
    }
    let keys = map.keys().map_or(0, |keys| keys.len() as u64);
    Ok(keys / u64::from(def.key_size))
}

/// `bpf_rdonly_cast(pointer, type)`: the same pointer, untrusted.
pub(super) fn rdonly_cast(call: &mut Call<'_>) -> Result {
    Ok(call.arg(1))
}
