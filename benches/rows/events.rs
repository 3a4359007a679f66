//! Write events from an array in memory, one after the other through the histogram.

use std::time::{Duration, Instant};

use bpflab::harness::EngineKind;
use bpflab::util::median;
use bpflab::{Object, Vm};

use super::goals::{self, Figure};
use crate::measure::Effort;
use crate::suite::inputs::sizes;

/// Events in all.
const EVENTS: usize = 20_000_000;

/// Passes all events through the program: the time that it took.
fn pass(vm: &mut Vm, counts: &[u64]) -> Duration {
    let mut event = vm
        .tracepoint("syscalls/sys_enter_write")
        .expect("it is known");
    let handle = vm.program_handle("count_write").expect("it is there");
    let start = Instant::now();
    for count in counts {
        event.change("args[2]", &(*count).into()).expect("a field");
        vm.run_handle(handle, &event).expect("it runs");
    }
    start.elapsed()
}

/// Million events a second, on machine code or what there is instead.
///
/// # Panics
/// When events are lost.
pub fn figure(effort: Effort) -> Figure {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bpf/write_hist.bpf.o");
    let mut vm = Vm::new(Object::open(path).expect("the example")).expect("it loads");
    vm.set_engine(EngineKind::default());
    let all = EVENTS / 100;
    let counts = sizes(all);
    let mut passes = 0;
    let samples = (0..effort.samples.min(5)).map(|_| {
        let ns = pass(&mut vm, &counts).as_secs_f64() * 1e9;
        passes += 1;
        f64::from(u32::try_from(all).unwrap_or(u32::MAX)) * 1e3 / ns
    });
    let samples: Vec<f64> = samples.collect();
    let slots = vm
        .map("hist")
        .expect("it is there")
        .entries::<u32, u64>()
        .expect("an array");
    let counted: u64 = slots.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, passes * all as u64, "all events are counted");
    goals::EVENTS.measured(Some(median(samples)))
}
