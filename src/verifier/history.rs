//! The jump history of a path: the steps since the last checkpoint that the code alone doesn't
//! determine (`struct bpf_jmp_history_entry`). Backtracking follows it.
//!
//! A loop leaves a million steps, and each branch copies those since the last checkpoint. So a
//! step is one word, and so are several equal ones in a row.

use smallvec::SmallVec;

use crate::isa::low32;
use crate::util::Pc;

/// No instruction: the predecessor of the first instruction.
pub(crate) const NO_PC: Pc = Pc(u32::MAX);

/// A step to an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step(u64);

/// A part of a step: some of its bits.
struct Bits {
    at: u32,
    len: u32,
}

impl Bits {
    /// The greatest number that fits.
    const fn max(&self) -> u64 {
        (1 << self.len) - 1
    }

    const fn of(&self, step: Step) -> u64 {
        step.0 >> self.at & self.max()
    }

    const fn put(&self, number: u64) -> u64 {
        (number & self.max()) << self.at
    }
}

impl Step {
    /// The instruction, and the one before it: a program has a million at most.
    const PC: Bits = Bits { at: 0, len: 20 };
    const PREV: Bits = Bits { at: 20, len: 20 };
    /// The slot accessed.
    const FRAME: Bits = Bits { at: 40, len: 3 };
    const SLOT: Bits = Bits { at: 43, len: 6 };
    const HAS_SLOT: u64 = 1 << 49;
    /// Whether the operands of the comparison are pointers to the stack.
    const STACK_DST: u64 = 1 << 50;
    const STACK_SRC: u64 = 1 << 51;
    /// Whether the word before is a set of linked registers and slots.
    const LINKED: u64 = 1 << 52;
    /// How many equal steps come before it. Only steps without all that have any.
    const REPEATS: Bits = Bits { at: 53, len: 11 };

    /// The step from `prev` to `pc`.
    const fn new(pc: Pc, prev: Pc) -> Self {
        Self(Self::PC.put(pc.0 as u64) | Self::PREV.put(prev.0 as u64))
    }

    /// The instruction.
    pub(crate) const fn pc(self) -> Pc {
        Pc(low32(Self::PC.of(self)))
    }

    /// The instruction before it.
    pub(crate) const fn prev(self) -> Pc {
        match Self::PREV.of(self) {
            prev if prev == Self::PREV.max() => NO_PC,
            prev => Pc(low32(prev)),
        }
    }

    /// The slot that it spilled to or filled from, through any pointer: frame and slot.
    pub(crate) fn slot(self) -> Option<(usize, usize)> {
        if self.0 & Self::HAS_SLOT == 0 {
            return None;
        }
        let part = |bits: Bits| low32(bits.of(self)) as usize;
        Some((part(Self::FRAME), part(Self::SLOT)))
    }

    /// Whether the operands of its comparison, destination and source, are pointers to the
    /// stack.
    pub(crate) const fn stack_operands(self) -> (bool, bool) {
        (self.0 & Self::STACK_DST != 0, self.0 & Self::STACK_SRC != 0)
    }

    const fn is_linked(self) -> bool {
        self.0 & Self::LINKED != 0
    }

    /// Whether one more equal step can be counted in this one.
    const fn takes(self, other: Self) -> bool {
        let repeats = Self::REPEATS.of(self);
        repeats < Self::REPEATS.max() && self.0 == other.0 | Self::REPEATS.put(repeats)
    }
}

/// The steps of a path since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Steps and sets of links.
    words: SmallVec<[u64; 2]>,
    /// The number of steps.
    len: usize,
}

impl History {
    /// The number of steps.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The steps.
    pub(crate) fn steps(&self) -> Steps<'_> {
        Steps {
            words: &self.words,
            len: self.len,
            returned: 0,
        }
    }

    /// Adds a step.
    pub(crate) fn push(&mut self, pc: Pc, prev: Pc) {
        let step = Step::new(pc, prev);
        self.len += 1;
        match self.words.last_mut() {
            Some(last) if Step(*last).takes(step) => *last += Step::REPEATS.put(1),
            _ => self.words.push(step.0),
        }
    }

    /// Adds a slot to the last step, unless it has one, and replaces its links: registers and
    /// slots that its comparison bounded together.
    pub(crate) fn note(&mut self, slot: Option<(u8, u8)>, links: LinkedSet) {
        let linked = self
            .words
            .last()
            .is_some_and(|last| Step(*last).is_linked());
        if slot.is_none() && links.is_empty() && !linked {
            return;
        }
        let Some(mut step) = self.take_last() else {
            return;
        };
        if linked {
            self.words.pop();
        }
        if let Some((frame, slot)) = slot
            && step.slot().is_none()
        {
            let at = Step::FRAME.put(frame.into()) | Step::SLOT.put(slot.into());
            step.0 |= at | Step::HAS_SLOT;
        }
        step.0 &= !Step::LINKED;
        if !links.is_empty() {
            step.0 |= Step::LINKED;
            self.words.push(links.packed);
        }
        self.words.push(step.0);
    }

    /// Sets which operands of the last step's comparison are pointers to the stack.
    pub(crate) fn note_stack_operands(&mut self, dst: bool, src: bool) {
        if let Some(mut step) = self.take_last() {
            step.0 &= !(Step::STACK_DST | Step::STACK_SRC);
            step.0 |= if dst { Step::STACK_DST } else { 0 };
            step.0 |= if src { Step::STACK_SRC } else { 0 };
            self.words.push(step.0);
        }
    }

    /// Takes the last step to change it: it is not counted in an equal one any more.
    fn take_last(&mut self) -> Option<Step> {
        let last = self.words.last_mut()?;
        let step = Step(*last);
        if Step::REPEATS.of(step) == 0 {
            self.words.pop();
        } else {
            *last -= Step::REPEATS.put(1);
        }
        Some(Step(step.0 & !Step::REPEATS.put(u64::MAX)))
    }

    /// Removes all steps.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }
}

