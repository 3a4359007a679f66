//! The maximum stack depth over all call chains (`check_max_stack_depth`,
//! `kernel/bpf/verifier.c`).
//!
//! After exploration, when the stack size of each function is known, every call chain in
//! the code is followed, including callbacks. On a 64-bit kernel with a JIT, frames are
//! rounded up to sixteen bytes.

use super::model::Structure;
use super::raw::{self, Callee};
use super::usage::Usage;
use crate::btf::Btf;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::kfuncs::THROW;
use crate::spec::limits::{MAX_CALL_FRAMES, MAX_TAIL_CALL_STACK, STACK_SIZE};
use crate::spec::{AttachType, ProgType};
use crate::util::{Errno, Pc, TypeId};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// The unit of frame sizes.
const FRAME_UNIT: u32 = 16;
/// The frame size from which a function gets a private stack, if possible
/// (`BPF_PRIV_STACK_MIN_SIZE`).
const MIN_PRIVATE_STACK: u32 = 64;

/// Checks the call chains from the main program and from each asynchronous callback.
/// `usage` is what exploration found out about each function; `is_extension`, whether the
/// program is judged by the rules of one that it extends.
pub(crate) fn check_max_stack_depth(
    program: &Program,
    structure: &Structure,
    usage: &Usage,
    is_extension: bool,
) -> VerifyResult {
    let count = structure.subprograms.len();
    let mut stacks = Stacks {
        kernel_btf: program.kernel_btf.as_ref(),
        slots: &program.insns,
        structure,
        usage,
        private: vec![Private::Unknown; count],
    };
    let tail_calls = structure.subprograms.iter().any(|sub| sub.has_tail_call);
    let may_be_private = !tail_calls && !is_extension && has_private_stack(program);
    // An asynchronous callback can interrupt the main program. So its functions are known
    // to use the common stack before the main program is checked.
    for root in (0..count).rev() {
        if root == 0 || usage.is_async_cb(root) {
            stacks.follow(root, root == 0 && may_be_private)?;
        }
    }
    Ok(())
}

/// Whether functions with a large frame can have a private stack (`bpf_enable_priv_stack`):
/// programs that are called without a trampoline, or that the kernel keeps from recursion
/// (`bpf_prog_check_recur`).
fn has_private_stack(program: &Program) -> bool {
    match program.prog_type {
        ProgType::Kprobe | ProgType::Tracepoint | ProgType::PerfEvent | ProgType::RawTracepoint => {
            true
        }
        ProgType::Tracing => program.expected_attach_type != Some(AttachType::TraceIter),
        _ => false,
    }
}

/// Whether a function has a private stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Private {
    Unknown,
    No,
    Yes,
}

/// The return address of a call.
#[derive(Debug, Clone, Copy, Default)]
struct Return {
    subprogram: usize,
    pc: Pc,
}

struct Stacks<'a> {
    kernel_btf: Option<&'a Btf>,
    slots: &'a [RawInsn],
    structure: &'a Structure,
    usage: &'a Usage,
    private: Vec<Private>,
}

