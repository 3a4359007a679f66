//! Many records at once: `Vm::run_on_cpus` on one CPU and on two, with a map that all CPUs share
//! and with one that has values for each CPU.

use std::fmt::Write;
use std::time::Instant;

use bpflab::harness::EngineKind;
use bpflab::util::median;
use bpflab::{Object, Vm};

use super::goals::number;
use crate::measure::Effort;
use crate::suite::inputs::sizes;

/// How many records: they lie in memory, and starting a thread should not count.
const RECORDS: usize = 500_000;

/// A program on events.
struct Case {
    what: &'static str,
    object: &'static str,
    program: &'static str,
    event: &'static str,
    field: &'static str,
    /// The field's numbers are below this.
    limit: u64,
}

const CASES: [Case; 2] = [
    Case {
        what: "`write_hist`: one array, atomic additions",
        object: "write_hist",
        program: "count_write",
        event: "syscalls/sys_enter_write",
        field: "args[2]",
        limit: u64::MAX,
    },
    Case {
        what: "`softirqs`: an array for each CPU",
        object: "softirqs",
        program: "count_softirq",
        event: "irq/softirq_entry",
        field: "vec",
        limit: 10,
    },
];

impl Case {
    /// Millions of records per second.
    ///
    /// # Panics
    /// If it does not run.
    fn measure(&self, cpus: u32, effort: Effort) -> f64 {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/bpf/");
        let path = format!("{folder}{}.bpf.o", self.object);
        let mut vm = Vm::new(Object::open(path).expect("the example")).expect("it loads");
        vm.set_engine(EngineKind::default()).set_counting(false);
        let event = vm.tracepoint(self.event).expect("it is known");
        let with = |size: u64| {
            let number = size % self.limit;
            let event = event.clone().set(self.field, number).expect("a field");
            event.record()
        };
        let records: Vec<_> = sizes(RECORDS).into_iter().map(with).collect();
        let mut run = || {
            let start = Instant::now();
            let outcomes = vm.run_on_cpus(self.program, &event, &records, cpus);
            let elapsed = start.elapsed().as_secs_f64();
            assert_eq!(outcomes.expect("it runs").len(), cpus as usize);
            RECORDS as f64 / elapsed / 1e6
        };
        run();
        median((0..effort.samples).map(|_| run()).collect())
    }
}

/// The table.
pub fn table(effort: Effort) -> String {
    let mut text =
        "| million records a second | one CPU | two CPUs | times |\n|---|--:|--:|--:|\n".to_owned();
    for case in &CASES {
        let [one, two] = [1, 2].map(|cpus| case.measure(cpus, effort));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} |",
            case.what,
            number(one),
            number(two),
            two / one
        );
    }
    text
}
