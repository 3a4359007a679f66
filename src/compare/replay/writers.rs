//! Who wrote to which map, and whether what it holds at the end depends on an order that
//! the recording does not have.
//!
//! Firings on one CPU come one after the other. Of firings on two CPUs, one was before the
//! other only if that can be seen: a firing that ended no earlier than the first one is
//! followed, on its CPU, by one that began no later than the second. (The recorder's ring
//! has firings in the order of their ends, and each says when it began.) Where the second
//! looked the element up and found what the first had left, it was later, too.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::touch::{Combining, Does, Touches};
use crate::instrument::{Entry, Firing, Plan, What};
use crate::util::MapId;

/// A place where one thing happens after another: a CPU, and how deeply nested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Who {
    cpu: u32,
    depth: u16,
}

/// What is known of all maps.
#[derive(Debug, Default)]
pub(super) struct Writers {
    maps: Vec<Map>,
    cpus: Vec<Cpu>,
    /// Of each program, on each CPU and depth: which sites have been seen.
    seen: FxHashMap<(usize, u32, u16), Seen>,
    /// What the firing under way has looked up.
    looked: SmallVec<[(MapId, Key); 4]>,
    /// What it will have done if the call that it makes succeeds.
    pending: Option<(MapId, Key, bool)>,
}

type Key = SmallVec<[u8; 16]>;

/// How far the firings of a program on a CPU were looked through.
#[derive(Debug, Default)]
struct Seen {
    sites: Vec<bool>,
    /// Whether nothing new can come.
    all: bool,
}

/// What is known of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    /// Where the firing before the last one is in the ring, of those that interrupted none.
    before: Option<u64>,
    /// The same of the last one, and when it began.
    last: Option<(u64, u64)>,
}

/// What was done to a map.
#[derive(Debug, Default)]
struct Map {
    kind: Kind,
    writers: SmallVec<[Who; 4]>,
    combining: SmallVec<[Combining; 1]>,
    sets: bool,
    keyed: bool,
    /// Whether an element was made twice, replaced, or deleted.
    replaced: bool,
    keys: FxHashMap<Key, Last>,
    /// Two firings of which nobody knows which was first.
    unordered: Option<(Who, Who)>,
}

/// What is to be known of a map before anything is done to it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    /// Whether each CPU has values of its own.
    pub per_cpu: bool,
    /// Whether elements go when there is no room, in an order that each kernel has for
    /// itself.
    pub evicts: bool,
}

/// Who wrote an element last.
#[derive(Debug, Clone, Copy)]
struct Last {
    who: Who,
    /// Where its firing is in the ring.
    position: u64,
}

/// A firing as it is looked through.
#[derive(Debug, Clone, Copy)]
struct Now {
    who: Who,
    position: u64,
    time: u64,
    /// Whether the replay found everything as the kernel's run did.
    same: bool,
}

impl Writers {
    /// For maps of these kinds, and so many CPUs.
    pub fn new(kinds: impl Iterator<Item = Kind>, cpus: u32) -> Self {
        let map = |kind| Map {
            kind,
            ..Map::default()
        };
        Self {
            maps: kinds.map(map).collect(),
            cpus: vec![Cpu::default(); cpus as usize],
            ..Self::default()
        }
    }

    /// A firing of a program was replayed, with the same inputs as in the kernel or not;
    /// `position` is its place in the ring.
    pub fn note(
        &mut self,
        program: usize,
        (plan, touches): (&Plan, &Touches),
        firing: &Firing<'_>,
        position: u64,
        same: bool,
    ) {
        if firing.depth == 0 {
            self.begin(firing.cpu, position, firing.time);
        }
        self.note_more(program, (plan, touches), firing, position, same);
    }

    /// The same for what another program added to a firing.
    pub fn note_more(
        &mut self,
        program: usize,
        (plan, touches): (&Plan, &Touches),
        firing: &Firing<'_>,
        position: u64,
        same: bool,
    ) {
        let who = Who {
            cpu: firing.cpu,
            depth: firing.depth,
        };
        let key = (program, firing.cpu, firing.depth);
        let seen = self.seen.entry(key).or_insert_with(|| Seen::of(touches));
        if seen.all {
            return;
        }
        let mut seen = std::mem::take(seen);
        let now = Now {
            who,
            position,
            time: firing.time,
            same,
        };
        self.looked.clear();
        self.pending = None;
        for entry in plan.entries(firing.log).map_while(Result::ok) {
            self.note_entry(touches, &entry, now);
            seen.see(touches, entry.site.number);
        }
        if let Some(slot) = self.seen.get_mut(&key) {
            *slot = seen;
        }
    }