impl Clone for History {
    fn clone(&self) -> Self {
        Self {
            words: SmallVec::from_slice(&self.words),
            len: self.len,
        }
    }

    fn clone_from(&mut self, from: &Self) {
        self.words.clear();
        self.words.extend_from_slice(&from.words);
        self.len = from.len;
    }
}

/// The steps up to some instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'a> {
    words: &'a [u64],
    len: usize,
    /// How many of the steps that the last word stands for are behind.
    returned: u64,
}

impl Steps<'_> {
    /// The number of steps.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The last step, if it is to `pc`.
    #[inline]
    pub(crate) fn last_at(&self, pc: Pc) -> Option<Step> {
        let last = self.words.last().copied().map(Step);
        last.filter(|step| step.pc() == pc)
    }

    /// The instruction that the last step is to.
    #[inline]
    pub(crate) fn last_pc(&self) -> Option<Pc> {
        self.words.last().map(|last| Step(*last).pc())
    }

    /// How many equal steps come before the last step, if that is to `pc`.
    #[inline]
    pub(crate) fn repeats_at(&self, pc: Pc) -> u64 {
        let step = self.last_at(pc);
        step.map_or(0, |step| Step::REPEATS.of(step) - self.returned)
    }

    /// The number of words that are left: the same for all equal steps in a row.
    pub(crate) const fn words(&self) -> usize {
        self.words.len()
    }

    /// Goes back to the first of the equal steps in a row.
    pub(crate) fn skip_repeats(&mut self) {
        if let Some(last) = self.words.last() {
            let repeats = Step::REPEATS.of(Step(*last));
            self.len -= low32(repeats - self.returned) as usize;
            self.returned = repeats;
        }
    }

    /// The linked registers and slots of the last step.
    pub(crate) fn links(&self) -> LinkedSet {
        match self.words {
            [.., packed, step] if Step(*step).is_linked() => LinkedSet { packed: *packed },
            _ => LinkedSet::default(),
        }
    }

    /// The instruction executed before the one at `pc`, on a path that began at `first`; `None`
    /// at the start (`get_prev_insn_idx`). The first instruction may be executed more than
    /// once: the start is where its steps end, or where it was jumped to.
    #[inline]
    pub(crate) fn before(&mut self, first: Pc, pc: Pc) -> Option<Pc> {
        let step = self.last_at(pc);
        if pc == first && (self.len == 0 || self.len == 1 && step.is_some()) {
            return None;
        }
        let Some(step) = step else {
            return Some(Pc(pc.0.wrapping_sub(1)));
        };
        self.len -= 1;
        if self.returned < Step::REPEATS.of(step) {
            self.returned += 1;
        } else {
            let words = 1 + usize::from(step.is_linked());
            let earlier = self.words.len().saturating_sub(words);
            self.words = self.words.get(..earlier).unwrap_or_default();
            self.returned = 0;
        }
        Some(step.prev())
    }
}

/// A register or slot of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Linked {
    pub frame: u8,
    /// Number of a register or of a slot.
    pub at: u8,
    pub is_reg: bool,
}

/// Up to six linked registers and slots, packed (`linked_regs_pack`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LinkedSet {
    packed: u64,
}

impl LinkedSet {
    /// The maximum number of entries (`LINKED_REGS_MAX`).
    pub(crate) const MAX: usize = 6;
    /// Bits of an entry: 3 for the frame, 6 for the number, 1 for register or slot.
    const BITS: u32 = 10;

    pub(crate) const fn len(self) -> usize {
        (self.packed & 0xf) as usize
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.packed == 0
    }

