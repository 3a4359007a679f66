//! The transfer function of each operation.

use super::facts::{Fact, Index, branch_notes, notes};
use super::state::{State, Value, union};
use crate::isa::{AluOp, JumpOp, Operand, Reg, RegSet, Size, Width, sign_extend32};
use crate::lower::effect::{may_write_frame, writes};
use crate::lower::known::CPU;
use crate::lower::lowered::{BoundMap, Helper, Keys};
use crate::lower::op::{MemRef, Op};
use crate::verifier::scalar::Scalar;

/// The program's bindings that determine numbers.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub maps: &'a [BoundMap],
    pub helpers: &'a [Helper],
    pub cpus: u32,
}

/// The states after a branch, on either side; none for a side that is never reached.
pub(super) struct BranchStates {
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

    /// Applies an operation that is no branch, and returns the facts about it.
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
            Op::Load { size, dst, mem, .. } => {
                let loaded = self.loaded(mem, size);
                let notes = self.aligned(mem, size);
                self.set(dst, loaded);
                if op.may_fetch_nothing() {
                    self.number(dst, Scalar::UNKNOWN);
                }
                return Fact::noted(notes);
            }
            Op::LoadSx { from, dst, mem } => {
                let notes = self.aligned(mem, from.size());
                let number = self.loaded(mem, from.size()).number();
                self.number(dst, number.to_size_signed(from.size().bytes().into()));
                return Fact::noted(notes);
            }
            Op::Store { size, mem, src, .. } => {
                let value = self.operand(src);
                let notes = self.aligned(mem, size);
                self.stored(mem, size, Some(value));
                return Fact::noted(notes);
            }
            Op::Atomic { width, mem, .. } => {
                let notes = self.aligned(mem, width.size());
                self.stored(mem, width.size(), None);
                let fetched = match op.may_fetch_nothing() {
                    true => Scalar::UNKNOWN,
                    false => number_of(width.size()),
                };
                for reg in writes(op).iter() {
                    self.number(reg, fetched);
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
            Op::LoadPointer { dst, .. } | Op::Cast { dst, .. } => {
                self.number(dst, Scalar::UNKNOWN);
            }
            Op::Jump { .. }
            | Op::JumpIf { .. }
            | Op::MayGoto { .. }
            | Op::Throw { .. }
            | Op::Exit => {}
        }
        Fact::default()
    }

    /// Returns the states on both sides of a branch, and the facts about it.
    pub fn branch(self, op: JumpOp, width: Width, dst: Reg, src: Operand) -> (BranchStates, Fact) {
        let (Value::Number(x), Value::Number(y)) = (self.reg(dst), self.operand(src)) else {
            let states = BranchStates {
                taken: Some(self.clone()),
                not_taken: Some(self),
            };
            return (states, Fact::default());
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
        (BranchStates { taken, not_taken }, fact)
    }

    /// The state where a comparison is true, or false; none if it can't be.
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

    /// The result of a load.
    fn loaded(&self, mem: MemRef, size: Size) -> Value {
        let known = match mem {
            MemRef::Stack { off } => self.slot(off, size.bytes()),
            // A 32-bit field may load as a 64-bit pointer.
            MemRef::Table { .. } | MemRef::Kernel { .. } | MemRef::Checked { .. } => {
                return Value::UNKNOWN;
            }
            MemRef::Context { .. }
            | MemRef::MapValue { .. }
            | MemRef::Packet { .. }
            | MemRef::Arena { .. } => None,
        };
        match known {
            Some(Value::Number(number)) => Value::Number(number.to_size(size.bytes().into())),
            Some(frame) if size == Size::Dw => frame,
            _ => Value::Number(number_of(size)),
        }
    }

    /// Applies a store, of a known value or not.
    fn stored(&mut self, mem: MemRef, size: Size, value: Option<Value>) {
        match (mem, value) {
            (MemRef::Stack { off }, Some(value)) => self.store(off, size.bytes(), value),
            (MemRef::Stack { off }, None) => self.forget(off, size.bytes()),
            // These are not on a stack.
            (
                MemRef::Context { .. }
                | MemRef::MapValue { .. }
                | MemRef::Packet { .. }
                | MemRef::Arena { .. },
                _,
            ) => {}
            // A caller's stack, or this one at a variable offset.
            (MemRef::Table { .. } | MemRef::Kernel { .. } | MemRef::Checked { .. }, _) => {
                self.forget_all();
            }
        }
    }

    /// Forgets the registers that a call leaves undefined.
    fn called(&mut self) {
        for reg in RegSet::CALLER_SAVED.iter() {
            self.set(reg, Value::UNKNOWN);
        }
    }

    /// Whether the address of an access to a map's value is aligned. (Then the host address
    /// is aligned, too: values are at multiples of 8 in both.)
    fn aligned(&self, mem: MemRef, size: Size) -> notes::Notes {
        let MemRef::MapValue { base, off, .. } = mem else {
            return notes::Notes::empty();
        };
        let address = self.reg(base).number().add_const(off.into());
        notes::aligned(address.bits.is_aligned(size.bytes().into()))
    }

    /// Applies a look-up: finds its key's memory and its result.
    fn look_up(&mut self, world: World<'_>, map: u16, key: MemRef) -> Fact {
        let mem = match self.reg(Reg::R2) {
            Value::Frame(off) => i16::try_from(off).map_or(key, |off| MemRef::Stack { off }),
            Value::Number(_) => key,
        };
        let mut fact = Fact {
            key: Some(mem),
            ..Fact::default()
        };
        let mut found = Scalar::UNKNOWN;
        if let Some(map) = world.maps.get(usize::from(map)) {
            let index = match mem {
                MemRef::Stack { .. } => self.loaded(mem, Size::W).number(),
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

/// Whether a look-up always succeeds, and the elements that it may find.
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

/// An unknown number of this size.
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

/// Arithmetic on numbers. [`Scalar::alu`] gives up where the kernel's verifier does, but
/// quotients, remainders and shifts by unknown amounts still have an upper bound.
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
        // Modulo zero leaves the dividend.
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
        /// Results on members of the operands are members of the result.
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
