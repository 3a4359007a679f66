//! Follows the processes of a command, as they fork and exit.
//!
//! Recorded programs look the current process up in a hash map of targets. Two small programs
//! of bpflab keep the map up to date: a child is added before it first runs, and a process is
//! removed when its last task is freed, so that its last events are recorded, too.
//!
//! Process ids are those of the initial PID namespace, as helpers return them. In a container
//! bpflab's own ids may differ. So a program returns the ids of the calling thread, and the
//! program on fork notes the id of its child.

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

/// The maps for following processes.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// All maps of the session, with the three below.
    pub maps: Arc<[MapDef]>,
    /// The followed processes, by id (four bytes).
    pub targets: MapId,
    /// The map [`forks`].
    pub forks: MapId,
    /// The map [`exited`].
    pub exited: MapId,
}

/// The map in which the program on fork notes the child of one thread: `u32 thread, u32 child`;
/// then `u64`, the number of children for which the map of targets had no room.
pub(super) fn forks() -> MapDef {
    MapDef::new("bpflab.forks", MapType::Array, 4, 16, 1)
}

/// The map of targets that have exited, by id (four bytes), and when (`u64`, nanoseconds of
/// `CLOCK_MONOTONIC`): their printed lines may be read later. The oldest are evicted.
pub(super) fn exited() -> MapDef {
    MapDef::new("bpflab.exited", MapType::LruHash, 4, 8, EXITED)
}

/// Size of that map: targets that exit between two reads of printed lines.
const EXITED: u32 = 1 << 16;

/// Keeps the map of targets up to date until it is dropped.
#[derive(Debug)]
pub(super) struct Follow {
    tree: Tree,
    _attached: [(Attachment, LoadedProgram); 2],
}

/// On fork: runs in the parent, before the child can run.
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
    r6 = map[idx:{forks}][0]+0
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

/// When a task is freed; the last task of a process has the process's id. The process is added
/// to the exited ones before it is removed from the targets.
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
    r1 = map[idx:{exited}]
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

/// Returns the calling thread's id.
const THREAD: &str = "
    call bpf_get_current_pid_tgid
    exit";

/// Returns the calling process's id.
const PROCESS: &str = "
    call bpf_get_current_pid_tgid
    r0 >>= 32
    exit";

impl Follow {
    /// Starts to follow the targets and their children.
    pub fn start(tree: Tree, maps: &LoadedMaps) -> Result<Self, LiveError> {
        let btf = running_btf().ok_or_else(|| {
            LiveError::unavailable(
                "following a command's children needs the kernel's BTF \
                 (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)",
            )
        })?;
        let attached = |tracepoint, text| -> Result<_, LiveError> {
            let program = tree.program(tracepoint, &with_offsets(text, btf)?)?;
            let loaded = accepted(&program, maps)?;
            let attachment = attach(&loaded, &AttachPoint::raw_tracepoint(tracepoint));
            let attachment = attachment.map_err(|error| LiveError::Attach {
                program: program.name,
                error,
                absent: None,
            })?;
            Ok((attachment, loaded))
        };
        tree.expect_child_of(0, maps)?;
        Ok(Self {
            _attached: [
                attached("sched_process_free", FREE)?,
                attached("sched_process_fork", FORK)?,
            ],
            tree,
        })
    }

    /// Notes the next process that the calling thread forks.
    pub fn expect(&self, maps: &LoadedMaps) -> Result<(), LiveError> {
        let thread = self.tree.program("thread", THREAD)?;
        let thread = accepted(&thread, maps)?
            .test_run(&TestRun::default())?
            .retval;
        self.tree.expect_child_of(thread, maps)
    }

    /// Makes the noted process a target; its children follow.
    pub fn adopt(&self, maps: &LoadedMaps) -> Result<u32, LiveError> {
        let value = self.noted(maps)?;
        let child = u32::from_ne_bytes([value[4], value[5], value[6], value[7]]);
        self.tree.expect_child_of(0, maps)?;
        self.add(maps, child)?;
        Ok(child)
    }

