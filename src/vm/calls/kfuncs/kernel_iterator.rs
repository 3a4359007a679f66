//! Iterators over objects in kernel memory: tasks, cgroups, memory areas, caches, buffers
//! (`kernel/bpf/task_iter.c`, `kernel/bpf/cgroup_iter.c` and others).
//!
//! The objects are collected when the iterator is created. A mocked kernel does not change in
//! between unless a program changes it.

use super::cgroup;
use super::iterator::{begin, end, next_object};
use super::kernel::{all, field, object};
use super::task::{self, threads};
use crate::spec::call::IteratorKind;
use crate::util::Errno;
use crate::vm::machine::objects::Iterator;
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;
type Objects = std::result::Result<Vec<u64>, Errno>;

/// Creates an iterator of a kind, of `size` bytes, over these objects.
pub(super) fn over(
    call: &mut Call<'_>,
    kind: IteratorKind,
    size: usize,
    objects: Objects,
) -> Result {
    let result = objects.as_ref().err().map_or(0, |errno| errno.to_ret());
    let left = objects.unwrap_or_default().into_iter();
    begin(call, size, Iterator::Objects { kind, left })?;
    Ok(result)
}

/// The kfuncs that advance and destroy an iterator of a kind.
macro_rules! kinds {
    ($($kind:ident $next:ident $destroy:ident;)*) => {$(
        pub(super) fn $next(call: &mut Call<'_>) -> Result {
            next_object(call, IteratorKind::$kind)
        }

        pub(super) fn $destroy(call: &mut Call<'_>) -> Result {
            end(call, IteratorKind::$kind)
        }
    )*};
}

kinds! {
    Task task_next task_destroy;
    TaskVma task_vma_next task_vma_destroy;
    Css css_next css_destroy;
    CssTask css_task_next css_task_destroy;
    KmemCache kmem_cache_next kmem_cache_destroy;
    Dmabuf dmabuf_next dmabuf_destroy;
}

/// `BPF_TASK_ITER_ALL_PROCS`, `…_ALL_THREADS`, `…_PROC_THREADS`.
const ALL_PROCS: u32 = 0;
const ALL_THREADS: u32 = 1;
const PROC_THREADS: u32 = 2;

/// `bpf_iter_task_new(iterator, task, flags)`.
pub(super) fn task_new(call: &mut Call<'_>) -> Result {
    let (of, flags) = (call.arg(2), call.arg_u32(3));
    let objects = match flags {
        ALL_PROCS | ALL_THREADS => Ok(threads(call)?),
        PROC_THREADS if of != 0 => {
            let of = task::task(call, 2)?;
            let mut threads = threads(call)?;
            let process = threads
                .iter()
                .find(|(.., at)| *at == of)
                .map(|(_, tgid, _)| *tgid);
            threads.retain(|(_, tgid, _)| Some(*tgid) == process);
            Ok(threads)
        }
        _ => Err(Errno::EINVAL),
    };
    let wanted = |(pid, tgid, _): &(u64, u64, u64)| flags != ALL_PROCS || pid == tgid;
    let objects = objects.map(|threads| {
        let threads = threads.into_iter().filter(wanted);
        threads.map(|(.., at)| at).collect()
    });
    over(call, IteratorKind::Task, 24, objects)
}

/// `bpf_iter_task_vma_new(iterator, task, address)`: the task's memory areas that end after
/// an address.
pub(super) fn task_vma_new(call: &mut Call<'_>) -> Result {
    let (of, from) = (task::task(call, 2)?, call.arg(3));
    let mm = field(call, of, "mm");
    let objects = if mm == 0 {
        Err(Errno::ENOENT)
    } else {
        let mut found: Vec<_> = all(call, "vm_area_struct")
            .iter()
            .filter(|vma| vma.get("vm_mm") == Ok(mm))
            .filter(|vma| vma.get("vm_end").is_ok_and(|end| end > from))
            .map(|vma| (vma.get("vm_start").unwrap_or(0), vma.address()))
            .collect();
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, at)| at).collect())
    };
    over(call, IteratorKind::TaskVma, 8, objects)
}

