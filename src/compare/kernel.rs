//! The running kernel as an engine, through `BPF_PROG_TEST_RUN`.

use std::sync::Arc;

use super::answer::{Answer, MapContents, is_ring};
use super::subject::{Engine, Subject, Unable};
use crate::harness;
use crate::kernel::{
    KernelError, LoadOptions, LoadedMaps, LoadedProgram, NoVerdict, Replacement, TestRun, load,
};
use crate::program::{AttachProgram, Program};
use crate::spec::{ContextKind, ProgFlags, ProgType, TestRunFlags};
use crate::util::{Errno, MapId};
use crate::vm::events::{Checksum, Event, EventKind};

/// The running kernel. Each run loads the programs and maps anew.
///
/// Programs are loaded without [`ProgFlags::TEST_RND_HI32`]: with that flag the kernel puts
/// random bits into upper halves of registers, and what a program returns may differ from
/// one load to the next.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

impl From<NoVerdict> for Unable {
    fn from(error: NoVerdict) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<KernelError> for Unable {
    fn from(error: KernelError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Engine for Kernel {
    fn name(&self) -> String {
        "kernel".to_owned()
    }

    fn run(&mut self, subject: &Subject) -> Result<Answer, Unable> {
        let first = &subject.program;
        let run = input(first.prog_type, &subject.event)?;
        let maps = LoadedMaps::create(&first.maps, first.btf.as_ref())?;
        let mut loaded: Vec<LoadedProgram> = Vec::new();
        for program in [first].into_iter().chain(&subject.others) {
            let program = loaded_program(program, &maps)?;
            maps.set_program(&first.maps, &program)?;
            loaded.push(program);
        }
        let Some(program) = loaded.first() else {
            return Err(Unable::Unavailable("no program to run".to_owned()));
        };
        // They are detached when the links are dropped.
        let extensions = subject.extensions.iter();
        let _links = extensions
            .map(|extension| attached(extension, program, &maps))
            .collect::<Result<Vec<_>, _>>()?;
        let result = program.test_run(&run)?;
        Ok(Answer {
            retval: Some(result.retval),
            packet: packet(first.prog_type, &run, result.data),
            // The kernel does not return a raw tracepoint's arguments.
            context: (first.prog_type == ProgType::Syscall).then_some(result.context),
            maps: contents(&maps, first)?,
            records: records(&maps, first)?,
            details: None,
        })
    }
}

/// Loads a program with these maps, without [`ProgFlags::TEST_RND_HI32`].
fn loaded_program(program: &Program, maps: &LoadedMaps) -> Result<LoadedProgram, Unable> {
    let mut plain = program.clone();
    plain.flags -= ProgFlags::TEST_RND_HI32;
    let loaded = load(&plain, maps, &LoadOptions::default())?;
    let message = loaded.verdict.message;
    loaded.program.ok_or(Unable::Refused(message))
}

/// Loads an extension of a loaded program, and attaches it until the link is dropped.
fn attached(
    extension: &Program,
    target: &LoadedProgram,
    maps: &LoadedMaps,
) -> Result<Replacement, Unable> {
    let mut extension = extension.clone();
    let Some(mut known) = extension.attach_prog.known().cloned() else {
        let why = "the program that an extension is for is not known";
        return Err(Unable::Unavailable(why.to_owned()));
    };
    known.kernel_id = Some(target.info()?.id);
    extension.attach_prog = AttachProgram::Known(Arc::new(known));
    Ok(loaded_program(&extension, maps)?.replace()?)
}

/// The arguments of the system call for an event.
fn input(prog_type: ProgType, event: &Event) -> Result<TestRun, Unable> {
    match event.kind() {
        EventKind::Packet => Ok(TestRun {
            repeat: 1,
            context: given(prog_type, event)?,
            flags: match event.kern().checksum {
                Checksum::Complete(_) => TestRunFlags::SKB_CHECKSUM_COMPLETE,
                _ => TestRunFlags::empty(),
            },
            ..TestRun::packet(&event.record())
        }),
        EventKind::Bytes | EventKind::RawTracepoint | EventKind::Context(ContextKind::SkLookup) => {
            Ok(TestRun::context(&event.record()))
        }
        _ => Err(Unable::Unavailable(format!(
            "BPF_PROG_TEST_RUN does not support {event}"
        ))),
    }
}

/// The fields of the context that a test set. For XDP programs the kernel needs the end of the
/// packet in `data_end`, too.
fn given(prog_type: ProgType, event: &Event) -> Result<Vec<u8>, Unable> {
    let mut context = event
        .given_context(prog_type)
        .map_err(harness::Error::from)?;
    if prog_type == ProgType::Xdp && !context.is_empty() {
        let len = u32::try_from(event.record().len()).unwrap_or(u32::MAX);
        let end = context.iter_mut().skip(4);
        end.zip(len.to_ne_bytes()).for_each(|(to, from)| *to = from);
    }
    Ok(context)
}

/// The packet afterwards; none for flow dissectors, which never change it.
fn packet(prog_type: ProgType, run: &TestRun, shown: Vec<u8>) -> Option<Vec<u8>> {
    match prog_type {
        ProgType::FlowDissector => None,
        _ => (!run.data.is_empty()).then(|| seen(prog_type, shown)),
    }
}

/// The packet as a program sees it. For program types above the link layer the kernel returns
/// it with an Ethernet header of zeros (`bpf_prog_test_run_skb`, `net/bpf/test_run.c`).
fn seen(prog_type: ProgType, mut packet: Vec<u8>) -> Vec<u8> {
    const HEADER: usize = 14;
    let on_link = [ProgType::Xdp, ProgType::SchedCls, ProgType::SchedAct];
    if !on_link.contains(&prog_type) {
        packet.drain(..HEADER.min(packet.len()));
    }
    packet
}

/// The records of the ring buffers.
fn records(maps: &LoadedMaps, program: &Program) -> Result<Vec<Vec<Vec<u8>>>, Unable> {
    let defs = program.maps.iter().enumerate();
    let rings = defs.filter(|(_, def)| is_ring(def));
    let rings = rings.filter_map(|(index, _)| maps.map(MapId::from_index(index)));
    let unread = |errno: Errno| Unable::Unavailable(format!("ring buffer: {errno}"));
    rings
        .map(|ring| Ok(ring.ring().map_err(unread)?.take()))
        .collect()
}

/// The contents of the maps that can be read by key.
fn contents(maps: &LoadedMaps, program: &Program) -> Result<Vec<MapContents>, Unable> {
    let mut contents = Vec::new();
    for (index, def) in program.maps.iter().enumerate() {
        if !MapContents::are_kept_by(def) {
            continue;
        }
        let map = MapId::from_index(index);
        let mut entries = Vec::new();
        for key in maps.keys(map)? {
            if let Some(value) = maps.lookup(map, &key)? {
                entries.push((key, value));
            }
        }
        contents.push(MapContents::new(def, program.btf.as_ref(), entries));
    }
    Ok(contents)
}
