//! Single operations on maps: a loop with a helper call, and the same loop without it. The
//! operation's time is the difference.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpflab::Vm;
use bpflab::harness::EngineKind;
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType, UpdateFlags};
use bpflab::vm::events::Event;
use bpflab::vm::{ProgramHandle, World};

/// Operations per run.
pub const OPERATIONS: u32 = 256;
/// Entries of the maps in which keys are looked up.
pub const ENTRIES: u32 = 10_000;

/// Runs after which a ring buffer is emptied: 4096 records, few enough to stay in the
/// caches, as with a reader that keeps up.
const CHUNK: u32 = 16;

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Look-up of an existing index in an array.
    Array,
    /// Look-up of an existing key in a hash map.
    Hash,
    /// Output of a record of 64 bytes to a ring buffer.
    Ring,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Array, Self::Hash, Self::Ring];

    /// Its title in the table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Array => "look-up in an array of 10,000",
            Self::Hash => "look-up in a hash map of 10,000",
            Self::Ring => "ring-buffer output of 64 bytes",
        }
    }

    fn map(self) -> MapDef {
        match self {
            Self::Array => MapDef::new("map", MapType::Array, 4, 8, ENTRIES),
            Self::Hash => MapDef::new("map", MapType::Hash, 4, 8, ENTRIES),
            Self::Ring => MapDef::new("map", MapType::Ringbuf, 0, 0, 1 << 24),
        }
    }

    /// The program, with the call or without. Keys come from a pseudo-random generator; `r9`
    /// points to a value that always exists.
    fn program(self, calls: bool) -> Arc<Program> {
        let (before, prepare, call, with, after) = match self {
            Self::Array | Self::Hash => (
                "*(u32 *)(r10 - 4) = 0
                 r2 = r10
                 r2 += -4
                 r1 = map[idx:0]
                 call bpf_map_lookup_elem
                 if r0 == 0 goto bad
                 r9 = r0\n",
                "r6 *= 1664525
                 r6 += 1013904223
                 r1 = r6
                 r1 >>= 16
                 r1 &= 0xffff
                 r1 *= 10000
                 r1 >>= 16
                 *(u32 *)(r10 - 4) = r1
                 r2 = r10
                 r2 += -4
                 r1 = map[idx:0]\n",
                "call bpf_map_lookup_elem\n",
                "r0 = r9\n",
                "if r0 == 0 goto bad\nr1 = *(u64 *)(r0 + 0)\nr7 += r1\n",
            ),
            Self::Ring => (
                "*(u64 *)(r10 - 64) = 1
                 *(u64 *)(r10 - 56) = 2
                 *(u64 *)(r10 - 48) = 3
                 *(u64 *)(r10 - 40) = 4
                 *(u64 *)(r10 - 32) = 5
                 *(u64 *)(r10 - 24) = 6
                 *(u64 *)(r10 - 16) = 7
                 *(u64 *)(r10 - 8) = 8\n",
                "r2 = r10\nr2 += -64\nr3 = 64\nr4 = 0\nr1 = map[idx:0]\n",
                "call bpf_ringbuf_output\n",
                "r0 = 0\n",
                "if r0 != 0 goto bad\n",
            ),
        };
        let middle = if calls { call } else { with };
        let text = format!(
            "r6 = 1
             r7 = 0
             r8 = 0
             {before}
             next: {prepare}{middle}{after}
             r8 += 1
             if r8 < {OPERATIONS} goto next
             r0 = 1
             exit
             bad: r0 = 0
             exit"
        );
        let mut program = Program::new("p", ProgType::SchedCls, Vec::new());
        program.license = "GPL".into();
        program.maps = Arc::new([self.map()]);
        program.insns = assemble_with(&text, &program).expect("it is BPF").slots;
        Arc::new(program)
    }
}

fn numbers() -> Vec<u8> {
    (0..ENTRIES).flat_map(u32::to_le_bytes).collect()
}

/// The two loops on an engine.
pub trait Loops {
    /// Runs the loop with the call, or the one without, this many times.
    fn run(&mut self, calls: bool, times: u32) -> Duration;
}

/// Nanoseconds per operation: the difference of the shortest of this many runs.
pub fn measure(loops: &mut dyn Loops, times: u32, count: usize) -> f64 {
    let mut shortest = [Duration::MAX; 2];
    for _ in 0..count {
        for (calls, shortest) in [true, false].into_iter().zip(&mut shortest) {
            *shortest = (*shortest).min(loops.run(calls, times));
        }
    }
    let [with, without] = shortest.map(|time| time.as_secs_f64());
    (with - without) * 1e9 / f64::from(times) / f64::from(OPERATIONS)
}

/// On one of our engines.
pub struct Ours {
    vm: Vm,
    /// With the call and without.
    handles: [ProgramHandle; 2],
    event: Event,
    is_ring: bool,
}

