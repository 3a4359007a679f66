//! Places in the kernel that programs are attached to.

use crate::program::Program;
use crate::spec::{AttachType, ProgType};

/// A place in the kernel that programs are attached to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AttachPoint {
    /// A tracepoint for `BPF_PROG_TYPE_TRACEPOINT`: `group/name`.
    Tracepoint(String),
    /// A tracepoint's raw arguments, by its name: `BPF_PROG_TYPE_RAW_TRACEPOINT`
    /// and, typed through BTF, `BPF_TRACE_RAW_TP`.
    RawTracepoint(String),
    /// Any other hook, by program type and what the section name says of it.
    Hook(ProgType, Option<String>),
}

/// An attached program's place, and its turn there.
#[derive(Debug, Clone)]
pub(super) struct Attached {
    pub point: AttachPoint,
    /// Rises with each attachment.
    pub order: u64,
}

impl AttachPoint {
    /// The place that a program's section name asks for; `None` where the name
    /// leaves it open (`SEC("tp")`).
    #[must_use]
    pub fn of(program: &Program) -> Option<Self> {
        let target = program.attach_target.clone();
        Some(match (program.prog_type, program.expected_attach_type) {
            (ProgType::Tracepoint, _) => Self::Tracepoint(target?),
            (ProgType::RawTracepoint | ProgType::RawTracepointWritable, _)
            | (ProgType::Tracing, Some(AttachType::TraceRawTp)) => Self::RawTracepoint(target?),
            (prog_type, _) => Self::Hook(prog_type, target),
        })
    }
}
