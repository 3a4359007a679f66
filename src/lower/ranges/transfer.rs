//! What an operation makes of what was known before it.

use super::facts::{Fact, Index, branch_notes, notes};
use super::state::{State, Value, union};
use crate::isa::{AluOp, JumpOp, Operand, Reg, RegSet, Size, Width, sign_extend32};
use crate::lower::effect::{may_write_frame, writes};
use crate::lower::known::CPU;
use crate::lower::lowered::{BoundMap, Helper, Keys};
use crate::lower::op::{Op, Place};
use crate::verifier::scalar::Scalar;

/// What a program is bound to, as far as it says something of numbers.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub maps: &'a [BoundMap],
    pub helpers: &'a [Helper],
    pub cpus: u32,
}

/// What is known after a branch, on either way; none for a way that is never gone.
pub(super) struct Ways {
    pub taken: Option<State>,
    pub not_taken: Option<State>,
}

impl State {
    fn operand(&self, operand: Operand) -> Value {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(imm) => Value::Number(Scalar::constant(sign_extend32(imm))),
        }
    }

    /// Makes of this state the one after an operation that is no branch, and says what is
    /// known of the operation.
    pub fn step(&mut self, world: World<'_>, op: Op) -> Fact {
        let before = |reg| self.reg(reg).number();
        match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => return self.alu(op, width, dst, src),
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                let result = before(src).movsx(width, from);
                let notes = notes::extended(width, &result);
                self.number(dst, result);
                return Fact::noted(notes);
            }
            Op::Neg { width, dst } => {
                let result = before(dst).neg(width);
                self.number(dst, result);
            }
            Op::Endian { op, size, dst } => {
                let result = Scalar::endian(op, size, &before(dst));
                self.number(dst, result);
            }
            Op::LoadImm { dst, value } => self.number(dst, Scalar::constant(value)),
            Op::Load {
                size, dst, place, ..
            } => {
                let loaded = self.loaded(place, size);
                let notes = self.aligned(place, size);
                self.set(dst, loaded);
                return Fact::noted(notes);
            }
            Op::LoadSx { from, dst, place } => {
                let notes = self.aligned(place, from.size());
                let number = self.loaded(place, from.size()).number();
                self.number(dst, number.to_size_signed(from.size().bytes().into()));
                return Fact::noted(notes);
            }
            Op::Store {
                size, place, src, ..
            } => {
                let value = self.operand(src);
                let notes = self.aligned(place, size);
                self.stored(place, size, Some(value));
                return Fact::noted(notes);
            }
            Op::Atomic { width, place, .. } => {
                let notes = self.aligned(place, width.size());
                self.stored(place, width.size(), None);
                for reg in writes(op).iter() {
                    self.number(reg, number_of(width.size()));
                }
                return Fact::noted(notes);
            }
            Op::LoadPacket { size, .. } => {
                self.called();
                self.number(Reg::R0, number_of(size));
            }
            Op::Lookup { map, key, .. } => return self.look_up(world, map, key),
            Op::Known { which } => {
                let number = match which {
                    CPU => Scalar::range(0, u64::from(world.cpus).saturating_sub(1)),
                    _ => Scalar::UNKNOWN,
                };
                self.number(Reg::R0, number);
            }
            Op::CallHelper { .. } | Op::CallFunction { .. } | Op::TailCall => {
                if may_write_frame(op, world.helpers) {
                    self.forget_all();
                }
                self.called();
            }
            Op::LoadPointer { dst, .. } => self.number(dst, Scalar::UNKNOWN),
            Op::Jump { .. } | Op::JumpIf { .. } | Op::MayGoto { .. } | Op::Exit => {}
        }
        Fact::default()
    }

    /// What is known on each way that a branch may go.
    pub fn branch(self, op: JumpOp, width: Width, dst: Reg, src: Operand) -> (Ways, Fact) {
        let (Value::Number(x), Value::Number(y)) = (self.reg(dst), self.operand(src)) else {
            let ways = Ways {
                taken: Some(self.clone()),
                not_taken: Some(self),
            };
            return (ways, Fact::default());
        };
        let is_taken = Scalar::is_taken(op, width, &x, &y);
        let way = |state: Self, taken: bool| {
            if is_taken == Some(!taken) {
                return None;
            }
            state.refined(op, width, dst, src, taken)
        };
        let (taken, not_taken) = (way(self.clone(), true), way(self, false));
        let fact = Fact {
            goes: match (&taken, &not_taken) {
                (Some(_), None) => Some(true),
                (None, Some(_)) => Some(false),
                _ => None,
            },
            notes: branch_notes(op, width, &x, &y),
            ..Fact::default()
        };
        (Ways { taken, not_taken }, fact)
    }

    /// What is known where a comparison is true, or false; none where it can't be.
    fn refined(
        mut self,
        op: JumpOp,
        width: Width,
        dst: Reg,
        src: Operand,
        taken: bool,
    ) -> Option<Self> {
        let (x, y) = (self.reg(dst).number(), self.operand(src).number());
        let (x, y) = if src == Operand::Reg(dst) {
            let same = Scalar::refine_same(op, width, &x, taken);
            (same, same)
        } else {
            Scalar::refine(op, width, &x, &y, taken)
        };
        if !x.is_consistent() || !y.is_consistent() {
            return None;
        }
        self.number(dst, x);
        if let Operand::Reg(src) = src {
            self.number(src, y);
        }
        Some(self)
    }

    fn number(&mut self, reg: Reg, number: Scalar) {
        self.set(reg, Value::Number(number));
    }

    fn alu(&mut self, op: AluOp, width: Width, dst: Reg, src: Operand) -> Fact {
        let (x, y) = (self.reg(dst), self.operand(src));
        let (Value::Number(a), Value::Number(b)) = (x, y) else {
            self.set(dst, frame_alu(op, width, x, y));
            return Fact::default();
        };
        let result = numbers(op, width, &a, &b);
        self.number(dst, result);
        Fact::noted(notes::arithmetic(
            op,
            width,
            &a,
            &b,
            &result,
            src == Operand::Reg(dst),
        ))
    }

    /// What a load gives.
    fn loaded(&self, place: Place, size: Size) -> Value {
        let known = match place {
            Place::Stack { off } => self.slot(off, size.bytes()),
            // A field of a context may load as a pointer, whatever its size.
            Place::Checked { .. } => return Value::Number(Scalar::UNKNOWN),
            _ => None,
        };
        match known {
            Some(Value::Number(number)) => Value::Number(number.to_size(size.bytes().into())),
            Some(frame) if size == Size::Dw => frame,
            _ => Value::Number(number_of(size)),
        }
    }

    /// Bytes are written, with a value that is known or not.
    fn stored(&mut self, place: Place, size: Size, value: Option<Value>) {
        match (place, value) {
            (Place::Stack { off }, Some(value)) => self.store(off, size.bytes(), value),
            (Place::Stack { off }, None) => self.forget(off, size.bytes()),
            // They are no part of a stack.
            (Place::Context { .. } | Place::MapValue { .. } | Place::Packet { .. }, _) => {}
            // A caller's stack, or this one at an offset that varies.
            (Place::Table { .. } | Place::Checked { .. }, _) => self.forget_all(),
        }
    }

    /// After a call nothing is known of the registers that it leaves undefined.
    fn called(&mut self) {
        for reg in RegSet::CALLER_SAVED.iter() {
            self.set(reg, Value::UNKNOWN);
        }
    }

    /// Whether the address of an access to a map's value is aligned. (That of the
    /// host is then: values are at multiples of 8 in both.)
    fn aligned(&self, place: Place, size: Size) -> notes::Notes {
        let Place::MapValue { base, off, .. } = place else {
            return notes::Notes::empty();
        };
        let address = self.reg(base).number().add_const(off.into());
        notes::aligned(address.bits.is_aligned(size.bytes().into()))
    }

    /// A look-up: where the key is, and what is found.
    fn look_up(&mut self, world: World<'_>, map: u16, key: Place) -> Fact {
        let place = match self.reg(Reg::R2) {
            Value::Frame(off) => i16::try_from(off).map_or(key, |off| Place::Stack { off }),
            Value::Number(_) => key,
        };
        let mut fact = Fact {
            key: Some(place),
            ..Fact::default()
        };
        let mut found = Scalar::UNKNOWN;
        if let Some(map) = world.maps.get(usize::from(map)) {
            let index = match place {
                Place::Stack { .. } => self.loaded(place, Size::W).number(),
                _ => number_of(Size::W),
            };
            let (is_there, element) = elements(map, world.cpus, &index);
            found = address(map, &element);
            if is_there {
                fact.index = Some(match (map.keys, index.value()) {
                    (Keys::Index { .. }, Some(index)) => Index::Constant(map.address(index)),
                    _ => Index::Below,
                });
            } else {
                found = union(&found, &Scalar::ZERO);
            }
        }
        self.called();
        self.number(Reg::R0, found);
        fact
    }
}

