//! Recorded programs in the running kernel, fired by test runs: the ring buffer gets the
//! programs' inputs and outputs, only the selected processes are recorded, and the cost of
//! recording is printed.

use crate::shared;
use crate::shared::here;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bpflab::Object;
use bpflab::instrument::{
    Firing, FiringFlags, Flow, Moment, Plan, RecordMaps, RecordOptions, RecordState, What,
};
use bpflab::isa::assemble;
use bpflab::kernel::attach::{AttachPoint, attach};
use bpflab::kernel::{LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType, UpdateFlags};
use bpflab::util::{MapId, Pc};

use shared::{Need, skip};

/// Size in bytes of the ring buffer for firings.
const RING: u32 = 1 << 20;

/// The example as a raw tracepoint program, which test runs can fire.
fn histogram() -> Program {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/bpf/write_hist.bpf.o");
    let mut program = Object::open(path).unwrap().program("count_write").unwrap();
    program.prog_type = ProgType::RawTracepoint;
    program
}

/// A program in the kernel, with its maps.
struct Loaded {
    program: LoadedProgram,
    maps: LoadedMaps,
}

impl Loaded {
    fn new(program: &Program) -> Self {
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
        let loaded = load(program, &maps, &LoadOptions::default()).unwrap();
        let Some(accepted) = loaded.program else {
            panic!("{}: {}", program.name, loaded.verdict.message);
        };
        Self {
            program: accepted,
            maps,
        }
    }

    fn run(&self, context: &[u8]) -> u32 {
        self.program
            .test_run(&TestRun::context(context))
            .unwrap()
            .retval
    }
}

/// The recorded form of a program, for this process only.
struct Recorded {
    plan: Plan,
    added: RecordMaps,
    loaded: Loaded,
}

impl Recorded {
    fn new(program: &Program) -> Self {
        Self::with_context(program, 96)
    }

    fn with_context(program: &Program, context_len: u32) -> Self {
        let plan = Plan::new(program).unwrap();
        let added = RecordMaps::add(&program.maps, RING);
        let options = RecordOptions {
            number: 5,
            context_len,
            all: false,
        };
        let loaded = Loaded::new(&plan.record(&added, &options).unwrap());
        Self {
            plan,
            added,
            loaded,
        }
    }

    fn target(&self, tgid: u32) {
        let targets = self.loaded.maps.map(self.added.targets).unwrap();
        let key = tgid.to_ne_bytes();
        targets.update(&key, &key, UpdateFlags::empty()).unwrap();
    }

    fn firings(&self) -> Vec<Vec<u8>> {
        let ring = self
            .loaded
            .maps
            .map(self.added.ring)
            .unwrap()
            .ring()
            .unwrap();
        ring.take()
    }

    /// The sum of all CPUs' states.
    fn state(&self) -> RecordState {
        let value = self
            .loaded
            .maps
            .lookup(self.added.state, &[0; 4])
            .unwrap()
            .unwrap();
        let cpus = value.chunks(32).map(|cpu| RecordState::parse(cpu).unwrap());
        cpus.fold(RecordState::default(), |sum, cpu| RecordState {
            begun: sum.begun + cpu.begun,
            lost: sum.lost + cpu.lost,
            skipped: sum.skipped + cpu.skipped,
        })
    }
}