    /// A firing that interrupted none.
    fn begin(&mut self, cpu: u32, position: u64, time: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.before = cpu.last.map(|(position, _)| position);
            cpu.last = Some((position, time));
        }
    }

    fn note_entry(&mut self, touches: &Touches, entry: &Entry<'_>, now: Now) {
        let result = |entry: &Entry<'_>| {
            let mut results = entry
                .fields()
                .filter(|(field, _)| field.what == What::Result);
            results
                .next()
                .map(|(_, bytes)| bytes.iter().all(|byte| *byte == 0))
        };
        if let Some((map, key, _)) = self.pending.take_if(|_| result(entry).is_some())
            && result(entry) == Some(true)
        {
            self.write_key(map, key, now);
        }
        let Some(touch) = touches.get(entry.site.number) else {
            return;
        };
        for map in touches.maps(touch) {
            let key = || {
                let mut keys = entry
                    .fields()
                    .filter(|(field, _)| field.what == What::Given(2));
                keys.next().map(|(_, bytes)| Key::from_slice(bytes))
            };
            match touch.does {
                Does::Reads => {}
                Does::LooksUp => self.looked.extend(key().map(|key| (map, key))),
                Does::Combines(how) => self.write(map, now, |map| {
                    if !map.combining.contains(&how) {
                        map.combining.push(how);
                    }
                }),
                Does::Sets | Does::Changes => self.write(map, now, |map| map.sets = true),
                Does::Updates | Does::Deletes => match key() {
                    Some(key) => {
                        let is_update = touch.does == Does::Updates;
                        if !is_update && let Some(map) = self.maps.get_mut(map.index()) {
                            map.replaced = true;
                        }
                        self.pending = Some((map, key, is_update));
                    }
                    None => self.write(map, now, |map| map.sets = true),
                },
            }
        }
    }

    fn write(&mut self, map: MapId, now: Now, how: impl FnOnce(&mut Map)) {
        if let Some(map) = self.maps.get_mut(map.index()) {
            if !map.writers.contains(&now.who) {
                map.writers.push(now.who);
            }
            how(map);
        }
    }

    /// An element was made, replaced or deleted.
    fn write_key(&mut self, map: MapId, key: Key, now: Now) {
        let looked = self
            .looked
            .iter()
            .any(|(at, known)| *at == map && *known == key);
        let is_witness = now.same && looked;
        let cpus = &self.cpus;
        let Some(map) = self.maps.get_mut(map.index()) else {
            return;
        };
        if !map.writers.contains(&now.who) {
            map.writers.push(now.who);
        }
        map.keyed = true;
        let last = Last {
            who: now.who,
            position: now.position,
        };
        if let Some(before) = map.keys.insert(key, last) {
            map.replaced = true;
            let is_known = before.who == now.who
                || is_witness
                || now.who.depth == 0 && is_ordered(cpus, before.position, now.time);
            if !is_known && map.unordered.is_none() {
                map.unordered = Some((before.who, now.who));
            }
        }
    }

    /// Why the last contents of a map depend on an order that is not known, if they do.
    pub fn unknown(&self, map: MapId) -> Option<String> {
        let map = self.maps.get(map.index())?;
        // Two of them that have a value in common.
        let mut pairs = (1..).zip(&map.writers).filter_map(|(behind, first)| {
            let mut others = map.writers.iter().skip(behind);
            let other = others.find(|other| !map.kind.per_cpu || other.cpu == first.cpu)?;
            Some((*first, *other))
        });
        let (first, other) = pairs.next()?;
        let both = |one: Who, other: Who| format!("{} and {}", one.text(), other.text());
        if map.sets {
            return Some(format!("{} stored to it", both(first, other)));
        }
        if map.combining.len() > 1 {
            return Some(format!(
                "{} changed it by different operations",
                both(first, other)
            ));
        }
        if !map.combining.is_empty() && map.replaced {
            return Some(format!(
                "{} changed its elements, which were replaced meanwhile",
                both(first, other)
            ));
        }
        let (one, other) = map.unordered?;
        Some(format!("{} set the same element", both(one, other)))
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

/// Whether a firing at this position in the ring had ended before another began.
fn is_ordered(cpus: &[Cpu], position: u64, time: u64) -> bool {
    cpus.iter().any(|cpu| match (cpu.before, cpu.last) {
        (Some(before), Some((_, began))) => before >= position && began <= time,
        _ => false,
    })
}

impl Who {
    fn text(self) -> String {
        match self.depth {
            0 => format!("CPU {}", self.cpu),
            depth => format!("CPU {} (nested {depth} deep)", self.cpu),
        }
    }
}

impl Seen {
    /// Nothing, where there is something to be seen.
    fn of(touches: &Touches) -> Self {
        let writes = touches.iter().any(|(_, touch)| touch.does.writes());
        Self {
            sites: Vec::new(),
            all: !writes,
        }
    }

    /// A site was seen: whether all were that need to be seen only once.
    fn see(&mut self, touches: &Touches, site: u16) {
        let site = usize::from(site);
        if self.sites.len() <= site {
            self.sites.resize(site + 1, false);
        }
        if let Some(slot) = self.sites.get_mut(site)
            && !std::mem::replace(slot, true)
        {
            self.all = touches.iter().all(|(number, touch)| match touch.does {
                Does::Reads | Does::LooksUp => true,
                // Each key counts.
                Does::Updates | Does::Deletes => false,
                _ => self.sites.get(usize::from(number)) == Some(&true),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: MapId = MapId(0);

    fn kind(per_cpu: bool) -> Kind {
        Kind {
            per_cpu,
            evicts: false,
        }
    }

    fn now(cpu: u32, depth: u16, position: u64, time: u64) -> Now {
        Now {
            who: Who { cpu, depth },
            position,
            time,
            same: false,
        }
    }

    /// Writes of one key by firings of these CPUs: when they began, in the order of their
    /// ends.
    fn keyed(per_cpu: bool, firings: &[(u32, u64)]) -> Option<String> {
        let mut writers = Writers::new([kind(per_cpu)].into_iter(), 4);
        for (position, (cpu, time)) in (0..).zip(firings) {
            writers.begin(*cpu, position, *time);
            let key = Key::from_slice(&[1, 2]);
            writers.write_key(MAP, key, now(*cpu, 0, position, *time));
        }
        writers.unknown(MAP)
    }

    #[test]
    fn one_cpu_after_another_is_known() {
        assert_eq!(keyed(false, &[(0, 10), (0, 20)]), None);
        // When CPU 1 begins, CPU 0 may be at it still.
        assert!(keyed(false, &[(0, 10), (1, 11)]).is_some());
        // CPU 1 had ended a firing after CPU 0's, and then begins another.
        let firings = [(1, 5), (0, 10), (1, 12), (1, 14)];
        let unknown = keyed(false, &firings[1..]).unwrap();
        assert_eq!(unknown, "CPU 0 and CPU 1 set the same element");
        let mut writers = Writers::new([kind(false)].into_iter(), 4);
        for (position, (cpu, time)) in (0..).zip(firings) {
            writers.begin(cpu, position, time);
            if [1, 3].contains(&position) {
                let key = Key::from_slice(&[1, 2]);
                writers.write_key(MAP, key, now(cpu, 0, position, time));
            }
        }
        assert_eq!(writers.unknown(MAP), None);
        assert_eq!(keyed(true, &[(0, 10), (1, 11)]), None);
    }

    #[test]
    fn operations_that_come_to_the_same() {
        let mut writers = Writers::new([kind(false)].into_iter(), 4);
        let add = |how| {
            move |map: &mut Map| {
                if !map.combining.contains(&how) {
                    map.combining.push(how);
                }
            }
        };
        writers.write(MAP, now(0, 0, 0, 0), add(Combining::Add));
        writers.write(MAP, now(1, 0, 1, 1), add(Combining::Add));
        assert_eq!(writers.unknown(MAP), None);
        assert!(writers.may_race(MAP, 0, 0) && writers.may_race(MAP, 2, 0));
        writers.write(MAP, now(1, 0, 2, 2), add(Combining::Or));
        let why = writers.unknown(MAP).unwrap();
        assert_eq!(why, "CPU 0 and CPU 1 changed it by different operations");
    }

    #[test]
    fn an_interruption_is_another_writer() {
        let mut writers = Writers::new([kind(true)].into_iter(), 4);
        writers.write(MAP, now(0, 0, 0, 0), |map| map.sets = true);
        writers.write(MAP, now(1, 0, 1, 1), |map| map.sets = true);
        assert_eq!(writers.unknown(MAP), None, "each has its own");
        assert!(!writers.may_race(MAP, 0, 0));
        writers.write(MAP, now(1, 1, 2, 2), |map| map.sets = true);
        assert!(writers.unknown(MAP).unwrap().contains("nested 1 deep"));
        assert!(writers.may_race(MAP, 1, 0) && !writers.may_race(MAP, 0, 0));
    }
}
