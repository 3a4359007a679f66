//! A state in the log's notation (`print_verifier_state`, `kernel/bpf/log.c`):
//! `R1=ctx() R10=fp0 fp-8=mmmmmmmm refs=2`.

use std::fmt;

use super::number::{Signed, Unsigned, ranges};
use super::touched::Touched;
use crate::program::Program;
use crate::spec::helpers::TypeFlags;
use crate::verifier::maps::Maps;
use crate::verifier::reg::{ADD_CONST, DynptrKind, IterState, Kind, ObjectType, RegState};
use crate::verifier::stack::{SLOT, Slot, SlotKind};
use crate::verifier::state::{Entry, Frame, State};

/// The text of one frame of a state, with references. It begins with a blank and has no
/// newline.
pub(crate) struct StateText<'a> {
    /// The program, for type names.
    pub program: &'a Program,
    /// Its maps, for their names.
    pub maps: &'a Maps<'a>,
    pub state: &'a State,
    /// The number of the frame.
    pub frame: usize,
    /// The registers and slots to print.
    pub touched: Touched,
}

impl fmt::Display for StateText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(frame) = self.state.frames.get(self.frame) else {
            return Ok(());
        };
        if self.frame != 0 {
            write!(f, " frame{}:", self.frame)?;
        }
        let text = |reg| RegText {
            program: self.program,
            maps: self.maps,
            frame: self.frame,
            reg,
        };
        for (number, reg) in frame.regs.iter().enumerate() {
            if reg.is_init() && self.touched.has_reg(number) {
                write!(f, " R{number}={}", text(reg))?;
            }
        }
        let mut slots = frame.stack.iter().enumerate();
        while let Some((number, slot)) = slots.next() {
            if !self.touched.has_slot(number)
                || slot.bytes.iter().all(|&kind| kind == SlotKind::Invalid)
            {
                continue;
            }
            match slot.reg.kind {
                // The slot at the lower address has the attributes.
                Kind::Dynptr { .. } if slot.is_special() => {
                    if let Some((number, main)) = slots.next() {
                        write!(f, " fp-{}=", (number + 1) * SLOT)?;
                        object(f, &main.reg)?;
                    }
                }
                Kind::Iter { .. } if slot.is_special() => {
                    if slot.reg.ref_id != 0 {
                        write!(f, " fp-{}=", (number + 1) * SLOT)?;
                        object(f, &slot.reg)?;
                    }
                }
                _ => {
                    write!(f, " fp-{}=", (number + 1) * SLOT)?;
                    slot_bytes(f, slot)?;
                    if slot.is_spill() {
                        text(&slot.reg).fmt(f)?;
                    }
                }
            }
        }
        self.references(f)?;
        f.write_str(entry(frame))
    }
}

impl StateText<'_> {
    /// The references. (Locks have no id.)
    fn references(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without an id: the lock in a map's value that has a constant address.
        let ids = self.state.refs.oldest_first();
        let ids = ids.map(|reference| reference.id);
        if ids.clone().next() == Some(0) {
            return Ok(());
        }
        for (at, id) in ids.filter(|id| *id != 0).enumerate() {
            let before = if at == 0 { " refs=" } else { "," };
            write!(f, "{before}{id}")?;
        }
        Ok(())
    }
}

/// An object in stack slots: `dynptr_ringbuf(id=2,ref_id=3)`,
/// `iter_num(ref_id=1,state=active,depth=0)`.
fn object(f: &mut fmt::Formatter<'_>, reg: &RegState) -> fmt::Result {
    match reg.kind {
        Kind::Dynptr { kind, first } => {
            write!(f, "dynptr_{}(", dynptr_name(kind))?;
            let mut separator = "";
            // The kernel reads the last one from where it stores `first_slot`.
            let ids = [
                ("id", reg.id),
                ("ref_id", reg.ref_id),
                ("dynptr_id", first.into()),
            ];
            for (name, id) in ids {
                if id != 0 {
                    write!(f, "{separator}{name}={id}")?;
                    separator = ",";
                }
            }
            f.write_str(")")
        }
        Kind::Iter { kind, state, depth } => {
            let name = kind.structure();
            let state = match state {
                IterState::Active => "active",
                IterState::Drained => "drained",
            };
            write!(
                f,
                "iter_{}(ref_id={},state={state},depth={depth})",
                name.strip_prefix("bpf_iter_").unwrap_or(name),
                reg.ref_id
            )
        }
        _ => Ok(()),
    }
}

