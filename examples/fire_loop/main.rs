use bpflab::harness::EngineKind;
use bpflab::{Object, Vm};
use std::hint::black_box;
use std::time::Instant;

fn shortest(mut run: impl FnMut(u32)) -> f64 {
    let count = 20_000;
    run(count);
    (0..25)
        .map(|_| {
            let s = Instant::now();
            run(count);
            s.elapsed().as_secs_f64() * 1e9 / f64::from(count)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() -> bpflab::Result<()> {
    let only = std::env::args().nth(1);
    let path = std::env::var("OBJ").unwrap_or("examples/bpf/write_hist.bpf.o".into());
    for engine in [EngineKind::Jit, EngineKind::Interp, EngineKind::Checked] {
        if only.as_ref().is_some_and(|o| *o != engine.to_string()) {
            continue;
        }
        let mut vm = Vm::new(Object::open(&path)?)?;
        vm.set_engine(engine);
        vm.world().task().set_pid(42).set_comm("dd");
        vm.attach_all()?;
        let whole = shortest(|n| {
            for _ in 0..n {
                let event = vm
                    .tracepoint("syscalls/sys_enter_write")
                    .unwrap()
                    .set("args[2]", 4096)
                    .unwrap();
                black_box(vm.fire(event).unwrap());
            }
        });
        let build = shortest(|n| {
            for _ in 0..n {
                black_box(
                    vm.tracepoint("syscalls/sys_enter_write")
                        .unwrap()
                        .set("args[2]", 4096)
                        .unwrap(),
                );
            }
        });
        let event = vm
            .tracepoint("syscalls/sys_enter_write")?
            .set("args[2]", 4096)?;
        let clone = shortest(|n| {
            for _ in 0..n {
                black_box(event.clone());
            }
        });
        let fire = shortest(|n| {
            for _ in 0..n {
                black_box(vm.fire(event.clone()).unwrap());
            }
        });
        let run = shortest(|n| {
            for _ in 0..n {
                black_box(vm.run("count_write", &event).unwrap());
            }
        });
        let record = event.record();
        let mut runner = vm.runner("count_write", &event)?;
        let runner = shortest(|n| {
            for _ in 0..n {
                runner.set_context(&record).unwrap();
                black_box(runner.run().unwrap());
            }
        });
        println!(
            "{engine:8} whole {whole:7.1}  build {build:6.1}  clone {clone:6.1}  clone+fire {fire:7.1}  run {run:7.1}  runner {runner:6.1}"
        );
    }
    Ok(())
}
