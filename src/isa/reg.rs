//! Registers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A register that a program can name: `r0` to `r10`. (The kernel's `r11` is its
/// own and never valid in a program.) Serialized as its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

impl Reg {
    /// Every register, by number.
    pub const ALL: [Self; 11] = [
        Self::R0,
        Self::R1,
        Self::R2,
        Self::R3,
        Self::R4,
        Self::R5,
        Self::R6,
        Self::R7,
        Self::R8,
        Self::R9,
        Self::R10,
    ];
    /// The number of registers.
    pub const COUNT: usize = Self::ALL.len();
    /// The frame pointer, read-only: one past the top of the stack frame.
    pub const FP: Self = Self::R10;
    /// The registers that carry arguments, in order.
    pub const ARGUMENTS: [Self; 5] = [Self::R1, Self::R2, Self::R3, Self::R4, Self::R5];

    /// The register of this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT {
            Some(Self::ALL[number as usize])
        } else {
            None
        }
    }

    /// The number, 0 to 10.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl From<Reg> for u8 {
    fn from(reg: Reg) -> Self {
        reg.number()
    }
}

impl TryFrom<u8> for Reg {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Self::from_number(number).ok_or_else(|| format!("unknown register {number}"))
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.number())
    }
}

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RegSet(u16);

impl RegSet {
    /// No register.
    pub const EMPTY: Self = Self(0);
    /// `r0` and the arguments: the registers clobbered by a call.
    pub const CALLER_SAVED: Self = Self(0x3f);
    /// Every register.
    pub const ALL: Self = Self((1 << Reg::COUNT) - 1);

    /// The set of these registers.
    #[must_use]
    pub const fn of(regs: &[Reg]) -> Self {
        let mut set = Self::EMPTY;
        let mut i = 0;
        while i < regs.len() {
            set = set.with(regs[i]);
            i += 1;
        }
        set
    }

    /// The set of the first `count` argument registers (at most 5).
    #[must_use]
    pub const fn arguments(count: u8) -> Self {
        let count = if count > 5 { 5 } else { count };
        Self(((1 << count) - 1) << 1)
    }

    /// This set plus one register.
    #[must_use]
    pub const fn with(self, reg: Reg) -> Self {
        Self(self.0 | 1 << reg.number())
    }

    /// Whether the register is in the set.
    #[must_use]
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 & (1 << reg.number()) != 0
    }

    /// The registers in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The registers in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The registers in this set but not in the other.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// A bit for each register, bit 0 that of `r0`.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The registers in the set, by number.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        Reg::ALL.into_iter().filter(move |reg| self.contains(*reg))
    }
}

impl fmt::Debug for RegSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<I: IntoIterator<Item = Reg>>(regs: I) -> Self {
        regs.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_registers_are_the_same_thing() {
        for (number, reg) in (0u8..).zip(Reg::ALL) {
            assert_eq!(Reg::from_number(number), Some(reg));
            assert_eq!((reg.number(), reg.index()), (number, usize::from(number)));
        }
        assert_eq!(Reg::from_number(11), None);
    }

    #[test]
    fn sets_hold_registers() {
        let set = RegSet::of(&[Reg::R0, Reg::R10]);
        assert!(set.contains(Reg::R10) && !set.contains(Reg::R1));
        assert_eq!(format!("{set:?}"), "{R0, R10}");
        assert_eq!(RegSet::arguments(5).with(Reg::R0), RegSet::CALLER_SAVED);
        assert_eq!(set.minus(RegSet::CALLER_SAVED), RegSet::of(&[Reg::R10]));
        assert_eq!(
            Reg::ARGUMENTS.into_iter().collect::<RegSet>(),
            RegSet::arguments(9)
        );
        assert!(RegSet::arguments(0).is_empty());
        assert_eq!(set.and(RegSet::CALLER_SAVED), RegSet::of(&[Reg::R0]));
        assert_eq!(
            (set.bits(), RegSet::ALL.iter().count()),
            (0x401, Reg::COUNT)
        );
    }
}
