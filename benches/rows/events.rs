//! Runs the histogram program on write events from an array in memory.

use std::time::Instant;

use bpflab::harness::EngineKind;
use bpflab::util::median;
use bpflab::{Object, Vm};

use super::goals::{self, Figure};
use crate::measure::Effort;
use crate::suite::inputs::sizes;

/// Total number of events.
const EVENTS: usize = 20_000_000;

/// Events between two clock reads. Other processes disturb only a few such blocks.
const BLOCK: usize = 50_000;

/// The field of the event that the program reads.
const FIELD: &str = "args[2]";

/// Runs the program on all events; returns the median over the blocks of ns per event.
fn pass(vm: &mut Vm, counts: &[u64]) -> f64 {
    let event = vm
        .tracepoint("syscalls/sys_enter_write")
        .expect("it is known");
    // The field's offset differs between a kernel's BTF and the table of system calls.
    let marked = event
        .clone()
        .set(FIELD, u64::MAX)
        .expect("a field")
        .record();
    let mut bytes = event.record().into_iter().zip(marked);
    let at = bytes
        .position(|(zero, marked)| zero != marked)
        .expect("it shows");
    let mut record = event.record();
    let mut runner = vm.runner("count_write", &event).expect("it is there");
    let blocks = counts.chunks(BLOCK).map(|counts| {
        let start = Instant::now();
        for count in counts {
            record[at..at + 8].copy_from_slice(&count.to_ne_bytes());
            runner.set_context(&record).expect("it has room");
            runner.run().expect("it runs");
        }
        start.elapsed().as_secs_f64() * 1e9 / counts.len() as f64
    });
    median(blocks.collect())
}

/// Millions of events per second, with machine code if the host has a JIT.
///
/// # Panics
/// If events are lost.
pub fn figure(effort: Effort) -> Figure {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/bpf/write_hist.bpf.o"
    );
    let mut vm = Vm::new(Object::open(path).expect("the example")).expect("it loads");
    vm.set_engine(EngineKind::default()).set_counting(false);
    let counts = sizes(EVENTS);
    let mut passes = 0;
    let samples = (0..effort.samples.min(3)).map(|_| {
        passes += 1;
        1e3 / pass(&mut vm, &counts)
    });
    let samples: Vec<f64> = samples.collect();
    let slots = vm
        .map("hist")
        .expect("it is there")
        .entries::<u32, u64>()
        .expect("an array");
    let counted: u64 = slots.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, passes * EVENTS as u64, "all events are counted");
    goals::EVENTS.measured(Some(median(samples)))
}
