//! Time, random numbers and the current CPU.

use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

pub(super) fn ktime_get_ns(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.clock().monotonic_ns())
}

pub(super) fn ktime_get_boot_ns(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.clock().boot_ns())
}

pub(super) fn ktime_get_tai_ns(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.clock().tai_ns())
}

pub(super) fn ktime_get_coarse_ns(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.clock().coarse_ns())
}

pub(super) fn jiffies64(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.clock().jiffies())
}

pub(super) fn get_prandom_u32(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.random().next_u32().into())
}

pub(super) fn get_smp_processor_id(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.cpu().into())
}

pub(super) fn get_numa_node_id(call: &mut Call<'_>) -> Result {
    Ok(call.machine.world.numa_node().into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::Bench;
    use crate::spec::helpers::id;

    #[test]
    fn clocks_are_the_worlds() {
        let mut bench = Bench::new();
        let clock = bench.machine.world.clock();
        clock.set_ns(1_234_567_890).suspend(Duration::from_secs(2));
        let (tai, jiffies) = (clock.tai_ns(), clock.jiffies());
        assert_eq!(bench.call(id::ktime_get_ns, []), Ok(1_234_567_890));
        assert_eq!(bench.call(id::ktime_get_boot_ns, []), Ok(3_234_567_890));
        assert_eq!(bench.call(id::ktime_get_tai_ns, []), Ok(tai));
        assert_eq!(bench.call(id::ktime_get_coarse_ns, []), Ok(1_232_000_000));
        assert_eq!(bench.call(id::jiffies64, []), Ok(jiffies));
    }

    #[test]
    fn chance_and_place_are_the_worlds() {
        let mut bench = Bench::new();
        bench
            .machine
            .world
            .set_cpu(3)
            .set_numa_node(1)
            .random()
            .seed(7);
        let expected = crate::vm::Random::new(7).next_u32();
        assert_eq!(bench.call(id::get_prandom_u32, []), Ok(expected.into()));
        assert_ne!(bench.call(id::get_prandom_u32, []), Ok(expected.into()));
        assert_eq!(bench.call(id::get_smp_processor_id, []), Ok(3));
        assert_eq!(bench.call(id::get_numa_node_id, []), Ok(1));
    }
}
