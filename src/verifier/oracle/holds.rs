//! Whether a state contains the values of a run.
//!
//! Scalars have to be members of their known bits and bounds. Pointers are compared by
//! object and offset, typed ones by the type of the object (`objects`). A pointer without a
//! known object, such as a socket, must not be null unless it is nullable. Registers with
//! the same id have the same value, or the distance that the verifier noted.

use std::fmt;

use smallvec::SmallVec;

use super::record::{Function, Recorded, Recording};
use super::run::{Held, PacketEnds, Run, ValuePlace};
use crate::isa::Reg;
use crate::program::Program;
use crate::spec::MapType;
use crate::spec::helpers::TypeFlags;
use crate::verifier::pool::BLANK;
use crate::verifier::reg::{ADD_CONST, ADD_CONST32, AT_END, BEYOND_END, Kind, MapRef, RegState};
use crate::verifier::stack::{SLOT, Slot, SlotKind};
use crate::verifier::state::ValueId;

/// The number of adjacent map values to try for a pointer that may be outside its own.
const NEIGHBOURS: u64 = 64;

/// A run to be compared with explored states.
pub(super) struct Comparison<'a> {
    pub run: &'a dyn Run,
    pub program: &'a Program,
    /// The frame of the run that is frame 0 of the states.
    pub base: usize,
    /// What the run holds.
    pub held: Held,
    packet: Option<PacketEnds>,
    /// For each register of the innermost frame: the last state of it that contains the run's
    /// value. Most candidates have most registers in common.
    containing: [ValueId; Reg::COUNT],
}

/// A mismatch between a run and a state.
#[derive(Debug)]
pub(super) struct Mismatch {
    /// The frame, numbered as in the state.
    pub frame: usize,
    what: What,
    value: u64,
    /// The number of values that matched before.
    pub matched: usize,
}

#[derive(Debug)]
enum What {
    Reg(usize),
    Slot(usize),
    /// The register or slot is linked to another, but at a different distance.
    Link(usize),
    /// The references and critical sections.
    Held,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Reg(number) => write!(f, "R{number}")?,
            What::Slot(number) => write!(f, "fp-{}", (number + 1) * SLOT)?,
            What::Link(number) => write!(f, "the scalar linked as id {number}")?,
            What::Held => {
                return write!(
                    f,
                    "the run holds {} references or is in other critical sections",
                    self.value
                );
            }
        }
        write!(f, " of frame {} is {:#x}", self.frame, self.value)
    }
}

impl<'a> Comparison<'a> {
    pub(super) fn new(run: &'a dyn Run, program: &'a Program, base: usize) -> Self {
        Self {
            run,
            program,
            base,
            held: run.held(),
            packet: run.packet(),
            containing: [BLANK; Reg::COUNT],
        }
    }

    /// Checks that every register and slot of the run is contained in a state.
    pub(super) fn holds(&mut self, state: &Recorded, all: &Recording) -> Result<(), Mismatch> {
        let (mut links, functions) = (Links::default(), all.functions.as_slice());
        let mut matched = 0;
        let (state, pools) = (&state.state, &all.pools);
        let innermost = state.current();
        for (frame, known) in state.frames.iter().enumerate() {
            let mut judge = |holds: bool, what: What, value: u64| {
                matched += usize::from(holds);
                let mismatch = Mismatch {
                    frame,
                    what,
                    value,
                    matched,
                };
                if holds { Ok(()) } else { Err(mismatch) }
            };
            for reg in Reg::ALL {
                // The caller-saved registers of outer frames are not preserved.
                if frame != innermost && reg <= Reg::R5 {
                    continue;
                }
                let at = known.regs[reg.index()];
                let known = pools.regs.get(at);
                let value = self.run.reg(self.base + frame, reg);
                let is_innermost = frame == innermost;
                let holds = is_innermost && self.containing[reg.index()] == at
                    || self.reg(known, value, functions);
                judge(holds, What::Reg(reg.index()), value)?;
                if is_innermost {
                    self.containing[reg.index()] = at;
                }
                let linked = links.add(known, value);
                judge(linked, What::Link(id(known)), value)?;
            }
            for (number, slot) in known.stack.iter().enumerate() {
                let slot = pools.slots.get(*slot);
                if allows_anything(slot) {
                    continue;
                }
                let Some(value) = self.run.slot(self.base + frame, number) else {
                    continue;
                };
                let holds = self.slot(slot, value, functions)
                    && self.slot_object(slot, self.base + frame, number);
                judge(holds, What::Slot(number), value)?;
                if spilled(slot) == SLOT {
                    let linked = links.add(&slot.reg, value);
                    judge(linked, What::Link(id(&slot.reg)), value)?;
                }
            }
        }
        self.held(state).map_err(|value| Mismatch {
            frame: 0,
            what: What::Held,
            value,
            matched,
        })
    }

