//! Makes recordings, and parses them.

use crate::shared::{Need, skip};
use std::collections::BTreeSet;
use std::process::Command;

use bpflab::Object;
use bpflab::compare::live::{Live, LiveEvents, LiveOptions, Summary};
use bpflab::compare::recording::{
    Contents, End, Header, Loss, OutputSource, Part, Recording, When,
};
use bpflab::instrument::Firing;

use super::here::kernel;

/// The example with a histogram of writes.
pub const WRITES: &str = "examples/bpf/write_hist.bpf.o";

/// Whether there is a kernel to record in, with the tracepoints of system calls.
pub fn is_there() -> bool {
    if kernel().is_none() {
        return false;
    }
    let tracefs = bpflab::kernel::tracefs::Tracefs::open();
    match tracefs.and_then(|tracefs| tracefs.tracepoint_id("syscalls", "sys_enter_write")) {
        Ok(_) => true,
        Err(error) => {
            skip(Need::Kernel, error);
            false
        }
    }
}

/// A command that makes `count` writes of `bytes` bytes.
pub fn writes(count: u32, bytes: u32) -> Command {
    shell(&dd(count, bytes))
}

/// The same as a shell command.
pub fn dd(count: u32, bytes: u32) -> String {
    format!("dd if=/dev/zero of=/dev/null status=none bs={bytes} count={count}")
}

/// A shell command line; its last command replaces the shell.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {line}")]);
    command
}

/// Shell lines; the shell waits for all their processes.
pub fn script(lines: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{lines}\nwait")]);
    command
}

/// Records the programs of an object while a command runs.
pub fn record(object: &str, options: &LiveOptions, mut command: Command) -> (Summary, Recorded) {
    let object = Object::open(object).unwrap();
    let mut live = Live::start(&object, options).unwrap();
    let mut file = Vec::new();
    let summary = live.run(&mut command, &mut file).unwrap();
    assert_eq!(summary.file_bytes, file.len() as u64);
    (summary, Recorded::read(&file))
}

/// Records tracepoints while a command runs.
pub fn record_events(
    names: &[&str],
    options: &LiveOptions,
    mut command: Command,
) -> (Summary, Recorded) {
    let mut live = LiveEvents::start(names, options).unwrap();
    let mut file = Vec::new();
    let summary = live.run(&mut command, &mut file).unwrap();
    (summary, Recorded::read(&file))
}

/// A recording.
#[derive(Debug, Default)]
pub struct Recorded {
    pub header: Header,
    pub firings: Vec<Fired>,
    pub outputs: Vec<(OutputSource, Option<u32>, Vec<u8>)>,
    pub samples: Vec<(u32, u32, Vec<u8>)>,
    pub losses: Vec<Loss>,
    entries: Vec<(When, u32, Vec<u8>, Vec<u8>)>,
    pub reads: Vec<(When, u32, Contents)>,
    /// None if it was cut off.
    pub end: Option<End>,
}

/// A firing.
#[derive(Debug, Clone)]
pub struct Fired {
    pub cpu: u32,
    pub sequence: u64,
    pub depth: u16,
    pub program: u32,
    pub process: u32,
    pub returned: u64,
    pub context: Vec<u8>,
}

impl Recorded {
    pub fn read(file: &[u8]) -> Self {
        let mut recording = Recording::new(file).unwrap();
        let mut read = Self {
            header: recording.header().clone(),
            ..Self::default()
        };
        while let Some(part) = recording.next_part().unwrap() {
            match part {
                Part::Firings(firings) => read.firings.extend(firings.map(|firing| {
                    let firing = Firing::parse(firing).unwrap();
                    Fired {
                        cpu: firing.cpu,
                        sequence: firing.sequence,
                        depth: firing.depth,
                        program: firing.program,
                        process: u32::try_from(firing.pid_tgid >> 32).unwrap(),
                        returned: firing.returned,
                        context: firing.context.to_vec(),
                    }
                })),
                Part::Outputs(outputs) => {
                    let outputs = outputs.map(|out| (out.source, out.map, out.bytes.to_vec()));
                    read.outputs.extend(outputs);
                }
                Part::Samples(samples) => {
                    let samples = samples.map(|one| (one.event, one.pid, one.raw.to_vec()));
                    read.samples.extend(samples);
                }
                Part::Losses(losses) => read.losses.extend(losses),
                Part::Entries(entries) => read.entries.extend(entries.map(|entry| {
                    (
                        entry.when,
                        entry.map,
                        entry.key.to_vec(),
                        entry.value.to_vec(),
                    )
                })),
                Part::MapReads(reads) => {
                    let reads = reads.map(|read| (read.when, read.map, read.contents));
                    read.reads.extend(reads);
                }
                Part::End(end) => read.end = Some(end),
                _ => {}
            }
        }
        read
    }

    /// The number of a map.
    pub fn map(&self, name: &str) -> u32 {
        let map = self.header.maps.iter().find(|map| map.name == name);
        map.unwrap_or_else(|| panic!("{:?}", self.header.maps))
            .number
    }

    /// The value under a key of a map, as a number of at most 8 bytes.
    pub fn value(&self, when: When, map: &str, key: u32) -> u64 {
        let (map, key) = (self.map(map), key.to_le_bytes());
        let mut found = self.entries.iter().filter(|e| (e.0, e.1) == (when, map));
        let entry = found.find(|entry| entry.2 == key).expect("the entry");
        let mut value = [0; 8];
        value
            .iter_mut()
            .zip(&entry.3)
            .for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(value)
    }

    /// The third argument of the system call that a firing, or a sample, is about.
    pub fn sizes(&self) -> Vec<u64> {
        let contexts = self.firings.iter().map(|fired| &fired.context);
        let records = contexts.chain(self.samples.iter().map(|sample| &sample.2));
        let sizes = records.map(|bytes| u64::from_le_bytes(bytes[32..40].try_into().unwrap()));
        sizes.collect()
    }

    /// The missing firings, by CPU and sequence number: each CPU counts from 0.
    pub fn gaps(&self) -> Vec<(u32, u64)> {
        let ends = &self.end.as_ref().expect("an end").summary.cpus;
        let gaps = ends.iter().flat_map(|cpu| {
            let of_cpu = self.firings.iter().filter(|fired| fired.cpu == cpu.cpu);
            let numbers: BTreeSet<_> = of_cpu.map(|fired| fired.sequence).collect();
            let missing = (0..cpu.sequence).filter(move |number| !numbers.contains(number));
            missing.map(|number| (cpu.cpu, number))
        });
        gaps.collect()
    }
}
