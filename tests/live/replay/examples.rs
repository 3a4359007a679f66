//! The programs of `examples/bpf` on generated events, on several CPUs.

use std::sync::Arc;

use bpflab::Object;
use bpflab::instrument::Plan;
use bpflab::object::Target;
use bpflab::program::Program;
use bpflab::vm::events::Event;

use super::user_recording::{CPUS, Recorder, UserRecording};
use super::{is_equal_as_far_as_it_can_be, replayed};

/// The programs of an example that can be recorded.
pub fn programs(file: &str) -> Vec<Arc<Program>> {
    let mut object = Object::open(format!("examples/bpf/{file}.bpf.o")).unwrap();
    if file != "exits" {
        object.set_target(Target::Own);
    }
    let programs = object.programs().map(|program| Arc::new(program.unwrap()));
    let recordable = programs.filter(|program| match Plan::new(program) {
        Ok(_) => true,
        Err(why) => {
            eprintln!("not recorded: {why}");
            false
        }
    });
    recordable.collect()
}

/// Pseudo-random numbers, the same each time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Bytes of the largest context, that of a perf event on arm64: 34 registers, two numbers.
pub const CONTEXT: usize = 288;

/// `count` firings of an example's programs, in turn, on `cpus` CPUs.
pub fn user_recording(file: &str, count: u64, cpus: u32) -> UserRecording {
    fired(Recorder::new(programs(file), 0), count, cpus)
}

/// `count` firings of the recorded programs, in turn, on `cpus` CPUs.
pub fn fired(mut recorder: Recorder, count: u64, cpus: u32) -> UserRecording {
    let programs = recorder.handles.len() as u64;
    let mut numbers = Numbers(count + 1);
    for time in 0..count {
        let cpu = u32::try_from(numbers.below(cpus.into())).unwrap();
        let world = recorder.vm.world();
        world.set_cpu(cpu).clock().set_ns(1_000_000 + time * 1000);
        let tgid = u32::try_from(100 + numbers.below(5)).unwrap();
        world.task().set_pid(tgid).set_tid(tgid + 1);
        // Small numbers, so that keys repeat.
        let mut context = vec![0; CONTEXT];
        for byte in context.iter_mut().step_by(4) {
            *byte = u8::try_from(numbers.below(4)).unwrap();
        }
        let program = usize::try_from(numbers.below(programs)).unwrap();
        recorder.fire(program, &Event::bytes(context));
    }
    recorder.finish()
}

fn is_equal(file: &str) {
    let one = user_recording(file, 200, 1);
    assert_eq!(one.firings.len(), 200);
    is_equal_as_far_as_it_can_be(&one, &replayed(&one));
    // One after the other on all CPUs: the spans in the ring show it.
    let several = user_recording(file, 200, CPUS);
    let report = replayed(&several);
    is_equal_as_far_as_it_can_be(&several, &report);
    for program in &report.programs {
        assert_eq!(program.raced, 0, "the ring has them in their order");
    }
}

macro_rules! examples {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                is_equal(stringify!($name));
            }
        )*
    };
}

examples! {
    write_hist softirqs execsnoop runqlat block_latency disksnoop dropmon exits
    func_counts func_latency profile vfs_read_latency write_hist_kprobe
}
