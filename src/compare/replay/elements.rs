//! Whether what an element of a map holds in the end is known, when several firings wrote it.
//!
//! A firing has a *span*: from how far the recorder's ring was filled as it began to where
//! its record ends there. A firing was before another one if its span ends where the other's
//! begins, or earlier ([`Firing::produced`](crate::instrument::Firing::produced)); if neither
//! was before the other, they overlap, and what either did may have come first.
//!
//! A replay repeats firings in the order of the ring, so one that was before another is
//! replayed before it. It follows that an element holds the right value after a replay if of
//! any two writes of which the order makes a difference one was before the other. Writes
//! before the last one that replaces all of the element don't matter, if they all were before
//! it. What is not known remains in *doubt*: a span that is too wide can cost a verdict, but
//! none can make a wrong one.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A key's bytes.
pub(super) type Key = SmallVec<[u8; 16]>;

/// A firing that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Actor {
    /// Where it ran.
    pub cpu: u32,
    /// Its number there.
    pub sequence: u64,
    /// How far the ring was filled when it began.
    pub began: u64,
    /// Where its record ends in the ring: no two have the same.
    pub ended: u64,
}

/// What is done to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// An atomic operation whose order among others of its kind makes no difference.
    Combines(Combining),
    /// It is made where there was none.
    Creates,
    /// It is made, or put in place of the one that was there.
    Updates,
    /// It goes.
    Deletes,
    /// All its bytes are stored to.
    Stores,
    /// Anything else: some bytes of it change, or perhaps those of another element.
    Changes,
}

/// Operations that come to the same in any order, each among its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combining {
    Add,
    Or,
    And,
    Xor,
}

/// Whose value it is that is written: that of one CPU, in per-CPU maps, or everyone's.
pub(super) type Lane = Option<u32>;

/// Why it is not known what an element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Two firings of which nobody knows which was first.
    Overlap(Actor, Actor),
    /// A firing that wrote, or was to write, where the replay could not follow it: it found
    /// something else than in the kernel.
    Astray(Actor),
    /// A firing that began so long ago that it is no longer known who else wrote since.
    Forgotten(Actor),
}

/// What was done to the elements of a map.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// Whether memory of one element becomes another's, as in hash tables.
    recycles: bool,
    known: FxHashMap<Key, Element>,
    /// Where the last firing ended that wrote one of those that were forgotten.
    forgotten: u64,
    /// A doubt about the whole map, for good.
    lasting: Option<Doubt>,
}

/// How many elements of a map are remembered, at least those written last.
const REMEMBERED: usize = 1 << 16;

/// What was done to one element, as far as it still matters.
#[derive(Debug, Default)]
struct Element {
    writes: SmallVec<[Writes; 1]>,
}

/// Writes of one sort.
#[derive(Debug, Clone, Copy)]
struct Writes {
    act: Act,
    lane: Lane,
    /// Who of them ended last.
    last: Actor,
    /// Who ended last of all but that one.
    before: Option<Actor>,
    doubt: Option<Doubt>,
}

impl Actor {
    /// Whether all that it did was done before another one began.
    pub const fn is_before(self, other: Self) -> bool {
        self.ended <= other.began
    }

    /// As a report names it.
    fn text(self) -> String {
        format!("firing {} of CPU {}", self.sequence, self.cpu)
    }
}

impl Act {
    /// Whether nothing is left of what was there before.
    const fn is_whole(self) -> bool {
        !matches!(self, Self::Combines(_) | Self::Changes)
    }

    /// Whether it goes through a pointer, which the element may have outlived.
    const fn is_through_pointer(self) -> bool {
        matches!(self, Self::Combines(_) | Self::Stores | Self::Changes)
    }

    /// Whether memory of the element that was there is free afterwards.
    const fn frees(self) -> bool {
        matches!(self, Self::Updates | Self::Deletes)
    }

    /// Whether it makes no difference which of two was first.
    fn commutes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Combines(one), Self::Combines(other)) => one == other,
            // Nobody changes what is not there yet; that it went in between is another
            // write, which was before one of the two and after the other.
            (Self::Creates, Self::Combines(_)) | (Self::Combines(_), Self::Creates) => true,
            _ => false,
        }
    }
}

impl Doubt {
    /// Who is in it, the later one.
    const fn actor(self) -> Actor {
        match self {
            Self::Overlap(_, actor) | Self::Astray(actor) | Self::Forgotten(actor) => actor,
        }
    }

    /// In words, of an element by its key, or of a map that is one.
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
                "{} found something else in its maps than the replay has, and wrote to {element}",
                actor.text()
            ),
            Self::Forgotten(actor) => format!(
                "{} wrote to {element}, and took too long to know who else did",
                actor.text()
            ),
        }
    }
}

/// A key as people read it: a number, if it has the size of one.
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
    /// Those of a map; `recycles` where the memory of one element becomes another's, as in
    /// hash tables.
    pub fn new(recycles: bool) -> Self {
        Self {
            recycles,
            ..Self::default()
        }
    }

    /// A firing did something to an element, after all that was noted before as the replay
    /// goes.
    pub fn note(&mut self, key: &Key, act: Act, lane: Lane, by: Actor) {
        let strays = self.element(key, by).note(act, lane, by);
        if let Some(doubt) = strays.filter(|_| self.recycles) {
            // Whose memory that was in the meantime, the kernel alone knows.
            self.lasting.get_or_insert(doubt);
        }
    }

    /// A firing did this to an element, or was to do it, and the replay did not do the same.
    pub fn doubt(&mut self, key: &Key, act: Act, lane: Lane, by: Actor) {
        let doubt = Some(Doubt::Astray(by));
        self.element(key, by).add(act, lane, by, doubt);
    }

    /// The replay can't tell what a firing did to the map.
    pub fn doubt_all(&mut self, by: Actor) {
        self.lasting.get_or_insert(Doubt::Astray(by));
    }

    /// The first doubt about what the map holds, and of which element.
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

    /// What is remembered of an element that a firing writes.
    fn element(&mut self, key: &Key, by: Actor) -> &mut Element {
        if self.known.len() >= REMEMBERED && !self.known.contains_key(key) {
            self.forget();
        }
        let forgotten = self.forgotten;
        self.known.entry(key.clone()).or_insert_with(|| {
            let mut element = Element::default();
            if by.began < forgotten {
                // Somebody may have written it, as late as that.
                let other = Actor {
                    ended: forgotten,
                    ..by
                };
                element.add(Act::Changes, None, other, Some(Doubt::Forgotten(by)));
            }
            element
        })
    }

    /// Forgets the half that was written longest ago. What is in doubt can't be forgotten:
    /// if that is too much, the whole map is.
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
    /// A doubt comes back if the write may have gone to memory that was free already.
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

    /// Where the last firing ended that wrote it.
    fn ended(&self) -> u64 {
        let ends = self.writes.iter().map(|writes| writes.last.ended);
        ends.max().unwrap_or_default()
    }
}

impl Writes {
    /// The last one of them that is not this firing: what one firing does is in order.
    fn other_than(&self, by: Actor) -> Option<Actor> {
        match self.last.ended == by.ended {
            true => self.before,
            false => Some(self.last),
        }
    }
}

/// Whether two writes can be to the same value.
fn meet(one: Lane, other: Lane) -> bool {
    one.is_none() || other.is_none() || one == other
}

#[cfg(test)]
mod tests;