    /// The address of a slot of a frame of the run.
    pub(super) fn slot_address(&self, frame: usize, slot: usize) -> Option<u64> {
        let below = u64::try_from((slot + 1) * SLOT).ok()?;
        (frame < self.run.depth()).then(|| self.run.reg(frame, Reg::FP).wrapping_sub(below))
    }

    fn slot(&self, slot: &Slot, value: u64, functions: &[Function]) -> bool {
        let bytes = value.to_le_bytes();
        let zeros = std::iter::zip(slot.bytes, bytes.iter().rev());
        let mut zeros = zeros.filter(|(kind, _)| *kind == SlotKind::Zero);
        if zeros.any(|(_, byte)| *byte != 0) {
            return false;
        }
        match spilled(slot) {
            0 => true,
            SLOT => self.reg(&slot.reg, value, functions),
            size => {
                let low = value & (u64::MAX >> (64 - 8 * size));
                let bytes = u32::try_from(size).unwrap_or(8);
                !slot.reg.is_scalar() || slot.reg.var.to_size(bytes).contains(low)
            }
        }
    }

    /// Whether a lookup in this map returns a map or a socket.
    fn finds_no_values(&self, map: MapRef) -> bool {
        let def = map.def(self.program);
        def.is_some_and(|def| {
            def.inner.is_some()
                || matches!(
                    def.map_type,
                    MapType::Sockmap | MapType::Sockhash | MapType::Xskmap
                )
        })
    }

    /// Whether a register of the state can have this value.
    fn reg(&self, reg: &RegState, value: u64, functions: &[Function]) -> bool {
        if value == 0 && reg.maybe_null() {
            return true;
        }
        let from = |start: u64| reg.var.contains(distance(reg, value, start));
        let packet = self.packet;
        match reg.kind {
            Kind::NotInit | Kind::Arena => true,
            Kind::Scalar => reg.var.contains(value),
            Kind::Ctx => from(self.run.context()),
            Kind::Stack { frame } => {
                let frame = self.base + usize::from(frame);
                frame < self.run.depth() && from(self.run.reg(frame, Reg::FP))
            }
            Kind::MapPtr { map, .. } if !map.inner => self.run.map(map.id).is_none_or(from),
            // Other lookup results become map or socket pointers only after the null check.
            Kind::MapValue { map, .. } if reg.maybe_null() && self.finds_no_values(map) => true,
            Kind::MapValue { map, .. } => {
                let known = (!map.inner).then_some(map.id);
                let place = self.run.value(known, value);
                // Arithmetic before no access may lead to the addresses of other memory.
                let leads_anywhere = reg.var.smax.abs_diff(reg.var.smin) > u32::MAX.into();
                place.map_or(leads_anywhere, |place| in_value(reg, place))
            }
            Kind::Packet { range } => packet
                .is_none_or(|packet| from(packet.data) && reaches(reg, value, range, packet.end)),
            Kind::PacketMeta { range } => packet
                .is_none_or(|packet| from(packet.meta) && reaches(reg, value, range, packet.data)),
            Kind::PacketEnd => packet.is_none_or(|packet| from(packet.end)),
            Kind::Func { subprogram } => {
                let function = functions.get(subprogram as usize);
                function.is_some_and(|function| from(self.run.function(function.start)))
            }
            Kind::Mem { size } => match reg.var.value() {
                _ if reg.flags.intersects(UNREADABLE) => true,
                Some(var) => {
                    let start = distance(reg, value, var);
                    size == 0 || self.run.is_readable(start, size.into())
                }
                None => value != 0,
            },
            Kind::BtfId { ty } => self.object(reg, ty, value),
            Kind::Dynptr { kind, .. } => self.dynptr(value, kind),
            Kind::MapKey { map, .. } => {
                let size = map.def(self.program).map_or(0, |def| def.key_size);
                let Some(var) = reg.var.value() else {
                    return true;
                };
                let start = distance(reg, value, var);
                // A copy may outlive the callback that got the key (docs/findings.md).
                self.run.is_readable(start, size.into()) || self.run.is_freed(start)
            }
            Kind::MapPtr { .. }
            | Kind::FlowKeys
            | Kind::Socket
            | Kind::SockCommon
            | Kind::TcpSock
            | Kind::TpBuffer
            | Kind::XdpSock
            | Kind::Iter { .. }
            | Kind::IrqFlag { .. }
            | Kind::Buf => value != 0,
        }
    }
}

