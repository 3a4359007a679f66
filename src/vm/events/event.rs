//! One firing of an attach point.

use std::fmt;
use std::sync::Arc;

use super::context;
use super::error::{EventError, ValueProblem};
use super::extras::{self, Extras, Iteration};
use super::kern::{Kern, KernSide};
use super::layout::Layout;
use super::packet;
use super::record::Values;
use super::text::{parse_assignment, parse_hex};
use super::value::FieldValue;
use super::window::Window;
use crate::spec::context::Arch;
use crate::spec::{ContextKind, ProgType};
use crate::vm::attach::Fires;

/// What kind of attach point fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A tracepoint `group/name`: its record is the context.
    Tracepoint,
    /// A raw tracepoint: its arguments are, for `raw_tp` and `tp_btf` programs.
    RawTracepoint,
    /// A kernel function, for `fentry`, `fexit`, `fmod_ret` and `lsm` programs.
    Function,
    /// A kernel function is entered: registers, for `kprobe` programs.
    Kprobe,
    /// A kernel function returns.
    Kretprobe,
    /// A place in user space is reached.
    Uprobe,
    /// A function in user space returns.
    Uretprobe,
    /// A marker in user space is reached.
    Usdt,
    /// An iterator shows an object.
    Iterator,
    /// A member of a struct of operations is called.
    StructOps,
    /// A packet, for all types that run on packets.
    Packet,
    /// A struct of fields: registers, a socket operation, …
    Context(ContextKind),
    /// Bytes as they are, for any type.
    Bytes,
}

/// One firing of an attach point, with the values that programs will see.
///
/// It is built by value, so that a test reads as one line. What is not set is zero;
/// strings are empty.
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
    /// What few events have.
    pub(super) extras: Option<Box<Extras>>,
}

impl EventKind {
    /// Which hooks it hits.
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

/// Where an event's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// The fields of one layout.
    Fields {
        /// Where they are.
        layout: Arc<Layout>,
        /// What they hold.
        values: Values,
        /// Bytes that the context points to: a socket option's value.
        data: Option<Vec<u8>>,
    },
    /// A packet; the context's layout depends on the program.
    Packet {
        /// From the Ethernet header on.
        bytes: Vec<u8>,
        /// Metadata before it.
        meta: Vec<u8>,
        /// Fields of the context, checked when they were set.
        set: Vec<(String, FieldValue)>,
    },
    /// The context itself.
    Bytes(Vec<u8>),
}

