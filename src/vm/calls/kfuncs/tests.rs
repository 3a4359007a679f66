//! Kfuncs called one by one, without a program.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::helpers::testing::Bench;
use super::object::{New, allocate};
use super::*;
use crate::btf::{FieldKind, SpecialField};
use crate::spec::{MapType, ProgType, UpdateFlags};
use crate::util::Errno;
use crate::vm::events::Event;
use crate::vm::machine::inject::Injection;
use crate::vm::machine::objects::{Maker, Side, Tree, take_list, take_tree};
use crate::vm::memory::SharedBytes;
use crate::vm::{Machine, World};

impl Bench {
    /// Calls a kfunc that has a body.
    fn kfunc<const N: usize>(&mut self, name: &str, args: [u64; N]) -> Result<u64, HelperProblem> {
        let id = spec::by_name(name).unwrap();
        self.body(body(id).unwrap(), args)
    }

    /// Calls a kfunc that must not end the program.
    fn kok<const N: usize>(&mut self, name: &str, args: [u64; N]) -> u64 {
        self.kfunc(name, args).unwrap()
    }
}

/// A machine with this many CPUs.
fn bench(cpus: u32) -> Bench {
    let mut bench = Bench::new();
    bench.machine = Machine::new(World::with_cpus(cpus));
    bench
}

fn field(kind: FieldKind, off: u32, size: u32) -> SpecialField {
    SpecialField {
        size,
        ..SpecialField::new(kind, off)
    }
}

const NODE: u64 = 8;
const SORTED: u64 = 32;

/// An object with a key, a list node, a tree node and a reference count.
fn object(machine: &mut Machine, key: u64, maker: Maker) -> u64 {
    let fields = [
        field(FieldKind::ListNode, 8, 24),
        field(FieldKind::RbNode, 32, 32),
        field(FieldKind::Refcount, 64, 4),
    ];
    let new = New {
        name: "item",
        size: 72,
        fields: fields.into_iter().collect(),
        ty: None,
        maker,
    };
    let at = allocate(machine, new).unwrap();
    machine.space.store(at, 8, key).unwrap();
    at
}

/// A held lock, followed by room for a head or root.
fn root(bench: &mut Bench) -> u64 {
    let at = bench.memory(&[0; 24]);
    bench.machine.run.locks.push(at);
    at + 8
}

#[test]
fn every_body_of_the_table_is_found_by_name() {
    let bodies = spec::kfuncs().iter().filter(|kfunc| {
        let id = spec::by_name(kfunc.name).unwrap();
        body(id).is_some()
    });
    let bodies = bodies.count();
    assert!(bodies >= 130, "{bodies}");
    let without = Callee::new("scx_bpf_now", 8);
    let problem = missing(&without);
    assert_eq!(problem, HelperProblem::MissingKfunc("scx_bpf_now".into()));
    assert!(problem.to_string().contains("mock_kfunc(\"scx_bpf_now\""));
}

#[test]
fn results_are_cut_to_their_types() {
    let all = u64::MAX;
    let cut = |size| Callee::new("bpf_strlen", size).cut(all);
    assert_eq!(
        [cut(1), cut(2), cut(4), cut(8)],
        [0xff, 0xffff, 0xffff_ffff, all]
    );
}

