//! Times each benchmark program on our engines and on the interpreter of the `rbpf` crate,
//! with criterion's comparison to the previous run. For work on an engine:
//!
//! ```text
//! cargo bench --bench engines -- siphash
//! ```
//!
//! `benches/table.rs` measures all engines, and the ratios that have goals.

#[allow(dead_code, reason = "each target uses a part of it")]
mod suite;

use bpflab::harness::EngineKind;
use bpflab::{Object, Vm};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use suite::columns::Column;
use suite::ours::Ours;
use suite::programs::PROGRAMS;

const COLUMNS: [Column; 4] = [
    Column::Checked,
    Column::Interp,
    Column::Jit,
    Column::RbpfInterp,
];

fn programs(c: &mut Criterion) {
    for program in PROGRAMS {
        let mut group = c.benchmark_group(program.name);
        // All engines execute the same number of instructions.
        if let Ok(mut running) = Ours(EngineKind::Checked).running(program) {
            group.throughput(Throughput::Elements(running.insns()));
        }
        for column in COLUMNS {
            // Not every engine runs every program.
            let Ok(mut loaded) = column.engine().load(program) else {
                continue;
            };
            group.bench_function(BenchmarkId::from_parameter(column.title()), |bencher| {
                bencher.iter_custom(|count| {
                    let count = u32::try_from(count).expect("few runs");
                    loaded.run(count).0
                });
            });
        }
        group.finish();
    }
}

fn write_hist(c: &mut Criterion) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/bpf/write_hist.bpf.o"
    );
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
                let repeated = vm
                    .runner(handle, &event)
                    .expect("it is its event")
                    .repeat(count);
                repeated.expect("it runs").elapsed
            });
        });
    }
    group.finish();
}

criterion_group!(benches, programs, write_hist);
criterion_main!(benches);
