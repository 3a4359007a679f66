//! Whom programs are for: the processes of a command, as they come and go.
//!
//! Recorded programs ask a hash map whether the current process is one of theirs. Two
//! small programs of our own keep it in step with the tree: a child is in it before it
//! runs for the first time, and a process leaves it when nothing of it is left, so that
//! its very last events are its own, too.
//!
//! Numbers of processes are those of the kernel's first namespace, which helpers speak
//! of. Ours may be others, in a container. So it is a program that tells who we are, and
//! one that sees our child being born tells who that is.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::error::LiveError;
use super::tree::with_children;
use crate::btf::{Btf, Kind};
use crate::isa::assemble_with;
use crate::kernel::attach::{AttachPoint, Attachment, attach};
use crate::kernel::{
    KernelMap, LoadOptions, LoadedMaps, LoadedProgram, TestRun, load, running_btf,
};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType, UpdateFlags};
use crate::util::{Errno, MapId};

/// What following a tree needs to know.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// All maps, in which these two are.
    pub maps: Arc<[MapDef]>,
    /// The processes, by number (four bytes).
    pub targets: MapId,
    /// That of [`births`].
    pub births: MapId,
    /// That of [`gone`].
    pub gone: MapId,
}

/// The map in which a program of ours says whom the thread that it was told about has
/// given birth to: `u32 thread, u32 child`; and `u64` of children that found no room.
pub(super) fn births() -> MapDef {
    MapDef::new("bpflab.births", MapType::Array, 4, 16, 1)
}

/// The processes that have left the tree, by number (four bytes), and when (`u64`,
/// nanoseconds of `CLOCK_MONOTONIC`): what they printed may be read later than that. The
/// longest gone make room for others.
pub(super) fn gone() -> MapDef {
    MapDef::new("bpflab.gone", MapType::LruHash, 4, 8, GONE)
}

/// Processes that are remembered: those that end between two looks at what they printed.
const GONE: u32 = 1 << 16;

/// Keeps a tree in step as long as it lives.
#[derive(Debug)]
pub(super) struct Follow {
    tree: Tree,
    _attached: [(Attachment, LoadedProgram); 2],
}

/// A process is born. This runs in the parent, before the child can.
const FORK: &str = "
    r6 = r1
    call bpf_get_current_pid_tgid
    *(u32 *)(r10 - 4) = r0              // the thread
    r0 >>= 32
    *(u32 *)(r10 - 8) = r0              // its process
    r3 = *(u64 *)(r6 + 8)               // the child
    r3 += {tgid}
    r1 = r10
    r1 += -12
    r2 = 4
    call bpf_probe_read_kernel
    if r0 != 0 goto out
    r7 = *(u32 *)(r10 - 12)
    r1 = *(u32 *)(r10 - 8)
    if r7 == r1 goto out                // only a thread of the same process
    r6 = map[idx:{births}][0]+0
    r1 = *(u32 *)(r6 + 0)
    r2 = *(u32 *)(r10 - 4)
    if r1 != r2 goto tree
    *(u32 *)(r6 + 4) = r7
tree:
    r1 = map[idx:{targets}]
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    *(u64 *)(r10 - 24) = r1
    r1 = map[idx:{targets}]
    r2 = r10
    r2 += -12
    r3 = r10
    r3 += -24
    r4 = 0
    call bpf_map_update_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r6 + 8) += r1
out:
    r0 = 0
    exit";

/// A task is gone for good; the last one of a process bears its number. It is among the gone
/// before it is no target any more.
const FREE: &str = "
    r6 = *(u64 *)(r1 + 0)
    r3 = r6
    r3 += {tgid}
    r1 = r10
    r1 += -4
    r2 = 4
    call bpf_probe_read_kernel
    if r0 != 0 goto out
    r3 = r6
    r3 += {pid}
    r1 = r10
    r1 += -8
    r2 = 4
    call bpf_probe_read_kernel
    if r0 != 0 goto out
    r1 = *(u32 *)(r10 - 4)
    r2 = *(u32 *)(r10 - 8)
    if r1 != r2 goto out
    r1 = map[idx:{targets}]
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    call bpf_ktime_get_ns
    *(u64 *)(r10 - 16) = r0
    r1 = map[idx:{gone}]
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    r1 = map[idx:{targets}]
    r2 = r10
    r2 += -4
    call bpf_map_delete_elem
out:
    r0 = 0
    exit";

/// The calling thread.
const THREAD: &str = "
    call bpf_get_current_pid_tgid
    exit";

/// The calling process.
const PROCESS: &str = "
    call bpf_get_current_pid_tgid
    r0 >>= 32
    exit";

impl Follow {
    /// Follows the tree of whoever is, or will be, among the targets.
    pub fn start(tree: Tree, maps: &LoadedMaps) -> Result<Self, LiveError> {
        let btf = running_btf().ok_or_else(|| {
            LiveError::unavailable(
                "following a command's children takes the kernel's types \
                 (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)",
            )
        })?;
        let attached = |tracepoint, text| -> Result<_, LiveError> {
            let program = tree.program(tracepoint, &places(text, btf)?)?;
            let loaded = accepted(&program, maps)?;
            let attachment = attach(&loaded, &AttachPoint::raw_tracepoint(tracepoint));
            let attachment = attachment.map_err(|error| LiveError::Attach {
                program: program.name,
                error,
                absent: None,
            })?;
            Ok((attachment, loaded))
        };
        tree.expect_births_to(0, maps)?;
        Ok(Self {
            _attached: [
                attached("sched_process_free", FREE)?,
                attached("sched_process_fork", FORK)?,
            ],
            tree,
        })
    }

