//! Programs for these tests, and system calls that fire them.

use crate::shared::{Need, skip};
use std::os::unix::fs::chown;
use std::sync::Arc;

use bpflab::isa::assemble_with;
use bpflab::kernel::attach::{AttachError, AttachPoint, Attachment, attach};
use bpflab::kernel::perf::{EventSource, PerfSamples, SampleOptions};
use bpflab::kernel::tracefs::Tracefs;
use bpflab::kernel::{LoadOptions, LoadedMaps, LoadedProgram, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::ProgType;

use super::here;

/// The tracepoint that [`fire`] hits; hardly used otherwise.
pub const GROUP: &str = "syscalls";
pub const NAME: &str = "sys_enter_chown";

/// Process and thread ids as `bpf_get_current_pid_tgid` returns them.
pub fn pid_tgid() -> u64 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    let mut parts = link
        .iter()
        .map(|part| part.to_str().unwrap().parse::<u64>());
    let (pid, tid) = (parts.next().unwrap(), parts.nth(1).unwrap());
    pid.unwrap() << 32 | tid.unwrap()
}

pub fn tid() -> u32 {
    u32::try_from(pid_tgid() & 0xffff_ffff).unwrap()
}

/// Makes a system call with chosen arguments, which fails and changes nothing.
pub fn fire(uid: u32, gid: u32) {
    chown("/no/such/file", Some(uid), Some(gid)).unwrap_err();
}

/// Whether there is a kernel with the tracepoint; prints why a test is skipped.
pub fn is_there() -> bool {
    if here::kernel().is_none() {
        return false;
    }
    match Tracefs::open().and_then(|tracefs| tracefs.tracepoint_id(GROUP, NAME)) {
        Ok(_) => true,
        Err(error) => {
            skip(Need::Kernel, error);
            false
        }
    }
}

/// A program that runs `body` in this thread, with the context in r6, and returns 1 in others.
pub fn program(name: &str, prog_type: ProgType, maps: &[MapDef], body: &str) -> Arc<Program> {
    let mut program = Program::new(name, prog_type, Vec::new());
    program.license = "GPL".to_owned();
    program.maps = maps.to_vec().into();
    let text = format!(
        "r6 = r1
         call bpf_get_current_pid_tgid
         r1 = {} ll
         if r0 != r1 goto others
         {body}
         exit
         others:
         r0 = 1
         exit",
        pid_tgid()
    );
    program.insns = assemble_with(&text, &program)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .slots;
    Arc::new(program)
}

/// Counts in the first word of the first map's only element, after `more`, which finds the
/// element's address in r0. Jumps to the label `others` if there is no element.
pub fn counting(more: &str) -> String {
    format!(
        "*(u32 *)(r10 - 4) = 0
         r2 = r10
         r2 += -4
         r1 = map[idx:0]
         call bpf_map_lookup_elem
         if r0 == 0 goto others
         {more}
         r1 = 1
         lock *(u64 *)(r0 + 0) += r1"
    )
}

/// A program that returns `number`.
pub fn returning(number: i32) -> Arc<Program> {
    let body = format!("r0 = {number}");
    program(
        &format!("returns_{number}"),
        ProgType::Tracepoint,
        &[],
        &body,
    )
}

/// Loads a program that must be accepted.
pub fn loaded(program: &Program, maps: &LoadedMaps) -> LoadedProgram {
    let loaded = load(program, maps, &LoadOptions::default()).unwrap();
    let refused = || panic!("{}: {}", program.name, loaded.verdict.message);
    loaded.program.unwrap_or_else(refused)
}

/// Loads a program without maps and attaches it.
pub fn attached(program: &Program, point: &AttachPoint) -> Result<Attachment, AttachError> {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
    attach(&loaded(program, &maps), point)
}

pub fn point() -> AttachPoint {
    AttachPoint::tracepoint(GROUP, NAME)
}

/// Samples of a tracepoint, of all threads of this process.
pub fn samples_of(group: &str, name: &str) -> PerfSamples {
    let id = Tracefs::open().unwrap().tracepoint_id(group, name).unwrap();
    let own = SampleOptions::default().of_process(std::process::id());
    PerfSamples::open(EventSource::Tracepoint(id), &own).unwrap()
}

/// This thread's unread records.
pub fn records(samples: &mut PerfSamples) -> Vec<Vec<u8>> {
    let tid = tid();
    let mut records = Vec::new();
    samples.drain(|sample| {
        if sample.tid == tid {
            assert_eq!(sample.pid, std::process::id());
            records.push((sample.time, sample.raw.to_vec()));
        }
    });
    // Samples come CPU by CPU, each in order: the thread may have migrated.
    records.sort_by_key(|(time, _)| *time);
    records.into_iter().map(|(_, record)| record).collect()
}