#[test]
fn sets_of_many_cpus() {
    let mut bench = bench(100);
    let (a, b) = (
        bench.kok("bpf_cpumask_create", []),
        bench.kok("bpf_cpumask_create", []),
    );
    for cpu in [3, 64, 99, 100, u64::from(u32::MAX)] {
        bench.kok("bpf_cpumask_set_cpu", [cpu, a]);
    }
    assert_eq!(bench.kok("bpf_cpumask_weight", [a]), 3);
    assert_eq!(bench.kok("bpf_cpumask_test_cpu", [99, a]), 1);
    assert_eq!(bench.kok("bpf_cpumask_test_cpu", [100, a]), 0);
    assert_eq!(bench.kok("bpf_cpumask_first", [a]), 3);
    assert_eq!(bench.kok("bpf_cpumask_first_zero", [a]), 0);
    assert_eq!(bench.kok("bpf_cpumask_first", [b]), 100);
    let next: Vec<_> = (0..4)
        .map(|_| bench.kok("bpf_cpumask_any_distribute", [a]))
        .collect();
    assert_eq!(next, [3, 64, 99, 3]);
    bench.kok("bpf_cpumask_setall", [b]);
    assert_eq!(bench.kok("bpf_cpumask_weight", [b]), 100);
    assert_eq!(bench.kok("bpf_cpumask_first_zero", [b]), 100);
    assert_eq!(bench.kok("bpf_cpumask_full", [b]), 1);
    assert_eq!(bench.kok("bpf_cpumask_test_and_clear_cpu", [64, b]), 1);
    assert_eq!(bench.kok("bpf_cpumask_test_and_clear_cpu", [64, b]), 0);
    assert_eq!(bench.kok("bpf_cpumask_first_and", [a, b]), 3);
    assert_eq!(bench.kok("bpf_cpumask_subset", [a, b]), 0);
    assert_eq!(bench.kok("bpf_cpumask_intersects", [a, b]), 1);
    bench.kok("bpf_cpumask_copy", [b, a]);
    assert_eq!(bench.kok("bpf_cpumask_equal", [a, b]), 1);
    let bytes = bench.memory(&[0xff; 16]);
    assert_eq!(
        bench.kok("bpf_cpumask_populate", [b, bytes, 12]),
        Errno::EACCES.to_ret()
    );
    assert_eq!(bench.kok("bpf_cpumask_populate", [b, bytes, 16]), 0);
    assert_eq!(bench.kok("bpf_cpumask_weight", [b]), 100);
    bench.kok("bpf_cpumask_release", [a]);
    assert!(bench.kfunc("bpf_cpumask_weight", [a]).is_err());
    assert!(
        bench.kfunc("bpf_obj_drop_impl", [b]).is_err(),
        "it is no such object"
    );
}

#[test]
fn a_lock_that_may_fail_does() {
    let mut bench = Bench::new();
    let (lock, other) = (bench.memory(&[0; 8]), bench.memory(&[0; 8]));
    let flags = bench.memory(&[0; 8]);
    assert_eq!(bench.kok("bpf_res_spin_lock", [lock]), 0);
    assert_eq!(
        bench.kok("bpf_res_spin_lock", [lock]),
        Errno::EDEADLK.to_ret()
    );
    let irqsave = "bpf_res_spin_lock_irqsave";
    assert_eq!(bench.kok(irqsave, [lock, flags]), Errno::EDEADLK.to_ret());
    assert_eq!(bench.kok(irqsave, [other, flags]), 0);
    assert!(
        bench.kfunc("bpf_res_spin_unlock", [lock]).is_err(),
        "out of order"
    );
    bench.kok("bpf_res_spin_unlock_irqrestore", [other, flags]);
    bench.kok("bpf_res_spin_unlock", [lock]);
    assert!(bench.kfunc("bpf_res_spin_unlock", [lock]).is_err());
    assert_eq!(bench.bytes(lock, 4), [0; 4]);
    // Another CPU holds it, but there is no other CPU.
    bench.machine.space.store(lock, 4, 1).unwrap();
    assert_eq!(
        bench.kok("bpf_res_spin_lock", [lock]),
        Errno::ETIMEDOUT.to_ret()
    );
}

#[test]
fn each_cpu_has_its_part_of_a_per_cpu_object() {
    let mut bench = bench(3);
    let at = object(&mut bench.machine, 0, Maker::PerCpu);
    let parts = [0, 1, 2, 3].map(|cpu| percpu_part(&bench.machine, at, cpu));
    assert_eq!(parts, [Some(at), Some(at + 72), Some(at + 144), None]);
    assert_eq!(bench.machine.space.store(at + 208, 8, 7), Ok(()));
    assert!(bench.machine.space.store(at + 216, 8, 7).is_err());
    assert_eq!(percpu_part(&bench.machine, at + 8, 0), None);
    bench.kok("bpf_percpu_obj_drop_impl", [at]);
    assert_eq!(percpu_part(&bench.machine, at, 0), None);
}

