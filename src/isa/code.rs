//! A decoded program, indexed by position.

use super::decode::{DecodeError, decode_all};
use super::insn::{Flow, Insn};
use super::raw::RawInsn;
use crate::util::Pc;

/// The instructions of a program by slot. Decoding never fails as a whole: an invalid slot
/// keeps its error, because the kernel accepts such a slot if it is unreachable.
#[derive(Clone, Debug)]
pub struct Code {
    /// `None`: the second slot of a 64-bit immediate, or invalid.
    slots: Vec<Option<Insn>>,
    /// In the order of their positions.
    errors: Vec<DecodeError>,
}

impl Code {
    /// Decodes a program.
    #[must_use]
    pub fn new(raw: &[RawInsn]) -> Self {
        let mut code = Self {
            slots: vec![None; raw.len()],
            errors: Vec::new(),
        };
        for (pc, insn) in decode_all(raw) {
            match insn {
                Ok(insn) => {
                    if let Some(slot) = code.slots.get_mut(pc.index()) {
                        *slot = Some(insn);
                    }
                }
                Err(error) => code.errors.push(error),
            }
        }
        code
    }

    /// The number of slots.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no slots.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The invalid slots, in order.
    #[must_use]
    pub fn errors(&self) -> &[DecodeError] {
        &self.errors
    }

    /// The instruction that begins at `pc`; `None` past the end and in the second slot of a
    /// 64-bit immediate.
    #[must_use]
    #[inline]
    pub fn get(&self, pc: Pc) -> Option<Result<Insn, DecodeError>> {
        match self.slots.get(pc.index())? {
            Some(insn) => Some(Ok(*insn)),
            None => self.error(pc).map(Err),
        }
    }

    /// The valid instruction that begins at `pc`, if any.
    #[must_use]
    pub fn insn(&self, pc: Pc) -> Option<Insn> {
        *self.slots.get(pc.index())?
    }

    /// All slots, each with the valid instruction that begins there, if any.
    pub(crate) fn slots(&self) -> &[Option<Insn>] {
        &self.slots
    }

    /// Whether `pc` is the second slot of a 64-bit immediate.
    #[must_use]
    #[inline]
    pub fn is_second_slot(&self, pc: Pc) -> bool {
        matches!(self.slots.get(pc.index()), Some(None))
            && (self.errors.is_empty() || self.error(pc).is_none())
    }

    /// The control flow from `pc`, determined by opcode and offset only, as in the kernel's
    /// `check_cfg`. `None` if no instruction begins there.
    #[must_use]
    pub fn flow(&self, pc: Pc) -> Option<Flow> {
        Some(match self.get(pc)? {
            Ok(insn) => insn.flow(pc),
            Err(error) => Flow::of_raw(error.raw, pc),
        })
    }

    /// The position after the instruction at `pc`.
    #[must_use]
    pub fn next(&self, pc: Pc) -> Pc {
        let next = Pc(pc.0.saturating_add(1));
        if self.is_second_slot(next) {
            Pc(next.0.saturating_add(1))
        } else {
            next
        }
    }

    /// Positions and instructions, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Pc, Result<Insn, DecodeError>)> + '_ {
        (0..self.len())
            .map(Pc::from_index)
            .filter_map(|pc| Some((pc, self.get(pc)?)))
    }

    /// Positions and valid instructions, in order.
    pub(crate) fn insns(&self) -> impl Iterator<Item = (Pc, Insn)> + '_ {
        let slots = self.slots.iter().zip(0..);
        slots.filter_map(|(slot, at)| Some((Pc(at), (*slot)?)))
    }

    fn error(&self, pc: Pc) -> Option<DecodeError> {
        let at = self
            .errors
            .binary_search_by_key(&pc, |error| error.pc)
            .ok()?;
        self.errors.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::assemble;
    use super::*;

    #[test]
    fn instructions_are_found_at_their_slots() {
        let slots = assemble("r1 = 5 ll\n .quad 0xff\n exit").unwrap();
        let code = Code::new(&slots);
        assert_eq!((code.len(), code.is_empty()), (4, false));
        assert!(matches!(
            code.insn(Pc(0)),
            Some(Insn::LoadImm64 { value: 5, .. })
        ));
        assert!(code.is_second_slot(Pc(1)) && code.get(Pc(1)).is_none());
        assert_eq!(
            (code.next(Pc(0)), code.next(Pc(2)), code.next(Pc(3))),
            (Pc(2), Pc(3), Pc(4))
        );
        assert!(code.get(Pc(2)).is_some_and(|insn| insn.is_err()));
        assert_eq!(code.insn(Pc(3)), Some(Insn::Exit));
        assert!(code.get(Pc(4)).is_none() && !code.is_second_slot(Pc(4)));
        let at: Vec<Pc> = code.iter().map(|(pc, _)| pc).collect();
        assert_eq!(at, [Pc(0), Pc(2), Pc(3)]);
        let valid: Vec<Pc> = code.insns().map(|(pc, _)| pc).collect();
        assert_eq!(valid, [Pc(0), Pc(3)]);
        assert_eq!(code.errors().len(), 1);
        assert_eq!(code.flow(Pc(1)), None);
    }

    /// The second slot is missing: nothing is beyond the end.
    #[test]
    fn a_cut_immediate_is_an_error_at_its_slot() {
        let code = Code::new(&[RawInsn::new(0x18, 1, 0, 0, 5)]);
        assert_eq!((code.len(), code.errors().len()), (1, 1));
        assert_eq!(code.next(Pc(0)), Pc(1));
    }
}
