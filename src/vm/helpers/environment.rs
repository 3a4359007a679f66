//! Helpers that ask for the time, the CPU and chance
//! (`kernel/bpf/helpers.c`). All of it is the mocked world's.

use crate::vm::machine::{Call, Returned};

pub(super) fn ktime_get_ns(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.clock().monotonic_ns())
}

pub(super) fn ktime_get_boot_ns(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.clock().boot_ns())
}

pub(super) fn ktime_get_tai_ns(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.clock().tai_ns())
}

pub(super) fn ktime_get_coarse_ns(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.clock().coarse_ns())
}

pub(super) fn jiffies64(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.clock().jiffies())
}

pub(super) fn get_prandom_u32(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.random().next_u32().into())
}

pub(super) fn get_smp_processor_id(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.cpu().into())
}

pub(super) fn get_numa_node_id(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.numa_node().into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::spec::helpers::id;
    use crate::vm::helpers::testing::Bench;

    #[test]
    fn clocks_are_the_worlds() {
        let mut bench = Bench::new();
        let clock = bench.machine.world.clock();
        clock.set_ns(1_000_000_007).suspend(Duration::from_secs(2));
        let (tai, jiffies) = (clock.tai_ns(), clock.jiffies());
        assert_eq!(bench.ok(id::ktime_get_ns, []), 1_000_000_007);
        assert_eq!(bench.ok(id::ktime_get_boot_ns, []), 3_000_000_007);
        assert_eq!(bench.ok(id::ktime_get_coarse_ns, []), 1_000_000_000);
        assert_eq!(bench.ok(id::ktime_get_tai_ns, []), tai);
        assert_eq!(bench.ok(id::jiffies64, []), jiffies);
    }

    #[test]
    fn cpu_node_and_chance_are_the_worlds() {
        let mut bench = Bench::new();
        bench.machine.world.set_cpu(3).set_numa_node(1);
        assert_eq!(bench.ok(id::get_smp_processor_id, []), 3);
        assert_eq!(bench.ok(id::get_numa_node_id, []), 1);
        let first = bench.ok(id::get_prandom_u32, []);
        assert_ne!(bench.ok(id::get_prandom_u32, []), first);
        bench.machine.world.random().seed(0);
        assert_eq!(bench.ok(id::get_prandom_u32, []), first);
    }
}
