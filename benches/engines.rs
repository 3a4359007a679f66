//! The interpreters against one another and, for programs without maps and helpers,
//! against the interpreter of the `rbpf` crate, which checks memory, too:
//! `cargo bench --bench engines`.

use std::hint::black_box;
use std::sync::Arc;

use bpflab::harness::EngineKind;
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::World;
use bpflab::vm::events::Event;
use bpflab::{Object, Vm};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// A program on packets, which every interpreter here can run.
struct Kernel {
    name: &'static str,
    /// Starts with r2 at the packet and r3 at its end.
    text: &'static str,
}

/// Bytes of the packet.
const PACKET: usize = 1500;

const KERNELS: &[Kernel] = &[
    Kernel {
        name: "empty",
        text: "r0 = 2
               exit",
    },
    Kernel {
        name: "loop of 1000",
        text: "r0 = 0
               r1 = 0
               loop: r0 += r1
               r1 += 1
               if r1 < 1000 goto loop
               exit",
    },
    // The numbers are those of Numerical Recipes.
    Kernel {
        name: "random numbers",
        text: "r0 = 1
               r1 = 1000
               loop: r0 *= 1664525
               r0 += 1013904223
               r4 = r0
               r4 >>= 16
               r0 ^= r4
               r1 -= 1
               if r1 != 0 goto loop
               exit",
    },
    Kernel {
        name: "checksum of a packet",
        text: "r0 = 0
               r1 = 0
               loop: r4 = r2
               r4 += 8
               if r4 > r3 goto done
               r5 = *(u32 *)(r2 + 0)
               r0 += r5
               r5 = *(u32 *)(r2 + 4)
               r0 += r5
               r2 = r4
               r1 += 1
               if r1 < 187 goto loop
               done: r4 = r0
               r4 >>= 32
               w0 = w0
               r0 += r4
               exit",
    },
    Kernel {
        name: "fnv hash of a packet",
        text: "r0 = 2166136261 ll
               r5 = 16777619
               r6 = 0
               loop: r4 = r2
               r4 += 1
               if r4 > r3 goto done
               r1 = *(u8 *)(r2 + 0)
               w0 ^= w1
               w0 *= w5
               r2 = r4
               r6 += 1
               if r6 < 1400 goto loop
               done: exit",
    },
    Kernel {
        name: "primes below 500",
        text: "r0 = 0
               r1 = 2
               number: r2 = 2
               divisor: r4 = r2
               r4 *= r2
               if r4 > r1 goto prime
               r4 = r1
               r4 %= r2
               if r4 == 0 goto next
               r2 += 1
               if r2 < 40 goto divisor
               prime: r0 += 1
               next: r1 += 1
               if r1 < 500 goto number
               exit",
    },
    Kernel {
        name: "stack traffic",
        text: "r1 = 100
               fill: *(u64 *)(r10 - 8) = r1
               r5 = *(u64 *)(r10 - 8)
               *(u64 *)(r10 - 16) = r5
               r0 = *(u64 *)(r10 - 16)
               r1 -= 1
               if r1 != 0 goto fill
               exit",
    },
];

/// The program as we run it: its packet comes from the context.
fn ours(kernel: &Kernel) -> Arc<Program> {
    let load = "r3 = *(u32 *)(r1 + 4)\nr2 = *(u32 *)(r1 + 0)\n";
    program(kernel.name, &[], &format!("{load}{}", kernel.text))
}

fn program(name: &str, maps: &[MapDef], text: &str) -> Arc<Program> {
    let mut program = Program::new(name, ProgType::Xdp, Vec::new());
    program.maps = maps.into();
    program.license = "GPL".into();
    program.insns = assemble_with(text, &program)
        .expect("a program of ours")
        .slots;
    Arc::new(program)
}

fn vm(program: &Arc<Program>, engine: EngineKind) -> Vm {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    vm.set_budget(u64::MAX);
    let loaded = vm.load_programs(&program.maps.clone(), vec![program.clone()]);
    loaded.expect("a program of ours");
    let verdict = vm.verdict(&program.name).expect("it is there");
    assert!(verdict.accepted, "{}: {}", program.name, verdict.message);
    assert_eq!(vm.engine_of(&program.name).expect("it is there"), engine);
    vm
}

