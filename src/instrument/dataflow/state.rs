//! The analysis state before an instruction: registers and stack slots.

use super::kind::{Kind, Owner};
use crate::isa::{Reg, RegSet, Size};
use crate::spec::limits::STACK_SIZE;

/// Slots of a frame: 8 bytes each.
const SLOTS: usize = STACK_SIZE / 8;

/// The slots of a frame, by distance from its top: the first is that at -8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots(Box<[Kind; SLOTS]>);

impl Slots {
    pub(super) fn new() -> Self {
        Self(Box::new([Kind::Nothing; SLOTS]))
    }

    fn join(&mut self, other: &Self) -> bool {
        let pairs = self.0.iter_mut().zip(other.0.iter());
        pairs.fold(false, |changed, (slot, other)| {
            changed | update(slot, *other)
        })
    }

    /// The slots that `len` bytes from `off` lie in, wholly or partly.
    fn range(off: i16, len: u32) -> std::ops::Range<usize> {
        let top = -i32::from(off);
        let low = top.saturating_sub(i32::try_from(len).unwrap_or(i32::MAX));
        let slot = |at: i32| usize::try_from(at.max(0)).unwrap_or(0);
        slot(low) / 8..slot(top).div_ceil(8).min(SLOTS)
    }
}

/// Bytes of a frame, by distance from its top: the first is that at -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::instrument) struct Bytes([u64; SLOTS / 8]);

impl Bytes {
    /// The `len` bytes from `off`, or all up to the top.
    pub(in crate::instrument) fn of(off: i16, len: Option<u32>) -> Self {
        let top = -i32::from(off);
        let len = len.map_or(i32::MAX, |len| i32::try_from(len).unwrap_or(i32::MAX));
        let mut bytes = Self::default();
        for at in top.saturating_sub(len).max(0)..top {
            let at = at.unsigned_abs();
            if let Some(word) = bytes.0.get_mut(at as usize / 64) {
                *word |= 1 << (at % 64);
            }
        }
        bytes
    }

    /// What is in one or the other.
    pub(in crate::instrument) fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// What is in this and not in the other.
    pub(in crate::instrument) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// The slots with at least one of the bytes, each as the distance of its lowest byte.
    pub(in crate::instrument) fn slots(self) -> impl Iterator<Item = i16> {
        let words = (0..).zip(self.0.map(u64::to_le_bytes).concat());
        words.filter_map(|(slot, bytes): (i16, u8)| (bytes != 0).then_some(-8 * (slot + 1)))
    }
}

/// The state before an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::instrument) struct State {
    pub(super) regs: [Kind; Reg::COUNT],
    /// Registers that are defined on every path.
    pub(super) defined: RegSet,
    pub(super) own: Slots,
    /// Bytes of the own frame written on every path.
    pub(super) written: Bytes,
    /// The frame of the caller.
    pub(super) caller: Slots,
    /// A bit for each of the caller's slots that may have been written.
    pub(super) touched: u64,
}

impl State {
    /// The state at the start of a program.
    pub(super) fn of_main() -> Self {
        let mut state = Self::entry(RegSet::of(&[Reg::R1]));
        state.regs[Reg::R1.index()] = Kind::Context(Some(0));
        state
    }

    /// The state at the start of a function with these argument registers.
    pub(super) fn entry(arguments: RegSet) -> Self {
        let mut regs = [Kind::Nothing; Reg::COUNT];
        regs[Reg::FP.index()] = Kind::Frame {
            owner: Owner::Own,
            off: Some(0),
        };
        Self {
            regs,
            defined: arguments.with(Reg::FP),
            own: Slots::new(),
            written: Bytes::default(),
            caller: Slots::new(),
            touched: 0,
        }
    }

    /// The kind in a register.
    pub(in crate::instrument) fn reg(&self, reg: Reg) -> Kind {
        self.regs.get(reg.index()).copied().unwrap_or_default()
    }

    /// Registers that are defined on every path.
    pub(in crate::instrument) const fn defined(&self) -> RegSet {
        self.defined
    }

    /// Whether the `len` bytes from `off` of the own frame are a part of a spilled pointer, which
    /// a verifier lets a program load as a whole only.
    pub(in crate::instrument) fn splits_pointer(&self, off: i16, len: u32) -> bool {
        let ends = i32::from(off).saturating_add_unsigned(len);
        Slots::range(off, len).any(|number| {
            let low = i32::try_from(number).map_or(i32::MIN, |number| -8 * (number + 1));
            let is_whole = i32::from(off) <= low && low + 8 <= ends;
            let kind = self.own.0.get(number).copied().unwrap_or_default();
            !is_whole && !matches!(kind, Kind::Nothing | Kind::Scalar(_))
        })
    }

    /// The bytes of the own frame that may not have been written.
    pub(in crate::instrument) fn unwritten(&self, bytes: Bytes) -> Bytes {
        bytes.minus(self.written)
    }

    pub(super) fn set(&mut self, reg: Reg, kind: Kind) {
        if let Some(slot) = self.regs.get_mut(reg.index()) {
            *slot = kind;
        }
        self.defined = self.defined.with(reg);
    }

    pub(super) fn forget(&mut self, regs: RegSet) {
        for reg in regs.iter() {
            self.set(reg, Kind::Nothing);
        }
        self.defined = self.defined.minus(regs);
    }

