//! Who wrote to which map, as the logs of firings tell, and whether what it holds in the end
//! depends on an order that nobody knows.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::contents::is_lru;
use super::elements::{Act, Actor, Combining, Elements, Key, Lane};
use super::touch::{Does, Touch, Touches, is_key};
use crate::instrument::{Entry, Firing, Plan, What};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::MapId;

/// A place where one thing happens after another: a CPU, and how deeply nested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Who {
    cpu: u32,
    depth: u16,
}

/// What is known of all maps.
#[derive(Debug, Default)]
pub(super) struct Writers {
    maps: Vec<Map>,
    /// Of each program and site: whether each of its entries counts, and not only the first.
    counting: Vec<Vec<bool>>,
    /// Of each program, on each CPU and depth: which sites have been seen.
    seen: FxHashMap<(usize, Who), Seen>,
    /// The firing that is looked through.
    now: Now,
    /// How many entries of each site it had so far, where that matters.
    counts: FxHashMap<(usize, u16), usize>,
    /// What it has looked up.
    looked: SmallVec<[(MapId, Key); 4]>,
    /// What it will have done if the call that it makes succeeds.
    pending: SmallVec<[(MapId, Key, Act); 1]>,
}

/// What a map is, as far as its writers are concerned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    /// Whether each CPU has values of its own.
    per_cpu: bool,
    /// Whether elements go when there is no room, in an order that each kernel has for
    /// itself.
    evicts: bool,
    /// Whether it is an array: its elements are always there.
    is_array: bool,
    /// Whether it has one element only, so that no key tells them apart.
    is_single: bool,
}

impl Kind {
    /// That of a map.
    pub fn of(def: &MapDef) -> Self {
        let info = def.map_type.info();
        let is_array = matches!(def.map_type, MapType::Array | MapType::PercpuArray);
        Self {
            per_cpu: info.per_cpu,
            evicts: is_lru(def),
            is_array,
            is_single: is_array && def.max_entries == 1,
        }
    }
}

/// What was done to a map.
#[derive(Debug, Default)]
struct Map {
    id: MapId,
    kind: Kind,
    grain: Grain,
    writers: SmallVec<[Who; 4]>,
    elements: Elements,
}

/// How closely a map is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Grain {
    /// Not at all: whatever the programs do to it, the order makes no difference.
    #[default]
    None,
    /// All of it is one element, which is never quite replaced: logs don't always tell which
    /// one was written.
    Whole,
    /// Each element by itself.
    Element,
}

/// How far the firings of a program on a CPU were looked through.
#[derive(Debug, Default)]
struct Seen {
    sites: Vec<bool>,
    /// Whether nothing new can come.
    all: bool,
}

/// Where a replay could not follow the kernel's run: entries by site, and how many of that
/// site come before in the firing.
#[derive(Debug, Default)]
pub(super) struct Strayed {
    /// Calls that ended in another way.
    pub results: SmallVec<[(u16, usize); 1]>,
    /// Where it found no element: what it did from there on is nothing that the kernel's run
    /// did.
    pub lost: Option<(u16, usize)>,
}

/// The firing that is looked through.
#[derive(Debug, Clone, Copy, Default)]
struct Now {
    who: Who,
    actor: Actor,
    /// Whether what it writes is not what the kernel's run wrote.
    astray: bool,
    /// Whether the call that it makes ended in another way.
    other_result: bool,
}

impl Strayed {
    /// Whether it could follow.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty() && self.lost.is_none()
    }
}