/// Whether a look-up always finds something, and the elements that it may find.
fn elements(map: &BoundMap, cpus: u32, index: &Scalar) -> (bool, Scalar) {
    let below = |count: u32| {
        let last = u64::from(count).saturating_sub(1);
        (
            count > 0 && index.umax <= last,
            Scalar::range(index.umin.min(last), index.umax.min(last)),
        )
    };
    match map.keys {
        Keys::Index { count } => below(count),
        Keys::PerCpuIndex { count } => {
            let all = u64::from(count) * u64::from(cpus);
            (below(count).0, Scalar::range(0, all.saturating_sub(1)))
        }
        Keys::Other { .. } => {
            let count = map
                .map
                .slab()
                .map_or(u64::MAX >> 24, |slab| slab.count() as u64);
            (false, Scalar::range(0, count.saturating_sub(1)))
        }
    }
}

/// The addresses of these elements' values.
fn address(map: &BoundMap, element: &Scalar) -> Scalar {
    let times = |a, b: u64| Scalar::alu(AluOp::Mul, Width::W64, a, &Scalar::constant(b));
    let offset = times(element, map.span);
    Scalar::alu(
        AluOp::Add,
        Width::W64,
        &Scalar::constant(map.first),
        &offset,
    )
}

/// Any number of this size.
fn number_of(size: Size) -> Scalar {
    Scalar::UNKNOWN.to_size(size.bytes().into())
}

