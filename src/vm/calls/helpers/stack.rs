//! Helpers on stack traces (`kernel/bpf/stackmap.c`), which a test [sets](crate::vm::Task).

use crate::spec::{StackFlags, limits};
use crate::util::Errno;
use crate::vm::machine::{Call, Returned, unfit};
use crate::vm::maps::Kind;
use crate::vm::memory::AccessKind;
use crate::vm::world::{BuildId, World};

/// Size of a `struct bpf_stack_build_id`.
const RECORD: usize = limits::STACK_BUILD_ID_SIZE;
/// Status: build ID and offset.
const VALID: u32 = 1;
/// Status: address only.
const IP: u32 = 2;

/// Splits the flags into the number of frames to skip and the rest; `None` for unknown flags.
fn flags(bits: u64, allowed: StackFlags) -> Option<(usize, StackFlags)> {
    let skip = bits & StackFlags::SKIP_FIELD_MASK;
    let flags = StackFlags::from_bits(bits & !StackFlags::SKIP_FIELD_MASK)?;
    let skip = usize::try_from(skip).ok()?;
    allowed.contains(flags).then_some((skip, flags))
}

/// The frames of a stack after the skipped ones, at most `depth`, as found in the first
/// [`limits::MAX_STACK_DEPTH`] frames. `None` if there are fewer frames than to skip.
fn frames(stack: &[u64], skip: usize, depth: usize) -> Option<&[u64]> {
    let walked = depth.saturating_add(skip).min(limits::MAX_STACK_DEPTH);
    let stack = stack.get(..walked).unwrap_or(stack);
    stack.get(skip..)
}

/// A user-space address as build ID and offset if its file is known
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

/// `bpf_get_stackid(context, map, flags)`: the ID of the current task's stack in a stack map.
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

/// `bpf_get_stack(context, buffer, size, flags)`: the current task's stack.
pub(super) fn get_stack(call: &mut Call<'_>) -> Returned {
    give(call, Whose::Current)
}

/// `bpf_get_task_stack(task, buffer, size, flags)`: a task's stack; for other tasks only the
/// kernel stack.
pub(super) fn get_task_stack(call: &mut Call<'_>) -> Returned {
    let task = call.arg(1);
    if call.machine.world.task_address()? == task {
        return give(call, Whose::Current);
    }
    let world = &call.machine.world;
    let stack = match world.task_at(task) {
        Some(task) => task.stack(false).to_vec(),
        None if world.kernel_memory().is_a(task, "task_struct") == Some(false) => {
            return Err(call.wrong(1, "a task_struct"));
        }
        // The test set no stack for this task.
        None => Vec::new(),
    };
    give(call, Whose::Other(stack))
}

/// The owner of the stack.
enum Whose {
    /// The current task.
    Current,
    /// Another task with this kernel stack.
    Other(Vec<u64>),
}

/// Copies a stack to the program (`__bpf_get_stack`) and returns its size in bytes. The rest
/// of the buffer is zeroed; all of it on an error.
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
