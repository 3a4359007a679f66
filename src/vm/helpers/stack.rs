//! Stacks of tasks (`kernel/bpf/stackmap.c`), as the test [set](crate::vm::Task) them.

use super::super::maps::Kind;
use super::super::memory::AccessKind;
use super::super::world::{BuildId, World};
use super::call::{Call, Returned, unfit};
use crate::spec::{StackFlags, limits};
use crate::util::Errno;

/// Bytes of a `struct bpf_stack_build_id`.
const RECORD: usize = limits::STACK_BUILD_ID_SIZE;
/// Its status: a build id and an offset.
const VALID: u32 = 1;
/// Its status: the address only.
const IP: u32 = 2;

/// Reads the flags: how many frames to skip, and the rest; `None` where there are others
/// than these.
fn flags(bits: u64, allowed: StackFlags) -> Option<(usize, StackFlags)> {
    let skip = bits & StackFlags::SKIP_FIELD_MASK;
    let flags = StackFlags::from_bits(bits & !StackFlags::SKIP_FIELD_MASK)?;
    let skip = usize::try_from(skip).ok()?;
    allowed.contains(flags).then_some((skip, flags))
}

/// The frames of a stack from the one after those to skip on, at most `depth`: what a
/// walk of at most [`limits::MAX_STACK_DEPTH`] frames finds of them. `None` where it
/// finds fewer than are to be skipped.
fn frames(stack: &[u64], skip: usize, depth: usize) -> Option<&[u64]> {
    let walked = depth.saturating_add(skip).min(limits::MAX_STACK_DEPTH);
    let stack = stack.get(..walked).unwrap_or(stack);
    stack.get(skip..)
}

/// An address of user space as a build id and an offset, where its file is known
/// (`stack_map_get_build_id_offset`).
fn record(world: &World, address: u64) -> [u8; RECORD] {
    let (status, id, number) = match world.build_id(address) {
        Some(BuildId { id, offset }) => (VALID, id, offset),
        None => (IP, [0; BuildId::SIZE], address),
    };
    let mut bytes = status.to_le_bytes().into_iter().chain(id);
    let mut number = number.to_le_bytes().into_iter();
    std::array::from_fn(|_| {
        let next = bytes.next().or_else(|| number.next());
        next.unwrap_or_default()
    })
}

/// `(context, map, flags)`: the id of the current task's stack in a map of stacks.
pub(super) fn get_stackid(call: &mut Call<'_>) -> Returned {
    let (_, map) = call.map(2)?;
    let Kind::StackTraces(stacks) = map.kind() else {
        return Err(unfit(2, &*map));
    };
    let allowed = StackFlags::USER_STACK | StackFlags::FAST_STACK_CMP | StackFlags::REUSE_STACKID;
    let Some((skip, flags)) = flags(call.arg(3), allowed) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let is_user = flags.contains(StackFlags::USER_STACK);
    let world = &mut call.machine.world;
    let stack = world.task().stack(is_user).to_vec();
    let frames = frames(&stack, skip, stacks.max_depth());
    let Some(frames) = frames.filter(|frames| !frames.is_empty()) else {
        return Ok(Errno::EFAULT.to_ret());
    };
    let id = if is_user && stacks.has_build_ids() {
        let records: Vec<_> = frames.iter().map(|ip| record(world, *ip)).collect();
        stacks.insert_build_ids(frames, &records, flags)
    } else {
        stacks.insert(frames, flags)
    };
    Ok(id.map_or_else(Errno::to_ret, u64::from))
}

/// `(context, buffer, size, flags)`: the current task's stack.
pub(super) fn get_stack(call: &mut Call<'_>) -> Returned {
    give(call, Whose::Current)
}

/// `(task, buffer, size, flags)`. Of another task there is only the kernel's stack.
pub(super) fn get_task_stack(call: &mut Call<'_>) -> Returned {
    let task = call.arg(1);
    if call.machine.task_address()? == task {
        return give(call, Whose::Current);
    }
    let world = &call.machine.world;
    let stack = match world.task_at(task) {
        Some(task) => task.stack(false).to_vec(),
        None if world.kernel_memory().is_a(task, "task_struct") == Some(false) => {
            return Err(call.wrong(1, "a task_struct"));
        }
        // Nobody said what it is doing.
        None => Vec::new(),
    };
    give(call, Whose::Other(stack))
}

/// Whose stack is asked for.
enum Whose {
    /// The task that runs.
    Current,
    /// Another, with this stack in the kernel.
    Other(Vec<u64>),
}

/// Copies a stack to the program (`__bpf_get_stack`): the bytes of it; what is left of
/// the buffer becomes zero, all of it where there is an error.
fn give(call: &mut Call<'_>, whose: Whose) -> Returned {
    let size = call.size(3);
    call.check(2, size, AccessKind::Write)?;
    let found = find(call, whose, size);
    let mut bytes = found.as_ref().map_or_else(|_| Vec::new(), Vec::clone);
    bytes.resize(size, 0);
    call.write(2, &bytes)?;
    Ok(found.map_or_else(Errno::to_ret, |found| found.len() as u64))
}

fn find(call: &mut Call<'_>, whose: Whose, size: usize) -> Result<Vec<u8>, Errno> {
    let allowed = StackFlags::USER_STACK | StackFlags::USER_BUILD_ID;
    let (skip, flags) = flags(call.arg(4), allowed).ok_or(Errno::EINVAL)?;
    let is_user = flags.contains(StackFlags::USER_STACK);
    let build_ids = flags.contains(StackFlags::USER_BUILD_ID);
    let frame = if build_ids { RECORD } else { 8 };
    if build_ids && !is_user || !size.is_multiple_of(frame) {
        return Err(Errno::EINVAL);
    }
    let world = &mut call.machine.world;
    let stack = match whose {
        Whose::Current => world.task().stack(is_user).to_vec(),
        Whose::Other(_) if is_user => return Err(Errno::EOPNOTSUPP),
        Whose::Other(stack) => stack,
    };
    let frames = frames(&stack, skip, size / frame).ok_or(Errno::EFAULT)?;
    Ok(match build_ids {
        true => frames.iter().flat_map(|ip| record(world, *ip)).collect(),
        false => frames.iter().flat_map(|ip| ip.to_le_bytes()).collect(),
    })
}
