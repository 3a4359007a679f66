//! `exits`, attached to the running kernel, where there is one that takes it.

use crate::shared::{Need, skip};
use std::process::Command;

use bpflab::Object;
use bpflab::kernel::Kernel;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[test]
fn a_process_of_ours_is_seen_to_exit() -> Result {
    let kernel = match Kernel::available() {
        Ok(kernel) => kernel,
        Err(missing) => {
            skip(Need::Kernel, missing);
            return Ok(());
        }
    };
    let object = Object::open("examples/bpf/exits.bpf.o")?;
    let programs = object
        .programs()
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let running = match kernel.attach(&programs) {
        Ok(running) => running,
        Err(error) if error.is_unavailable() => {
            skip(Need::Feature, error);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let events = running.map("events").ok_or("no map")?.ring()?;

    let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn()?;
    child.wait()?;

    let mut statuses = Vec::new();
    events.drain(|record| {
        if record[..4] == child.id().to_ne_bytes() {
            statuses.push(record[8]);
        }
    });
    assert_eq!(statuses, [3]);
    assert_eq!(running.missed()?, 0);
    Ok(())
}
