//! One firing of an attach point.

use std::fmt;
use std::sync::Arc;

use super::attach::Fires;
use super::error::EventError;
use super::extras::{self, Extras, Iteration};
use super::kern::{Kern, KernSide};
use super::layout::Layout;
use super::record::Values;
use super::window::Window;
use super::{context, packet};
use crate::spec::context::Arch;
use crate::spec::{ContextKind, ProgType};
use crate::vm::fields::{FieldValue, ValueProblem, parse_assignment, parse_hex};

/// The kind of an attach point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A tracepoint `group/name`; the context is its record.
    Tracepoint,
    /// A raw tracepoint, for `raw_tp` and `tp_btf` programs; the context holds its arguments.
    RawTracepoint,
    /// A call of a kernel function, for `fentry`, `fexit`, `fmod_ret` and `lsm` programs.
    Function,
    /// Entry of a kernel function, for `kprobe` programs; the context holds registers.
    Kprobe,
    /// Return of a kernel function.
    Kretprobe,
    /// Execution reaches a user-space address.
    Uprobe,
    /// Return of a user-space function.
    Uretprobe,
    /// A USDT probe.
    Usdt,
    /// An iterator shows an object.
    Iterator,
    /// A call of a struct_ops member.
    StructOps,
    /// A packet, for all types that run on packets.
    Packet,
    /// A struct of fields: registers, a socket operation, …
    Context(ContextKind),
    /// Raw bytes, for any type.
    Bytes,
}

/// One firing of an attach point, with the values that programs will see.
///
/// Built by value, so a test is one line. Fields that are not set are zero, strings empty.
///
/// ```
/// use bpflab::vm::events::{Event, Layout, Scalar};
///
/// let layout = Layout::declare("app/request")
///     .field("bytes", Scalar::U32)
///     .string("path")
///     .build()?;
/// let event = Event::tracepoint(layout)
///     .set("bytes", 4096)?
///     .set("path", "/index.html")?;
///
/// let record = event.record();
/// assert_eq!(record[8..12], 4096u32.to_le_bytes());
/// assert_eq!(record[12..16], (12u32 << 16 | 16).to_le_bytes()); // length, offset
/// assert_eq!(&record[16..28], b"/index.html\0");
/// assert_eq!(record.len(), 28);
///
/// let error = Event::packet(vec![0; 64]).set("makr", 7).unwrap_err();
/// assert!(error.to_string().contains("has mark"));
/// # Ok::<(), bpflab::vm::events::EventError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub(super) kind: EventKind,
    pub(super) body: Body,
    pub(super) kern: KernSide,
    /// Data that only few events have.
    pub(super) extras: Option<Box<Extras>>,
}

impl EventKind {
    /// Which hooks the event fires.
    #[doc(hidden)]
    #[must_use]
    pub const fn fires(self) -> Fires {
        match self {
            Self::Tracepoint => Fires::Tracepoint,
            Self::RawTracepoint => Fires::RawTracepoint,
            Self::Function => Fires::Function,
            Self::Kprobe => Fires::KernelEntry,
            Self::Kretprobe => Fires::KernelReturn,
            Self::Uprobe => Fires::UserEntry,
            Self::Uretprobe => Fires::UserReturn,
            Self::Usdt => Fires::Usdt,
            Self::Iterator => Fires::Iterator,
            Self::StructOps => Fires::StructOps,
            Self::Packet | Self::Context(_) | Self::Bytes => Fires::Context,
        }
    }
}

/// The source of an event's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// The fields of one layout.
    Fields {
        /// The layout.
        layout: Arc<Layout>,
        /// The values of its fields.
        values: Values,
        /// Bytes that the context points to: the value of a socket option.
        data: Option<Vec<u8>>,
    },
    /// A packet; the context's layout depends on the program.
    Packet {
        /// The bytes, starting with the Ethernet header.
        bytes: Vec<u8>,
        /// Metadata before the packet.
        meta: Vec<u8>,
        /// Fields of the context that the test set, already checked.
        set: Vec<(String, FieldValue)>,
    },
    /// The context itself.
    Bytes(Vec<u8>),
}

/// The header of a tracepoint's record (`struct trace_entry`): hidden from programs, visible
/// to readers of the perf buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Common {
    /// The tracepoint's ID, as in its format file.
    pub event_type: u16,
    /// `TRACE_FLAG_*`.
    pub flags: u8,
    /// Depth of `preempt_disable`.
    pub preempt_count: u8,
    /// The current thread ID.
    pub pid: i32,
}

impl Event {
    pub(super) fn of_layout(kind: EventKind, layout: Arc<Layout>) -> Self {
        let values = Values::new(&layout);
        Self {
            kind,
            body: Body::Fields {
                layout,
                values,
                data: None,
            },
            kern: KernSide::default(),
            extras: None,
        }
    }

