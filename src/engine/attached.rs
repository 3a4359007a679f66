//! Functions of a program to which other programs are attached: an extension runs in a
//! function's place, tracing programs before and after it (`bpf_trampoline_link_prog`,
//! `kernel/bpf/trampoline.c`). The checked interpreter runs such programs. A tail call goes past
//! what is attached to its target, as in the kernel.

use crate::util::Pc;
use crate::vm::ProgramHandle;
use crate::vm::events::Event;

/// What is attached to a function.
#[derive(Debug, Clone)]
pub(crate) enum Attachment {
    /// This extension runs in its place.
    Replaced(ProgramHandle),
    /// Its calls fire an event.
    Traced {
        /// The event, without values.
        event: Event,
        /// The number of its arguments.
        args: usize,
    },
}

/// A function, and what is attached to it.
#[derive(Debug, Clone)]
pub(crate) struct AttachedFunction {
    /// Its first instruction.
    pub start: Pc,
    /// What is attached.
    pub attachment: Attachment,
}
