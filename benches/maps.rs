//! Times single map operations on each of our engines, on Rust's collections and in the
//! running kernel, with criterion's comparison to the previous run. For work on maps:
//!
//! ```text
//! cargo bench --bench maps -- hash
//! ```
//!
//! A figure is the difference of two loops, one with the operation and one without.

#[allow(dead_code, reason = "each target uses a part of it")]
mod suite;

use std::time::Duration;

use bpflab::harness::EngineKind;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use suite::maps::{Loops, OPERATIONS, Operation, Ours, Rust};

/// The available engines, by name.
fn engines(operation: Operation) -> Vec<(String, Box<dyn Loops>)> {
    let ours = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
    let mut all: Vec<(String, Box<dyn Loops>)> = Vec::new();
    for engine in ours {
        if let Some(loops) = Ours::new(operation, engine) {
            all.push((engine.to_string(), Box::new(loops)));
        }
    }
    all.push(("std".to_owned(), Box::new(Rust::new(operation))));
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    if let Some(loops) = suite::maps::Kernel::new(operation) {
        all.push(("kernel".to_owned(), Box::new(loops)));
    }
    all
}

fn operations(c: &mut Criterion) {
    for operation in Operation::ALL {
        let mut group = c.benchmark_group(operation.title());
        for (name, mut loops) in engines(operation) {
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter_custom(|count| {
                    // Rounded up to whole runs.
                    let times = u32::try_from(count.div_ceil(u64::from(OPERATIONS)));
                    let times = times.expect("few runs");
                    let with = loops.run(true, times);
                    let without = loops.run(false, times);
                    let done = f64::from(times) * f64::from(OPERATIONS);
                    // `without` can take longer because of other work on the machine.
                    let each = with.saturating_sub(without).as_secs_f64() / done;
                    Duration::from_secs_f64(each * count as f64).max(Duration::from_nanos(1))
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, operations);
criterion_main!(benches);
