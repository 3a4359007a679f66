//! Pages of arenas (`kernel/bpf/arena.c`).

use crate::vm::machine::{Call, HelperProblem};
use crate::vm::maps::{Arena, Kind};

type Result = std::result::Result<u64, HelperProblem>;

/// Applies an operation to the arena in argument 1.
fn with(call: &Call<'_>, then: impl FnOnce(&Arena) -> u64) -> Result {
    let (_, map) = call.map(1)?;
    match map.kind() {
        Kind::Arena(arena) => Ok(then(arena)),
        _ => Err(call.wrong(1, "an arena")),
    }
}

/// `bpf_arena_alloc_pages(arena, address or null, count, node, flags)`: the user address of
/// the first page, or null.
pub(super) fn alloc_pages(call: &mut Call<'_>) -> Result {
    let (address, count, flags) = (call.arg(2), call.arg_u32(3), call.arg(5));
    with(call, |arena| match flags {
        0 => arena.allocate(address, count),
        _ => 0,
    })
}

/// `bpf_arena_free_pages(arena, address, count)`.
pub(super) fn free_pages(call: &mut Call<'_>) -> Result {
    let (address, count) = (call.arg(2), call.arg_u32(3));
    with(call, |arena| {
        if address != 0 {
            arena.release(address, count);
        }
        0
    })
}

/// `bpf_arena_reserve_pages(arena, address, count)`: excludes pages from allocation.
pub(super) fn reserve_pages(call: &mut Call<'_>) -> Result {
    let (address, count) = (call.arg(2), call.arg_u32(3));
    with(call, |arena| match arena.reserve(address, count) {
        Ok(()) => 0,
        // The kfunc's return type is `int`.
        Err(errno) => errno.to_ret() & u64::from(u32::MAX),
    })
}
