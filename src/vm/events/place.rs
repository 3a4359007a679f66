//! Places an event in memory: the context in `r1`, and the memory that it points to.

use std::sync::Arc;

use smallvec::SmallVec;

use super::attach::Site;
use super::error::EventError;
use super::event::{Body, Event, EventKind};
use super::kern::{Headers, KernSide};
use super::layout::{Layout, LayoutSource};
use super::packet::{self, Prepared};
use super::placed::{Placed, PlacedPacket};
use super::pointees::{self, Regions};
use super::record::Values;
use super::window::{PacketRange, Window};
use super::{context, socket};
use crate::spec::context::Arch;
use crate::spec::{ContextKind, PacketAccess, ProgType};
use crate::vm::fields::FieldValue;
use crate::vm::memory::{PointerField, Region, Rights, SharedBytes, Space};
use crate::vm::world::Socket;

impl Event {
    /// Whether programs of this type run on this event.
    #[must_use]
    pub fn accepts(&self, prog_type: ProgType) -> bool {
        let context = prog_type.info().context;
        match self.kind() {
            EventKind::Tracepoint => prog_type == ProgType::Tracepoint,
            EventKind::RawTracepoint => {
                context == ContextKind::RawTracepoint || prog_type == ProgType::Tracing
            }
            EventKind::Function => matches!(prog_type, ProgType::Tracing | ProgType::Lsm),
            EventKind::Kprobe
            | EventKind::Kretprobe
            | EventKind::Uprobe
            | EventKind::Uretprobe
            | EventKind::Usdt => prog_type == ProgType::Kprobe,
            EventKind::Iterator => prog_type == ProgType::Tracing,
            EventKind::StructOps => prog_type == ProgType::StructOps,
            EventKind::Packet => packet::takes_packets(prog_type),
            EventKind::Context(kind) => context == kind,
            EventKind::Bytes => true,
        }
    }

    /// Places the context of a program type in a machine's memory.
    ///
    /// # Errors
    /// [`EventError::WrongProgram`] for a type that does not run on this event,
    /// [`EventError::Refused`] for a packet that the kernel refuses, [`EventError::NoField`]
    /// for a field that this type's context does not have.
    #[doc(hidden)]
    pub fn place(&self, prog_type: ProgType, space: &mut Space) -> Result<Placed, EventError> {
        if !self.accepts(prog_type) {
            return Err(EventError::WrongProgram {
                event: self.name().to_owned(),
                prog_type: prog_type.name().to_owned(),
                reason: self.kind().runs().to_owned(),
            });
        }
        let parts = match &self.body {
            Body::Bytes(bytes) => Parts::of_bytes(bytes.clone(), 0),
            Body::Fields {
                layout,
                values,
                data,
            } => Parts::of_fields(prog_type, layout, values, data.as_deref()),
            Body::Packet { bytes, meta, set } => {
                let prepared =
                    packet::prepare(self.name(), prog_type, bytes, meta, !set.is_empty())?;
                Parts::of_packet(prog_type, prepared, set)?
            }
        };
        let mut placed = parts.insert(prog_type, space)?;
        placed.kern = self.kern.clone();
        placed.site = pointees::site(self);
        placed.site.retval = self.kern.retval;
        placed.complete_checksum(space);
        placed.references = pointees::references(self, placed.context, space);
        match pointees::place(self, placed.context, space, &mut placed.others) {
            Ok(()) => Ok(placed),
            Err(error) => {
                placed.remove(space);
                Err(error)
            }
        }
    }
}

impl Event {
    /// A context of this type with only the fields that the test set: the `ctx_in` of
    /// `BPF_PROG_TEST_RUN`. Empty if the test set none.
    ///
    /// # Errors
    /// [`EventError::NoField`] for a field that this type's context does not have.
    #[doc(hidden)]
    pub fn given_context(&self, prog_type: ProgType) -> Result<Vec<u8>, EventError> {
        let layout = context::layout(prog_type.info().context, Arch::HOST);
        let (Body::Packet { set, .. }, Some(layout)) = (&self.body, layout) else {
            return Ok(Vec::new());
        };
        if set.is_empty() {
            return Ok(Vec::new());
        }
        let mut values = Values::new(&layout);
        for (field, value) in set {
            values.set(&layout, field, value)?;
        }
        Ok(values.context(&layout))
    }
}

