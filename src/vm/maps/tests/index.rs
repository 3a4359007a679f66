//! The index without a lock: while writers change the chain at any step of a reader, the
//! reader's result was true at one of these moments.

use std::cell::RefCell;
use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::super::memory::Slab;
use super::super::index::{Index, Key, Number};

/// Few, so that they are soon reused.
const SLOTS: usize = 5;

/// A change of the index; the number is the key.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Inserts it, or moves it to another slot.
    Put(u64),
    Remove(u64),
}

/// An index, and the expected slot of each key.
struct Both {
    index: Index,
    slab: Slab,
    model: RefCell<HashMap<u64, u32>>,
}

impl Both {
    fn new() -> Self {
        Self {
            index: Index::new(SLOTS, None),
            slab: Slab::keyed(8, 8, SLOTS),
            model: RefCell::default(),
        }
    }

    fn change(&self, change: Change) {
        let (mut index, mut model) = (self.index.lock(), self.model.borrow_mut());
        match change {
            Change::Put(number) => {
                let at = index.find(&self.slab, &Number(number));
                assert_eq!(at.slot, model.get(&number).copied());
                let Some(slot) = index.take() else { return };
                self.slab
                    .revive(slot as usize, &number.to_le_bytes())
                    .unwrap();
                match at.slot {
                    Some(_) => index.replace(at, slot, 0),
                    None => index.insert(at, slot, 0),
                }
                model.insert(number, slot);
            }
            Change::Remove(number) => {
                let at = index.find(&self.slab, &Number(number));
                assert_eq!(index.remove(at), model.remove(&number));
            }
        }
        assert_eq!(index.len() as usize, model.len());
    }
}

/// A key that runs a change of the index at each comparison.
struct Watched<'a> {
    number: u64,
    both: &'a Both,
    /// The changes to make, the last one first.
    changes: RefCell<Vec<Vec<Change>>>,
    /// The slots that the key had since the look-up began.
    seen: RefCell<Vec<Option<u32>>>,
}

impl Watched<'_> {
    fn happen(&self) {
        for change in self.changes.borrow_mut().pop().unwrap_or_default() {
            self.both.change(change);
            let now = self.both.model.borrow().get(&self.number).copied();
            self.seen.borrow_mut().push(now);
        }
    }
}

impl Key for Watched<'_> {
    fn hash(&self) -> u64 {
        Number(self.number).hash()
    }

    fn is_at(&self, slab: &Slab, slot: u32) -> bool {
        self.happen();
        let is_at = Number(self.number).is_at(slab, slot);
        self.happen();
        is_at
    }
}

/// Numbers in two chains of the index's eight.
fn numbers() -> Vec<u64> {
    let chain = |number: &u64| Number(*number).hash() >> 61;
    let of = |wanted| (0..).filter(move |number| chain(number) == wanted).take(4);
    of(3).chain(of(6)).collect()
}

fn change() -> impl Strategy<Value = Change> {
    let number = prop::sample::select(numbers());
    prop_oneof![
        3 => number.clone().prop_map(Change::Put),
        2 => number.prop_map(Change::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_reader_finds_what_was_there_at_some_moment(
        before in vec(change(), 0..24),
        // At most as often as a reader tries before it takes the lock.
        during in vec(vec(change(), 0..6), 0..16),
        number in prop::sample::select(numbers()),
    ) {
        let both = Both::new();
        for change in before {
            both.change(change);
        }
        let watched = Watched {
            number,
            both: &both,
            changes: RefCell::new(during),
            seen: RefCell::new(vec![both.model.borrow().get(&number).copied()]),
        };
        let found = both.index.find(&both.slab, &watched);
        prop_assert!(watched.seen.borrow().contains(&found), "{:?}", watched.seen);
        for number in numbers() {
            let wanted = both.model.borrow().get(&number).copied();
            prop_assert_eq!(both.index.find(&both.slab, &Number(number)), wanted);
        }
    }
}

/// A reader whose chain changes at every attempt finishes under the lock.
#[test]
fn a_reader_that_is_disturbed_each_time_ends() {
    let both = Both::new();
    let [first, second, ..] = numbers()[..] else {
        panic!("no numbers");
    };
    both.change(Change::Put(first));
    both.change(Change::Put(second));
    // One per attempt, which has two or four steps.
    let changes = (0..32).map(|moment| match moment % 2 {
        0 => vec![Change::Put(second)],
        _ => Vec::new(),
    });
    let watched = Watched {
        number: first,
        both: &both,
        changes: RefCell::new(changes.collect()),
        seen: RefCell::default(),
    };
    let found = both.index.find(&both.slab, &watched);
    assert_eq!(found, both.model.borrow().get(&first).copied());
}