/// Memory that may not be readable.
const UNREADABLE: TypeFlags = TypeFlags::PTR_UNTRUSTED.union(TypeFlags::MEM_USER);

/// The value of the variable offset of a pointer.
pub(super) fn distance(reg: &RegState, value: u64, start: u64) -> u64 {
    value
        .wrapping_sub(start)
        .wrapping_sub(i64::from(reg.off).cast_unsigned())
}

/// Whether a packet pointer with this range has that many bytes before the end.
fn reaches(reg: &RegState, value: u64, range: i32, end: u64) -> bool {
    match range {
        AT_END => value >= end,
        BEYOND_END => value > end,
        _ => {
            let checked = distance(reg, value, 0).wrapping_add(i64::from(range).cast_unsigned());
            range == 0 || checked <= end
        }
    }
}

/// Whether a pointer can have this offset from a map's first value. Its arithmetic may
/// leave the value if it returns before an access, so adjacent values are tried too.
fn in_value(reg: &RegState, place: ValuePlace) -> bool {
    let span = i64::try_from(place.span).unwrap_or(i64::MAX).max(1);
    let inside = place.offset.wrapping_sub(reg.off.into()).rem_euclid(span);
    let spread = reg.var.smax.abs_diff(reg.var.smin) / place.span.max(1);
    if spread > NEIGHBOURS {
        return true;
    }
    let first = reg.var.smin.div_euclid(span);
    (0..=NEIGHBOURS.cast_signed() + 1)
        .map(|n| (first + n).wrapping_mul(span).wrapping_add(inside))
        .any(|offset| reg.var.contains(offset.cast_unsigned()))
}

/// Whether a slot of any value is one of the state: unwritten or unknown bytes.
fn allows_anything(slot: &Slot) -> bool {
    let unknown = |kind: &SlotKind| matches!(kind, SlotKind::Invalid | SlotKind::Misc);
    slot.bytes.iter().all(unknown)
}

/// The number of bytes of a slot that hold a spilled register.
fn spilled(slot: &Slot) -> usize {
    let spill = |kind: &&SlotKind| **kind == SlotKind::Spill;
    slot.bytes.iter().rev().take_while(spill).count()
}

fn id(reg: &RegState) -> usize {
    (reg.id & !ADD_CONST) as usize
}

/// The values of linked registers, minus their distances.
#[derive(Default)]
struct Links(SmallVec<[(usize, u64, bool); 8]>);

impl Links {
    /// Adds a register; returns whether it agrees with the others of its id.
    fn add(&mut self, reg: &RegState, value: u64) -> bool {
        if !reg.is_scalar() || id(reg) == 0 {
            return true;
        }
        let off = if reg.id & ADD_CONST == 0 { 0 } else { reg.off };
        let origin = value.wrapping_sub(i64::from(off).cast_unsigned());
        let half = reg.id & ADD_CONST32 != 0;
        let low = |number: u64| number & u64::from(u32::MAX);
        match self.0.iter().find(|known| known.0 == id(reg)) {
            Some(&(_, known, known_half)) if half || known_half => low(known) == low(origin),
            Some(&(_, known, _)) => known == origin,
            None => {
                self.0.push((id(reg), origin, half));
                true
            }
        }
    }
}