impl Ours {
    /// None if the engine is not available.
    pub fn new(operation: Operation, engine: EngineKind) -> Option<Self> {
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(engine)
            .set_budget(u64::MAX)
            .set_counting(false);
        let programs = [true, false].map(|calls| operation.program(calls));
        let loaded = vm.load_programs(&[operation.map()], programs.to_vec());
        let handles: [ProgramHandle; 2] = loaded.expect("they load").try_into().ok()?;
        let verdict = &vm.verification("p").expect("it is there").verdict;
        assert!(verdict.is_accepted(), "{}", verdict.message);
        if operation == Operation::Hash {
            let map = vm.map("map").expect("it is there");
            let values = vec![0; 8 * ENTRIES as usize];
            let filled = map
                .raw()
                .write_batch(&numbers(), &values, UpdateFlags::empty());
            assert_eq!(filled.0, Ok(()));
        }
        if vm.engine_of(handles[0]).expect("it is loaded").engine != engine {
            return None;
        }
        Some(Self {
            vm,
            handles,
            event: Event::packet(vec![0; 64]),
            is_ring: operation == Operation::Ring,
        })
    }
}

impl Loops for Ours {
    fn run(&mut self, calls: bool, times: u32) -> Duration {
        let handle = self.handles[usize::from(!calls)];
        let runner = self.vm.runner(handle, &self.event);
        let mut runner = runner.expect("it is its event");
        let mut elapsed = Duration::ZERO;
        let mut left = times;
        while left > 0 {
            let some = left.min(CHUNK);
            left -= some;
            let start = Instant::now();
            for _ in 0..some {
                assert_eq!(runner.run().expect("it runs").r0, 1);
            }
            elapsed += start.elapsed();
            if self.is_ring {
                drop(runner.take_outputs());
                drop(runner);
                let map = self.vm.map("map").expect("it is there");
                drop(map.take_records().expect("a ring"));
                let again = self.vm.runner(handle, &self.event);
                runner = again.expect("it is its event");
            }
        }
        elapsed
    }
}

/// In the running kernel.
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub struct Kernel {
    programs: [bpflab::kernel::LoadedProgram; 2],
    _maps: bpflab::kernel::LoadedMaps,
    ring: Option<bpflab::kernel::KernelRing>,
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
impl Kernel {
    /// None if the kernel is not usable.
    pub fn new(operation: Operation) -> Option<Self> {
        use bpflab::kernel::{LoadOptions, LoadedMaps, load};
        use bpflab::util::MapId;
        let maps = LoadedMaps::create(&[operation.map()], None).ok()?;
        let map = maps.map(MapId(0))?;
        if operation == Operation::Hash {
            let values = vec![0; 8 * ENTRIES as usize];
            let filled = map.update_batch(&numbers(), &values, UpdateFlags::empty());
            assert_eq!(filled.0, Ok(()));
        }
        let ring = (operation == Operation::Ring)
            .then(|| map.ring())
            .transpose()
            .ok()?;
        let [with, without] = [true, false].map(|calls| {
            let loaded = load(&operation.program(calls), &maps, &LoadOptions::default()).ok()?;
            loaded.program
        });
        Some(Self {
            programs: [with?, without?],
            ring,
            _maps: maps,
        })
    }
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
impl Loops for Kernel {
    fn run(&mut self, calls: bool, times: u32) -> Duration {
        use bpflab::kernel::TestRun;
        let mut elapsed = Duration::ZERO;
        let mut left = times;
        while left > 0 {
            let some = left.min(CHUNK);
            left -= some;
            let mut run = TestRun::packet(&[0; 64]);
            run.repeat = some;
            let start = Instant::now();
            let result = self.programs[usize::from(!calls)].test_run(&run);
            elapsed += start.elapsed();
            assert_eq!(result.expect("it runs").retval, 1);
            if let Some(ring) = &self.ring {
                drop(ring.take());
            }
        }
        elapsed
    }
}

/// Rust's collections: a `Vec`, a `HashMap` of the same keys, a `VecDeque` of boxed records.
pub struct Rust {
    operation: Operation,
    array: Vec<u64>,
    hash: HashMap<u32, u64>,
}

impl Rust {
    pub fn new(operation: Operation) -> Self {
        Self {
            operation,
            array: vec![1; ENTRIES as usize],
            hash: (0..ENTRIES).map(|key| (key, 1)).collect(),
        }
    }
}

impl Loops for Rust {
    fn run(&mut self, calls: bool, times: u32) -> Duration {
        let mut records = std::collections::VecDeque::with_capacity(OPERATIONS as usize);
        let start = Instant::now();
        for _ in 0..times {
            let (mut state, mut sum) = (1u64, 0u64);
            for _ in 0..OPERATIONS {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let key = black_box(
                    u32::try_from((((state >> 16) & 0xffff) * 10_000) >> 16).unwrap_or(0),
                );
                sum += match (calls, self.operation) {
                    (false, _) => u64::from(key),
                    (true, Operation::Array) => self.array[key as usize],
                    (true, Operation::Hash) => self.hash[&key],
                    (true, Operation::Ring) => {
                        records.push_back(Box::new([u64::from(key); 8]));
                        1
                    }
                };
            }
            black_box(sum);
            records.clear();
        }
        start.elapsed()
    }
}