#[test]
fn all_cpus_have_the_same_objects() {
    let mut bench = Bench::new();
    let head = root(&mut bench);
    let at = object(&mut bench.machine, 7, Maker::Object);
    assert_eq!(bench.kok("bpf_list_push_back_impl", [head, at + NODE]), 0);
    let other = bench.machine.fork(1).unwrap();
    assert_eq!(other.space.load(at, 8), Ok(7));
    assert!(other.shared.objects.at(at + 71).is_some());
    assert_eq!(other.unreleased().len(), 0);
}

#[test]
fn what_an_object_owns_goes_with_it() {
    let mut bench = Bench::new();
    let fields = [
        field(FieldKind::ListHead, 8, 16),
        field(FieldKind::KptrRef, 24, 8),
    ];
    let new = New {
        name: "owner",
        size: 32,
        fields: fields.into_iter().collect(),
        ty: None,
        maker: Maker::Object,
    };
    let owner = allocate(&mut bench.machine, new).unwrap();
    bench.machine.run.locks.push(owner);
    let items = [1, 2, 3].map(|key| object(&mut bench.machine, key, Maker::Object));
    for item in &items[..2] {
        bench.kok("bpf_list_push_front_impl", [owner + 8, item + NODE]);
    }
    // The third object goes into the pointer field; the second has one more reference.
    bench.machine.release(1, items[2]).unwrap();
    bench.machine.space.store(owner + 24, 8, items[2]).unwrap();
    let shared = bench.kfunc("bpf_refcount_acquire_impl", [items[1]]);
    assert_eq!(shared, Ok(items[1]));
    bench.kok("bpf_obj_drop_impl", [owner]);
    let live = items.map(|item| bench.machine.shared.objects.at(item).is_some());
    assert_eq!(live, [false, true, false]);
    bench.kok("bpf_obj_drop_impl", [items[1]]);
    assert!(bench.machine.shared.objects.at(items[1]).is_none());
}

#[test]
fn a_broken_list_is_an_error() {
    let mut bench = Bench::new();
    let head = root(&mut bench);
    bench.machine.space.store(head, 8, 0x1234).unwrap();
    let problem = bench.kfunc("bpf_list_pop_front", [head]).unwrap_err();
    assert!(problem.to_string().contains("the list or tree is broken"));
    // A node of another list stays, as in the kernel.
    bench.machine.space.store(head, 8, head - 8).unwrap();
    assert_eq!(bench.kfunc("bpf_list_pop_front", [head]), Ok(0));
    let root = head;
    bench.machine.space.store(root, 8, root).unwrap();
    let at = object(&mut bench.machine, 1, Maker::Object);
    assert!(
        bench
            .kfunc("bpf_rbtree_add_impl", [root, at + SORTED, 1])
            .is_err()
    );
}

#[test]
fn who_fails_on_purpose_leaves_what_the_kernel_leaves() {
    let mut bench = Bench::new();
    for name in ["bpf_iter_num_new", "bpf_list_push_back_impl"] {
        bench.machine.injections.add(Injection::call(name));
    }
    let (head, place) = (root(&mut bench), bench.memory(&[0; 8]));
    let at = object(&mut bench.machine, 1, Maker::Object);
    let call_all = |call: &mut Call<'_>| {
        let name = if call.arg(2) == 0 {
            "bpf_iter_num_new"
        } else {
            "bpf_list_push_back_impl"
        };
        super::call(&Callee::new(name, 4), call)
    };
    let errno = Errno::EINVAL.to_ret() & 0xffff_ffff;
    assert_eq!(bench.body(call_all, [place, 0, 9]), Ok(errno));
    assert_eq!(bench.kok("bpf_iter_num_next", [place]), 0);
    bench.kok("bpf_iter_num_destroy", [place]);
    assert_eq!(bench.body(call_all, [head, at + NODE]), Ok(errno));
    assert!(bench.machine.shared.objects.at(at).is_none());
    assert_eq!(bench.machine.unreleased().len(), 0);
}