/// The bytes of a slot, a letter each; with a spilled register, only the bytes that are not
/// part of it.
fn slot_bytes(f: &mut fmt::Formatter<'_>, slot: &Slot) -> fmt::Result {
    let own = |kind: &&SlotKind| !slot.is_spill() || **kind != SlotKind::Spill;
    for kind in slot.bytes.iter().take_while(own) {
        f.write_str(match kind {
            SlotKind::Invalid => "?",
            SlotKind::Spill => "r",
            SlotKind::Misc => "m",
            SlotKind::Zero => "0",
            SlotKind::Dynptr => "d",
            SlotKind::Iter => "i",
            SlotKind::IrqFlag => "f",
        })?;
    }
    Ok(())
}

const fn entry(frame: &Frame) -> &'static str {
    match frame.entry {
        Entry::Call => "",
        Entry::Callback => " cb",
        Entry::AsyncCallback(_) => " async_cb",
    }
}

/// The text of a register (`print_reg_state`).
pub(crate) struct RegText<'a> {
    pub program: &'a Program,
    pub maps: &'a Maps<'a>,
    /// The number of its frame.
    pub frame: usize,
    pub reg: &'a RegState,
}

impl fmt::Display for RegText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reg = self.reg;
        if reg.is_scalar() && reg.precise {
            f.write_str("P")?;
        }
        if let Some(value) = reg.value() {
            return Signed(value.cast_signed()).fmt(f);
        }
        reg.reg_type().fmt(f)?;
        match reg.kind {
            Kind::Arena => return Ok(()),
            Kind::Stack { frame } => {
                if usize::from(frame) != self.frame {
                    write!(f, "[{frame}]")?;
                }
                if let Some(offset) = reg.var.value() {
                    let offset = offset.cast_signed().wrapping_add(reg.off.into());
                    return Signed(offset).fmt(f);
                }
            }
            Kind::BtfId { ty } => f.write_str(type_name(self.program, ty))?,
            _ => {}
        }
        f.write_str("(")?;
        self.attributes(f)?;
        f.write_str(")")
    }
}

impl RegText<'_> {
    /// The attributes in the parentheses.
    fn attributes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reg = self.reg;
        let mut separator = "";
        let mut next = || std::mem::replace(&mut separator, ",");
        if reg.id != 0 {
            write!(f, "{}id={}", next(), reg.id & !ADD_CONST)?;
            if reg.id & ADD_CONST != 0 {
                write!(f, "{:+}", reg.off)?;
            }
        }
        if reg.ref_id != 0 {
            write!(f, "{}ref_obj_id={}", next(), reg.ref_id)?;
        }
        let borrowed = TypeFlags::MEM_ALLOC.union(TypeFlags::NON_OWN_REF);
        if reg.flags.contains(borrowed) {
            write!(f, "{}non_own_ref", next())?;
        }
        if let Some(named) = reg.map()
            && let Some(map) = self.maps.def(named)
        {
            let name = self.maps.name(named);
            if !name.is_empty() {
                write!(f, "{}map={name}", next())?;
            }
            write!(f, "{}ks={},vs={}", next(), map.key_size, map.value_size)?;
        }
        if !reg.is_scalar() && reg.off != 0 {
            write!(f, "{}off={}", next(), Signed(reg.off.into()))?;
        }
        if reg.is_packet() {
            // A negative range is printed as unsigned 64 bits.
            let range = i64::from(reg.range()).cast_unsigned();
            write!(f, "{}r={}", next(), Unsigned(range))?;
        }
        if let Kind::Mem { size } = reg.kind {
            write!(f, "{}sz={}", next(), Unsigned(size.into()))?;
        }
        if let Kind::Dynptr { kind, .. } = reg.kind {
            write!(f, "{}type={}", next(), dynptr_name(kind))?;
        }
        if let Some(offset) = reg.var.value() {
            if offset != 0 {
                write!(f, "{}imm={}", next(), Signed(offset.cast_signed()))?;
            }
            return Ok(());
        }
        ranges(f, &reg.var, &mut separator)?;
        if !reg.var.bits.is_unknown() {
            write!(f, "{separator}var_off={}", reg.var.bits)?;
        }
        Ok(())
    }
}