impl Stacks<'_> {
    /// Follows every call chain from a function.
    fn follow(&mut self, root: usize, may_be_private: bool) -> VerifyResult {
        let mut outer = [Return::default(); MAX_CALL_FRAMES];
        let (mut frame, mut depth, mut tail_call) = (0, 0, false);
        let mut here = Return {
            subprogram: root,
            pc: self.start(root),
        };
        depth = self.enter(root, frame, depth, may_be_private)?;
        loop {
            while let Some((callee, next)) =
                self.next_call(here, outer.get(..frame).unwrap_or_default())?
            {
                let Some(slot) = outer.get_mut(frame) else {
                    return Err(too_deep(frame));
                };
                *slot = Return { pc: next, ..here };
                tail_call |= self.has_tail_call(callee);
                frame += 1;
                if frame >= MAX_CALL_FRAMES {
                    return Err(too_deep(frame));
                }
                depth = self.enter(callee, frame, depth, may_be_private)?;
                here = Return {
                    subprogram: callee,
                    pc: self.start(callee),
                };
            }
            let frames = outer.get(..frame).unwrap_or_default();
            if tail_call && frames.iter().any(|it| self.ends_exceptions(it.subprogram)) {
                reject!(EINVAL, "cannot tail call within exception cb");
            }
            let Some(last) = frames.last() else {
                return Ok(());
            };
            if self.is_private(here.subprogram) != Private::Yes {
                depth -= self.frame_size(here.subprogram);
            }
            here = *last;
            frame -= 1;
        }
    }

    /// Adds a frame; returns the depth including it.
    fn enter(
        &mut self,
        subprogram: usize,
        frame: usize,
        depth: u32,
        may_be_private: bool,
    ) -> VerifyResult<u32> {
        let size = self.frame_size(subprogram);
        if subprogram != 0
            && self.has_tail_call(subprogram)
            && depth as usize >= MAX_TAIL_CALL_STACK
        {
            reject!(
                EACCES,
                "tail_calls are not allowed when call stack of previous frames is {depth} bytes. \
                 Too large"
            );
        }
        if let Some(private) = self.private.get_mut(subprogram) {
            if !may_be_private {
                *private = Private::No;
            } else if *private == Private::Unknown && size >= MIN_PRIVATE_STACK {
                *private = Private::Yes;
            }
        }
        if self.is_private(subprogram) == Private::Yes {
            if size as usize > STACK_SIZE {
                reject!(
                    EACCES,
                    "stack size of subprog {subprogram} is {size}. Too large"
                );
            }
            return Ok(depth);
        }
        let depth = depth + size;
        if depth as usize > STACK_SIZE {
            let calls = frame + 1;
            reject!(
                EACCES,
                "combined stack size of {calls} calls is {depth}. Too large"
            );
        }
        Ok(depth)
    }

    /// The next call from here on: the callee, and the return address. `outer` are the calls
    /// that led here. An exception can't end a callback: its caller is the kernel.
    fn next_call(&self, here: Return, outer: &[Return]) -> VerifyResult<Option<(usize, Pc)>> {
        let end = self
            .structure
            .subprograms
            .get(here.subprogram)
            .map_or(here.pc, |sub| sub.end);
        let body = self.slots.get(here.pc.index()..end.index());
        for (pc, &slot) in (here.pc.0..).map(Pc).zip(body.unwrap_or_default()) {
            let (target, direct) = match raw::callee(slot, pc) {
                Some(Callee::Subprogram(target)) => (Some(target), true),
                Some(Callee::Kfunc { id, fd_index: 0 }) if self.throws(id) => {
                    let mut callers = outer.iter().map(|call| call.subprogram);
                    let is_cb = |sub| self.usage.is_cb(sub);
                    if is_cb(here.subprogram) || callers.any(is_cb) {
                        let text = format!(
                            "bpf_throw kfunc (insn {pc}) cannot be called from callback subprog {}",
                            here.subprogram
                        );
                        return Err(Reject::new(Errno::EINVAL, text).at(pc));
                    }
                    continue;
                }
                _ => (raw::callback(slot, pc), false),
            };
            let Some(start) = target.and_then(|target| u32::try_from(target).ok()) else {
                continue;
            };
            let Some(callee) = self.structure.subprogram_at(Pc(start)) else {
                continue;
            };
            if self.usage.is_async_cb(callee) {
                // An asynchronous callback, unless it is called directly as well.
                if !direct {
                    continue;
                }
                if self.ends_exceptions(callee) {
                    let text = format!("insn {pc} cannot call exception cb directly");
                    return Err(Reject::new(Errno::EINVAL, text).at(pc));
                }
            }
            return Ok(Some((callee, Pc(pc.0 + 1))));
        }
        Ok(None)
    }

    /// Whether a kfunc throws an exception.
    fn throws(&self, id: TypeId) -> bool {
        let callee = self.kernel_btf.and_then(|btf| btf.get(id));
        callee.is_some_and(|callee| callee.name() == THROW)
    }

    fn start(&self, subprogram: usize) -> Pc {
        let sub = self.structure.subprograms.get(subprogram);
        sub.map_or(Pc(0), |sub| sub.start)
    }

    fn frame_size(&self, subprogram: usize) -> u32 {
        self.usage
            .stack_depth(subprogram)
            .next_multiple_of(FRAME_UNIT)
    }

    fn is_private(&self, subprogram: usize) -> Private {
        let private = self.private.get(subprogram).copied();
        private.unwrap_or(Private::No)
    }

    fn has_tail_call(&self, subprogram: usize) -> bool {
        let sub = self.structure.subprograms.get(subprogram);
        sub.is_some_and(|sub| sub.has_tail_call)
    }

    fn ends_exceptions(&self, subprogram: usize) -> bool {
        self.structure.exception_callback == Some(subprogram)
    }
}

fn too_deep(frames: usize) -> Reject {
    let text = format!("the call stack of {frames} frames is too deep !");
    Reject::new(Errno::E2BIG, text)
}
