//! The accesses to its context that a program may make.

use std::sync::{LazyLock, OnceLock};

use rustc_hash::FxHashMap;

use super::Options;
use crate::isa::Size;
use crate::spec::context::{self, Arch, Mode, Yield, check, layout};
use crate::spec::{ContextKind, ProgType};

/// An access to the context that the kernel allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub off: i16,
    pub size: Size,
}

/// The context of a program type.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Bytes of the context, for types that get it as bytes.
    pub len: usize,
    pub reads: Vec<Field>,
    pub signed_reads: Vec<Field>,
    pub writes: Vec<Field>,
    /// The offsets of the pointers to the packet's start and end.
    pub packet: Option<(i16, i16)>,
}

/// Fields of a packet's context that the test does not control: they differ between
/// kernels.
const NOT_OURS: &[&str] = &["hash", "napi_id", "hwtstamp", "queue_mapping"];

/// What the accesses depend on: the type, and whether [`Options::recorded`] and
/// [`Options::defined`] are set.
type Key = (ProgType, bool, bool);

/// Each is computed when it is first needed: a campaign makes thousands of programs a second.
static ALL: LazyLock<FxHashMap<Key, OnceLock<Context>>> = LazyLock::new(|| {
    let keys = ProgType::ALL.iter().flat_map(|prog_type| {
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(recorded, defined)| (*prog_type, recorded, defined))
    });
    keys.map(|key| (key, OnceLock::new())).collect()
});

impl Context {
    /// That of a program type, with these options.
    pub(super) fn of(prog_type: ProgType, options: &Options<'_>) -> &'static Self {
        static NONE: LazyLock<Context> = LazyLock::new(Context::default);
        let key = (prog_type, options.recorded, options.defined);
        let known = ALL.get(&key);
        known.map_or(&NONE, |it| it.get_or_init(|| Self::new(key)))
    }

    fn new((prog_type, recorded, defined): Key) -> Self {
        let kind = prog_type.info().context;
        let known = layout(kind, Arch::HOST);
        let len = match (kind, known) {
            (ContextKind::Syscall | ContextKind::Tracepoint, _) => 64,
            // The arguments of raw_syscalls:sys_enter: the registers and the system call
            // number.
            (ContextKind::RawTracepoint, _) if recorded => 16,
            // As many arguments as BPF_PROG_TEST_RUN takes.
            (ContextKind::RawTracepoint, _) => 96,
            (_, Some(layout)) => usize::try_from(layout.size).unwrap_or_default(),
            (_, None) => 0,
        };
        let mut this = Self {
            len,
            ..Self::default()
        };
        let (mut data, mut end) = (None, None);
        for offset in 0..u32::try_from(len).unwrap_or_default() {
            let is_left_out = |field: &context::Field| NOT_OURS.contains(&field.name);
            let field = known.and_then(|layout| layout.at(offset));
            if defined && field.is_some_and(is_left_out) {
                continue;
            }
            let Ok(off) = i16::try_from(offset) else {
                break;
            };
            for &size in Size::ALL {
                let bytes = size.bytes().into();
                let allowed = |mode| check(prog_type, None, Arch::HOST, offset, bytes, mode);
                let field = Field { off, size };
                match allowed(Mode::Read) {
                    Some(Yield::Scalar) => this.reads.push(field),
                    Some(Yield::Packet) => data = Some(off),
                    Some(Yield::PacketEnd) => end = Some(off),
                    _ => {}
                }
                if size != Size::Dw && allowed(Mode::ReadSigned) == Some(Yield::Scalar) {
                    this.signed_reads.push(field);
                }
                if allowed(Mode::Write) == Some(Yield::Scalar) {
                    this.writes.push(field);
                }
            }
        }
        this.packet = data.zip(end);
        this
    }
}