/// The name of an object's type; empty if the BTF is missing.
pub(crate) fn type_name(program: &Program, ty: ObjectType) -> &str {
    let found = ty.btf(program).and_then(|btf| btf.get(ty.id));
    found.map_or("", |found| found.name())
}

/// A dynptr's kind (`dynptr_type_str`).
pub(crate) const fn dynptr_name(kind: DynptrKind) -> &'static str {
    match kind {
        DynptrKind::Local => "local",
        DynptrKind::Ringbuf => "ringbuf",
        DynptrKind::Skb => "skb",
        DynptrKind::Xdp => "xdp",
        DynptrKind::SkbMeta => "skb_meta",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Reg;
    use crate::program::MapDef;
    use crate::spec::call::IteratorKind;
    use crate::spec::{MapType, ProgType};
    use crate::util::{MapId, Pc};
    use crate::verifier::references::{Reference, ReferenceKind};
    use crate::verifier::reg::{ADD_CONST64, MapRef};
    use crate::verifier::scalar::Scalar;
    use crate::verifier::state::Entry;
    use crate::verifier::tnum::Tnum;

    fn program() -> Program {
        let map = MapDef::new("events-by-name-and-number", MapType::Array, 4, 48, 1);
        let mut outer = MapDef::new("", MapType::ArrayOfMaps, 4, 4, 1);
        outer.inner = Some(Box::new(map.clone()));
        let mut program = Program::new("test", ProgType::Xdp, Vec::new());
        program.maps = [map, outer].into();
        program
    }

    fn text(reg: RegState) -> String {
        let program = program();
        let maps = Maps::new(&program);
        let (program, maps, frame) = (&program, &maps, 1);
        let reg = &reg;
        RegText {
            program,
            maps,
            frame,
            reg,
        }
        .to_string()
    }

    fn pointer(kind: Kind) -> RegState {
        RegState::pointer(kind, TypeFlags::empty())
    }

    const BYTE: Scalar = Scalar {
        bits: Tnum {
            value: 0,
            mask: 255,
        },
        umax: 255,
        smin: 0,
        smax: 255,
        umax32: 255,
        smin32: 0,
        smax32: 255,
        ..Scalar::UNKNOWN
    };
    const BYTE_TEXT: &str = "smin=smin32=0,smax=umax=smax32=umax32=255,var_off=(0x0; 0xff)";

    #[test]
    fn numbers() {
        assert_eq!(text(RegState::constant(u64::MAX)), "-1");
        assert_eq!(text(RegState::UNKNOWN), "scalar()");
        assert_eq!(text(RegState::scalar(BYTE)), format!("scalar({BYTE_TEXT})"));
        let linked = RegState {
            id: 7 | ADD_CONST64,
            off: -4,
            precise: true,
            ..RegState::scalar(BYTE)
        };
        assert_eq!(text(linked), format!("Pscalar(id=7-4,{BYTE_TEXT})"));
    }

    #[test]
    fn pointers() {
        let own = RegState {
            off: -8,
            ..pointer(Kind::Stack { frame: 1 })
        };
        assert_eq!(text(own), "fp-8");
        assert_eq!(text(pointer(Kind::Stack { frame: 0 })), "fp[0]0");
        let somewhere = RegState { var: BYTE, ..own };
        assert_eq!(text(somewhere), format!("fp(off=-8,{BYTE_TEXT})"));
        let packet = RegState {
            id: 3,
            off: 14,
            ..pointer(Kind::Packet { range: 34 })
        };
        assert_eq!(text(packet), "pkt(id=3,off=14,r=34)");
        let at_end = pointer(Kind::Packet { range: -1 });
        assert_eq!(text(at_end), "pkt(r=0xffffffffffffffff)");
        let record = RegState {
            flags: TypeFlags::MEM_RINGBUF,
            ref_id: 2,
            ..pointer(Kind::Mem { size: 70000 })
        };
        assert_eq!(text(record), "ringbuf_mem(ref_obj_id=2,sz=0x11170)");
    }

    #[test]
    fn pointers_into_maps_name_them() {
        let map = |id, inner| MapRef {
            id: MapId(id),
            inner,
        };
        let value = RegState {
            id: 1,
            flags: TypeFlags::PTR_MAYBE_NULL,
            ..pointer(Kind::MapValue {
                map: map(0, false),
                uid: 0,
            })
        };
        assert_eq!(
            text(value),
            "map_value_or_null(id=1,map=events_by_name_,ks=4,vs=48)"
        );
        let outer = Kind::MapPtr {
            map: map(1, false),
            uid: 0,
        };
        assert_eq!(text(pointer(outer)), "map_ptr(ks=4,vs=4)");
        let inner = Kind::MapPtr {
            map: map(1, true),
            uid: 0,
        };
        assert_eq!(text(pointer(inner)), "map_ptr(ks=4,vs=48)");
    }

    #[test]
    fn a_state_is_its_frame_and_what_is_held() {
        let program = program();
        let maps = Maps::new(&program);
        let mut inner = Frame::new(Some(Pc(3)), 1, 1);
        inner.entry = Entry::Callback;
        inner.regs[Reg::R0.index()] = RegState::constant(5);
        inner.grow(3);
        inner.stack[0].spill(&RegState::scalar(BYTE), 8);
        inner.stack[1].bytes = [SlotKind::Zero; SLOT];
        inner.stack[1].spill(&RegState::constant(7), 4);
        inner.stack[3].bytes = [SlotKind::Misc; SLOT];
        inner.stack[3].bytes[0] = SlotKind::Invalid;
        let reference = |id| Reference {
            id,
            pc: Pc(0),
            kind: ReferenceKind::Object,
        };
        let mut state = State::new(Frame::new(None, 0, 0));
        state.frames.push(inner);
        state.refs.push(reference(1));
        state.refs.push(reference(2));
        let show = |frame, touched| {
            StateText {
                program: &program,
                maps: &maps,
                state: &state,
                frame,
                touched,
            }
            .to_string()
        };
        assert_eq!(show(0, Touched::ALL), " R10=fp0 refs=1,2");
        assert_eq!(
            show(1, Touched::ALL),
            format!(
                " frame1: R0=5 R10=fp0 fp-8=scalar({BYTE_TEXT}) fp-16=00007 \
                 fp-32=?mmmmmmm refs=1,2 cb"
            )
        );
        let mut touched = Touched::NONE;
        touched.add_reg(Reg::R0);
        touched.add_slot(2);
        assert_eq!(show(1, touched), " frame1: R0=5 refs=1,2 cb");
    }

    #[test]
    fn objects_in_slots_are_named_at_their_lowest_address() {
        let program = program();
        let maps = Maps::new(&program);
        let mut frame = Frame::new(None, 0, 0);
        frame.grow(3);
        let part = |kind, ref_id| RegState {
            ref_id,
            ..pointer(kind)
        };
        let half = |first| Kind::Dynptr {
            kind: DynptrKind::Ringbuf,
            first,
        };
        let iterator = Kind::Iter {
            kind: IteratorKind::Task,
            state: IterState::Drained,
            depth: 3,
        };
        let parts = [
            (part(half(false), 2), SlotKind::Dynptr),
            (part(half(true), 2), SlotKind::Dynptr),
            (part(iterator, 0), SlotKind::Iter),
            (part(iterator, 5), SlotKind::Iter),
        ];
        for (slot, (reg, kind)) in frame.stack.iter_mut().zip(parts) {
            (slot.reg, slot.bytes) = (reg, [kind; SLOT]);
        }
        let text = StateText {
            program: &program,
            maps: &maps,
            state: &State::new(frame),
            frame: 0,
            touched: Touched::ALL,
        };
        assert_eq!(
            text.to_string(),
            " R10=fp0 fp-16=dynptr_ringbuf(ref_id=2,dynptr_id=1) \
             fp-32=iter_task(ref_id=5,state=drained,depth=3)"
        );
    }
}