/// The context of a write of `size` bytes.
fn write_of(size: u64) -> Vec<u8> {
    let words = [0, 1, 7, 0xdead, size, 5, 6, 7, 8, 9, 10, 11u64];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn a_firing_tells_what_the_program_took_and_gave() {
    if here::kernel().is_none() {
        return;
    }
    let recorded = Recorded::new(&histogram());
    recorded.target(std::process::id());
    for size in [4096, 4097, 0] {
        recorded.loaded.run(&write_of(size));
    }
    let bytes = recorded.firings();
    let firings: Vec<Firing<'_>> = bytes.iter().map(|it| Firing::parse(it).unwrap()).collect();
    assert_eq!(firings.len(), 3);
    for (firing, (size, slot, count)) in
        firings
            .iter()
            .zip([(4096, 12, 1), (4097, 12, 2), (0, 0, 1)])
    {
        assert_eq!(
            (firing.program, firing.depth, firing.flags),
            (5, 0, FiringFlags::empty())
        );
        assert_eq!(firing.pid_tgid >> 32, u64::from(std::process::id()));
        assert_eq!(firing.context, write_of(size));
        assert!(firing.time > 0);
        let entries: Vec<_> = recorded
            .plan
            .entries(firing.log)
            .map(Result::unwrap)
            .collect();
        let fields = entries.iter().flat_map(|entry| entry.fields());
        let told: Vec<(What, Flow, Vec<u8>)> = fields
            .map(|(field, bytes)| (field.what, field.flow, bytes.to_vec()))
            .collect();
        // The key of the look-up, that there is a value, what is added to it.
        let expected = [
            (
                What::Given(2),
                Flow::Output,
                u32::to_ne_bytes(slot).to_vec(),
            ),
            (What::Found, Flow::Input, vec![1]),
            (What::Operand, Flow::Output, 1u64.to_ne_bytes().to_vec()),
        ];
        assert_eq!(told, expected);
        let value = recorded
            .loaded
            .maps
            .lookup(MapId(0), &u32::to_ne_bytes(slot));
        assert!(value.unwrap().unwrap()[0] >= count);
    }
    assert_eq!(
        recorded.state(),
        RecordState {
            begun: 3,
            lost: 0,
            skipped: 0
        }
    );
}

#[test]
fn other_processes_are_left_alone() {
    if here::kernel().is_none() {
        return;
    }
    let recorded = Recorded::new(&histogram());
    recorded.target(std::process::id() ^ 1);
    assert_eq!(recorded.loaded.run(&write_of(4096)), 0);
    assert_eq!(recorded.firings().len(), 0);
    assert_eq!(recorded.state(), RecordState::default());
    let value = recorded.loaded.maps.lookup(MapId(0), &12u32.to_ne_bytes());
    assert_eq!(
        value.unwrap().unwrap(),
        [0; 8],
        "the program itself did not run"
    );
}

/// A ring buffer of one page is full after some firings: each lost one is counted.
#[test]
fn what_finds_no_room_is_counted() {
    if here::kernel().is_none() {
        return;
    }
    let program = histogram();
    let plan = Plan::new(&program).unwrap();
    let added = RecordMaps::add(&program.maps, 4096);
    let options = RecordOptions {
        number: 0,
        context_len: 96,
        all: true,
    };
    let loaded = Loaded::new(&plan.record(&added, &options).unwrap());
    let recorded = Recorded {
        plan,
        added,
        loaded,
    };
    for size in 0..40 {
        recorded.loaded.run(&write_of(size));
    }
    let kept = recorded.firings();
    let sequences: Vec<u64> = kept
        .iter()
        .map(|it| Firing::parse(it).unwrap().sequence)
        .collect();
    let state = recorded.state();
    assert!((10..40).contains(&kept.len()), "{}", kept.len());
    assert_eq!((state.begun, state.lost), (40, 40 - kept.len() as u64));
    assert!(sequences.len() < 40);
}

/// A log that is too long: the firing is flagged, and the program still does everything.
#[test]
fn a_log_that_is_too_long_is_flagged() {
    if here::kernel().is_none() {
        return;
    }
    let text = "r6 = 5000\n again: r2 = *(u64 *)(r1 + 0)\n r2 += 1\n \
                *(u64 *)(r1 + 0) = r2\n r6 -= 1\n if r6 != 0 goto again\n r0 = 9\n exit";
    let mut insns = assemble(text).unwrap();
    let value = bpflab::isa::Insn::LoadPseudo {
        dst: bpflab::isa::Reg::R1,
        source: bpflab::isa::Pseudo::MapIdxValue { index: 0, off: 0 },
    };
    insns.splice(1..1, value.encode().iter().copied());
    let mut program = Program::new("long", ProgType::RawTracepoint, insns);
    program.maps = [MapDef::new("count", MapType::Array, 4, 8, 1)].into();
    let recorded = Recorded::new(&program);
    recorded.target(std::process::id());
    assert_eq!(recorded.loaded.run(&write_of(1)), 9);
    let bytes = recorded.firings();
    let firing = Firing::parse(&bytes[0]).unwrap();
    assert_eq!(firing.flags, FiringFlags::OVERFLOW);
    assert_eq!((firing.log.len(), firing.returned), (0, 9));
    let value = recorded
        .loaded
        .maps
        .lookup(MapId(0), &[0; 4])
        .unwrap()
        .unwrap();
    assert_eq!(value, 5000u64.to_ne_bytes());
    // The buffer is free again.
    assert_eq!(recorded.loaded.run(&write_of(1)), 9);
    assert_eq!(recorded.state().skipped, 0);
}

/// The example at its tracepoint: this process writes, and each write is a firing, in the order
/// of its CPU.
#[test]
fn writes_fire_the_recorded_program_at_its_tracepoint() {
    if here::kernel().is_none() {
        return;
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/bpf/write_hist.bpf.o");
    let program = Object::open(path).unwrap().program("count_write").unwrap();
    let recorded = Recorded::with_context(&program, 40);
    recorded.target(std::process::id());
    let point = AttachPoint::of(&program).unwrap();
    let attachment = match attach(&recorded.loaded.program, &point) {
        Ok(attachment) => attachment,
        Err(error) if error.is_unavailable() => {
            skip(Need::Feature, error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut sink = std::fs::File::create("/dev/null").unwrap();
    // A size that no other process writes.
    let bytes = [0; 54_321];
    for _ in 0..100 {
        sink.write_all(&bytes).unwrap();
    }
    drop(attachment);
    let records = recorded.firings();
    let firings = records.iter().map(|it| Firing::parse(it).unwrap());
    let mut next = std::collections::BTreeMap::new();
    let mut ours = 0;
    for firing in firings {
        assert_eq!((firing.context.len(), firing.returned), (40, 0));
        assert_eq!(firing.pid_tgid >> 32, u64::from(std::process::id()));
        let due = next.entry(firing.cpu).or_insert(0);
        assert_eq!(firing.sequence, *due, "CPU {}", firing.cpu);
        *due += 1;
        let size = u64::from_ne_bytes(firing.context[32..40].try_into().unwrap());
        ours += u32::from(size == 54_321);
        assert!(recorded.plan.entries(firing.log).all(|entry| entry.is_ok()));
    }
    assert_eq!(ours, 100);
    assert_eq!((recorded.state().lost, recorded.state().skipped), (0, 0));
}

/// The shortest of several bursts, per run.
fn time_of(loaded: &Loaded) -> f64 {
    let context = write_of(4096);
    let run = TestRun::context(&context);
    let burst = |count: u32| {
        let start = Instant::now();
        for _ in 0..count {
            loaded.program.test_run(&run).unwrap();
        }
        start.elapsed()
    };
    burst(100);
    let shortest: Duration = (0..40).map(|_| burst(500)).min().unwrap();
    shortest.as_secs_f64() * 1e9 / 500.0
}

#[test]
fn recording_costs_little() {
    if here::kernel().is_none() {
        return;
    }
    let original = Loaded::new(&histogram());
    let recorded = Recorded::new(&histogram());
    let off = time_of(&recorded.loaded);
    recorded.target(std::process::id());
    let before = time_of(&original);
    let with = time_of(&recorded.loaded);
    eprintln!(
        "a test run takes {before:.0} ns, recorded {with:.0}: {:.0} more; for others {:.0} more",
        with - before,
        off - before
    );
    assert!(with - before < 1500.0, "{before} {with}");
}

#[test]
fn sites_name_instructions_of_the_original() {
    let plan = Plan::new(&histogram()).unwrap();
    let program = plan.program();
    for site in plan.sites() {
        assert!(site.pc < Pc::from_index(program.insns.len()));
        assert!(program.source(site.pc).is_some(), "{site:?}");
    }
    let moments: Vec<Moment> = plan.sites().iter().map(|site| site.moment).collect();
    assert_eq!(moments, [Moment::Before, Moment::After, Moment::Before]);
}
