//! A queueing discipline (`tests/attach_targets/qdisc.bpf.c`) that a test gives packets, on every
//! engine: each packet is a reference, which the program keeps, drops, frees or returns.

use crate::shared::corpus;

use bpflab::btf::Kind;
use bpflab::harness::EngineKind;
use bpflab::object::Target;
use bpflab::vm::world::kernel::KernelObject;
use bpflab::{Error, Object, Vm};

/// A discipline and its packets.
struct Queue {
    vm: Vm,
    discipline: KernelObject,
    to_free: KernelObject,
}

impl Queue {
    /// On a kernel that is made up. Some of the programs are rejected, and run on the checked
    /// engine.
    fn new(engine: EngineKind) -> Self {
        let mut object = Object::open("tests/attach_targets/qdisc.bpf.o").unwrap();
        object.set_target(Target::file("tests/attach_targets/kernel.bpf.o").unwrap());
        let mut vm = Vm::unverified(object).unwrap();
        vm.set_engine(engine);
        let discipline = vm.world().kernel("Qdisc").unwrap().writable();
        let to_free = vm.world().kernel("bpf_sk_buff_ptr").unwrap();
        Self {
            vm,
            discipline,
            to_free,
        }
    }

    fn packet(&mut self) -> KernelObject {
        let packet = self.vm.world().kernel("sk_buff").unwrap().writable();
        packet.set("len", 100u32).unwrap()
    }

    /// Calls `enqueue` of a table; returns the result and what is not given back.
    fn enqueue(&mut self, table: &str, packet: &KernelObject) -> (u64, Vec<String>) {
        let args = [
            packet.address(),
            self.discipline.address(),
            self.to_free.address(),
        ];
        let outcome = self.vm.call_struct_ops(table, "enqueue", &args).unwrap();
        let held = outcome.unreleased.iter().map(ToString::to_string);
        (outcome.runs[0].r0, held.collect())
    }
}

#[test]
fn packets_are_kept_dropped_freed_and_returned() {
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut queue = Queue::new(engine);

        // The list has the last one first.
        let dropped = [queue.packet(), queue.packet()];
        for packet in &dropped {
            assert_eq!(queue.enqueue("whole", packet), (1, vec![]));
        }
        let [first, second] = dropped.map(|packet| packet.address());
        assert_eq!(queue.to_free.get("skb"), Ok(second));
        assert_eq!(queue.to_free.get("skb->next"), Ok(first));

        // There is room for one; the program frees the older.
        let (older, newer) = (queue.packet(), queue.packet());
        assert_eq!(queue.enqueue("keeps_ops", &older), (0, vec![]));
        assert_eq!(queue.enqueue("keeps_ops", &newer), (0, vec![]));
        assert_eq!((older.is_live(), newer.is_live()), (false, true));

        let discipline = queue.discipline.address();
        let mut dequeue = || {
            let outcome = queue
                .vm
                .call_struct_ops("gives_ops", "dequeue", &[discipline]);
            let outcome = outcome.unwrap();
            assert_eq!(outcome.unreleased, []);
            assert_eq!(outcome.runs[0].ran_on.engine, engine);
            outcome.runs[0].r0
        };
        assert_eq!(dequeue(), newer.address());
        assert_eq!(dequeue(), 0);
        // One packet of 100 bytes.
        let sums = ["packets", "bytes"].map(|sum| {
            let path = format!("bstats.{sum}.v.a.a.counter");
            queue.discipline.get(&path)
        });
        assert_eq!(sums, [Ok(1), Ok(100)]);

        let packet = queue.packet();
        assert_eq!(queue.enqueue("writes_ops", &packet), (0, vec![]));
        assert_eq!(queue.discipline.get("q.qlen"), Ok(1));
        assert!(!packet.is_live());
    }
}

/// The members that the kfuncs use, in a real kernel.
#[test]
fn members_are_those_of_linux() {
    let Some(path) = corpus() else { return };
    let kernel = Target::file(path.with_file_name("vmlinux-6.18.44.btf.xz"));
    let Ok(Target::Kernel(btf)) = kernel else {
        panic!("no types of a kernel");
    };
    for (structure, path) in [
        ("Qdisc", "bstats.bytes.v.a.a.counter"),
        ("Qdisc", "bstats.packets.v.a.a.counter"),
        ("sk_buff", "next"),
        ("sk_buff", "len"),
        ("sk_buff", "hash"),
    ] {
        let root = btf.find(structure, Kind::Struct).unwrap();
        assert!(btf.field(root.id(), path).is_ok(), "{structure}.{path}");
    }
}

#[test]
fn a_packet_that_is_not_given_back_is_told() {
    let mut queue = Queue::new(EngineKind::Checked);
    let packet = queue.packet().set("hash", 0x1234_u32).unwrap();
    let (hash, held) = queue.enqueue("leaks_ops", &packet);
    assert_eq!((hash, held), (0x1234, vec!["struct sk_buff".to_owned()]));
    let args = [packet.address()];
    match queue
        .vm
        .call_struct_ops("drops_twice_ops", "enqueue", &args)
    {
        Err(Error::Fault(fault)) => assert_eq!(
            fault.kind.to_string(),
            "kfunc bpf_skb_get_hash: argument 1 is struct sk_buff, which was freed, expected a \
             struct sk_buff"
        ),
        other => panic!("{other:?}"),
    }
}
