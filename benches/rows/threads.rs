//! Map operations from one and from two threads, each on its own CPU.

use std::fmt::Write;
use std::sync::Barrier;
use std::time::Duration;

use bpflab::harness::EngineKind;
use bpflab::util::median;

use super::goals::number;
use crate::measure::Effort;
use crate::suite::engine::Loaded;
use crate::suite::ours::{Ours, Running};
use crate::suite::programs::PROGRAMS;

/// Operations per run of each program.
const OPERATIONS: f64 = 64.0;
const MAPS: &[(&str, &str)] = &[
    ("map_array", "array, look-up and atomic increment"),
    ("map_hash", "hash, look-up and atomic increment"),
];

/// Nanoseconds per operation in each of the threads, which run concurrently.
fn at_once(threads: &mut [Box<dyn Loaded + Send>], times: u32) -> f64 {
    let barrier = Barrier::new(threads.len());
    let elapsed = std::thread::scope(|scope| {
        let started: Vec<_> = threads
            .iter_mut()
            .map(|program| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    program.run(times).0
                })
            })
            .collect();
        let joined = started
            .into_iter()
            .map(|thread| thread.join().expect("it runs"));
        joined.max().unwrap_or(Duration::ZERO)
    });
    elapsed.as_secs_f64() * 1e9 / f64::from(times) / OPERATIONS
}

/// One program on this many CPUs; none if the engine is not available.
fn ours(name: &str, engine: EngineKind, count: u32) -> Option<Vec<Box<dyn Loaded + Send>>> {
    let program = PROGRAMS.iter().find(|program| program.name == name)?;
    let first = Ours(engine).running(program).ok()?;
    let others: Vec<Running> = (1..count).map(|cpu| first.on_cpu(cpu)).collect();
    let all = std::iter::once(first).chain(others);
    Some(
        all.map(|running| Box::new(running) as Box<dyn Loaded + Send>)
            .collect(),
    )
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
fn kernel(name: &str, count: u32) -> Option<Vec<Box<dyn Loaded + Send>>> {
    use crate::suite::kernel::InKernel;
    let program = PROGRAMS.iter().find(|program| program.name == name)?;
    let shared = std::sync::Arc::new(InKernel::new(program).ok()?);
    let all = (0..count).map(|_| Box::new(shared.clone()) as Box<dyn Loaded + Send>);
    Some(all.collect())
}

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
fn kernel(_: &str, _: u32) -> Option<Vec<Box<dyn Loaded + Send>>> {
    None
}

/// The table of times per operation, by map, engine and number of threads.
pub fn table(effort: Effort) -> String {
    let mut text = "| map, ns an operation | threads | interp | jit | kernel |\n\
                    |---|--:|--:|--:|--:|\n"
        .to_owned();
    for (name, title) in MAPS {
        for count in [1, 2] {
            let mut cells = [
                ours(name, EngineKind::Interp, count),
                ours(name, EngineKind::Jit, count),
                kernel(name, count),
            ];
            let mut samples = [const { Vec::new() }; 3];
            for _ in 0..effort.samples {
                for (cell, samples) in cells.iter_mut().zip(&mut samples) {
                    let Some(threads) = cell else { continue };
                    let bursts = (0..effort.bursts.count).map(|_| at_once(threads, 300));
                    samples.push(bursts.fold(f64::INFINITY, f64::min));
                }
            }
            let shown = samples.map(|samples| match samples.is_empty() {
                true => "–".to_owned(),
                false => number(median(samples)),
            });
            let _ = writeln!(text, "| {title} | {count} | {} |", shown.join(" | "));
        }
    }
    text
}
