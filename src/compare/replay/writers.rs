//! Collects from the logs which firings wrote to which map, and whether its final contents
//! depend on an order of writes that is not known.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::contents::is_lru;
use super::elements::{Act, Actor, Combining, Elements, Key, Lane};
use super::touch::{Does, Touch, Touches, is_key};
use crate::instrument::{Entry, Firing, Plan, What};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::MapId;

/// A CPU and nesting depth: firings with the same ones never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Who {
    cpu: u32,
    depth: u16,
}

/// The writes to all maps.
#[derive(Debug, Default)]
pub(super) struct Writers {
    maps: Vec<Map>,
    /// By program and site: whether each of its entries matters, not only the first.
    counting: Vec<Vec<bool>>,
    /// By program, CPU and depth: the sites seen so far.
    seen: FxHashMap<(usize, Who), Seen>,
    /// The current firing.
    now: Now,
    /// How many entries of each site the current firing had so far, if that matters.
    counts: FxHashMap<(usize, u16), usize>,
    /// The elements that the current firing has looked up.
    looked: SmallVec<[(MapId, Key); 4]>,
    /// What its current call does if it succeeds.
    pending: SmallVec<[(MapId, Key, Act); 1]>,
}

/// The properties of a map that matter for writes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    /// Whether each CPU has values of its own.
    per_cpu: bool,
    /// Whether a full map evicts elements, in an order that is not reproducible.
    evicts: bool,
    /// Whether it is an array, whose elements always exist.
    is_array: bool,
    /// Whether it is an array with one element.
    is_single: bool,
}

impl Kind {
    /// The properties of a map.
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

/// The writes to a map.
#[derive(Debug, Default)]
struct Map {
    id: MapId,
    kind: Kind,
    grain: Grain,
    writers: SmallVec<[Who; 4]>,
    elements: Elements,
}

/// How finely the writes to a map are tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Grain {
    /// Not at all: all writes of the programs commute.
    #[default]
    None,
    /// The map as one element, which no write replaces completely: logs don't always have the
    /// key.
    Whole,
    /// By element.
    Element,
}

/// The sites of a program that were seen on a CPU and depth.
#[derive(Debug, Default)]
struct Seen {
    sites: Vec<bool>,
    /// Whether later entries can't add anything.
    all: bool,
}

/// Where a replay could not follow the recorded log: entries, each by its site and how many
/// entries of that site come before it in the firing.
#[derive(Debug, Default)]
pub(super) struct Strayed {
    /// Calls with another result.
    pub results: SmallVec<[(u16, usize); 1]>,
    /// A look-up that found no element: from there on the replay did other things than the
    /// kernel's run.
    pub lost: Option<(u16, usize)>,
}

/// The current firing.
#[derive(Debug, Clone, Copy, Default)]
struct Now {
    who: Who,
    actor: Actor,
    /// Whether the replay's writes are no longer those of the kernel's run.
    astray: bool,
    /// Whether its current call had another result.
    other_result: bool,
}

impl Strayed {
    /// Whether the replay followed the whole log.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty() && self.lost.is_none()
    }
}

impl Writers {
    /// No writes yet, to maps of these kinds by these programs.
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
                // A look-up matters if the program writes through pointers into the map.
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

    /// Begins a firing whose record ends at `ended` in the ring: [`note`](Self::note) calls
    /// follow.
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

    /// Notes that the replay does other things than the kernel's run from here on.
    pub fn stray(&mut self) {
        self.now.astray = true;
    }

    /// Notes what a program did in the current firing, from the recorded log; `strayed` has
    /// where the replay could not follow it, and the replay's log.
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
                let counted = self.count(program, entry.site.number);
                self.now.astray |= strayed.lost == Some(counted);
                self.now.other_result = strayed.results.contains(&counted);
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
            // What the replay did instead.
            self.pending.clear();
            self.counts = counts.unwrap_or_default();
            let entries = plan.entries(log).map_while(Result::ok);
            let mut is_lost = false;
            for entry in entries {
                is_lost |= strayed.lost == Some(self.count(program, entry.site.number));
                if is_lost {
                    self.entry(touches, &entry);
                }
            }
        }
    }

    /// Counts an entry of a site: returns the site and how many entries of it came before.
    fn count(&mut self, program: usize, site: u16) -> (u16, usize) {
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

    /// Notes a call that creates, replaces or deletes an element.
    fn update(&mut self, map: MapId, key: &Key, act: Act, is_done: bool) {
        let now = self.now;
        let Some(map) = self.maps.get_mut(map.index()) else {
            return;
        };
        // A deletion is for all CPUs.
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

    /// Notes a write to a value: of an element that was looked up before, or of a global
    /// variable.
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
            return; // The write is to another map.
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
            // The log has no look-up before the write.
            map.elements.doubt_all(now.actor);
        }
        // If one of several elements was written, none is known to be replaced.
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

    /// Why the final contents of a map depend on an order that is not known; none if they
    /// don't.
    pub fn unknown(&self, map: MapId) -> Option<String> {
        let (key, doubt) = self.maps.get(map.index())?.elements.doubtful()?;
        Some(doubt.text(key))
    }

    /// Whether the final value of an element depends on such an order.
    pub fn is_doubtful(&self, map: MapId, key: &[u8]) -> bool {
        self.maps.get(map.index()).is_none_or(|map| {
            map.elements
                .is_doubtful(if map.is_one() { &[] } else { key })
        })
    }

    /// Whether another firing can have changed the map memory that a run on this CPU and depth
    /// reads.
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

    /// Whether it is tracked as one element, or has only one.
    fn is_one(&self) -> bool {
        self.kind.is_single || self.grain == Grain::Whole
    }

    /// The lane that a firing writes.
    fn lane(&self, cpu: u32) -> Lane {
        // Without keys, the write may be to another CPU's value.
        let is_own = self.kind.per_cpu && self.grain != Grain::Whole;
        is_own.then_some(cpu)
    }
}

impl Grain {
    /// How finely a map that these programs write to has to be tracked.
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
    /// No sites seen.
    fn of(touches: &Touches, maps: &[Map]) -> Self {
        let mut seen = Self::default();
        seen.update(touches, maps);
        seen
    }

    fn has(&self, site: usize) -> bool {
        self.sites.get(site) == Some(&true)
    }

    /// Marks a site as seen, and updates [`all`](Self::all).
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
