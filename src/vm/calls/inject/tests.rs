//! Tests of failing calls and their effects.

use super::super::helpers::testing::Bench;
use super::super::kfuncs::{self, Callee};
use crate::spec::helpers::id;
use crate::spec::{MapType, UpdateFlags};
use crate::util::{Errno, HelperId};
use crate::vm::machine::Output;
use crate::vm::machine::inject::{Cause, Injection};
use crate::vm::maps::Kind;

const ANY: UpdateFlags = UpdateFlags::empty();

#[test]
fn a_failed_update_changes_nothing() {
    let mut bench = Bench::new();
    let (map, _, hash) = bench.map(MapType::Hash, 4, 4, 8);
    let (key, value) = (bench.memory(&[1; 4]), bench.memory(&[7; 4]));
    let third = Injection::map_update().error(Errno::ENOMEM).nth(3);
    let third = bench.machine.injections.add(third);
    let other = bench
        .machine
        .injections
        .add(Injection::call("map_update_elem").on_map("x"));
    for call in 1..=4u64 {
        hash.write(&[1; 4], &[0; 4], ANY).unwrap();
        let r0 = bench.ok(id::map_update_elem, [map, key, value, 0]);
        assert_eq!(r0, if call == 3 { Errno::ENOMEM.to_ret() } else { 0 });
        assert_eq!(
            hash.read(&[1; 4]),
            Ok(vec![if call == 3 { 0 } else { 7 }; 4])
        );
    }
    assert_eq!((third.calls(), third.count()), (4, 1));
    assert_eq!((other.calls(), other.count()), (0, 0));
    let log = bench.machine.injections.take();
    let words: Vec<_> = log.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        ["bpf_map_update_elem(m), call 3: ENOMEM (Cannot allocate memory)"]
    );
    assert!(bench.machine.injections.take().is_empty());
}

#[test]
fn a_full_buffer_takes_no_record() {
    let mut bench = Bench::new();
    let (map, _, ring) = bench.map(MapType::Ringbuf, 0, 0, 4096);
    let data = bench.memory(&[7; 8]);
    bench.machine.injections.add(Injection::buffer_full());
    assert_eq!(bench.ok(id::ringbuf_reserve, [map, 8, 0]), 0);
    let output = bench.errno(id::ringbuf_output, [map, data, 8, 0]);
    assert_eq!(output, Errno::EAGAIN);
    let Kind::RingBuf(ring) = ring.kind() else {
        panic!("no ring buffer");
    };
    assert_eq!(ring.producer_position(), 0);
    assert_eq!(bench.machine.unreleased().len(), 0);
    let lost = Output::Lost {
        map: "m".into(),
        error: Errno::EAGAIN,
    };
    assert_eq!(bench.machine.take_outputs(), [lost.clone(), lost]);
}

/// After a failure, programs read the same as in the kernel.
#[test]
fn what_would_be_filled_is_zero() {
    let mut bench = Bench::new();
    let (stack, _, map) = bench.map(MapType::Stack, 0, 4, 8);
    map.write(&[], &[9; 4], ANY).unwrap();
    let to = bench.memory(&[0xee; 16]);
    bench.machine.injections.add(Injection::probe_read());
    bench
        .machine
        .injections
        .add(Injection::call("bpf_map_pop_elem"));
    bench
        .machine
        .injections
        .add(Injection::call("get_current_comm"));
    let cases: [(HelperId, [u64; 3], usize, Errno); 4] = [
        (id::probe_read_kernel, [to, 8, to], 8, Errno::EFAULT),
        (id::probe_read_user_str, [to, 3, to], 3, Errno::EFAULT),
        (id::map_pop_elem, [stack, to, 0], 4, Errno::EINVAL),
        (id::get_current_comm, [to, 16, 0], 16, Errno::EINVAL),
    ];
    for (helper, args, zeros, errno) in cases {
        bench.machine.space.write(to, &[0xee; 16]).unwrap();
        assert_eq!(bench.errno(helper, args), errno);
        let mut left = vec![0xee; 16];
        left[..zeros].fill(0);
        assert_eq!(bench.bytes(to, 16), left, "{helper}");
    }
    assert_eq!(map.read(&[]), Ok(vec![9; 4]), "it was not popped");
    // An address that can't be written is a fault, as without injection.
    assert!(bench.call(id::probe_read_kernel, [1, 8, to]).is_err());
    assert!(
        bench
            .call(id::probe_read_kernel, [to, u64::MAX >> 32, to])
            .is_err()
    );
}

