use bpflab::{Object, Vm};
use std::hint::black_box;
use std::time::Instant;
fn main() -> bpflab::Result<()> {
    let path = "examples/bpf/write_hist.bpf.o";
    let mut vm = Vm::new(Object::open(path)?)?;
    vm.world().task().set_pid(42).set_comm("dd");
    vm.attach_all()?;
    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let what = std::env::args().nth(2).unwrap();
    let event = vm
        .tracepoint("syscalls/sys_enter_write")?
        .set("args[2]", 4096)?;
    let s = Instant::now();
    match what.as_str() {
        "whole" => {
            for _ in 0..n {
                let event = vm
                    .tracepoint("syscalls/sys_enter_write")?
                    .set("args[2]", 4096)?;
                black_box(vm.fire(event)?);
            }
        }
        "fire" => {
            for _ in 0..n {
                black_box(vm.fire(event.clone())?);
            }
        }
        "build" => {
            for _ in 0..n {
                black_box(
                    vm.tracepoint("syscalls/sys_enter_write")?
                        .set("args[2]", 4096)?,
                );
            }
        }
        _ => {}
    }
    println!(
        "{what} {:.1} ns",
        s.elapsed().as_secs_f64() * 1e9 / f64::from(n.max(1))
    );
    Ok(())
}
