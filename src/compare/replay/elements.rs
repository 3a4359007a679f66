//! Decides whether the final value of a map element is known if several firings wrote it.
//!
//! A firing has a *span* in the recorder's ring: from the producer position when it began
//! ([`Firing::produced`](crate::instrument::Firing::produced)) to the end of its record. One
//! firing is before another if its span ends at or before the start of the other's. If neither
//! is before the other, they overlap, and either may have written first.
//!
//! A replay runs firings in the order of the ring, so a firing that is before another is
//! replayed before it. So the final value of an element is right if, of any two writes that
//! don't commute, one firing is before the other. Writes before the last write that replaces
//! the whole element don't matter, if all of them are before it. Otherwise the element is in
//! *doubt*. A span that is too wide can cost a verdict; it can't make one wrong.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A key's bytes.
pub(super) type Key = SmallVec<[u8; 16]>;

/// A firing that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Actor {
    /// Its CPU.
    pub cpu: u32,
    /// Its number on that CPU.
    pub sequence: u64,
    /// The start of its span in the ring.
    pub began: u64,
    /// The end of its record in the ring, unique to the firing.
    pub ended: u64,
}

/// What is done to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// An atomic operation whose order among others of its kind makes no difference.
    Combines(Combining),
    /// The element is created; there was none.
    Creates,
    /// The element is created or replaced.
    Updates,
    /// The element is deleted.
    Deletes,
    /// All bytes of the element are stored.
    Stores,
    /// Anything else: some of its bytes change, or those of another element may.
    Changes,
}

/// Atomic operations that commute with others of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combining {
    Add,
    Or,
    And,
    Xor,
}

/// The CPU whose value is written, in per-CPU maps; none for the value of all CPUs.
pub(super) type Lane = Option<u32>;

/// Why the final value of an element is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Two firings overlap.
    Overlap(Actor, Actor),
    /// A firing wrote, or was to write, where its replay could not follow the recorded log.
    Astray(Actor),
    /// A firing began so early that other writes since then have been forgotten.
    Forgotten(Actor),
}

/// What was done to the elements of a map.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// Whether memory of a deleted element is reused for another one, as in hash tables.
    recycles: bool,
    known: FxHashMap<Key, Element>,
    /// Where the last write to a forgotten element ended in the ring.
    forgotten: u64,
    /// A permanent doubt about the whole map.
    lasting: Option<Doubt>,
}

/// How many elements of a map are tracked at most; the ones written last stay.
const REMEMBERED: usize = 1 << 16;

/// The writes to one element that still matter.
#[derive(Debug, Default)]
struct Element {
    writes: SmallVec<[Writes; 1]>,
}

/// Writes of one kind to one lane.
#[derive(Debug, Clone, Copy)]
struct Writes {
    act: Act,
    lane: Lane,
    /// The firing that ended last.
    last: Actor,
    /// The firing that ended last but one.
    before: Option<Actor>,
    doubt: Option<Doubt>,
}

impl Actor {
    /// Whether this firing ended before another one began.
    pub const fn is_before(self, other: Self) -> bool {
        self.ended <= other.began
    }

    /// Its name in a report.
    fn text(self) -> String {
        format!("firing {} of CPU {}", self.sequence, self.cpu)
    }
}

impl Act {
    /// Whether the previous value of the element is replaced completely.
    const fn is_whole(self) -> bool {
        !matches!(self, Self::Combines(_) | Self::Changes)
    }

    /// Whether the write goes through a pointer, which may outlive the element.
    const fn is_through_pointer(self) -> bool {
        matches!(self, Self::Combines(_) | Self::Stores | Self::Changes)
    }

    /// Whether the memory of the previous element is freed.
    const fn frees(self) -> bool {
        matches!(self, Self::Updates | Self::Deletes)
    }

    /// Whether the order of two acts makes no difference.
    fn commutes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Combines(one), Self::Combines(other)) => one == other,
            // An element can only be combined after its creation. If it was deleted in
            // between, the deletion is a write that conflicts with both.
            (Self::Creates, Self::Combines(_)) | (Self::Combines(_), Self::Creates) => true,
            _ => false,
        }
    }
}

impl Doubt {
    /// The later firing of the doubt.
    const fn actor(self) -> Actor {
        match self {
            Self::Overlap(_, actor) | Self::Astray(actor) | Self::Forgotten(actor) => actor,
        }
    }

    /// The reason in words; with an empty key, about the map as a whole.
    pub fn text(self, key: &[u8]) -> String {
        let element = match key {
            [] => "it".to_owned(),
            key => format!("element {}", key_text(key)),
        };
        match self {
            Self::Overlap(one, other) => {
                let (one, other) = (one.text(), other.text());
                format!("{one} and {other} overlapped, and both wrote to {element}")
            }
            Self::Astray(actor) => format!(
                "{} read a map value that the replay does not have, and wrote to {element}",
                actor.text()
            ),
            Self::Forgotten(actor) => format!(
                "{} wrote to {element}, and took so long that other writes were forgotten",
                actor.text()
            ),
        }
    }
}