#[test]
fn pointers_are_null_and_what_says_nothing_goes_its_way() {
    let mut bench = Bench::new();
    let (map, ..) = bench.map(MapType::Array, 4, 4, 8);
    let key = bench.memory(&[1, 0, 0, 0]);
    let lookups = Injection::call("map_lookup_elem")
        .error(Errno::EPERM)
        .every(2);
    bench.machine.injections.add(lookups);
    bench
        .machine
        .injections
        .add(Injection::call("ringbuf_submit"));
    let found: Vec<_> = (0..4)
        .map(|_| bench.ok(id::map_lookup_elem, [map, key]) != 0)
        .collect();
    assert_eq!(found, [true, false, true, false]);
    assert!(
        bench.call(id::ringbuf_submit, [key, 0]).is_err(),
        "no record"
    );
}

#[test]
fn no_memory_is_where_memory_is_asked_for() {
    let mut bench = Bench::new();
    let (array, ..) = bench.map(MapType::Array, 4, 4, 8);
    let mut def = crate::program::MapDef::new("t", MapType::LpmTrie, 8, 4, 8);
    def.flags |= MapType::LpmTrie.info().flags_needed;
    let (trie, ..) = bench.add(&def);
    let (key, value) = (bench.memory(&[0; 8]), bench.memory(&[0; 4]));
    let none = bench
        .machine
        .injections
        .add(Injection::of(Cause::Allocation));
    assert_eq!(bench.ok(id::map_update_elem, [array, key, value, 0]), 0);
    let errno = bench.errno(id::map_update_elem, [trie, key, value, 0]);
    assert_eq!(errno, Errno::ENOMEM);
    assert_eq!((none.calls(), none.count()), (1, 1));
}

#[test]
fn a_mock_is_not_reached_and_reaches_the_helper() {
    let mut bench = Bench::new();
    bench
        .machine
        .injections
        .add(Injection::call("ktime_get_ns").nth(2));
    let mock = |call: &mut super::super::helpers::Call<'_>| {
        let real = super::super::helpers::call(id::ktime_get_ns, call)?;
        Ok(real.max(1_000))
    };
    bench.machine.mock_helper(id::ktime_get_ns, Box::new(mock));
    bench.machine.world.clock();
    let returned: Vec<_> = (0..3).map(|_| bench.ok(id::ktime_get_ns, [])).collect();
    assert_eq!(returned[0], returned[2]);
    assert_eq!(returned[1], Errno::EINVAL.to_ret());
}

#[test]
fn kernel_functions_fail_too() {
    let mut bench = Bench::new();
    bench.machine.injections.add(Injection::allocation().nth(1));
    let strings = bench.machine.injections.add(Injection::probe_read());
    let mask = Callee::new("bpf_cpumask_create", 8);
    assert_eq!(bench.body(|call| kfuncs::call(&mask, call), []), Ok(0));
    let made = bench.body(|call| kfuncs::call(&mask, call), []);
    assert_ne!(made, Ok(0), "only the first fails");
    let to = bench.memory(&[0xee; 8]);
    let copy = Callee::new("bpf_copy_from_user_str", 4);
    let r0 = bench.body(|call| kfuncs::call(&copy, call), [to, 4, to, 0]);
    assert_eq!(r0, Ok(Errno::EFAULT.to_ret() & u64::from(u32::MAX)));
    assert_eq!(bench.bytes(to, 8), [0, 0, 0, 0, 0xee, 0xee, 0xee, 0xee]);
    assert_eq!(strings.count(), 1);
}