#[test]
fn entries_of_hash_maps_are_counted() {
    let mut bench = Bench::new();
    let (hash, _, map) = bench.map(MapType::Hash, 4, 8, 10);
    let (array, ..) = bench.map(MapType::Array, 4, 8, 10);
    for key in 0..3u32 {
        map.write(&key.to_le_bytes(), &[0; 8], UpdateFlags::empty())
            .unwrap();
    }
    assert_eq!(bench.kok("bpf_map_sum_elem_count", [hash]), 3);
    assert_eq!(bench.kok("bpf_map_sum_elem_count", [array]), 0);
    assert!(bench.kfunc("bpf_map_sum_elem_count", [7]).is_err());
}

#[test]
fn packets_are_linear() {
    let event = Event::packet([0; 60]);
    let mut bench = Bench::on(ProgType::Xdp, &event);
    let context = bench.context();
    assert_eq!(bench.kok("bpf_xdp_pull_data", [context, 60]), 0);
    let too_much = bench.kok("bpf_xdp_pull_data", [context, 61]);
    assert_eq!(too_much, Errno::EINVAL.to_ret());
    let hash = bench.kok("bpf_xdp_metadata_rx_hash", [context, 0, 0]);
    assert_eq!(hash, Errno::EOPNOTSUPP.to_ret());
    assert_eq!(bench.kok("bpf_rdonly_cast", [context, 7]), context);
}

/// An operation on a list.
#[derive(Debug, Clone, Copy)]
enum Act {
    Push { at_end: bool },
    Pop { at_end: bool },
    Look { at_end: bool },
}

fn act() -> impl Strategy<Value = Act> {
    (0..4, any::<bool>()).prop_map(|(what, at_end)| match what {
        0 | 1 => Act::Push { at_end },
        2 => Act::Pop { at_end },
        _ => Act::Look { at_end },
    })
}

/// Checks the colours of a subtree; returns the number of black nodes on each path.
fn blackness(tree: Tree<'_>, node: u64, red_above: bool) -> usize {
    if node == 0 {
        return 1;
    }
    let black = tree.machine.space.load(node, 8).unwrap() & 1 == 1;
    assert!(black || !red_above, "two red nodes");
    let [left, right] = [Side::Left, Side::Right]
        .map(|side| blackness(tree, tree.child(node, side).unwrap(), !black));
    assert_eq!(left, right, "as many black nodes on both sides");
    left + usize::from(black)
}