impl Writers {
    /// For maps of these kinds, and the programs that use them.
    pub fn new<'t>(
        kinds: impl Iterator<Item = Kind>,
        programs: impl Iterator<Item = &'t Touches> + Clone,
    ) -> Self {
        let maps = (0..).map(MapId::from_index).zip(kinds);
        let maps = maps.map(|(id, kind)| Map {
            id,
            kind,
            grain: Grain::of(id, programs.clone()),
            elements: Elements::new(!kind.is_array),
            ..Map::default()
        });
        let maps: Vec<_> = maps.collect();
        let through = |touch: &Touch| touch.does.is_through_pointer();
        let through = programs.clone().flat_map(|touches| {
            let touched = touches.iter().filter(move |(_, touch)| through(touch));
            touched.flat_map(|(_, touch)| touches.maps(touch.map))
        });
        let through: Vec<_> = through.collect();
        let counts = |map: MapId, touch: Touch| {
            let map = maps.get(map.index()).filter(|map| map.grain != Grain::None);
            map.is_some_and(|map| match touch.does {
                // Who looked an element up matters if something is written to it.
                Does::LooksUp => !map.is_one() && through.contains(&map.id),
                does => does.writes(),
            })
        };
        let counting = programs.map(|touches| {
            let sites = touches.sites().map(|touched| {
                let mut touched = touched.iter();
                touched.any(|touch| touches.maps(touch.map).any(|map| counts(map, *touch)))
            });
            sites.collect()
        });
        Self {
            counting: counting.collect(),
            maps,
            ..Self::default()
        }
    }

    /// A firing was replayed, whose record ends there in the ring. What it did is noted next.
    pub fn begin(&mut self, firing: &Firing<'_>, ended: u64) {
        self.looked.clear();
        self.pending.clear();
        self.counts.clear();
        self.now = Now {
            who: Who {
                cpu: firing.cpu,
                depth: firing.depth,
            },
            actor: Actor {
                cpu: firing.cpu,
                sequence: firing.sequence,
                began: firing.produced,
                ended,
            },
            astray: false,
            other_result: false,
        };
    }

    /// From here on the replay does not do what the kernel's run did.
    pub fn stray(&mut self) {
        self.now.astray = true;
    }

    /// What a program did in that firing, by the kernel's log; where the replay could not
    /// follow is told, with its own log.
    pub fn note(
        &mut self,
        program: usize,
        (plan, touches): (&Plan, &Touches),
        log: &[u8],
        strayed: Option<(&Strayed, &[u8])>,
    ) {
        self.now.other_result = false;
        let key = (program, self.now.who);
        let maps = &self.maps;
        let seen = self.seen.entry(key);
        let seen = seen.or_insert_with(|| Seen::of(touches, maps));
        if seen.all && strayed.is_none() && !self.now.astray {
            return;
        }
        let mut seen = std::mem::take(seen);
        let counts = strayed.map(|_| self.counts.clone());
        let counting = self.counting.get_mut(program).map(std::mem::take);
        let counting = counting.unwrap_or_default();
        let can_skip = strayed.is_none() && !self.now.astray;
        for entry in plan.entries(log).map_while(Result::ok) {
            let site = usize::from(entry.site.number);
            let is_old = seen.has(site) && counting.get(site) == Some(&false);
            if is_old && can_skip && self.pending.is_empty() {
                continue;
            }
            if let Some((strayed, _)) = strayed {
                let place = self.place(program, entry.site.number);
                self.now.astray |= strayed.lost == Some(place);
                self.now.other_result = strayed.results.contains(&place);
            }
            self.entry(touches, &entry);
            seen.see(touches, &self.maps, site);
        }
        if let Some(slot) = self.counting.get_mut(program) {
            *slot = counting;
        }
        if let Some(slot) = self.seen.get_mut(&key) {
            *slot = seen;
        }
        if let Some((strayed, log)) = strayed.filter(|_| self.now.astray) {
            // What it did instead.
            self.pending.clear();
            self.counts = counts.unwrap_or_default();
            let entries = plan.entries(log).map_while(Result::ok);
            let mut is_lost = false;
            for entry in entries {
                is_lost |= strayed.lost == Some(self.place(program, entry.site.number));
                if is_lost {
                    self.entry(touches, &entry);
                }
            }
        }
    }

    /// The next entry of a site: the site, and how many entries of it came before.
    fn place(&mut self, program: usize, site: u16) -> (u16, usize) {
        let count = self.counts.entry((program, site)).or_default();
        *count += 1;
        (site, *count - 1)
    }

    fn entry(&mut self, touches: &Touches, entry: &Entry<'_>) {
        if !self.pending.is_empty()
            && let Some(result) = field(entry, What::Result)
        {
            let is_done = result.iter().all(|byte| *byte == 0);
            while let Some((map, key, act)) = self.pending.pop() {
                self.update(map, &key, act, is_done);
            }
        }
        for touch in touches.get(entry.site.number) {
            for map in touches.maps(touch.map) {
                self.touch(*touch, map, entry);
            }
        }
    }

    fn touch(&mut self, touch: Touch, map: MapId, entry: &Entry<'_>) {
        let key = || {
            let mut fields = entry.fields();
            let key = fields.find(|(field, _)| is_key(field));
            key.map_or_else(Key::new, |(_, bytes)| Key::from_slice(bytes))
        };
        match touch.does {
            Does::Reads => {}
            Does::LooksUp => {
                let looked = (map, key());
                if !self.looked.contains(&looked) {
                    self.looked.push(looked);
                }
            }
            Does::Combines(how) => self.write(touch, map, Act::Combines(how)),
            Does::Changes => self.write(touch, map, Act::Changes),
            Does::Stores => self.write(touch, map, Act::Stores),
            Does::Updates => {
                let flags = field(entry, What::Argument(4)).and_then(|bytes| bytes.first());
                let only_new = u64::from(*flags.unwrap_or(&0)) & UpdateFlags::NOEXIST.bits() != 0;
                let act = if only_new { Act::Creates } else { Act::Updates };
                self.pending.push((map, key(), act));
            }
            Does::Deletes => self.pending.push((map, key(), Act::Deletes)),
        }
    }

    /// A call that makes, replaces or deletes an element ended.
    fn update(&mut self, map: MapId, key: &Key, act: Act, is_done: bool) {
        let now = self.now;
        let Some(map) = self.maps.get_mut(map.index()) else {
            return;
        };
        // It goes for all CPUs.
        let lane = map.lane(now.who.cpu).filter(|_| act != Act::Deletes);
        let (key, act) = match map.grain {
            Grain::None => return,
            Grain::Whole => (&Key::new(), Act::Changes),
            Grain::Element if map.is_one() => (&Key::new(), act),
            Grain::Element => (key, act),
        };
        if is_done {
            map.add_writer(now.who);
            map.elements.note(key, act, lane, now.actor);
        }
        if now.astray || now.other_result {
            map.elements.doubt(key, act, lane, now.actor);
        }
    }

    /// Something is written to a value: of an element that was looked up before, or that
    /// is always at hand.
    fn write(&mut self, touch: Touch, id: MapId, act: Act) {
        let now = self.now;
        let Some(map) = self.maps.get_mut(id.index()) else {
            return;
        };
        let whole = Key::new();
        let is_one = map.is_one();
        let looked = self.looked.iter().filter(|(map, _)| *map == id);
        let mut keys: SmallVec<[&Key; 4]> = looked.map(|(_, key)| key).collect();
        let is_meant = touch.map.is_some() || !keys.is_empty() || is_one && !map.kind.per_cpu;
        if !is_meant {
            return; // Another map is.
        }
        map.add_writer(now.who);
        let lane = map.lane(now.who.cpu);
        if map.grain == Grain::None {
            if now.astray {
                map.elements.doubt_all(now.actor);
            }
            return;
        }
        if is_one {
            keys.clear();
            keys.push(&whole);
        } else if keys.is_empty() {
            // No log of the program has a write without a look-up before.
            map.elements.doubt_all(now.actor);
        }
        // That one of several was replaced says nothing of each.
        let is_certain = keys.len() == 1 && map.grain == Grain::Element && touch.map.is_some();
        let act = match act {
            Act::Combines(_) => act,
            _ if is_certain => act,
            _ => Act::Changes,
        };
        for key in keys {
            map.elements.note(key, act, lane, now.actor);
            if now.astray {
                map.elements.doubt(key, act, lane, now.actor);
            }
        }
    }

    /// Why the last contents of a map depend on an order that is not known, if they do.
    pub fn unknown(&self, map: MapId) -> Option<String> {
        let (key, doubt) = self.maps.get(map.index())?.elements.doubtful()?;
        Some(doubt.text(key))
    }

    /// Whether what an element of a map holds in the end depends on such an order.
    pub fn is_doubtful(&self, map: MapId, key: &[u8]) -> bool {
        self.maps.get(map.index()).is_none_or(|map| {
            map.elements
                .is_doubtful(if map.is_one() { &[] } else { key })
        })
    }

    /// Whether memory of a map that a run on this CPU looks at can have been changed by
    /// somebody else meanwhile.
    pub fn may_race(&self, map: MapId, cpu: u32, depth: u16) -> bool {
        let Some(map) = self.maps.get(map.index()) else {
            return true;
        };
        if map.kind.evicts {
            return true;
        }
        let others = map.writers.iter().filter(|who| match map.kind.per_cpu {
            true => who.cpu == cpu,
            false => true,
        });
        { others }.any(|who| *who != Who { cpu, depth })
    }
}

