//! Kernel pointers in map values (`bpf_kptr_xchg`, `kernel/bpf/helpers.c`).

use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::memory::AccessKind;

/// `bpf_kptr_xchg(field, pointer or null)`: stores the pointer, whose reference moves into
/// the map, and returns the old pointer with its reference.
pub(super) fn kptr_xchg(call: &mut Call<'_>) -> Returned {
    let (place, pointer) = (call.arg(1), call.arg(2));
    // Check the access first, so that the reference is not lost on an error.
    call.check(1, 8, AccessKind::Atomic)?;
    if pointer != 0 {
        call.machine.release(2, pointer)?;
    }
    let old = call.machine.space.update(place, 8, |_| pointer);
    let old = old.map_err(|fault| HelperProblem::Access { arg: 1, fault })?;
    if old != 0 {
        call.machine.acquire(old);
    }
    Ok(old)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use crate::spec::MapType;
    use crate::spec::helpers::id;

    const OBJECT: u64 = 0xffff_8881_0000_1000;

    #[test]
    fn references_go_into_values_and_come_back() {
        let mut bench = Bench::new();
        let (_, handle, _) = bench.map(MapType::Array, 4, 8, 1);
        let place = bench.machine.value_address(handle, 0).unwrap();
        let problem = bench.call(id::kptr_xchg, [place, OBJECT]).unwrap_err();
        assert!(problem.to_string().contains("holds a reference"));
        bench.machine.acquire(OBJECT);
        assert_eq!(bench.ok(id::kptr_xchg, [place, OBJECT]), 0);
        assert_eq!(bench.machine.unreleased().len(), 0);
        assert_eq!(bench.machine.space.load(place, 8), Ok(OBJECT));
        assert_eq!(bench.ok(id::kptr_xchg, [place, 0]), OBJECT);
        assert_eq!(bench.machine.unreleased().len(), 1);
        assert_eq!(bench.machine.space.load(place, 8), Ok(0));
        assert!(bench.call(id::kptr_xchg, [place + 4, OBJECT]).is_err());
        assert_eq!(bench.machine.unreleased().len(), 1, "and is still held");
    }
}
