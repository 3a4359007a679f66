//! The table of `docs/benchmarks.md`: `cargo bench --bench table`.

#[allow(dead_code, reason = "each target uses a part of it")]
mod suite;

use std::time::Duration;

use bpflab::harness::EngineKind;
use suite::engine::{Engine, Loaded};
use suite::programs::{Group, PROGRAMS, Program};

const SAMPLES: usize = 9;
const BURST: Duration = Duration::from_millis(1);
const BURSTS: usize = 5;

fn engines() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(suite::ours::Ours(EngineKind::Checked)),
        Box::new(suite::ours::Ours(EngineKind::Interp)),
        Box::new(suite::ours::Ours(EngineKind::Jit)),
        Box::new(suite::kernel::Kernel::new()),
        Box::new(suite::native::Native::new()),
        Box::new(suite::rbpf::Rbpf { is_jit: false }),
        Box::new(suite::rbpf::Rbpf { is_jit: true }),
    ]
}

fn fastest(loaded: &mut dyn Loaded, times: u32, bursts: usize) -> f64 {
    let ns = (0..bursts).map(|_| loaded.run(times).0.as_secs_f64() * 1e9 / f64::from(times));
    ns.fold(f64::INFINITY, f64::min)
}

fn calibrate(loaded: &mut dyn Loaded) -> u32 {
    let burst = BURST.as_secs_f64() * 1e9;
    let mut times = 1_u32;
    loop {
        let ns = fastest(loaded, times, 4);
        if ns * f64::from(times) > burst / 8.0 {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            return ((burst / ns) as u32).max(1);
        }
        times *= 4;
    }
}

fn sample(engine: &dyn Engine, program: &Program, times: &mut u32) -> Result<f64, String> {
    let mut loaded = engine.load(program)?;
    let (_, value) = loaded.run(1);
    let want = (program.expected)(&(program.input)());
    assert_eq!(value, want, "{} on {}", program.name, engine.name());
    if *times == 0 {
        *times = calibrate(&mut *loaded);
    }
    Ok(fastest(&mut *loaded, *times, BURSTS))
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

fn main() {
    let engines = engines();
    let mut all: Vec<Vec<Vec<f64>>> = Vec::new();
    let only = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    let programs: Vec<_> = PROGRAMS
        .iter()
        .filter(|p| {
            only.as_ref()
                .is_none_or(|o| p.name == o || p.group == Group::Empty)
        })
        .collect();
    for program in &programs {
        let mut times = vec![0; engines.len()];
        let mut rows = vec![Vec::new(); engines.len()];
        let mut absent = vec![false; engines.len()];
        for _ in 0..SAMPLES {
            for (at, engine) in engines.iter().enumerate() {
                if absent[at] {
                    continue;
                }
                match sample(&**engine, program, &mut times[at]) {
                    Ok(ns) => rows[at].push(ns),
                    Err(why) => {
                        eprintln!("{} on {}: {why}", program.name, engine.name());
                        absent[at] = true;
                    }
                }
            }
        }
        all.push(rows);
    }
    let kernel = 3;
    let empty = all.last().unwrap()[kernel].clone();
    for (program, rows) in programs.iter().zip(&mut all) {
        if program.group != Group::Empty {
            for (ns, empty) in rows[kernel].iter_mut().zip(&empty) {
                *ns -= *empty;
            }
        }
    }
    print!("{:22}", "ns per run");
    for engine in &engines {
        print!("{:>12}", engine.name());
    }
    println!("   jit/kern jit/nat  int/kern rbpf/int");
    for (program, rows) in programs.iter().zip(&all) {
        print!("{:22}", program.title);
        for row in rows {
            if row.is_empty() {
                print!("{:>12}", "-");
            } else {
                print!("{:>12.1}", median(row.clone()));
            }
        }
        let ratio = |a: usize, b: usize| {
            if rows[a].is_empty() || rows[b].is_empty() {
                return f64::NAN;
            }
            median(rows[a].iter().zip(&rows[b]).map(|(a, b)| a / b).collect())
        };
        println!(
            "   {:8.2} {:7.2} {:8.2} {:8.2}",
            ratio(2, 3),
            ratio(2, 4),
            ratio(1, 3),
            ratio(5, 1)
        );
    }
}