impl EventKind {
    /// The program types that run on this event, in words.
    const fn runs(self) -> &'static str {
        match self {
            Self::Tracepoint => "a tracepoint runs programs of type tracepoint",
            Self::RawTracepoint => {
                "a raw tracepoint runs raw_tracepoint programs and, as tp_btf, tracing ones"
            }
            Self::Function => "a function runs tracing and lsm programs",
            Self::Kprobe | Self::Kretprobe | Self::Uprobe | Self::Uretprobe | Self::Usdt => {
                "a probe runs programs of type kprobe"
            }
            Self::Iterator => "an iterator runs tracing programs",
            Self::StructOps => "a struct of operations is made of struct_ops programs",
            Self::Packet => "packets run XDP, tc, socket filter, cgroup_skb, lwt, sk_* programs",
            Self::Context(_) => "this context belongs to another program type",
            Self::Bytes => "",
        }
    }
}

/// The regions to insert.
struct Parts {
    context: Vec<u8>,
    hidden: u32,
    packet: Option<Box<(Prepared, Window)>>,
    /// Offset of the pointer in the context, region name, bytes.
    others: Vec<(u32, &'static str, Vec<u8>)>,
    socket: Option<Box<Socket>>,
}

impl Parts {
    const fn of_bytes(context: Vec<u8>, hidden: u32) -> Self {
        Self {
            context,
            hidden,
            packet: None,
            others: Vec::new(),
            socket: None,
        }
    }

    fn of_fields(
        prog_type: ProgType,
        layout: &Layout,
        values: &Values,
        data: Option<&[u8]>,
    ) -> Self {
        let window = data.and_then(|_| Window::of(layout));
        let packet = data.zip(window).map(|(data, window)| {
            let prepared = Prepared {
                block: data.to_vec(),
                end: data.len(),
                // Room for the TCP header options that helpers write.
                room: match prog_type {
                    ProgType::SockOps => (0, 64),
                    _ => (0, 0),
                },
                ..Prepared::default()
            };
            Box::new((prepared, window))
        });
        let context = values.context(layout);
        let socket = socket::made_up(prog_type, layout, &context).map(Box::new);
        let others = socket
            .iter()
            .filter(|_| layout.source == LayoutSource::Context)
            .filter_map(|socket| Some((layout.offset("sk")?, "sk", socket.sock_bytes())));
        Self {
            packet,
            others: others.collect(),
            socket,
            ..Self::of_bytes(context, layout.hidden)
        }
    }

    fn of_packet(
        prog_type: ProgType,
        mut prepared: Prepared,
        set: &[(String, FieldValue)],
    ) -> Result<Self, EventError> {
        let wrong = |reason: &str| EventError::WrongProgram {
            event: "packet".to_owned(),
            prog_type: prog_type.name().to_owned(),
            reason: reason.to_owned(),
        };
        let layout = context::layout(prog_type.info().context, Arch::HOST)
            .ok_or_else(|| wrong("its context has no fields"))?;
        let window =
            Window::of(&layout).ok_or_else(|| wrong("its context has no packet pointers"))?;
        let mut values = Values::new(&layout);
        for (field, value) in &prepared.fields {
            // Each kind of context has a subset.
            if layout.has(field) {
                values.set(&layout, field, value)?;
            }
        }
        for (field, value) in set {
            values.set(&layout, field, value)?;
        }
        let mut others = Vec::new();
        if let (Some(keys), Some(offset)) = (prepared.flow_keys.take(), layout.offset("flow_keys"))
        {
            others.push((offset, "flow_keys", keys));
        }
        let context = values.context(&layout);
        let socket = socket::made_up(prog_type, &layout, &context).map(Box::new);
        if let (Some(socket), Some(offset)) = (&socket, layout.offset("sk")) {
            others.push((offset, "sk", socket.sock_bytes()));
        }
        Ok(Self {
            context,
            packet: Some(Box::new((prepared, window))),
            others,
            socket,
            ..Self::of_bytes(Vec::new(), 0)
        })
    }