    /// A firing of a tracepoint.
    #[must_use]
    pub fn tracepoint(layout: impl Into<Arc<Layout>>) -> Self {
        Self::of_layout(EventKind::Tracepoint, layout.into())
    }

    /// A firing of a raw tracepoint, with the layout of its arguments
    /// ([`Layout::of_raw_tracepoint`], or [`Layout::of_arguments`] without BTF).
    #[must_use]
    pub fn raw_tracepoint(layout: impl Into<Arc<Layout>>) -> Self {
        Self::of_layout(EventKind::RawTracepoint, layout.into())
    }

    /// A call of a kernel function ([`Layout::of_function`]).
    #[must_use]
    pub fn function(layout: impl Into<Arc<Layout>>) -> Self {
        Self::of_layout(EventKind::Function, layout.into())
    }

    /// A call of a struct_ops member ([`Layout::of_member`]).
    #[must_use]
    pub fn struct_ops(layout: impl Into<Arc<Layout>>) -> Self {
        Self::of_layout(EventKind::StructOps, layout.into())
    }

    /// An iterator shows an object ([`Layout::of_iterator`]).
    #[must_use]
    pub fn iterator(layout: impl Into<Arc<Layout>>) -> Self {
        let mut event = Self::of_layout(EventKind::Iterator, layout.into());
        event.extras = Some(Box::new(Extras {
            iteration: Some(Iteration::default()),
            ..Extras::default()
        }));
        event
    }

    /// Sets the position of an iterator.
    #[must_use]
    pub fn iteration(mut self, iteration: Iteration) -> Self {
        self.extras.get_or_insert_default().iteration = Some(iteration);
        self
    }

