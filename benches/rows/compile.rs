//! Compiling: lowering and code generation, into executable memory.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bpflab::Vm;
use bpflab::harness::CompileTime;
use bpflab::isa::assemble_with;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::util::median;
use bpflab::vm::World;

use super::goals::{self, Figure, number};
use crate::measure::Effort;

/// The sizes of the programs, in instructions.
const SIZES: &[usize] = &[90, 100, 1_000, 10_000, 60_000];

/// A program of this many instructions: arithmetic on four registers, the stack, the
/// context, branches, and some helper calls.
pub fn program(size: usize) -> Arc<Program> {
    const BLOCK: &str = "
        r8 += r6
        w9 ^= 305419896
        *(u64 *)(r10 - 8) = r8
        r1 = *(u32 *)(r7 + 16)
        r8 ^= r1
        if r8 > 4096 goto +2
        r8 *= 31
        w6 += w9
        r2 = *(u64 *)(r10 - 8)
        r9 >>= 3
        if w6 != w9 goto +1
        r6 -= r2
        r9 |= r8
        *(u32 *)(r10 - 16) = r9
        r6 += 7";
    let helpers = "\ncall bpf_ktime_get_ns\nr6 ^= r0";
    let mut text = "r7 = r1\nr6 = *(u32 *)(r1 + 0)\nr8 = r6\nr9 = r6\n".to_owned();
    let mut len = 6;
    let mut block = 0;
    while len + 17 <= size {
        text.push_str(BLOCK);
        len += 15;
        if block % 4 == 0 {
            text.push_str(helpers);
            len += 2;
        }
        block += 1;
    }
    for _ in len..size {
        text.push_str("\nr6 += 1");
    }
    text.push_str("\nr0 = r6\nexit");
    let mut program = Program::new("generated", ProgType::SchedCls, Vec::new());
    program.license = "GPL".into();
    program.insns = assemble_with(&text, &program)
        .expect("a program of ours")
        .slots;
    assert_eq!(program.insns.len(), size);
    Arc::new(program)
}

/// The times of compiling one program.
pub struct Compiled {
    size: usize,
    verify: f64,
    lower: f64,
    code: Option<f64>,
}

impl Compiled {
    /// Nanoseconds of lowering and code generation.
    fn whole(&self) -> Option<f64> {
        Some(self.lower + self.code?)
    }

    fn each(&self) -> Option<f64> {
        Some(self.whole()? / f64::from(u32::try_from(self.size).ok()?))
    }
}

/// Measures all sizes.
pub fn measure(effort: Effort) -> Vec<Compiled> {
    SIZES.iter().map(|size| compile(*size, effort)).collect()
}

fn compile(size: usize, effort: Effort) -> Compiled {
    let program = program(size);
    let mut vm = Vm::with_world(World::default());
    let loaded = vm.load_programs(&[], vec![program]).expect("it loads");
    let verdict = &vm.verification("generated").expect("it is there").verdict;
    assert!(verdict.is_accepted(), "{}", verdict.message);
    let tries = if size > 1_000 { 2 } else { 4 };
    let mut samples = Vec::new();
    for _ in 0..effort.samples {
        let time = || vm.compile_time(loaded[0]).expect("it is there");
        let best = (1..tries).fold(time(), |best, _| best.shortest(time()));
        samples.push(best);
    }
    let part = |of: fn(&CompileTime) -> Option<Duration>| {
        let times = samples.iter().filter_map(of);
        let ns = times.map(|time| time.as_secs_f64() * 1e9).collect();
        Some(median(ns)).filter(|ns| ns.is_finite())
    };
    Compiled {
        size,
        verify: part(|time| Some(time.verify)).expect("it was verified"),
        lower: part(|time| time.lower).expect("it was lowered"),
        code: part(|time| time.code),
    }
}

/// The figures with their goals.
pub fn figures(compiled: &[Compiled]) -> Vec<Figure> {
    let large = compiled.iter().filter(|one| one.size >= 1_000);
    let worst = large.filter_map(Compiled::each).reduce(f64::max);
    let small = compiled.iter().find(|one| one.size == 90);
    let small = small.and_then(Compiled::whole).map(|ns| ns / 1e3);
    vec![
        goals::COMPILE.measured(worst),
        goals::COMPILE_SMALL.measured(small),
    ]
}

/// The table of all sizes.
pub fn table(compiled: &[Compiled]) -> String {
    let mut text = "| instructions | verify | lower | code | lower and code, an instruction |\n\
                    |--:|--:|--:|--:|--:|\n"
        .to_owned();
    for one in compiled {
        let us = |ns: f64| format!("{} µs", number(ns / 1e3));
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let code = or_none(one.code.map(us));
        let each = or_none(one.each().map(|ns| format!("{} ns", number(ns))));
        let (verify, lower) = (us(one.verify), us(one.lower));
        let _ = writeln!(
            text,
            "| {} | {verify} | {lower} | {code} | {each} |",
            one.size
        );
    }
    text
}