/// A key as text: a number if it has 1, 2, 4 or 8 bytes, otherwise hexadecimal.
fn key_text(key: &[u8]) -> String {
    if let 1 | 2 | 4 | 8 = key.len() {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(key) {
            *to = *from;
        }
        return u64::from_le_bytes(word).to_string();
    }
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Elements {
    /// No writes yet; `recycles`: memory of a deleted element is reused for another one, as in
    /// hash tables.
    pub fn new(recycles: bool) -> Self {
        Self {
            recycles,
            ..Self::default()
        }
    }

    /// Notes what a firing did to an element. Calls come in the order of replay.
    pub fn note(&mut self, key: &Key, act: Act, lane: Lane, by: Actor) {
        let strays = self.element(key, by).note(act, lane, by);
        if let Some(doubt) = strays.filter(|_| self.recycles) {
            // The freed memory may have been another element's by then.
            self.lasting.get_or_insert(doubt);
        }
    }

    /// Notes that a firing did this to an element, or was to do it, and its replay did not do
    /// the same.
    pub fn doubt(&mut self, key: &Key, act: Act, lane: Lane, by: Actor) {
        let doubt = Some(Doubt::Astray(by));
        self.element(key, by).add(act, lane, by, doubt);
    }

    /// Notes that it is not known what a firing did to the map.
    pub fn doubt_all(&mut self, by: Actor) {
        self.lasting.get_or_insert(Doubt::Astray(by));
    }

    /// The first doubt about the contents of the map, with the element's key.
    pub fn doubtful(&self) -> Option<(&[u8], Doubt)> {
        if let Some(doubt) = self.lasting {
            return Some((&[], doubt));
        }
        let doubts = self.known.iter();
        let doubts = doubts.filter_map(|(key, element)| Some((&key[..], element.doubtful()?)));
        doubts.min_by_key(|(key, doubt)| (doubt.actor().ended, *key))
    }

    /// Whether there is a doubt about an element.
    pub fn is_doubtful(&self, key: &[u8]) -> bool {
        let element = || self.known.get(key);
        self.lasting.is_some() || element().is_some_and(|it| it.doubtful().is_some())
    }

    /// The tracked writes of an element that a firing writes.
    fn element(&mut self, key: &Key, by: Actor) -> &mut Element {
        if self.known.len() >= REMEMBERED && !self.known.contains_key(key) {
            self.forget();
        }
        let forgotten = self.forgotten;
        self.known.entry(key.clone()).or_insert_with(|| {
            let mut element = Element::default();
            if by.began < forgotten {
                // Another firing may have written it, up to that position.
                let other = Actor {
                    ended: forgotten,
                    ..by
                };
                element.add(Act::Changes, None, other, Some(Doubt::Forgotten(by)));
            }
            element
        })
    }

    /// Forgets the half that was written longest ago. Elements in doubt are kept; if they are
    /// too many, the whole map is in doubt.
    #[cold]
    fn forget(&mut self) {
        let mut ends: Vec<u64> = self.known.values().map(Element::ended).collect();
        let half = ends.len() / 2;
        let (_, cut, _) = ends.select_nth_unstable(half);
        let cut = *cut;
        self.forgotten = self.forgotten.max(cut);
        self.known
            .retain(|_, element| element.ended() > cut || element.doubtful().is_some());
        if self.known.len() > REMEMBERED / 4 * 3 {
            let doubt = self.doubtful().map(|(_, doubt)| doubt);
            self.lasting = self.lasting.or(doubt);
            self.known.clear();
        }
    }
}

impl Element {
    /// Notes a write. Returns a doubt if it may have gone to memory that was already freed.
    fn note(&mut self, act: Act, lane: Lane, by: Actor) -> Option<Doubt> {
        let others = || self.writes.iter().filter(|writes| meet(writes.lane, lane));
        let is_last =
            others().all(|writes| writes.other_than(by).is_none_or(|it| it.is_before(by)));
        if act.is_whole() && is_last {
            self.writes
                .retain(|writes| lane.is_some() && writes.lane != lane);
            self.add(act, lane, by, None);
            return None;
        }
        let conflicts = others().filter(|writes| !writes.act.commutes(act));
        let overlaps = conflicts.filter_map(|writes| {
            let other = writes.other_than(by)?;
            let doubt = match writes.doubt {
                Some(Doubt::Forgotten(_)) => Doubt::Forgotten(by),
                _ => Doubt::Overlap(other, by),
            };
            (!other.is_before(by)).then_some((writes.act, doubt))
        });
        let overlaps: SmallVec<[(Act, Doubt); 1]> = overlaps.collect();
        let mut strays = overlaps.iter().filter(|(other, _)| {
            act.frees() && other.is_through_pointer() || other.frees() && act.is_through_pointer()
        });
        let strays = strays.next().map(|(_, doubt)| *doubt);
        self.add(act, lane, by, overlaps.first().map(|(_, doubt)| *doubt));
        strays
    }

    fn add(&mut self, act: Act, lane: Lane, by: Actor, doubt: Option<Doubt>) {
        let mut sorts = self.writes.iter_mut();
        let Some(writes) = sorts.find(|it| it.act == act && it.lane == lane) else {
            self.writes.push(Writes {
                act,
                lane,
                last: by,
                before: None,
                doubt,
            });
            return;
        };
        writes.doubt = writes.doubt.or(doubt);
        if by.ended > writes.last.ended {
            writes.before = Some(writes.last);
            writes.last = by;
        } else if by.ended < writes.last.ended
            && writes.before.is_none_or(|before| before.ended < by.ended)
        {
            writes.before = Some(by);
        }
    }

    fn doubtful(&self) -> Option<Doubt> {
        self.writes.iter().find_map(|writes| writes.doubt)
    }

    /// Where the last firing that wrote it ended.
    fn ended(&self) -> u64 {
        let ends = self.writes.iter().map(|writes| writes.last.ended);
        ends.max().unwrap_or_default()
    }
}

impl Writes {
    /// The last firing other than this one: the writes of one firing are ordered.
    fn other_than(&self, by: Actor) -> Option<Actor> {
        match self.last.ended == by.ended {
            true => self.before,
            false => Some(self.last),
        }
    }
}

/// Whether two writes can reach the same value.
fn meet(one: Lane, other: Lane) -> bool {
    one.is_none() || other.is_none() || one == other
}

#[cfg(test)]
mod tests;