impl Map {
    fn add_writer(&mut self, who: Who) {
        if !self.writers.contains(&who) {
            self.writers.push(who);
        }
    }

    /// Whether its elements are not told apart, or there is but one.
    fn is_one(&self) -> bool {
        self.kind.is_single || self.grain == Grain::Whole
    }

    /// Whose value a firing writes.
    fn lane(&self, cpu: u32) -> Lane {
        // Where elements are not told apart, other CPUs' values may be meant.
        let is_own = self.kind.per_cpu && self.grain != Grain::Whole;
        is_own.then_some(cpu)
    }
}

impl Grain {
    /// How closely a map has to be watched that these programs write to.
    fn of<'t>(map: MapId, mut programs: impl Iterator<Item = &'t Touches> + Clone) -> Self {
        let mut combining: Option<Combining> = None;
        for touches in programs.clone() {
            let writes = touches.iter().filter(|(_, touch)| touch.does.writes());
            for (_, touch) in writes.filter(|(_, it)| touches.maps(it.map).any(|it| it == map)) {
                match touch.does {
                    Does::Combines(how) if combining.is_none_or(|known| known == how) => {
                        combining = Some(how);
                    }
                    _ if programs.any(|touches| touches.unkeyed().contains(&map)) => {
                        return Self::Whole;
                    }
                    _ => return Self::Element,
                }
            }
        }
        Self::None
    }
}

