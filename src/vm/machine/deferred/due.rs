//! Finding due callbacks and starting them.

use std::sync::Arc;

use super::super::state::Machine;
use super::table::{Armed, DeferredKind, Entry, When};
use crate::vm::maps::MapHandle;
use crate::vm::memory::{Address, Region, Rights, SharedBytes, SpaceFull};

/// A scheduled call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The kind of callback.
    pub kind: DeferredKind,
    /// Name of the map whose value contains the struct.
    pub map: String,
    /// The element's key.
    pub key: Vec<u8>,
    /// Nanoseconds until it is due; 0 if it runs as soon as possible.
    pub in_ns: u64,
    /// The CPU that armed it, on which it runs.
    pub cpu: u32,
}

/// A call that is due.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    entry_key: u64,
    map: MapHandle,
    element: usize,
    /// The monotonic time at which it is due, in nanoseconds.
    pub at_ns: u64,
    /// The CPU that it runs on.
    pub cpu: u32,
    /// The callback's address.
    pub callback: u64,
}

/// A call that has started.
#[derive(Debug)]
pub struct Started {
    /// Arguments of the callback: map, key and value.
    pub args: [u64; 5],
    key: Address,
    outer: Option<u64>,
}

impl Machine {
    /// Whether the entry's struct still contains its key, in a live element.
    fn is_there(&self, key: u64, entry: &Entry) -> bool {
        let mut there = [0; 8];
        let lives = self
            .map(entry.slot.map)
            .and_then(|map| map.slab())
            .is_some_and(|slab| slab.is_live(entry.slot.element));
        lives
            && self.space.probe(entry.slot.address, &mut there).is_some()
            && u64::from_le_bytes(there) == key
    }

    /// The monotonic time at which a call is due.
    fn due_at(&self, entry: &Entry, armed: &Armed) -> u64 {
        let clock = self.world.time();
        match (armed.when, entry.kind) {
            (When::At(at), DeferredKind::Timer(of)) => of.to_monotonic(clock, at),
            (When::At(_), _) | (When::Soon, _) => clock.monotonic_ns(),
        }
    }

    /// The key of an element; for an array, its index.
    fn element_key(&self, map: MapHandle, element: usize) -> Vec<u8> {
        let key = self
            .map(map)
            .and_then(|map| map.slab())
            .and_then(|slab| slab.key(element));
        key.unwrap_or_else(|| {
            let index = u32::try_from(element).unwrap_or(u32::MAX);
            index.to_le_bytes().to_vec()
        })
    }

    /// The scheduled calls, in order.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        let now = self.world.time().monotonic_ns();
        let table = self.shared.deferred.lock();
        let mut found: Vec<_> = table
            .iter()
            .filter(|(key, entry)| self.is_there(*key, entry))
            .filter_map(|(_, entry)| Some((entry, entry.armed.as_ref()?)))
            .map(|(entry, armed)| (self.due_at(entry, armed), armed.order, armed.cpu, entry))
            .collect();
        found.sort_by_key(|(at, order, ..)| (*at, *order));
        let pending = found.into_iter().map(|(at, _, cpu, entry)| Pending {
            kind: entry.kind,
            map: self
                .map(entry.slot.map)
                .map_or_else(String::new, |map| map.def().name.clone()),
            key: self.element_key(entry.slot.map, entry.slot.element),
            in_ns: at.saturating_sub(now),
            cpu,
        });
        pending.collect()
    }

    /// Takes the first call that is due at monotonic time `until_ns`. If other CPUs are in use,
    /// takes only calls that this CPU armed.
    pub fn take_due(&mut self, until_ns: u64) -> Option<Due> {
        let (own, alone) = (self.world.cpu(), self.is_alone());
        let mut table = self.shared.deferred.lock();
        loop {
            let (key, first) = table
                .iter()
                .filter_map(|(key, entry)| Some((key, entry, entry.armed.as_ref()?)))
                .filter(|(_, _, armed)| alone || armed.cpu == own)
                .map(|(key, entry, armed)| ((self.due_at(entry, armed), armed.order), key))
                .filter(|((at, _), _)| *at <= until_ns)
                .min()
                .map(|(at, key)| (key, at))?;
            let is_there = table
                .get(key)
                .is_some_and(|entry| self.is_there(key, entry));
            if !is_there {
                table.remove(key);
                continue;
            }
            let entry = table.get_mut(key)?;
            let armed = entry.armed.take();
            if let Some((armed, callback)) = armed.zip(entry.callback) {
                return Some(Due {
                    entry_key: key,
                    map: entry.slot.map,
                    element: entry.slot.element,
                    at_ns: first.0,
                    cpu: armed.cpu,
                    callback,
                });
            }
        }
    }

    /// Prepares a call: its arguments.
    ///
    /// # Errors
    /// [`SpaceFull`] if the address space has no room for the key.
    pub fn start_deferred(&mut self, due: &Due) -> Result<Started, SpaceFull> {
        let name = self
            .map(due.map)
            .map_or_else(String::new, |map| format!("map key of {}", map.def().name));
        let key = self.element_key(due.map, due.element);
        let region = Region::bytes(name, Arc::new(SharedBytes::from_bytes(&key)));
        let key = self.space.insert(region.with_rights(Rights::Read))?;
        let map = self.map_address(due.map).unwrap_or_default();
        let value = self.value_address(due.map, due.element);
        Ok(Started {
            args: [map, key.register(), value.unwrap_or_default(), 0, 0],
            key,
            outer: self.cpu.running.replace(due.entry_key),
        })
    }

    /// Ends a call.
    pub fn end_deferred(&mut self, started: Started) {
        self.space.remove(started.key);
        self.cpu.running = started.outer;
    }

    /// User space closes its last file descriptor of a map: the map's timers are cancelled, and
    /// no new ones can be created (`map_release_uref` of arrays and hashes).
    pub fn release_user_reference(&mut self, map: MapHandle) {
        let mut table = self.shared.deferred.lock();
        table.release_map(map);
        let of_map: Vec<_> = table
            .iter()
            .filter(|(_, entry)| entry.slot.map == map)
            .map(|(key, entry)| (key, entry.slot.address, self.is_there(key, entry)))
            .collect();
        for (key, address, is_there) in of_map {
            table.remove(key);
            if is_there {
                // `is_there` has just read this address.
                let _ = self.space.store(address, 8, 0);
            }
        }
    }
}