proptest! {
    #[test]
    fn a_list_is_a_queue_with_two_ends(acts in prop::collection::vec(act(), 0..60)) {
        let mut bench = Bench::new();
        let head = root(&mut bench);
        let mut model = VecDeque::new();
        for act in acts {
            let ends = |at_end| if at_end { "back" } else { "front" };
            match act {
                Act::Push { at_end } => {
                    let item = object(&mut bench.machine, 0, Maker::Object);
                    let name = format!("bpf_list_push_{}_impl", ends(at_end));
                    prop_assert_eq!(bench.kok(&name, [head, item + NODE]), 0);
                    if at_end { model.push_back(item) } else { model.push_front(item) }
                }
                Act::Pop { at_end } => {
                    let name = format!("bpf_list_pop_{}", ends(at_end));
                    let item = if at_end { model.pop_back() } else { model.pop_front() };
                    prop_assert_eq!(bench.kok(&name, [head]), item.map_or(0, |item| item + NODE));
                    if let Some(item) = item {
                        bench.kok("bpf_obj_drop_impl", [item]);
                    }
                }
                Act::Look { at_end } => {
                    let name = format!("bpf_list_{}", ends(at_end));
                    let item = if at_end { model.back() } else { model.front() };
                    prop_assert_eq!(bench.kok(&name, [head]), item.map_or(0, |item| item + NODE));
                }
            }
            prop_assert_eq!(bench.machine.unreleased().len(), 0);
        }
        let objects = take_list(&bench.machine, head).unwrap();
        prop_assert_eq!(VecDeque::from(objects), model);
    }

    #[test]
    fn a_tree_stays_sorted_and_balanced(keys in prop::collection::vec((0u64..40, any::<bool>()), 0..80)) {
        let mut bench = Bench::new();
        bench.callback = Box::new(|machine, [a, b, ..]| {
            let key = |node: u64| machine.space.load(node - SORTED, 8).unwrap();
            Some((key(a) < key(b)).into())
        });
        let root = root(&mut bench);
        // In order of insertion if keys are equal.
        let mut model: Vec<(u64, u64)> = Vec::new();
        for (key, add) in keys {
            if add {
                let item = object(&mut bench.machine, key, Maker::Object);
                let args = [root, item + SORTED, 1];
                prop_assert_eq!(bench.kok("bpf_rbtree_add_impl", args), 0);
                let at = model.partition_point(|(other, _)| *other <= key);
                model.insert(at, (key, item + SORTED));
            } else if !model.is_empty() {
                let at = usize::try_from(key).unwrap() % model.len();
                let (_, node) = model.remove(at);
                prop_assert_eq!(bench.kok("bpf_rbtree_remove", [root, node]), node);
                prop_assert_eq!(bench.kok("bpf_rbtree_remove", [root, node]), 0);
                prop_assert_eq!(bench.kok("bpf_rbtree_left", [root, node]), 0);
                bench.kok("bpf_obj_drop_impl", [node - SORTED]);
            }
            let tree = Tree { machine: &bench.machine, root };
            let nodes: Vec<_> = model.iter().map(|(_, node)| *node).collect();
            prop_assert_eq!(tree.nodes(1000).unwrap(), nodes.clone());
            prop_assert_eq!(tree.first().unwrap(), nodes.first().copied().unwrap_or(0));
            blackness(tree, tree.top().unwrap(), true);
        }
        let objects = take_tree(&bench.machine, root).unwrap();
        prop_assert_eq!(objects.len(), model.len());
        prop_assert_eq!(take_tree(&bench.machine, root).unwrap(), [0u64; 0]);
    }

    /// Compared with Rust's string functions.
    #[test]
    fn strings_are_searched(text in "[ab,]{0,12}", wanted in "[ab,]{0,3}", limit in 0usize..16) {
        let mut bench = Bench::new();
        let put = |bench: &mut Bench, text: &str| {
            let bytes = [text.as_bytes(), b"\0"].concat();
            let bytes = SharedBytes::from_bytes(&bytes).to_vec();
            bench.memory(&bytes)
        };
        let (at, wanted_at) = (put(&mut bench, &text), put(&mut bench, &wanted));
        let told = |found: Option<usize>| found.map_or(Errno::ENOENT.to_ret(), |at| at as u64);
        prop_assert_eq!(bench.kok("bpf_strstr", [at, wanted_at]), told(text.find(&wanted)));
        let within = &text[..limit.min(text.len())];
        let found = bench.kok("bpf_strnstr", [at, wanted_at, limit as u64]);
        prop_assert_eq!(found, told(within.find(&wanted)));
        let length = bench.kok("bpf_strnlen", [at, limit as u64]);
        prop_assert_eq!(length, within.len() as u64);
        let chr = bench.kok("bpf_strnchr", [at, limit as u64, b','.into()]);
        prop_assert_eq!(chr, told(within.find(',')));
        prop_assert_eq!(bench.kok("bpf_strrchr", [at, b'a'.into()]), told(text.rfind('a')));
        let span = text.find(|c| !wanted.contains(c)).unwrap_or(text.len());
        prop_assert_eq!(bench.kok("bpf_strspn", [at, wanted_at]), span as u64);
        let span = text.find(|c| wanted.contains(c)).unwrap_or(text.len());
        prop_assert_eq!(bench.kok("bpf_strcspn", [at, wanted_at]), span as u64);
    }
}