/// A field of an entry.
fn field<'a>(entry: &Entry<'a>, what: What) -> Option<&'a [u8]> {
    let mut fields = entry.fields();
    let found = fields.find(|(field, _)| field.what == what);
    found.map(|(_, bytes)| bytes)
}

impl Seen {
    /// Nothing, where there is something to be seen.
    fn of(touches: &Touches, maps: &[Map]) -> Self {
        let mut seen = Self::default();
        seen.update(touches, maps);
        seen
    }

    fn has(&self, site: usize) -> bool {
        self.sites.get(site) == Some(&true)
    }

    /// A site was seen: whether all were that need to be seen only once.
    fn see(&mut self, touches: &Touches, maps: &[Map], site: usize) {
        if self.sites.len() <= site {
            self.sites.resize(site + 1, false);
        }
        if let Some(slot) = self.sites.get_mut(site)
            && !std::mem::replace(slot, true)
        {
            self.update(touches, maps);
        }
    }

    fn update(&mut self, touches: &Touches, maps: &[Map]) {
        let is_watched = |map: MapId| {
            let map = maps.get(map.index());
            map.is_some_and(|map| map.grain != Grain::None)
        };
        let mut writes = touches.iter().filter(|(_, touch)| touch.does.writes());
        self.all = writes
            .all(|(site, touch)| self.has(site.into()) && !touches.maps(touch.map).any(is_watched));
    }
}
