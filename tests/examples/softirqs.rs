//! `softirqs`: softirqs by vector and CPU.

use bpflab::{Result, Vm};

use crate::engines::on_every_engine;

const TIMER: u32 = 1;
const NET_RX: u32 = 3;
const RCU: u32 = 9;

fn raise(vm: &mut Vm, cpu: u32, vector: u32) -> Result<()> {
    vm.world().set_cpu(cpu);
    let event = vm.tracepoint("irq/softirq_entry")?.set("vec", vector)?;
    vm.fire(event)?;
    Ok(())
}

#[test]
fn each_cpu_counts_its_own() {
    on_every_engine("softirqs", |vm| {
        vm.attach_all()?;
        for (cpu, vector) in [(0, TIMER), (1, TIMER), (1, TIMER), (3, NET_RX), (0, RCU)] {
            raise(vm, cpu, vector)?;
        }
        let counts = |vector: u32| vm.map("counts")?.get_per_cpu::<u32, u64>(&vector);
        assert_eq!(counts(TIMER)?, Some(vec![1, 2, 0, 0]));
        assert_eq!(counts(NET_RX)?, Some(vec![0, 0, 0, 1]));
        assert_eq!(counts(RCU)?, Some(vec![1, 0, 0, 0]));
        assert_eq!(counts(0)?, Some(vec![0; 4]));
        Ok(())
    });
}

/// A later kernel may have more of them.
#[test]
fn an_unknown_vector_counts_nowhere() {
    on_every_engine("softirqs", |vm| {
        vm.attach_all()?;
        for vector in [10, 64, u32::MAX] {
            raise(vm, 0, vector)?;
        }
        for vector in 0..10u32 {
            let counts = vm.map("counts")?.get_per_cpu::<u32, u64>(&vector)?;
            assert_eq!(counts, Some(vec![0; 4]), "vector {vector}");
        }
        assert_eq!(vm.map("counts")?.get_per_cpu::<u32, u64>(&10)?, None);
        Ok(())
    });
}
