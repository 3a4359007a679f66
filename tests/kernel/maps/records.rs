//! Ring buffers: the same programs in bpflab and in the kernel, and the readers of their
//! records.

use std::sync::Arc;

use bpflab::Vm;
use bpflab::harness::EngineKind;
use bpflab::isa::assemble_with;
use bpflab::kernel::{KernelRing, LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType, UpdateFlags};
use bpflab::util::MapId;
use bpflab::vm::World;
use bpflab::vm::events::Event;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::pair::cpus;

/// Bytes for a program to send.
const DATA: usize = 4096;
const DATA_SIZE: u32 = 4096;

fn defs() -> [MapDef; 3] {
    [
        MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096),
        MapDef::new("results", MapType::Array, 4, 24, 1),
        MapDef::new("data", MapType::Array, 4, DATA_SIZE, 1),
    ]
}

/// The program's operations on the ring: flags in `args[0]`, length in `args[1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Output,
    Submit(u32),
    Discard(u32),
}

const SIZES: [u32; 6] = [0, 1, 64, 1000, 4080, 4088];

fn ways() -> Vec<Way> {
    let sized = SIZES
        .iter()
        .flat_map(|size| [Way::Submit(*size), Way::Discard(*size)]);
    std::iter::once(Way::Output).chain(sized).collect()
}

/// The code after the operation: stores the result and two positions in the second map.
fn text(way: Way) -> String {
    let mut text = String::from(
        "r6 = r1
         *(u64 *)(r10 - 32) = 0
         *(u32 *)(r10 - 4) = 0
         r2 = r10
         r2 += -4
         r1 = map[idx:2]
         call bpf_map_lookup_elem
         if r0 == 0 goto out
         r7 = r0
         r8 = *(u64 *)(r6 + 0)
         r1 = map[idx:0]\n",
    );
    match way {
        Way::Output => {
            text += &format!(
                "r3 = *(u64 *)(r6 + 8)
                 if r3 > {DATA} goto out
                 r2 = r7
                 r4 = r8
                 call bpf_ringbuf_output
                 *(u64 *)(r10 - 32) = r0\n"
            );
        }
        Way::Submit(size) | Way::Discard(size) => {
            let end = match way {
                Way::Discard(_) => "bpf_ringbuf_discard",
                _ => "bpf_ringbuf_submit",
            };
            // Unwritten bytes keep their former contents, which differ after the ring wraps,
            // since the kernel's data is mapped twice.
            let fill = match size {
                0 => String::new(),
                _ => format!(
                    "r9 = r0\nr1 = r0\nr2 = {size}\nr3 = r7\ncall bpf_probe_read_kernel\nr0 = r9\n"
                ),
            };
            text += &format!(
                "r2 = {size}
                 r3 = 0
                 call bpf_ringbuf_reserve
                 if r0 == 0 goto out
                 *(u64 *)(r10 - 32) = 1
                 {fill}
                 r1 = r0
                 r2 = r8
                 call {end}\n"
            );
        }
    }
    text + "out:
        r1 = map[idx:0]
        r2 = 0
        call bpf_ringbuf_query
        *(u64 *)(r10 - 24) = r0
        r1 = map[idx:0]
        r2 = 3
        call bpf_ringbuf_query
        *(u64 *)(r10 - 16) = r0
        *(u32 *)(r10 - 4) = 0
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -32
        r4 = 0
        r1 = map[idx:1]
        call bpf_map_update_elem
        r0 = 0
        exit"
}

fn program(way: Way) -> Arc<Program> {
    let mut program = Program::new("p", ProgType::RawTracepoint, Vec::new());
    program.license = "GPL".into();
    program.maps = Arc::new(defs());
    program.insns = assemble_with(&text(way), &program).unwrap().slots;
    Arc::new(program)
}

#[derive(Debug, Clone)]
enum Op {
    Run(usize, u64, usize, u8),
    Take,
}

fn op() -> impl Strategy<Value = Op> {
    let way = prop_oneof![2 => Just(0usize), 1 => 0..ways().len()];
    let flags = prop_oneof![4 => Just(0u64), 1 => 1..5u64];
    let len = prop_oneof![2 => 0..40usize, 1 => 0..=DATA / 4, 1 => 0..=DATA];
    prop_oneof![
        8 => (way, flags, len, any::<u8>())
            .prop_map(|(way, flags, len, fill)| Op::Run(way, flags, len, fill)),
        1 => Just(Op::Take),
    ]
}

struct Rings {
    vm: Vm,
    maps: LoadedMaps,
    ring: KernelRing,
    programs: Vec<LoadedProgram>,
}

impl Rings {
    fn new(cpus: u32) -> Self {
        let programs: Vec<_> = ways().into_iter().map(program).collect();
        let mut vm = Vm::with_world(World::with_cpus(cpus));
        vm.load_programs(&defs(), programs.clone()).unwrap();
        vm.set_engine(EngineKind::Jit);
        let maps = LoadedMaps::create(&defs(), None).unwrap();
        let loaded = programs.iter().zip(ways()).map(|(program, way)| {
            let loaded = load(program, &maps, &LoadOptions::default()).unwrap();
            let refused = || panic!("{way:?}: {}", loaded.verdict.message);
            loaded.program.unwrap_or_else(refused)
        });
        let programs = loaded.collect();
        let ring = maps.map(MapId(0)).unwrap().ring().unwrap();
        Self {
            vm,
            maps,
            ring,
            programs,
        }
    }

    fn agree(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::Take => {
                let taken = self.vm.map("ring").unwrap().take_records().unwrap();
                prop_assert_eq!(taken, self.ring.take());
            }
            Op::Run(way, flags, len, fill) => {
                let data: Vec<u8> = (0..DATA).map(|at| fill ^ at.to_le_bytes()[0]).collect();
                self.vm.map("data").unwrap().set(&0u32, &data[..]).unwrap();
                let any = UpdateFlags::empty();
                self.maps
                    .map(MapId(2))
                    .unwrap()
                    .update(&[0; 4], &data, any)
                    .unwrap();
                let event = self.event(*flags, *len);
                let handle = self.vm.handles().nth(*way).unwrap();
                self.vm.run(handle, &event).unwrap();
                let mut context = flags.to_le_bytes().to_vec();
                context.extend((*len as u64).to_le_bytes());
                self.programs[*way]
                    .test_run(&TestRun::context(&context))
                    .unwrap();
                let result = self.vm.map("results").unwrap().get_bytes(&[0; 4]).unwrap();
                prop_assert_eq!(result, self.maps.lookup(MapId(1), &[0; 4]).unwrap());
            }
        }
        Ok(())
    }

    fn event(&self, flags: u64, len: usize) -> Event {
        let event = self.vm.raw_tracepoint("sys_enter").unwrap();
        let event = event.set("args[0]", flags).unwrap();
        event.set("args[1]", len as u64).unwrap()
    }
}

#[test]
fn records_come_out_as_they_went_in() {
    let Some(cpus) = cpus() else { return };
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&vec(op(), 0..60), |ops| {
        let mut rings = Rings::new(cpus);
        for op in &ops {
            rings.agree(op)?;
        }
        rings.agree(&Op::Take)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