    /// A packet, starting with its Ethernet header. For `sk_skb`, `sk_msg` and `sk_reuseport`
    /// programs the bytes are the data without headers.
    ///
    /// Fields of `__sk_buff`, `xdp_md` and the like can also be set (`ingress_ifindex`,
    /// `mark`, `cb[0]`). Lengths, protocol, packet type and addresses are derived from the
    /// bytes unless they are set.
    #[must_use]
    pub fn packet(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: EventKind::Packet,
            body: Body::Packet {
                bytes: bytes.into(),
                meta: Vec::new(),
                set: Vec::new(),
            },
            kern: KernSide::default(),
            extras: None,
        }
    }

    /// A packet written in hexadecimal ([`parse_hex`]).
    ///
    /// # Errors
    /// [`EventError::Text`] for malformed text.
    pub fn packet_hex(text: &str) -> Result<Self, EventError> {
        let bytes = parse_hex(text).map_err(|error| EventError::Text {
            text: text.chars().take(64).collect(),
            error,
        })?;
        Ok(Self::packet(bytes))
    }

    /// A context with all fields zero. `machine` matters for registers only: it is the
    /// architecture that the program was compiled for.
    ///
    /// # Errors
    /// [`EventError::WrongProgram`] for a context that is not a struct of plain fields.
    pub fn context(prog_type: ProgType, machine: Arch) -> Result<Self, EventError> {
        let kind = prog_type.info().context;
        let Some(layout) = context::layout(kind, machine) else {
            return Err(EventError::WrongProgram {
                event: "context".to_owned(),
                prog_type: prog_type.name().to_owned(),
                reason: "its context has no fixed fields; give bytes, a packet or a \
                         tracepoint"
                    .to_owned(),
            });
        };
        Ok(Self::of_layout(EventKind::Context(kind), Arc::new(layout)))
    }

    /// Raw bytes as the context of any program type.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: EventKind::Bytes,
            body: Body::Bytes(bytes.into()),
            kern: KernSide::default(),
            extras: None,
        }
    }

    /// The event for `data_in` of `BPF_PROG_TEST_RUN`, `--data` and a case's `data`: a packet
    /// if the program type runs on packets, else the context.
    #[must_use]
    pub fn input(prog_type: ProgType, bytes: impl Into<Vec<u8>>) -> Self {
        if packet::takes_packets(prog_type) {
            Self::packet(bytes)
        } else {
            Self::bytes(bytes)
        }
    }

    /// The name of the attach point: `group/name` of a tracepoint, the name of a raw
    /// tracepoint or a function, `packet`, a context's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.body {
            Body::Fields { layout, .. } => &layout.name,
            Body::Packet { .. } => "packet",
            Body::Bytes(_) => "bytes",
        }
    }

    /// The kind of attach point.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        self.kind
    }

    /// The layout of the fields; `None` if it depends on the program (packets) or there is
    /// none (raw bytes).
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        match &self.body {
            Body::Fields { layout, .. } => Some(layout),
            Body::Packet { .. } | Body::Bytes(_) => None,
        }
    }

    /// Sets a field by any of its names, or a part of it (`args[2]`, `key.port`). Arguments
    /// of kprobes, uprobes and USDT probes are fields, too: `arg0`, `arg1`.
    ///
    /// Text or bytes for a field that is a pointer, or for an argument in a register, are put
    /// into memory when the event fires, and the field points there: user memory for
    /// tracepoints, system calls and probes in user space, kernel memory for the others. Memory
    /// at addresses of one's own is that of [`World`](crate::vm::World).
    ///
    /// # Errors
    /// [`EventError::NoField`] with the existing fields, or [`EventError::Value`] for a value
    /// that does not fit: nothing is truncated.
    pub fn set(mut self, field: &str, value: impl Into<FieldValue>) -> Result<Self, EventError> {
        self.change(field, &value.into())?;
        Ok(self)
    }

    /// Sets a field from `FIELD=VALUE` ([`FieldValue::parse`]).
    ///
    /// # Errors
    /// As [`Event::set`], or [`EventError::Text`] for malformed text.
    pub fn assign(mut self, text: &str) -> Result<Self, EventError> {
        let (field, value) = parse_assignment(text).map_err(|error| EventError::Text {
            text: text.to_owned(),
            error,
        })?;
        self.change(field, &value)?;
        Ok(self)
    }

    /// As [`Event::set`], in place; the event is unchanged on an error.
    ///
    /// # Errors
    /// As [`Event::set`].
    pub fn change(&mut self, field: &str, value: &FieldValue) -> Result<(), EventError> {
        if let Some(done) = self.change_pointed(field, value) {
            return done;
        }
        match self.change_value(field, value) {
            Ok(()) => Ok(()),
            Err(refused) => self.point(field, value, refused),
        }
    }

    /// Sets a field to this value itself.
    pub(super) fn change_value(
        &mut self,
        field: &str,
        value: &FieldValue,
    ) -> Result<(), EventError> {
        if let Some(n) = self.argument_named(field) {
            return self.change_argument(n, value);
        }
        match &mut self.body {
            Body::Fields { layout, values, .. } => {
                if let (EventKind::Context(_), Some(why)) = (self.kind, context::derived(field)) {
                    return Err(fixed(&layout.name, field, why));
                }
                if let Some(inner) = extras::inner(&mut self.extras, field) {
                    return inner.set(field, value);
                }
                values.set(layout, field, value)
            }
            Body::Packet { set, .. } => {
                if let Some(why) = context::derived(field) {
                    return Err(fixed("packet", field, why));
                }
                context::check_packet_field(field, value)?;
                set.push((field.to_owned(), value.clone()));
                Ok(())
            }
            Body::Bytes(_) => Err(EventError::NoField {
                event: self.name().to_owned(),
                field: field.to_owned(),
                known: Vec::new(),
            }),
        }
    }

    /// Puts metadata before a packet, as an earlier XDP program would do.
    ///
    /// # Errors
    /// [`EventError::NoField`] if the event is not a packet.
    pub fn metadata(mut self, bytes: impl Into<Vec<u8>>) -> Result<Self, EventError> {
        match &mut self.body {
            Body::Packet { meta, .. } => *meta = bytes.into(),
            Body::Fields { .. } | Body::Bytes(_) => {
                return Err(EventError::NoField {
                    event: self.name().to_owned(),
                    field: "data_meta".to_owned(),
                    known: Vec::new(),
                });
            }
        }
        Ok(self)
    }

    /// Sets the bytes between a context's pair of pointers: the value of a socket option
    /// (`optval`, `optval_end`), the packet of a socket operation.
    ///
    /// # Errors
    /// [`EventError::NoField`] for a context without a pair of pointers.
    pub fn data(mut self, bytes: impl Into<Vec<u8>>) -> Result<Self, EventError> {
        match &mut self.body {
            Body::Fields { layout, data, .. } if Window::of(layout).is_some() => {
                *data = Some(bytes.into());
            }
            _ => {
                return Err(EventError::NoField {
                    event: self.name().to_owned(),
                    field: "data".to_owned(),
                    known: Vec::new(),
                });
            }
        }
        Ok(self)
    }

    /// Sets kernel data outside the context: the event's socket, a sysctl's values, a tunnel.
    ///
    /// ```
    /// use bpflab::spec::{ProgType, context::Arch};
    /// use bpflab::vm::events::{Event, Sysctl};
    ///
    /// let event = Event::context(ProgType::CgroupSysctl, Arch::HOST)?
    ///     .set("write", 1)?
    ///     .with(|kern| kern.sysctl = Some(Sysctl::write("net/ipv4/tcp_mem", "1 2 3\n", "4 5 6")));
    /// # Ok::<(), bpflab::vm::events::EventError>(())
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Kern)) -> Self {
        change(&mut self.kern);
        self
    }

    /// The kernel data outside the context.
    #[must_use]
    pub fn kern(&self) -> &Kern {
        &self.kern
    }

    /// Sets the header of a tracepoint's record.
    ///
    /// # Errors
    /// [`EventError::NoField`] if the event is not a tracepoint.
    pub fn set_common(self, common: Common) -> Result<Self, EventError> {
        self.set("common_type", common.event_type)?
            .set("common_flags", common.flags)?
            .set("common_preempt_count", common.preempt_count)?
            .set("common_pid", common.pid)
    }

    /// A tracepoint's record as it is written to the perf buffer, header included; for other
    /// events the bytes of the context, without pointers.
    #[must_use]
    pub fn record(&self) -> Vec<u8> {
        match &self.body {
            Body::Fields { layout, values, .. } if self.kind == EventKind::Tracepoint => {
                values.record(layout)
            }
            Body::Fields { layout, values, .. } => values.context(layout),
            Body::Packet { bytes, .. } | Body::Bytes(bytes) => bytes.clone(),
        }
    }

    /// How many bytes of the context a program may read: attaching a program that reads more
    /// fails (`EACCES` on a tracepoint, `EINVAL` on a raw tracepoint). `None` if only the
    /// program type decides.
    #[doc(hidden)]
    #[must_use]
    pub fn readable(&self) -> Option<u32> {
        self.layout().map(|layout| layout.readable)
    }
}