    /// Adds one; `false` if there is no room.
    pub(crate) fn push(&mut self, linked: Linked) -> bool {
        let len = self.len();
        if len >= Self::MAX {
            return false;
        }
        let entry =
            u64::from(linked.frame) | u64::from(linked.at) << 3 | u64::from(linked.is_reg) << 9;
        let shift = 4 + Self::BITS * u32::try_from(len).unwrap_or(0);
        self.packed = (self.packed & !0xf) | entry << shift | (len as u64 + 1);
        true
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Linked> + Clone {
        (0..self.len()).map(move |n| {
            let entry = self.packed >> (4 + Self::BITS as usize * n);
            Linked {
                frame: (entry & 7) as u8,
                at: (entry >> 3 & 0x3f) as u8,
                is_reg: entry >> 9 & 1 == 1,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(numbers: impl IntoIterator<Item = u8>) -> LinkedSet {
        let mut set = LinkedSet::default();
        for number in numbers {
            let link = Linked {
                frame: number % 8,
                at: 63 - number,
                is_reg: number.is_multiple_of(2),
            };
            assert!(set.push(link));
        }
        set
    }

    #[test]
    fn a_step_has_all_parts() {
        let mut history = History::default();
        history.push(Pc(999_999), Pc(999_998));
        history.note(Some((7, 63)), LinkedSet::default());
        history.note(Some((1, 2)), LinkedSet::default());
        history.note_stack_operands(true, false);
        let step = history.steps().last_at(Pc(999_999)).unwrap();
        assert_eq!(step.prev(), Pc(999_998));
        assert_eq!(step.slot(), Some((7, 63)));
        assert_eq!(step.stack_operands(), (true, false));
        history.push(Pc(0), NO_PC);
        let step = history.steps().last_at(Pc(0)).unwrap();
        assert_eq!((step.prev(), step.slot()), (NO_PC, None));
        assert_eq!(history.steps().last_at(Pc(1)), None);
    }

    #[test]
    fn links_belong_to_their_step() {
        let mut history = History::default();
        for (pc, links) in [(1, 0), (2, 2), (3, 0), (4, 3)] {
            history.push(Pc(pc), Pc(pc - 1));
            history.note(None, linked(0..links));
        }
        history.note(None, linked(0..4));
        let mut steps = history.steps();
        for (pc, links) in [(4, 4), (3, 0), (2, 2), (1, 0)] {
            assert_eq!(steps.links(), linked(0..links), "{pc}");
            assert_eq!(steps.before(Pc(9), Pc(pc)), Some(Pc(pc - 1)));
        }
        history.note(None, LinkedSet::default());
        assert!(history.steps().links().is_empty());
    }

    /// Equal steps take one word, until one of them is changed.
    #[test]
    fn equal_steps_are_counted() {
        let mut history = History::default();
        for _ in 0..5000 {
            history.push(Pc(1), Pc(3));
        }
        assert!(history.words.len() == 3 && history.len() == 5000);
        history.push(Pc(1), Pc(2));
        history.push(Pc(1), Pc(2));
        history.note(Some((0, 1)), linked(0..2));
        history.push(Pc(1), Pc(2));
        let (mut steps, mut seen) = (history.steps(), Vec::new());
        while let Some(step) = steps.last_at(Pc(1)) {
            seen.push((step.prev().0, step.slot(), steps.links().len()));
            steps.before(Pc(9), Pc(1));
        }
        assert_eq!(
            seen[..3],
            [(2, None, 0), (2, Some((0, 1)), 2), (2, None, 0)]
        );
        assert!(seen.len() == 5003 && steps.len() == 0);
        assert!(seen[3..].iter().all(|step| *step == (3, None, 0)));
    }

    /// Skipping gives what as many single steps back give.
    #[test]
    fn equal_steps_are_skipped_at_once() {
        let mut history = History::default();
        history.push(Pc(1), Pc(0));
        for _ in 0..100 {
            history.push(Pc(1), Pc(3));
        }
        let (mut one_by_one, mut at_once) = (history.steps(), history.steps());
        assert_eq!(
            (at_once.repeats_at(Pc(1)), at_once.repeats_at(Pc(2))),
            (99, 0)
        );
        at_once.before(Pc(9), Pc(1));
        at_once.skip_repeats();
        for _ in 0..99 {
            one_by_one.before(Pc(9), Pc(1));
        }
        for steps in [one_by_one, at_once] {
            assert_eq!(
                (steps.len(), steps.words(), steps.repeats_at(Pc(1))),
                (2, 2, 0)
            );
        }
        at_once.before(Pc(9), Pc(1));
        assert_eq!((at_once.len(), at_once.words()), (1, 1));
    }

    /// A loop from 1 to 3 that began at 1: the first step there ends the path back.
    #[test]
    fn the_way_back_ends_at_the_first_arrival() {
        let mut history = History::default();
        for prev in [0, 3, 3] {
            history.push(Pc(1), Pc(prev));
        }
        let (mut steps, mut pc, mut path) = (history.steps(), Pc(2), Vec::new());
        while let Some(earlier) = steps.before(Pc(1), pc) {
            pc = earlier;
            path.push(pc.0);
        }
        assert_eq!(path, [1, 3, 2, 1, 3, 2, 1]);
    }

    #[test]
    fn six_links_fit_into_a_set() {
        let mut set = linked(0..6);
        let link = |n: u8| Linked {
            frame: n % 8,
            at: 63 - n,
            is_reg: n.is_multiple_of(2),
        };
        assert!(!set.push(link(6)));
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            (0..6).map(link).collect::<Vec<_>>()
        );
    }
}
