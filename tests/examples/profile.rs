//! `profile`: where the time is spent, by process and stacks.

use bpflab::{Result, Vm};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::engines::{on_every_engine, on_every_engine_with};

/// Addresses of code, the innermost function's first: `vfs_read` called by `ksys_read`
/// called by the system call's entry.
const READS: [u64; 3] = [
    0xffff_ffff_8132_1010,
    0xffff_ffff_8132_4020,
    0xffff_ffff_8200_0130,
];
const WRITES: [u64; 2] = [0xffff_ffff_8132_2010, 0xffff_ffff_8200_0130];
const MAIN: [u64; 2] = [0x5555_0000_1234, 0x7fff_f000_0010];

/// `struct sample` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Sample {
    pid: u32,
    kernel_stack: i32,
    user_stack: i32,
    comm: [u8; 16],
}

/// The timer fires on the current CPU.
fn sample(vm: &mut Vm) -> Result<()> {
    let event = vm.perf_event()?;
    vm.fire(event)?;
    Ok(())
}

/// What was sampled, the most frequent first.
fn samples(vm: &Vm) -> Result<Vec<(Sample, u64)>> {
    let mut samples = vm.map("samples")?.entries::<Sample, u64>()?;
    samples.sort_by_key(|(sample, count)| (std::cmp::Reverse(*count), sample.pid));
    Ok(samples)
}

/// The addresses of a stack.
fn stack(vm: &Vm, id: i32) -> Result<Vec<u64>> {
    let found = vm.map("stacks")?.get::<i32, [u64; 127]>(&id)?;
    let addresses = found.expect("a stack that was kept").into_iter();
    Ok(addresses.take_while(|address| *address != 0).collect())
}

#[test]
fn a_sample_has_both_stacks() {
    on_every_engine("profile", |vm| {
        vm.attach_all()?;
        vm.world().task().set_pid(42).set_comm("dd");
        vm.world().set_kernel_stack(READS).set_user_stack(MAIN);
        sample(vm)?;
        let [(found, 1)] = samples(vm)?[..] else {
            panic!("one sample")
        };
        assert_eq!((found.pid, &found.comm[..3]), (42, &b"dd\0"[..]));
        assert_eq!(stack(vm, found.kernel_stack)?, READS);
        assert_eq!(stack(vm, found.user_stack)?, MAIN);
        Ok(())
    });
}

/// Equal stacks count together, also on another CPU; each other one for itself.
#[test]
fn samples_count_by_process_and_stack() {
    on_every_engine("profile", |vm| {
        vm.attach_all()?;
        for (cpu, pid, kernel) in [
            (0, 42, &READS[..]),
            (1, 42, &READS),
            (0, 42, &READS),
            (0, 42, &WRITES),
            (0, 43, &READS),
        ] {
            vm.world().set_cpu(cpu).task().set_pid(pid);
            vm.world().set_kernel_stack(kernel).set_user_stack(MAIN);
            sample(vm)?;
        }
        let found = samples(vm)?;
        let counts: Vec<_> = found.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [3, 1, 1]);
        let often = found[0].0;
        assert_eq!(
            (often.pid, stack(vm, often.kernel_stack)?),
            (42, READS.to_vec())
        );
        let other = found[2].0;
        assert_eq!((other.pid, other.kernel_stack), (43, often.kernel_stack));
        Ok(())
    });
}

/// Nothing ran there.
#[test]
fn the_idle_task_is_not_sampled() {
    on_every_engine("profile", |vm| {
        vm.attach_all()?;
        vm.world().task().set_pid(0).set_comm("swapper/0");
        sample(vm)?;
        assert_eq!(samples(vm)?, []);
        Ok(())
    });
}

/// A thread of the kernel has no stack in user space: its sample has -EFAULT there, and
/// counts.
#[test]
fn a_kernel_thread_has_no_user_stack() {
    on_every_engine("profile", |vm| {
        vm.attach_all()?;
        vm.world().task().set_pid(2).set_comm("kthreadd");
        vm.world().set_kernel_stack(READS).set_user_stack([]);
        sample(vm)?;
        let [(found, 1)] = samples(vm)?[..] else {
            panic!("one sample")
        };
        assert_eq!(found.user_stack, -14);
        assert_eq!(stack(vm, found.kernel_stack)?, READS);
        Ok(())
    });
}

#[test]
fn samples_without_room_are_counted() {
    on_every_engine_with(
        "profile",
        |object| {
            object.map_mut("samples")?.set_max_entries(1)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            for pid in [1, 2, 3, 1] {
                vm.world().task().set_pid(pid);
                sample(vm)?;
            }
            let [(found, 2)] = samples(vm)?[..] else {
                panic!("one process")
            };
            assert_eq!(found.pid, 1);
            assert_eq!(vm.map("profile.bss")?.get::<u32, u64>(&0)?, Some(2));
            Ok(())
        },
    );
}