fn fixed(event: &str, field: &str, why: &'static str) -> EventError {
    EventError::Value {
        event: event.to_owned(),
        field: field.to_owned(),
        problem: ValueProblem::Fixed(why),
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::declare::Scalar;
    use super::*;

    fn event() -> Event {
        let layout = Layout::declare("app/x")
            .field("n", Scalar::U32)
            .array("comm", Scalar::Char, 8)
            .build()
            .unwrap();
        Event::tracepoint(layout)
    }

    #[test]
    fn an_event_is_built_by_value() {
        let record = event()
            .set("n", 7)
            .unwrap()
            .set("comm", "dd")
            .unwrap()
            .record();
        assert_eq!(&record[8..20], b"\x07\0\0\0dd\0\0\0\0\0\0");
        assert_eq!(record.len(), 20);
        let record = event().assign("comm[1]='x'").unwrap().record();
        assert_eq!(record[13], b'x');
    }

    #[test]
    fn errors_name_field_and_value() {
        let text = |result: Result<Event, EventError>| result.unwrap_err().to_string();
        assert_eq!(
            text(event().set("com", "dd")),
            "app/x has no field `com`; it has comm[8], n, common_type, common_flags, \
             common_preempt_count, common_pid"
        );
        assert_eq!(
            text(event().set("n", 5_000_000_000u64)),
            "app/x: field `n` has 32 bits: 5000000000 is out of range \
             (-2147483648 to 4294967295)"
        );
        assert_eq!(
            text(event().assign("n")),
            "`n` at byte 1: expected `=` and a value, as in count=4096"
        );
        assert!(
            text(Event::packet([0; 14]).set("data_end", 1))
                .contains("computed from the event's bytes")
        );
        assert!(text(Event::packet([0; 14]).set("mark", "x")).contains("takes a number"));
        assert!(text(Event::bytes([0; 8]).set("x", 1)).contains("no fields"));
        assert!(text(Event::packet_hex("00 0")).contains("two digits"));
        assert!(event().data([1]).is_err() && event().metadata([1]).is_err());
        assert!(Event::context(ProgType::Tracepoint, Arch::HOST).is_err());
    }

    #[test]
    fn the_common_header_is_in_the_record_and_not_in_the_context() {
        let common = Common {
            event_type: 0x0102,
            flags: 3,
            preempt_count: 4,
            pid: -1,
        };
        let event = event().set_common(common).unwrap();
        assert_eq!(event.record()[..8], [2, 1, 3, 4, 0xff, 0xff, 0xff, 0xff]);
        let Body::Fields { layout, values, .. } = &event.body else {
            panic!("a tracepoint has fields");
        };
        assert_eq!(values.context(layout)[..8], [0; 8]);
    }

    #[test]
    fn a_failed_change_changes_nothing() {
        let mut event = event().set("comm", "dd").unwrap();
        let before = event.clone();
        assert!(event.change("comm", &"much too long".into()).is_err());
        assert_eq!(event, before);
    }
}
