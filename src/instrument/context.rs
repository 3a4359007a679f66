//! The bytes of a context that are recorded: those that a program of its type may load.

use super::error::Reason;
use crate::isa::Size;
use crate::program::Program;
use crate::spec::context::{self, Mode, Yield};
use crate::spec::limits::MAX_FUNC_ARGS;
use crate::spec::{AttachType, ContextKind, ProgType};
use crate::verifier;

/// A piece of a context: offset and size.
pub(super) type Piece = (u32, Size);

/// The recorded part of a program's context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    /// Its length in bytes.
    pub(super) len: u32,
    /// The pieces that programs may load; the rest is zero.
    pub(super) pieces: Vec<Piece>,
}

/// Checks that a program only observes, or acts by its return value alone, which is compared:
/// other types can't be recorded.
pub(super) fn check_type(program: &Program) -> Result<(), Reason> {
    let watches = match program.prog_type {
        ProgType::Kprobe | ProgType::Tracepoint | ProgType::PerfEvent | ProgType::RawTracepoint => {
            true
        }
        ProgType::Tracing => matches!(
            program.expected_attach_type,
            Some(
                AttachType::TraceRawTp
                    | AttachType::TraceFentry
                    | AttachType::TraceFexit
                    | AttachType::ModifyReturn
                    | AttachType::TraceIter
            )
        ),
        ProgType::Lsm => program.expected_attach_type == Some(AttachType::LsmMac),
        other => is_changing(other),
    };
    if watches {
        Ok(())
    } else {
        Err(Reason::ProgType(program.prog_type.name()))
    }
}

/// Whether programs of this type have a context that changes while they run, and that they may
/// change: packets and sockets. Each access to it is logged, as for kernel memory, and firings
/// have no copy of it.
#[must_use]
pub const fn is_changing(prog_type: ProgType) -> bool {
    matches!(
        prog_type,
        ProgType::Xdp
            | ProgType::SchedCls
            | ProgType::CgroupSkb
            | ProgType::CgroupSock
            | ProgType::CgroupSockAddr
    )
}

/// The return value for a firing that is not recorded: 1 for programs on perf events, so that
/// perf still gets a sample; that with which a packet or an operation goes on.
pub(super) const fn outside(prog_type: ProgType) -> i32 {
    match prog_type {
        ProgType::Kprobe
        | ProgType::Tracepoint
        | ProgType::PerfEvent
        | ProgType::CgroupSkb
        | ProgType::CgroupSock
        | ProgType::CgroupSockAddr => 1,
        // XDP_PASS
        ProgType::Xdp => 2,
        // TC_ACT_UNSPEC
        ProgType::SchedCls => -1,
        _ => 0,
    }
}

impl Context {
    /// The context of a program that reads its first `read` bytes, and of whose event `len`
    /// bytes are known.
    pub(super) fn new(program: &Program, read: u32, len: u32) -> Self {
        if is_changing(program.prog_type) {
            return Self {
                len: 0,
                pieces: Vec::new(),
            };
        }
        let asked = read.max(len);
        let words = |len: u32| (0..len / 8).map(|word| word * 8);
        match program.prog_type.info().context {
            ContextKind::BtfArgs => {
                // Without the kernel's BTF, take what the program reads.
                let most = u32::try_from(MAX_FUNC_ARGS).unwrap_or(0) * 8;
                let readable = |off: &u32| {
                    verifier::context_argument_is_readable(program, *off).unwrap_or(*off < read)
                };
                let pieces: Vec<Piece> = words(most)
                    .filter(readable)
                    .map(|off| (off, Size::Dw))
                    .collect();
                let end = pieces.last().map_or(0, |(off, _)| off + 8);
                Self {
                    len: end.max(asked.next_multiple_of(8)),
                    pieces,
                }
            }
            ContextKind::Tracepoint => Self {
                len: asked,
                pieces: pieces(program, asked),
            },
            kind => {
                let layout = context::layout(kind, program.arch);
                // The number of a raw tracepoint's arguments is unknown.
                let fixed = layout.filter(|_| kind != ContextKind::RawTracepoint);
                let len = fixed.map_or(asked.next_multiple_of(8), |layout| layout.size);
                Self {
                    len,
                    pieces: pieces(program, len),
                }
            }
        }
    }
}

/// The largest pieces that may be loaded, in order.
fn pieces(program: &Program, len: u32) -> Vec<Piece> {
    let attach = program.prog_type.attach_type(program.expected_attach_type);
    let allowed = |off: u32, size: u32| {
        let found = context::check(
            program.prog_type,
            attach,
            program.arch,
            off,
            size,
            Mode::Read,
        );
        off + size <= len && matches!(found, Some(Yield::Scalar))
    };
    let mut pieces = Vec::new();
    let mut off = 0;
    while off < len {
        let sizes = [Size::Dw, Size::W, Size::H, Size::B];
        let size = sizes
            .into_iter()
            .find(|size| allowed(off, size.bytes().into()));
        match size {
            Some(size) => {
                pieces.push((off, size));
                off += u32::from(size.bytes());
            }
            None => off += 1,
        }
    }
    pieces
}
