//! Stacks set by a test, as programs read them, on every engine.

use crate::shared;

use bpflab::harness::{EngineKind, RanOn};
use bpflab::vm::events::{Event, FieldValue};
use bpflab::{Object, Vm};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use shared::{Need, skip};

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Buffer {
    flags: u64,
    size: u32,
    pad: u32,
    said: i64,
    bytes: [u8; 128],
}

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
const TEXT: u64 = 0xffff_ffff_8120_0000;
const KERNEL: [u64; 6] = [TEXT + 0x1c, TEXT + 0x400, TEXT + 0x805, TEXT + 0x1001, 5, 6];
const USER: [u64; 3] = [0x40_1010, 0x7f00_0000_1234, 0x40_2020];

const USER_STACK: u64 = 1 << 8;
const FAST_STACK_CMP: u64 = 1 << 9;
const REUSE_STACKID: u64 = 1 << 10;
const USER_BUILD_ID: u64 = 1 << 11;

const EEXIST: i64 = -17;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const EOPNOTSUPP: i64 = -95;

struct Lab(Vm);

impl Lab {
    fn on(engine: EngineKind) -> Self {
        let object = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects/stacks.bpf.o");
        let mut vm = Vm::new(Object::open(object).unwrap()).unwrap();
        vm.set_engine(engine);
        vm.world().set_kernel_stack(KERNEL).set_user_stack(USER);
        Self(vm)
    }

    fn run(&mut self, program: &str, event: &Event, flags: u64, size: u32) -> Buffer {
        let asked = Buffer {
            flags,
            size,
            pad: 0,
            said: 99,
            bytes: [0xee; 128],
        };
        let buffers = self.0.map("buffers").unwrap();
        buffers.set(&0u32, &asked).unwrap();
        self.0.run(program, event).unwrap();
        let buffers = self.0.map("buffers").unwrap();
        buffers.get(&0u32).unwrap().unwrap()
    }

    fn sample(&mut self, flags: u64) -> i64 {
        let program = self.0.programs().find(|program| program.name == "sample");
        let prog_type = program.unwrap().prog_type;
        let arch = bpflab::spec::Arch::HOST;
        let event = Event::context(prog_type, arch).unwrap();
        self.run("sample", &event, flags, 0).said
    }

    fn traced(&mut self, program: &str, flags: u64, size: u32) -> Buffer {
        let event = self.0.raw_tracepoint("sys_enter").unwrap();
        self.run(program, &event, flags, size)
    }

    fn stack(&self, map: &str, id: i64) -> Option<Vec<u8>> {
        let id = u32::try_from(id).unwrap();
        self.0
            .map(map)
            .unwrap()
            .get_bytes(&id.to_le_bytes())
            .unwrap()
    }
}

fn bytes(stack: &[u64]) -> Vec<u8> {
    stack.iter().flat_map(|ip| ip.to_le_bytes()).collect()
}

#[test]
fn equal_stacks_have_one_id() {
    for engine in ENGINES {
        let mut lab = Lab::on(engine);
        assert_eq!(lab.0.engine_of("sample").unwrap(), RanOn::chosen(engine));
        let id = lab.sample(0);
        assert!((0..64).contains(&id));
        assert_eq!(lab.sample(0), id);
        assert_eq!(
            lab.stack("stacks", id),
            Some(bytes(&KERNEL[..4])),
            "as deep as the map"
        );
        let user = lab.sample(USER_STACK);
        assert_eq!(
            lab.stack("stacks", user),
            Some(bytes(&[USER[0], USER[1], USER[2], 0]))
        );
        let counted = lab.0.map("counts").unwrap();
        assert_eq!(
            counted
                .get::<u32, u64>(&u32::try_from(id).unwrap())
                .unwrap(),
            Some(2)
        );
        // Skipped frames make room for outer frames.
        let skipped = lab.sample(2);
        assert_eq!(lab.stack("stacks", skipped), Some(bytes(&KERNEL[2..])));
        assert_eq!(lab.sample(6), EFAULT);
        assert_eq!(lab.sample(USER_STACK | 3), EFAULT);
        assert_eq!(lab.sample(USER_BUILD_ID), EINVAL);
        assert_eq!(lab.sample(1 << 12), EINVAL);
        lab.0.world().set_user_stack([]);
        assert_eq!(lab.sample(USER_STACK), EFAULT, "a thread of the kernel");
    }
}

#[test]
fn a_test_reads_stacks_by_their_ids_and_names() {
    let mut lab = Lab::on(EngineKind::Jit);
    lab.0
        .world()
        .symbol(TEXT, "vfs_read")
        .symbol(TEXT + 0x400, "ksys_read");
    let id = u32::try_from(lab.sample(0)).unwrap();
    assert_eq!(lab.0.stack("stacks", id).unwrap().unwrap(), KERNEL[..4]);
    let names = lab.0.stack_names("stacks", id).unwrap().unwrap();
    assert_eq!(
        names,
        [
            "vfs_read+0x1c/0x400",
            "ksys_read+0x0/0x1000",
            "ksys_read+0x405/0x1000",
            "ksys_read+0xc01/0x1000",
        ]
    );
    let user = u32::try_from(lab.sample(USER_STACK)).unwrap();
    assert_eq!(lab.0.stack("stacks", user).unwrap().unwrap(), USER);
    assert_eq!(lab.0.stack("stacks", 64).unwrap(), None);
    for map in ["files", "counts"] {
        let error = lab.0.stack(map, id).unwrap_err().to_string();
        assert!(error.contains("a stack trace map of addresses"), "{error}");
    }
}