    /// Joins the state of another path; returns whether this one changed.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (kind, other) in self.regs.iter_mut().zip(other.regs) {
            changed |= update(kind, other);
        }
        let undefined = self.defined.minus(other.defined);
        changed |= !undefined.is_empty();
        self.defined = self.defined.minus(undefined);
        let unwritten = self.written.minus(other.written);
        changed |= unwritten != Bytes::default();
        self.written = self.written.minus(unwritten);
        changed |= self.own.join(&other.own) | self.caller.join(&other.caller);
        changed |= self.touched | other.touched != self.touched;
        self.touched |= other.touched;
        changed
    }

    /// The kind that a load of this size from a frame yields.
    pub(super) fn load(&self, owner: Owner, off: Option<i16>, size: Size) -> Kind {
        let slots = match owner {
            Owner::Own => &self.own,
            Owner::Caller => &self.caller,
            Owner::Outer if size == Size::Dw => return Kind::Unknown,
            Owner::Outer => return Kind::NUMBER,
        };
        let whole = |off: i16| size == Size::Dw && off % 8 == 0;
        match off {
            Some(off) if whole(off) => {
                let slot = slots.0.get(Slots::range(off, 8).start).copied();
                match slot.unwrap_or_default() {
                    Kind::Nothing => Kind::NUMBER,
                    kind => kind,
                }
            }
            // Any slot may be loaded.
            None if size == Size::Dw => slots
                .0
                .iter()
                .fold(Kind::NUMBER, |all, slot| all.join(*slot)),
            _ => Kind::NUMBER,
        }
    }

    /// A store of `len` bytes; keeps the kind if they are one whole slot.
    pub(super) fn store(&mut self, owner: Owner, off: Option<i16>, len: Option<u32>, kind: Kind) {
        let slots = match owner {
            Owner::Own => &mut self.own,
            Owner::Caller => &mut self.caller,
            Owner::Outer => return,
        };
        let range = match (off, len) {
            (Some(off), Some(len)) => Slots::range(off, len),
            // From there to the top.
            (Some(off), None) => 0..Slots::range(off, 1).end,
            (None, _) => 0..SLOTS,
        };
        let whole = matches!((off, len), (Some(off), Some(8)) if off % 8 == 0);
        if let (Owner::Own, Some(off), Some(_)) = (owner, off, len) {
            self.written = self.written.union(Bytes::of(off, len));
        }
        for number in range {
            let Some(slot) = slots.0.get_mut(number) else {
                continue;
            };
            *slot = if whole {
                kind
            } else if off.is_some() && len.is_some() {
                Kind::NUMBER
            } else {
                slot.join(kind)
            };
            if owner == Owner::Caller {
                self.touched |= 1 << number;
            }
        }
    }

    /// Updates the own frame from a called function's state at its exit.
    pub(super) fn take_back(&mut self, ended: &Self) {
        for (number, slot) in self.own.0.iter_mut().enumerate() {
            if ended.touched >> number & 1 != 0 {
                let kind = ended.caller.0.get(number).copied().unwrap_or_default();
                *slot = slot.join(kind.outwards());
            }
        }
    }

    /// The own frame as seen by a function called now.
    pub(super) fn own_from_inside(&self) -> Slots {
        let mut slots = self.own.clone();
        for slot in slots.0.iter_mut() {
            *slot = slot.inwards();
        }
        slots
    }

    /// Whether a register or stack slot holds a pointer into the caller's frame.
    pub(super) fn lends_caller(&self) -> bool {
        let lent = |kind: &Kind| {
            matches!(
                kind,
                Kind::Frame {
                    owner: Owner::Caller,
                    ..
                }
            )
        };
        self.regs.iter().chain(self.own.0.iter()).any(lent)
    }

    /// Forgets all about the caller's frame.
    pub(super) fn lose_caller(&mut self) {
        self.touched = u64::MAX;
        for slot in self.caller.0.iter_mut() {
            *slot = slot.join(Kind::NUMBER);
        }
    }
}

fn update(kind: &mut Kind, other: Kind) -> bool {
    let joined = kind.join(other);
    let changed = joined != *kind;
    *kind = joined;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_frame_are_counted_from_its_top() {
        let slots = |bytes: Bytes| bytes.slots().collect::<Vec<_>>();
        assert_eq!(slots(Bytes::of(-12, Some(8))), [-8, -16]);
        assert_eq!(slots(Bytes::of(-512, Some(1))), [-512]);
        assert_eq!(slots(Bytes::of(-20, None)), [-8, -16, -24]);
        let rest = Bytes::of(-16, Some(16)).minus(Bytes::of(-16, Some(8)));
        assert_eq!(slots(rest), [-8]);
        assert_eq!(slots(Bytes::of(8, Some(8))), [0; 0]);
    }

    #[test]
    fn what_one_path_leaves_open_is_open() {
        let mut one = State::of_main();
        let mut other = one.clone();
        one.store(Owner::Own, Some(-8), Some(8), Kind::Context(Some(0)));
        other.store(Owner::Own, Some(-8), Some(4), Kind::NUMBER);
        assert!(one.join(&other));
        assert_eq!(
            one.load(Owner::Own, Some(-8), Size::Dw),
            Kind::Context(Some(0))
        );
        let open = one.unwritten(Bytes::of(-8, Some(8)));
        assert_eq!(open, Bytes::of(-4, Some(4)));
        assert!(!one.clone().join(&one));
    }
}