    /// Makes a running process a target; its further children follow.
    pub fn add(&self, maps: &LoadedMaps, process: u32) -> Result<(), LiveError> {
        let targets = self.tree.map(self.tree.targets, maps)?;
        let mut value = vec![0; targets.value_size()];
        if let Some(first) = value.first_mut() {
            *first = 1;
        }
        let added = targets.update(&process.to_ne_bytes(), &value, UpdateFlags::empty());
        added.map_err(|errno| LiveError::Follow { process, errno })
    }

    /// Makes a running process and its descendants so far (from `/proc`) targets.
    ///
    /// # Errors
    /// In a PID namespace, where ids differ from those of the kernel.
    pub fn add_tree(&self, maps: &LoadedMaps, root: u32) -> Result<(), LiveError> {
        let own = self.tree.program("whoami", PROCESS)?;
        let own = accepted(&own, maps)?.test_run(&TestRun::default())?.retval;
        if own != std::process::id() {
            return Err(LiveError::unavailable(
                "a running process can't be followed from within a PID namespace (container); \
                 start the command here, or run bpflab outside",
            ));
        }
        // Children forked meanwhile are added if their parent is a target already. So this is
        // complete when a pass finds no new process.
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

    /// How many children were not followed, as the map of targets was full.
    pub fn missed(&self, maps: &LoadedMaps) -> Result<u64, LiveError> {
        let value = self.noted(maps)?;
        let [.., a, b, c, d, e, f, g, h] = value;
        Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }

    fn noted(&self, maps: &LoadedMaps) -> Result<[u8; 16], LiveError> {
        let value = maps.lookup(self.tree.forks, &0u32.to_ne_bytes())?;
        let value = value.and_then(|value| <[u8; 16]>::try_from(value).ok());
        value.ok_or(LiveError::system("reading the noted child process")(
            Errno::ENOENT,
        ))
    }
}

impl Tree {
    /// Notes the next child of this thread; of none if it is 0. Resets the count of children
    /// without room.
    fn expect_child_of(&self, thread: u32, maps: &LoadedMaps) -> Result<(), LiveError> {
        let mut value = [0; 16];
        value[..4].copy_from_slice(&thread.to_ne_bytes());
        let forks = self.map(self.forks, maps)?;
        let noted = forks.update(&0u32.to_ne_bytes(), &value, UpdateFlags::empty());
        noted.map_err(LiveError::system("setting the thread whose child is noted"))
    }

    fn map<'m>(&self, map: MapId, maps: &'m LoadedMaps) -> Result<KernelMap<'m>, LiveError> {
        maps.map(map)
            .ok_or(LiveError::system("opening bpflab's map of processes")(
                Errno::EBADF,
            ))
    }

    /// One of the programs on a raw tracepoint.
    fn program(&self, tracepoint: &str, text: &str) -> Result<Program, LiveError> {
        let mut program = Program::new(tracepoint, ProgType::RawTracepoint, Vec::new());
        let text = text
            .replace("{forks}", &self.forks.0.to_string())
            .replace("{exited}", &self.exited.0.to_string())
            .replace("{targets}", &self.targets.0.to_string());
        program.insns = assemble_with(&text, &program)?.slots;
        // bpf_probe_read_kernel is for GPL programs only.
        program.license = "GPL".to_owned();
        program.maps = self.maps.clone();
        Ok(program)
    }
}

/// Puts the offsets of `task_struct` members into the text.
fn with_offsets(text: &str, btf: &Btf) -> Result<String, LiveError> {
    let task = btf.find("task_struct", Kind::Struct);
    let mut text = text.to_owned();
    for name in ["tgid", "pid"] {
        let field = task.and_then(|task| btf.member(task.id(), name).ok().flatten());
        let field = field.ok_or_else(|| {
            LiveError::unavailable(format!("the kernel's BTF has no task_struct::{name}"))
        })?;
        let offset = field.bit_offset / 8;
        text = text.replace(&format!("{{{name}}}"), &offset.to_string());
    }
    Ok(text)
}

/// Loads a program; an error if the kernel rejects it.
fn accepted(program: &Program, maps: &LoadedMaps) -> Result<LoadedProgram, LiveError> {
    let loaded = load(program, maps, &LoadOptions::default())?;
    let message = loaded.verdict.message;
    loaded.program.ok_or_else(|| LiveError::Refused {
        program: program.name.clone(),
        message,
    })
}