/// `BPF_CGROUP_ITER_DESCENDANTS_PRE`, `…_DESCENDANTS_POST`, `…_ANCESTORS_UP`.
const DESCENDANTS_PRE: u32 = 2;
const DESCENDANTS_POST: u32 = 3;
const ANCESTORS_UP: u32 = 4;

/// `bpf_iter_css_new(iterator, start, flags)`. `struct cgroup` starts with its `self`.
pub(super) fn css_new(call: &mut Call<'_>) -> Result {
    let (start, flags) = (call.arg(2), call.arg_u32(3));
    if object(call, start).is_none() {
        return Err(call.wrong(2, "a struct cgroup_subsys_state"));
    }
    let objects = match flags {
        DESCENDANTS_PRE | DESCENDANTS_POST => {
            let below: Vec<_> = all(call, "cgroup")
                .iter()
                .map(|cgroup| (cgroup.get("self.parent").unwrap_or(0), cgroup.address()))
                .collect();
            let mut found = Vec::new();
            descend(start, &below, flags == DESCENDANTS_PRE, &mut found);
            Ok(found)
        }
        ANCESTORS_UP => Ok(cgroup::ancestors(call, start)),
        _ => Err(Errno::EINVAL),
    };
    over(call, IteratorKind::Css, 24, objects)
}

/// Adds a node and its descendants to `found`, given pairs of parent and child.
fn descend(node: u64, below: &[(u64, u64)], first: bool, found: &mut Vec<u64>) {
    // The kernel has no cycles; a node of a cycle is visited once.
    let mut left = vec![(node, false)];
    let mut seen = Vec::new();
    while let Some((node, done)) = left.pop() {
        if done {
            found.push(node);
            continue;
        }
        if seen.contains(&node) {
            continue;
        }
        seen.push(node);
        if first {
            found.push(node);
        } else {
            left.push((node, true));
        }
        let children = below.iter().rev().filter(|(parent, _)| *parent == node);
        left.extend(children.map(|(_, child)| (*child, false)));
    }
}

/// `CSS_TASK_ITER_PROCS`, and the same with `CSS_TASK_ITER_THREADED`.
const PROCS: u32 = 1;
const THREADED_PROCS: u32 = 3;

/// `bpf_iter_css_task_new(iterator, css, flags)`: the tasks of a cgroup.
pub(super) fn css_task_new(call: &mut Call<'_>) -> Result {
    let (css, flags) = (call.arg(2), call.arg_u32(3));
    let objects = match flags {
        0 | PROCS | THREADED_PROCS => {
            let mut found = Vec::new();
            for (pid, tgid, at) in threads(call)? {
                if cgroup::of_task(call, at)? == css && (flags & PROCS == 0 || pid == tgid) {
                    found.push(at);
                }
            }
            Ok(found)
        }
        _ => Err(Errno::EINVAL),
    };
    over(call, IteratorKind::CssTask, 8, objects)
}

fn every(call: &mut Call<'_>, kind: IteratorKind, name: &str) -> Result {
    let objects = all(call, name)
        .iter()
        .map(|object| object.address())
        .collect();
    over(call, kind, 8, Ok(objects))
}

pub(super) fn kmem_cache_new(call: &mut Call<'_>) -> Result {
    every(call, IteratorKind::KmemCache, "kmem_cache")
}

pub(super) fn dmabuf_new(call: &mut Call<'_>) -> Result {
    every(call, IteratorKind::Dmabuf, "dma_buf")
}

/// `bpf_get_kmem_cache(address)`: the cache of the object at an address, found by the name of
/// the object's struct.
pub(super) fn kmem_cache_of(call: &mut Call<'_>) -> Result {
    let object = object(call, call.arg(1));
    let name = object.map(|object| object.name());
    let name = name
        .as_deref()
        .and_then(|name| name.strip_prefix("struct "));
    let caches = all(call, "kmem_cache");
    let found = caches
        .iter()
        .find(|cache| cache.text("name").ok().as_deref() == name);
    Ok(found.map_or(0, |cache| cache.address()))
}