    /// From now on the next process that the calling thread gives birth to is noted.
    pub fn expect(&self, maps: &LoadedMaps) -> Result<(), LiveError> {
        let thread = self.tree.program("thread", THREAD)?;
        let thread = accepted(&thread, maps)?
            .test_run(&TestRun::default())?
            .retval;
        self.tree.expect_births_to(thread, maps)
    }

    /// The process that was noted is a target, it and its children.
    pub fn adopt(&self, maps: &LoadedMaps) -> Result<u32, LiveError> {
        let value = self.noted(maps)?;
        let child = u32::from_ne_bytes([value[4], value[5], value[6], value[7]]);
        self.tree.expect_births_to(0, maps)?;
        self.add(maps, child)?;
        Ok(child)
    }

    /// A process that runs already is a target, it and its further children.
    pub fn add(&self, maps: &LoadedMaps, process: u32) -> Result<(), LiveError> {
        let targets = self.tree.map(self.tree.targets, maps)?;
        let mut value = vec![0; targets.value_size()];
        if let Some(first) = value.first_mut() {
            *first = 1;
        }
        let added = targets.update(&process.to_ne_bytes(), &value, UpdateFlags::empty());
        added.map_err(|errno| LiveError::Follow { process, errno })
    }

    /// The same for a process and all that it has given birth to so far, as `/proc` tells.
    ///
    /// # Errors
    /// In a container numbers are others, and nobody says which.
    pub fn add_tree(&self, maps: &LoadedMaps, root: u32) -> Result<(), LiveError> {
        let own = self.tree.program("whoami", PROCESS)?;
        let own = accepted(&own, maps)?.test_run(&TestRun::default())?.retval;
        if own != std::process::id() {
            return Err(LiveError::unavailable(
                "in a container with process numbers of its own a running process can't be \
                 named; start the command here, or run bpflab outside",
            ));
        }
        // Children that are born meanwhile add themselves, if their parent is known: so
        // this is over when nobody new is found.
        let mut known = FxHashSet::default();
        loop {
            let before = known.len();
            for process in with_children(root) {
                if known.insert(process) {
                    self.add(maps, process)?;
                }
            }
            if known.len() == before {
                return Ok(());
            }
        }
    }

    /// How many children found no room, and were not followed.
    pub fn missed(&self, maps: &LoadedMaps) -> Result<u64, LiveError> {
        let value = self.noted(maps)?;
        let [.., a, b, c, d, e, f, g, h] = value;
        Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }

    fn noted(&self, maps: &LoadedMaps) -> Result<[u8; 16], LiveError> {
        let value = maps.lookup(self.tree.births, &0u32.to_ne_bytes())?;
        let value = value.and_then(|value| <[u8; 16]>::try_from(value).ok());
        value.ok_or(LiveError::system("reading who was born")(Errno::ENOENT))
    }
}

impl Tree {
    /// The child that this thread gives birth to is noted; none's if it is 0. Whoever found
    /// no room before is forgotten.
    fn expect_births_to(&self, thread: u32, maps: &LoadedMaps) -> Result<(), LiveError> {
        let mut value = [0; 16];
        value[..4].copy_from_slice(&thread.to_ne_bytes());
        let births = self.map(self.births, maps)?;
        let noted = births.update(&0u32.to_ne_bytes(), &value, UpdateFlags::empty());
        noted.map_err(LiveError::system("noting who is to be born"))
    }

    fn map<'m>(&self, map: MapId, maps: &'m LoadedMaps) -> Result<KernelMap<'m>, LiveError> {
        maps.map(map)
            .ok_or(LiveError::system("a map of ours")(Errno::EBADF))
    }

    /// A program of ours on a raw tracepoint.
    fn program(&self, tracepoint: &str, text: &str) -> Result<Program, LiveError> {
        let mut program = Program::new(tracepoint, ProgType::RawTracepoint, Vec::new());
        let text = text
            .replace("{births}", &self.births.0.to_string())
            .replace("{gone}", &self.gone.0.to_string())
            .replace("{targets}", &self.targets.0.to_string());
        program.insns = assemble_with(&text, &program)?.slots;
        // Of the helpers, reading the kernel's memory is for free software only.
        program.license = "GPL".to_owned();
        program.maps = self.maps.clone();
        Ok(program)
    }
}

/// Puts the places of a task's numbers into the text.
fn places(text: &str, btf: &Btf) -> Result<String, LiveError> {
    let task = btf.find("task_struct", Kind::Struct);
    let mut text = text.to_owned();
    for name in ["tgid", "pid"] {
        let field = task.and_then(|task| btf.member(task.id(), name).ok().flatten());
        let field = field.ok_or_else(|| {
            LiveError::unavailable(format!("the kernel's types have no task_struct::{name}"))
        })?;
        let offset = field.bit_offset / 8;
        text = text.replace(&format!("{{{name}}}"), &offset.to_string());
    }
    Ok(text)
}

/// Loads a program that no verifier refuses.
fn accepted(program: &Program, maps: &LoadedMaps) -> Result<LoadedProgram, LiveError> {
    let loaded = load(program, maps, &LoadOptions::default())?;
    let message = loaded.verdict.message;
    loaded.program.ok_or_else(|| LiveError::Refused {
        program: program.name.clone(),
        message,
    })
}