/// Arithmetic on a frame pointer.
fn frame_alu(op: AluOp, width: Width, x: Value, y: Value) -> Value {
    let by = |number: Scalar| {
        number
            .value()
            .and_then(|by| i32::try_from(by.cast_signed()).ok())
    };
    let moved = match (op, width, x, y) {
        (AluOp::Mov, Width::W64, _, frame @ Value::Frame(_)) => return frame,
        (AluOp::Mov, Width::W64, _, number) => return number,
        (AluOp::Mov, Width::W32, _, number) => {
            return Value::Number(numbers(op, width, &Scalar::UNKNOWN, &number.number()));
        }
        (AluOp::Add, Width::W64, Value::Frame(off), Value::Number(number))
        | (AluOp::Add, Width::W64, Value::Number(number), Value::Frame(off)) => {
            by(number).and_then(|by| off.checked_add(by))
        }
        (AluOp::Sub, Width::W64, Value::Frame(off), Value::Number(number)) => {
            by(number).and_then(|by| off.checked_sub(by))
        }
        _ => None,
    };
    moved.map_or(Value::UNKNOWN, Value::Frame)
}

/// Arithmetic. The verifier, and so [`Scalar::alu`], gives up where the kernel does; a
/// quotient, a remainder and a shift by an unknown amount have an end nevertheless.
fn numbers(op: AluOp, width: Width, x: &Scalar, y: &Scalar) -> Scalar {
    let result = Scalar::alu(op, width, x, y);
    if !result.is_unknown() {
        return result;
    }
    let (xmax, (ymin, ymax)) = match width {
        Width::W64 => (x.umax, (y.umin, y.umax)),
        Width::W32 => (x.umax32.into(), (y.umin32.into(), y.umax32.into())),
    };
    let most = match op {
        // Division by zero gives zero.
        AluOp::Div => xmax / ymin.max(1),
        // By zero, what was divided is left.
        AluOp::Mod if ymin > 0 => xmax.min(ymax - 1),
        AluOp::Mod | AluOp::Rsh => xmax,
        _ if width == Width::W32 => u32::MAX.into(),
        _ => return result,
    };
    Scalar::range(0, most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is computed of members is a member.
        #[test]
        fn results_are_members(
            op in proptest::sample::select(AluOp::ALL),
            is_wide in any::<bool>(),
            x in any::<(u64, u64)>(),
            y in any::<(u64, u64)>(),
            shift in (0u32..64, 0u32..64),
        ) {
            let width = if is_wide { Width::W64 } else { Width::W32 };
            let (x, y) = ((x.0 >> shift.0, x.1 >> shift.0), (y.0 >> shift.1, y.1 >> shift.1));
            let range = |(a, b): (u64, u64)| Scalar::range(a.min(b), a.max(b));
            let result = numbers(op, width, &range(x), &range(y));
            for (a, b) in [(x.0, y.0), (x.0, y.1), (x.1, y.0), (x.1, y.1)] {
                prop_assert!(result.contains(op.eval(width, a, b)), "{result:?}");
            }
        }
    }

    #[test]
    fn a_remainder_is_below_its_divisor() {
        let ten = Scalar::constant(10);
        let rest = numbers(AluOp::Mod, Width::W64, &Scalar::UNKNOWN, &ten);
        assert_eq!(rest.umax, 9);
        let any = number_of(Size::B);
        assert_eq!(numbers(AluOp::Mod, Width::W32, &any, &any).umax, 255);
        assert_eq!(numbers(AluOp::Div, Width::W64, &any, &ten).umax, 25);
        assert_eq!(numbers(AluOp::Rsh, Width::W64, &any, &any).umax, 255);
    }
}