#[test]
fn another_stack_may_take_the_id() {
    let mut lab = Lab::on(EngineKind::Jit);
    let id = lab.sample(0);
    // Search for another stack in the same bucket.
    let other = (0..10_000u64).find(|ip| {
        lab.0.world().set_kernel_stack([*ip]);
        lab.sample(0) == EEXIST
    });
    let other = other.expect("64 buckets fill up");
    lab.0.world().set_kernel_stack([other]);
    assert_eq!(lab.sample(FAST_STACK_CMP), EEXIST, "the hash differs");
    let taken = lab.sample(REUSE_STACKID);
    assert!((0..64).contains(&taken));
    assert_eq!(lab.stack("stacks", taken), Some(bytes(&[other, 0, 0, 0])));
    assert!(lab.stack("stacks", id).is_some());
}

#[test]
fn a_stack_is_copied_out() {
    for engine in ENGINES {
        let mut lab = Lab::on(engine);
        let found = lab.traced("copy", 0, 128);
        assert_eq!(found.said, 48);
        assert_eq!(found.bytes[..48], bytes(&KERNEL)[..]);
        assert_eq!(found.bytes[48..], [0; 80], "the rest is cleared");
        let found = lab.traced("copy", USER_STACK | 1, 8);
        assert_eq!(
            (found.said, &found.bytes[..8]),
            (8, &bytes(&USER[1..2])[..])
        );
        assert_eq!(found.bytes[8..], [0xee; 120]);
        assert_eq!(lab.traced("copy", 6, 128).said, 0, "all of it is skipped");
        let found = lab.traced("copy", 7, 64);
        assert_eq!(
            (found.said, found.bytes[63], found.bytes[64]),
            (EFAULT, 0, 0xee)
        );
        for (flags, size) in [(FAST_STACK_CMP, 128), (USER_BUILD_ID, 128), (0, 12)] {
            let found = lab.traced("copy", flags, size);
            assert_eq!(
                (found.said, found.bytes[0]),
                (EINVAL, 0),
                "{flags:#x} {size}"
            );
        }
        assert_eq!(
            lab.traced("copy", USER_STACK | USER_BUILD_ID, 40).said,
            EINVAL
        );
    }
}

#[test]
fn user_addresses_become_places_in_files() {
    let mut lab = Lab::on(EngineKind::Jit);
    lab.0
        .world()
        .map_file(0x40_1000..0x40_3000, 0x1000, &[0xab; 20]);
    let record = |status: u32, id: u8, number: u64| {
        let mut record = status.to_le_bytes().to_vec();
        record.extend([id; 20]);
        record.extend(number.to_le_bytes());
        record
    };
    let wanted = [
        record(1, 0xab, 0x1010),
        record(2, 0, USER[1]),
        record(1, 0xab, 0x2020),
    ];
    let found = lab.traced("copy", USER_STACK | USER_BUILD_ID, 128);
    assert_eq!(found.said, 96);
    assert_eq!(found.bytes[..96], wanted.concat());
    let id = lab.traced("stack_of_files", USER_STACK, 0).said;
    let mut whole = wanted.concat();
    whole.resize(128, 0);
    assert_eq!(lab.stack("files", id), Some(whole));
    let id = lab.traced("stack_of_files", 5, 0).said;
    let mut whole = record(2, 0, KERNEL[5]);
    whole.resize(128, 0);
    assert_eq!(lab.stack("files", id), Some(whole));
}

#[test]
fn a_task_has_the_stack_that_it_was_given() {
    let mut lab = Lab::on(EngineKind::Checked);
    let event = lab.0.raw_tracepoint("sched_wakeup").unwrap();
    let mut dd = lab.0.world().new_task();
    dd.set_pid(42).set_kernel_stack([TEXT, TEXT + 1]);
    let of = |lab: &mut Lab, task: FieldValue, flags| {
        let event = event.clone().set("args[0]", task).unwrap();
        lab.run("copy_of_task", &event, flags, 64)
    };
    let Ok(object) = lab.0.world().task_object(&dd) else {
        skip(Need::Kernel, "no BTF of a kernel defines task_struct");
        return;
    };
    let found = of(&mut lab, (&object).into(), 0);
    assert_eq!(
        (found.said, &found.bytes[..16]),
        (16, &bytes(&[TEXT, TEXT + 1])[..])
    );
    assert_eq!(of(&mut lab, (&object).into(), USER_STACK).said, EOPNOTSUPP);
    let own = lab.0.world().current_task().unwrap();
    assert_eq!(of(&mut lab, (&own).into(), 0).said, 48);
    assert_eq!(of(&mut lab, (&own).into(), USER_STACK).said, 24);
    lab.0.world().run_task(&dd);
    assert_eq!(lab.traced("copy", 0, 64).said, 16);
}

#[test]
fn functions_go_by_their_names() {
    for engine in ENGINES {
        let mut lab = Lab::on(engine);
        let world = lab.0.world();
        world
            .symbol(TEXT, "vfs_read")
            .symbol(TEXT + 0x400, "ksys_read");
        let event = lab.0.raw_tracepoint("sys_enter").unwrap();
        let outcome = lab.0.run("where", &event).unwrap();
        let lines: Vec<_> = outcome.printk().collect();
        assert_eq!(
            lines,
            ["vfs_read+0x1c/0x400 called by vfs_read+0x400/0x400 in vfs_read"]
        );
    }
}