    fn insert(mut self, prog_type: ProgType, space: &mut Space) -> Result<Placed, EventError> {
        let info = prog_type.info();
        let bytes = Arc::new(SharedBytes::from_bytes(&self.context));
        let region = Region::bytes("context", bytes)
            .judged()
            .with_hidden(self.hidden)
            .with_rights(rights(info.context))
            .as_context(info.context);
        let context = space.insert(region)?;
        let mut placed = Placed {
            context,
            packet: None,
            site: Site::default(),
            others: Regions::new(),
            kern: KernSide::default(),
            socket: self.socket.take(),
            references: SmallVec::new(),
        };
        let filled = self.fill(info.packet, &mut placed, space);
        if let Err(error) = filled {
            placed.remove(space);
            return Err(error);
        }
        Ok(placed)
    }

    /// Inserts the regions that the context points to, and stores the pointers.
    fn fill(
        self,
        access: PacketAccess,
        placed: &mut Placed,
        space: &mut Space,
    ) -> Result<(), EventError> {
        for (offset, name, bytes) in self.others {
            // A flow dissector program writes the flow keys.
            let rights = match name {
                "flow_keys" => Rights::ReadWrite,
                _ => Rights::Read,
            };
            let bytes = Arc::new(SharedBytes::from_bytes(&bytes));
            let region = Region::bytes(name, bytes).judged().with_rights(rights);
            let address = space.insert(region)?;
            placed.others.push((name, address));
            if let Some(mut context) = space.region_mut(placed.context) {
                context.pointers.push(PointerField {
                    offset,
                    size: 8,
                    value: address.register(),
                });
            }
        }
        if let Some((prepared, window)) = self.packet.map(|packet| *packet) {
            let (before, behind) = prepared.room;
            let range = PacketRange {
                meta: prepared.meta + before,
                data: prepared.data + before,
                end: prepared.end + before,
            };
            let headers = prepared.headers.map(|headers| Headers {
                mac: headers.mac + before,
                network: headers.network + before,
                ..headers
            });
            let rights = match access {
                PacketAccess::Write => Rights::ReadWrite,
                PacketAccess::Read | PacketAccess::None => Rights::Read,
            };
            let bytes = SharedBytes::zeroed(before + prepared.block.len() + behind);
            bytes.write(before, &prepared.block);
            let region = Region::window("packet", Arc::new(bytes), range.meta..range.end);
            placed.packet = Some(Box::new(PlacedPacket {
                region: space.insert(region.with_rights(rights))?,
                frags: prepared.frags,
                data_offset: range.data,
                headers,
                message: None,
                window,
                access,
            }));
            placed.move_packet(space, range);
        }
        Ok(())
    }
}

/// Whether a context may be written at all; the verifier has the rule for each field.
const fn rights(kind: ContextKind) -> Rights {
    match kind {
        ContextKind::Tracepoint
        | ContextKind::RawTracepoint
        | ContextKind::BtfArgs
        | ContextKind::PerfEvent
        | ContextKind::CgroupDevice
        | ContextKind::LircMode2 => Rights::Read,
        _ => Rights::ReadWrite,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp() -> Vec<u8> {
        let mut bytes = vec![0xff; 6];
        bytes.extend([2; 6]);
        bytes.extend([8, 0]);
        bytes.extend(0..50);
        bytes
    }

    fn load(space: &Space, placed: &Placed, offset: u64, size: usize) -> u64 {
        space.load(placed.context.plus(offset), size).unwrap()
    }

    #[test]
    fn xdp_pointers_lead_into_the_packet() {
        let mut space = Space::new();
        let event = Event::packet(udp()).set("ingress_ifindex", 3).unwrap();
        let mut placed = event.place(ProgType::Xdp, &mut space).unwrap();
        let (data, end) = (load(&space, &placed, 0, 4), load(&space, &placed, 4, 4));
        assert_eq!((end - data, load(&space, &placed, 8, 4)), (64, data));
        assert_eq!(space.load(data, 1), Ok(0xff));
        assert_eq!(load(&space, &placed, 12, 4), 3);
        assert_eq!(
            space.load(end - 1, 2).unwrap_err().to_string(),
            "reads 2 bytes at packet+63, 1 byte past its end (64 bytes)"
        );
        space.store(data, 1, 0x42).unwrap();

        let range = placed.packet_range(&space).unwrap();
        assert_eq!(
            range,
            PacketRange {
                meta: 256,
                data: 256,
                end: 320
            }
        );
        let longer = PacketRange {
            meta: 240,
            data: 252,
            end: 300,
        };
        assert!(placed.move_packet(&mut space, longer));
        assert_eq!(load(&space, &placed, 0, 4), data - 4);
        assert_eq!(load(&space, &placed, 8, 4), data - 16);
        assert!(space.load(data - 16, 4).is_ok());
        assert_eq!(placed.packet_range(&space), Some(longer));
        let bytes = placed.packet_bytes(&space).unwrap();
        assert_eq!((bytes.len(), bytes[4]), (48, 0x42));
        for bad in [
            PacketRange {
                meta: 256,
                data: 252,
                end: 300,
            },
            PacketRange {
                meta: 0,
                data: 0,
                end: 4096,
            },
        ] {
            assert!(!placed.move_packet(&mut space, bad));
        }
        placed.remove(&mut space);
        assert!(space.load(data, 1).is_err());
    }

    #[test]
    fn a_long_xdp_packet_comes_back_whole() {
        let mut space = Space::new();
        let bytes: Vec<u8> = (0..5000u32).map(|i| i.to_le_bytes()[0]).collect();
        let placed = Event::packet(bytes.clone())
            .place(ProgType::Xdp, &mut space)
            .unwrap();
        assert_eq!(
            load(&space, &placed, 4, 4) - load(&space, &placed, 0, 4),
            3520
        );
        assert_eq!(placed.packet_bytes(&space), Some(bytes));
    }

    #[test]
    fn an_skb_has_the_kernels_fields() {
        // (type, length, whether it has packet pointers), as seen on 6.18.
        for (prog_type, len, pointers) in [
            (ProgType::SchedCls, 64, true),
            (ProgType::CgroupSkb, 50, true),
            (ProgType::SocketFilter, 50, false),
        ] {
            let mut space = Space::new();
            let placed = Event::packet(udp()).place(prog_type, &mut space).unwrap();
            let at = |offset, size| load(&space, &placed, offset, size);
            assert_eq!((at(0, 4), at(4, 4), at(16, 4), at(40, 4)), (len, 2, 8, 1));
            assert_eq!(at(160, 4), 0, "wire_len");
            assert_eq!(at(80, 4) - at(76, 4), if pointers { len } else { 0 });
            let sock = placed.other("sk").unwrap();
            assert_eq!(at(168, 8), sock.register());
            assert_eq!(space.load(sock.plus(4), 4), Ok(2), "AF_INET");
            assert_eq!(space.load(sock.plus(76), 4), Ok(0xffff_ffff));
        }
        let mut space = Space::new();
        let event = Event::packet(udp()).set("cb[1]", 9).unwrap();
        let placed = event.place(ProgType::SchedCls, &mut space).unwrap();
        assert_eq!(load(&space, &placed, 52, 4), 9);
        assert_eq!(
            load(&space, &placed, 160, 4),
            64,
            "with a context the wire is known"
        );
        let error = event.place(ProgType::Xdp, &mut space).unwrap_err();
        assert!(error.to_string().starts_with("xdp_md has no field `cb[1]`"));
    }

    #[test]
    fn changing_an_skbs_ends_changes_its_length() {
        let mut space = Space::new();
        let mut placed = Event::packet(udp())
            .place(ProgType::SchedCls, &mut space)
            .unwrap();
        let range = placed.packet_range(&space).unwrap();
        let end = range.end - 10;
        assert!(placed.move_packet(&mut space, PacketRange { end, ..range }));
        assert_eq!(load(&space, &placed, 0, 4), 54);
    }

    #[test]
    fn the_flow_dissector_writes_its_keys() {
        let mut space = Space::new();
        let placed = Event::packet(udp())
            .place(ProgType::FlowDissector, &mut space)
            .unwrap();
        let keys = load(&space, &placed, 144, 8);
        assert_eq!(space.load(keys, 2), Ok(14));
        assert_eq!(space.load(keys + 10, 2), Ok(8));
        assert!(space.store(keys + 9, 1, 17).is_ok());
        let data = load(&space, &placed, 76, 4);
        assert!(space.store(data, 1, 0).is_err(), "read-only for this type");
    }

    #[test]
    fn a_tracepoints_first_bytes_are_hidden_and_it_is_read_only() {
        let mut space = Space::new();
        let layout = Layout::declare("app/x").string("name").build().unwrap();
        let event = Event::tracepoint(layout).set("name", "abc").unwrap();
        let placed = event.place(ProgType::Tracepoint, &mut space).unwrap();
        assert!(space.load(placed.r1(), 8).is_err());
        let location = load(&space, &placed, 8, 4);
        let text = space.read(placed.context.plus(location & 0xffff), 4);
        assert_eq!(text, Ok(b"abc\0".to_vec()));
        assert!(space.store(placed.context.plus(8), 4, 1).is_err());
        let error = event
            .place(ProgType::Xdp, &mut space)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("app/x can't run a program of type xdp"),
            "{error}"
        );
    }

    #[test]
    fn plain_contexts_and_their_data() {
        let mut space = Space::new();
        let event = Event::context(ProgType::CgroupSockopt, Arch::HOST).unwrap();
        let event = event.set("optname", 5).unwrap().data([1, 2, 3, 4]).unwrap();
        let placed = event.place(ProgType::CgroupSockopt, &mut space).unwrap();
        let (start, end) = (load(&space, &placed, 8, 8), load(&space, &placed, 16, 8));
        assert_eq!((end - start, space.load(start, 4)), (4, Ok(0x0403_0201)));
        assert_eq!(placed.packet_bytes(&space), Some(vec![1, 2, 3, 4]));
        assert_eq!(placed.context_bytes(&space)[28..32], [5, 0, 0, 0]);

        let event = Event::context(ProgType::Kprobe, Arch::X86_64)
            .unwrap()
            .set("parm1", 77)
            .unwrap();
        let placed = event.place(ProgType::Kprobe, &mut space).unwrap();
        assert_eq!(load(&space, &placed, 112, 8), 77);
        assert!(!event.accepts(ProgType::Xdp));

        let event = Event::input(ProgType::Syscall, vec![9; 8]);
        let placed = event.place(ProgType::Syscall, &mut space).unwrap();
        assert_eq!(load(&space, &placed, 0, 2), 0x0909);
        let placed = Event::input(ProgType::Xdp, udp()).place(ProgType::Xdp, &mut space);
        assert!(placed.unwrap().packet.is_some());
    }

    #[test]
    fn arguments_are_slots_and_narrow_ones_are_extended_with_zeros() {
        let mut space = Space::new();
        let event = Event::raw_tracepoint(Layout::of_arguments("sys_enter", 2));
        assert_eq!(event.readable(), Some(16));
        let event = event.set("args[1]", -1).unwrap();
        for prog_type in [ProgType::RawTracepoint, ProgType::Tracing] {
            let placed = event.place(prog_type, &mut space).unwrap();
            assert_eq!(load(&space, &placed, 8, 8), u64::MAX);
            assert_eq!(placed.context_bytes(&space).len(), 16);
        }
        assert!(event.place(ProgType::Kprobe, &mut space).is_err());
    }
}