/// The header of a tracepoint's record (`struct trace_entry`), which programs don't
/// see but readers of the perf buffer do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Common {
    /// The tracepoint's number: `ID` in its format file.
    pub event_type: u16,
    /// `TRACE_FLAG_*`.
    pub flags: u8,
    /// Depth of disabled preemption.
    pub preempt_count: u8,
    /// The current thread.
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

    /// A member of a struct of operations is called ([`Layout::of_member`]).
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

    /// Says where an iterator stands.
    #[must_use]
    pub fn iteration(mut self, iteration: Iteration) -> Self {
        self.extras.get_or_insert_default().iteration = Some(iteration);
        self
    }

    /// A packet, from its Ethernet header on. For `sk_skb`, `sk_msg` and
    /// `sk_reuseport` programs the bytes are the data without headers.
    ///
    /// Fields of `__sk_buff`, `xdp_md` and the like can be set besides
    /// (`ingress_ifindex`, `mark`, `cb[0]`); lengths, protocol, packet type and
    /// addresses follow from the bytes unless they are.
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
    /// [`EventError::Text`] where it is none.
    pub fn packet_hex(text: &str) -> Result<Self, EventError> {
        let bytes = parse_hex(text).map_err(|error| EventError::Text {
            text: text.chars().take(64).collect(),
            error,
        })?;
        Ok(Self::packet(bytes))
    }

    /// A context of fields that are all zero. The machine matters for registers only:
    /// it is the one that the program was written for.
    ///
    /// # Errors
    /// [`EventError::WrongProgram`] for a context that is no struct of plain fields.
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

    /// Bytes that are the context as they stand, of any type of program.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: EventKind::Bytes,
            body: Body::Bytes(bytes.into()),
            kern: KernSide::default(),
            extras: None,
        }
    }

    /// What `data_in` of `BPF_PROG_TEST_RUN`, `--data` and a case's `data` mean to
    /// a type of program: a packet where it runs on packets, else the context.
    #[must_use]
    pub fn input(prog_type: ProgType, bytes: impl Into<Vec<u8>>) -> Self {
        if packet::takes_packets(prog_type) {
            Self::packet(bytes)
        } else {
            Self::bytes(bytes)
        }
    }

    /// What fires: `group/name` of a tracepoint, the name of a raw tracepoint or a
    /// function, `packet`, a context's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.body {
            Body::Fields { layout, .. } => &layout.name,
            Body::Packet { .. } => "packet",
            Body::Bytes(_) => "bytes",
        }
    }

    /// What kind of attach point fires.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        self.kind
    }

    /// The layout of its fields, unless that depends on the program (packets) or
    /// there is none (bytes).
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        match &self.body {
            Body::Fields { layout, .. } => Some(layout),
            Body::Packet { .. } | Body::Bytes(_) => None,
        }
    }

    /// Sets a field, by any of its names, or a part of it (`args[2]`, `key.port`).
    /// Arguments of probes and markers are fields, too: `arg0`, `arg1`.
    ///
    /// # Errors
    /// [`EventError::NoField`] with the fields that there are, or
    /// [`EventError::Value`] for a value that does not fit: nothing is cut off.
    pub fn set(mut self, field: &str, value: impl Into<FieldValue>) -> Result<Self, EventError> {
        self.change(field, &value.into())?;
        Ok(self)
    }

    /// Sets a field from `FIELD=VALUE` ([`FieldValue::parse`]).
    ///
    /// # Errors
    /// As [`Event::set`], or [`EventError::Text`] where the text is no assignment.
    pub fn assign(mut self, text: &str) -> Result<Self, EventError> {
        let (field, value) = parse_assignment(text).map_err(|error| EventError::Text {
            text: text.to_owned(),
            error,
        })?;
        self.change(field, &value)?;
        Ok(self)
    }

    /// As [`Event::set`], in place; nothing is changed on an error.
    ///
    /// # Errors
    /// As [`Event::set`].
    pub fn change(&mut self, field: &str, value: &FieldValue) -> Result<(), EventError> {
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

    /// Puts metadata before a packet, as an earlier XDP program would.
    ///
    /// # Errors
    /// [`EventError::NoField`] for what is no packet.
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

    /// Puts bytes behind a context's pair of pointers: the value of a socket option
    /// (`optval`, `optval_end`), the packet of a socket operation.
    ///
    /// # Errors
    /// [`EventError::NoField`] for a context without such a pair.
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

    /// Says what the kernel knows beside the context: the socket that it is about, a
    /// sysctl's values, a tunnel.
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

    /// What the kernel knows beside the context.
    #[must_use]
    pub fn kern(&self) -> &Kern {
        &self.kern
    }

    /// Sets the header of a tracepoint's record.
    ///
    /// # Errors
    /// [`EventError::NoField`] for what is no tracepoint.
    pub fn set_common(self, common: Common) -> Result<Self, EventError> {
        self.set("common_type", common.event_type)?
            .set("common_flags", common.flags)?
            .set("common_preempt_count", common.preempt_count)?
            .set("common_pid", common.pid)
    }

    /// A tracepoint's record as the perf buffer gets it, header included; for other
    /// events the context's own bytes, without pointers.
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

    /// The bytes that a program may read of the context: attaching one that reads
    /// further fails (`EACCES` on a tracepoint, `EINVAL` on a raw one). `None` where
    /// the program's type alone decides.
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
            "app/x: field `n` has 32 bits, which 5000000000 does not fit into \
             (-2147483648 to 4294967295)"
        );
        assert_eq!(
            text(event().assign("n")),
            "`n` at byte 1: expected `=` and a value, as in count=4096"
        );
        assert!(text(Event::packet([0; 14]).set("data_end", 1)).contains("follows from the bytes"));
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