/// Measures runs of a program on our engines.
fn measure(c: &mut Criterion, program: &Arc<Program>, event: &Event) {
    let mut group = c.benchmark_group(&program.name);
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut vm = vm(program, engine);
        let handle = vm.program_handle(&program.name).expect("it is there");
        let insns = vm.run_handle(handle, event).expect("it runs").runs[0].insns;
        group.throughput(Throughput::Elements(insns));
        group.bench_function(BenchmarkId::from_parameter(engine), |bencher| {
            bencher.iter_custom(|count| {
                let count = u32::try_from(count).expect("few runs");
                let repeated = vm.run_repeatedly(handle, event, count);
                repeated.expect("it runs").elapsed
            });
        });
    }
    group.finish();
}

fn kernels(c: &mut Criterion) {
    let bytes: Vec<u8> = (0..PACKET).map(|n| n.to_le_bytes()[0]).collect();
    for kernel in KERNELS {
        let program = ours(kernel);
        measure(c, &program, &Event::packet(bytes.clone()));
        peer(c, kernel, &bytes);
    }
}

/// The same on the peer, whose r1 is the packet.
fn peer(c: &mut Criterion, kernel: &Kernel, packet: &[u8]) {
    let load = format!("r3 = r1\nr3 += {PACKET}\nr2 = r1\n");
    let program = program(kernel.name, &[], &format!("{load}{}", kernel.text));
    let bytes: Vec<u8> = program.insns.iter().flat_map(|i| i.to_bytes()).collect();
    let vm = rbpf::EbpfVmRaw::new(Some(&bytes)).expect("a program of ours");
    let mut packet = packet.to_vec();
    c.benchmark_group(kernel.name)
        .bench_function("rbpf", |bencher| {
            bencher.iter(|| vm.execute_program(black_box(&mut packet)).expect("it runs"));
        });
}

/// What only we have: maps, helpers, functions.
fn maps(c: &mut Criterion) {
    let array = MapDef::new("counts", MapType::Array, 4, 8, 64);
    let text = "
        r6 = 100
        again: *(u32 *)(r10 - 4) = r6
        r5 = *(u32 *)(r10 - 4)
        r5 &= 63
        *(u32 *)(r10 - 4) = r5
        r2 = r10
        r2 += -4
        r1 = map[idx:0]
        call bpf_map_lookup_elem
        if r0 == 0 goto next
        r1 = *(u64 *)(r0 + 0)
        r1 += 1
        *(u64 *)(r0 + 0) = r1
        next: r6 -= 1
        if r6 != 0 goto again
        r0 = 2
        exit";
    let event = Event::packet(vec![0; 64]);
    measure(c, &program("100 look-ups", &[array], text), &event);
    let text = "
        r6 = 100
        again: r1 = r6
        call double
        r6 -= 1
        if r6 != 0 goto again
        r0 = 2
        exit
        double: r0 = r1
        r0 += r1
        exit";
    measure(c, &program("100 calls", &[], text), &event);
}

fn write_hist(c: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bpf/write_hist.bpf.o");
    let mut group = c.benchmark_group("write_hist");
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut vm = Vm::new(Object::open(path).expect("the example")).expect("it loads");
        vm.set_engine(engine);
        let event = vm.tracepoint("syscalls/sys_enter_write").expect("known");
        let event = event.set("args[2]", 4096).expect("a field");
        let handle = vm.program_handle("count_write").expect("it is there");
        group.bench_function(BenchmarkId::from_parameter(engine), |bencher| {
            bencher.iter_custom(|count| {
                let count = u32::try_from(count).expect("few runs");
                let repeated = vm.run_repeatedly(handle, &event, count);
                repeated.expect("it runs").elapsed
            });
        });
    }
    group.finish();
}

criterion_group!(benches, kernels, maps, write_hist);
criterion_main!(benches);
