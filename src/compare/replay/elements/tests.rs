use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The key of the first element.
fn key() -> Key {
    Key::from_slice(&[7, 0, 0, 0])
}

/// A firing with this span.
fn actor(began: u64, ended: u64) -> Actor {
    Actor {
        cpu: 0,
        sequence: ended,
        began,
        ended,
    }
}

/// Whether the element is in doubt after these acts of firings with these spans, in the order
/// of the ring, each on the value of all CPUs.
fn doubtful(writes: &[(u64, u64, Act)]) -> bool {
    let mut elements = Elements::new(false);
    for (began, ended, act) in writes {
        elements.note(&key(), *act, None, actor(*began, *ended));
    }
    assert_eq!(
        elements.is_doubtful(&key()),
        elements.doubtful().is_some(),
        "it is the only one"
    );
    elements.is_doubtful(&key())
}

use Act::{Changes, Combines, Creates, Deletes, Stores, Updates};
const ADDS: Act = Combines(Combining::Add);

#[test]
fn one_after_the_other_is_known() {
    for act in [Changes, Stores, Updates, Deletes] {
        assert!(!doubtful(&[(0, 10, act), (10, 20, Changes)]));
        assert!(!doubtful(&[(0, 10, act), (15, 20, ADDS)]));
        // The second began before the first one's record was in the ring.
        assert!(doubtful(&[(0, 10, act), (9, 20, Changes)]));
    }
    // One interrupted the other, so its record comes first.
    assert!(doubtful(&[(5, 10, Changes), (0, 20, Changes)]));
    // Three CPUs, the last one after the second, but not after the first.
    let three = [(0, 10, Changes), (10, 20, Changes), (5, 30, Changes)];
    assert!(!doubtful(&three[..2]) && doubtful(&three));
}

#[test]
fn what_one_firing_does_is_in_order() {
    assert!(!doubtful(&[
        (0, 10, ADDS),
        (0, 10, Changes),
        (0, 10, Deletes)
    ]));
    // Another firing added, too, though not last.
    let hidden = [(0, 10, ADDS), (5, 20, ADDS), (5, 20, Changes)];
    assert!(!doubtful(&hidden[..2]) && doubtful(&hidden));
}

#[test]
fn some_operations_come_to_the_same() {
    assert!(!doubtful(&[(0, 10, ADDS), (0, 20, ADDS)]));
    assert!(doubtful(&[(0, 10, ADDS), (0, 20, Combines(Combining::Or))]));
    assert!(!doubtful(&[(0, 10, Creates), (0, 20, ADDS)]));
    assert!(doubtful(&[(0, 10, Updates), (0, 20, ADDS)]));
    assert!(doubtful(&[(0, 10, Creates), (0, 20, Deletes)]));
}

#[test]
fn what_is_replaced_after_all_is_known_again() {
    let overlap = [(0, 10, Changes), (5, 20, Changes)];
    for act in [Stores, Updates, Deletes, Creates] {
        let then = |began, ended| [&overlap[..], &[(began, ended, act)]].concat();
        assert!(!doubtful(&then(20, 30)), "{act:?}");
        assert!(doubtful(&then(15, 30)), "{act:?}");
    }
    assert!(doubtful(&[&overlap[..], &[(20, 30, Changes)]].concat()));
    assert!(doubtful(&[&overlap[..], &[(20, 30, ADDS)]].concat()));
}

#[test]
fn each_cpu_has_its_own_value() {
    let mut elements = Elements::new(true);
    elements.note(&key(), Stores, Some(0), actor(0, 10));
    elements.note(&key(), Stores, Some(1), actor(0, 20));
    assert_eq!(elements.doubtful(), None);
    // But a deletion is for all CPUs.
    elements.note(&key(), Deletes, None, actor(15, 30));
    let (at, doubt) = elements.doubtful().unwrap();
    // CPU 1 may have written to memory that another element reuses.
    assert!(at.is_empty() && elements.is_doubtful(&[1]));
    assert_eq!(doubt, Doubt::Overlap(actor(0, 20), actor(15, 30)));
}

#[test]
fn a_pointer_may_outlive_its_element() {
    for (act, is_lasting) in [(Stores, true), (ADDS, true), (Updates, false)] {
        for recycles in [false, true] {
            let mut elements = Elements::new(recycles);
            elements.note(&key(), act, None, actor(0, 10));
            elements.note(&key(), Deletes, None, actor(5, 20));
            assert!(elements.is_doubtful(&key()));
            elements.note(&key(), Creates, None, actor(20, 30));
            let doubtful = elements.is_doubtful(&key());
            assert_eq!(doubtful, recycles && is_lasting, "{act:?}");
        }
    }
}

#[test]
fn a_firing_that_went_astray_is_a_doubt_until_it_is_over() {
    let mut elements = Elements::new(true);
    elements.note(&key(), Updates, None, actor(0, 10));
    elements.doubt(&key(), Updates, None, actor(0, 10));
    let (at, doubt) = elements.doubtful().unwrap();
    assert_eq!(
        doubt.text(at),
        "firing 10 of CPU 0 read a map value that the replay does not have, and wrote to element 7"
    );
    elements.note(&key(), Updates, None, actor(10, 20));
    assert_eq!(elements.doubtful(), None);
    elements.doubt_all(actor(20, 30));
    elements.note(&key(), Updates, None, actor(30, 40));
    assert!(elements.is_doubtful(&key()));
}

#[test]
fn those_in_doubt_are_named() {
    let doubt = Doubt::Overlap(actor(0, 10), actor(5, 20));
    assert_eq!(
        doubt.text(&[1, 1]),
        "firing 10 of CPU 0 and firing 20 of CPU 0 overlapped, and both wrote to element 257"
    );
    assert!(doubt.text(&[]).ends_with("both wrote to it"));
    assert!(doubt.text(&[0xab, 0, 1]).ends_with("element ab0001"));
}

#[test]
fn what_was_written_long_ago_is_forgotten() {
    let mut elements = Elements::new(false);
    let keys = (0u32..).map(|number| Key::from_slice(&number.to_le_bytes()));
    let keys: Vec<_> = keys.take(2 * REMEMBERED).collect();
    for (number, key) in (1u64..).zip(&keys) {
        elements.note(key, Updates, None, actor(number - 1, number));
    }
    assert!(elements.known.len() <= REMEMBERED);
    assert_eq!(elements.doubtful(), None);
    // No doubt about a firing that began after all that; one that began before may overlap a
    // forgotten write.
    let end = keys.len() as u64;
    elements.note(&keys[0], Updates, None, actor(end, end + 1));
    assert_eq!(elements.doubtful(), None);
    elements.note(&keys[1], Updates, None, actor(0, end + 2));
    let slow = actor(0, end + 2);
    assert_eq!(
        elements.doubtful(),
        Some((&keys[1][..], Doubt::Forgotten(slow)))
    );
    // Doubts are not forgotten, however many there are.
    for key in &keys {
        elements.note(key, Updates, None, slow);
    }
    assert!(elements.known.len() <= REMEMBERED && elements.doubtful().is_some());
}

/// What a program does to an element in one step.
#[derive(Debug, Clone, Copy)]
enum Op {
    Add(u64),
    Store(u64),
    StoreHalf(u8),
    Create(u64),
    Update(u64),
    Delete,
}

/// A map of numbers.
type State = BTreeMap<u8, u64>;

impl Op {
    /// Does it; returns whether it succeeded.
    fn apply(self, state: &mut State, key: u8) -> bool {
        match (self, state.get_mut(&key)) {
            (Self::Create(value) | Self::Update(value), None) => {
                state.insert(key, value);
            }
            (Self::Add(more), Some(value)) => *value = value.wrapping_add(more),
            (Self::Store(new) | Self::Update(new), Some(value)) => *value = new,
            (Self::StoreHalf(new), Some(value)) => *value = *value & !0xff | u64::from(new),
            (Self::Delete, Some(_)) => {
                state.remove(&key);
            }
            (Self::Create(_), Some(_)) | (_, None) => return false,
        }
        true
    }

    fn act(self) -> Act {
        match self {
            Self::Add(_) => ADDS,
            Self::Store(_) => Stores,
            Self::StoreHalf(_) => Changes,
            Self::Create(_) => Creates,
            Self::Update(_) => Updates,
            Self::Delete => Deletes,
        }
    }
}

/// A firing on a simulated machine: what it does, and which steps succeeded.
#[derive(Debug, Default)]
struct Run {
    began: u64,
    ended: u64,
    did: Vec<(u8, Op, bool)>,
}

/// A firing, and its remaining steps.
type UnderWay<'a> = (Run, &'a [(u8, Op)]);

/// Runs the firings of several CPUs, one step of one CPU at a time as `schedule` says. Returns
/// the final map and the firings in the order of their ends.
fn really(cpus: &[Vec<Vec<(u8, Op)>>], schedule: &[usize]) -> (State, Vec<Run>) {
    let (mut state, mut ring, mut ended) = (State::new(), 0, Vec::new());
    let mut left: Vec<_> = cpus.iter().map(|firings| firings.iter()).collect();
    let mut running: Vec<Option<UnderWay<'_>>> = cpus.iter().map(|_| None).collect();
    let rounds = schedule.iter().copied().chain((0..cpus.len()).cycle());
    for cpu in rounds {
        match running[cpu].take() {
            None => {
                if let Some(ops) = left[cpu].next() {
                    let run = Run {
                        began: ring,
                        ..Run::default()
                    };
                    running[cpu] = Some((run, ops));
                }
            }
            Some((mut run, [(key, op), rest @ ..])) => {
                let worked = op.apply(&mut state, *key);
                run.did.push((*key, *op, worked));
                running[cpu] = Some((run, rest));
            }
            Some((mut run, [])) => {
                ring += 8;
                run.ended = ring;
                ended.push(run);
            }
        }
        if running.iter().all(Option::is_none) && left.iter().all(|left| left.len() == 0) {
            break;
        }
    }
    (state, ended)
}

/// Replays the firings one after the other, and notes their writes.
fn replayed(runs: &[Run]) -> (State, Elements) {
    let (mut state, mut elements) = (State::new(), Elements::new(false));
    for run in runs {
        let by = actor(run.began, run.ended);
        let mut is_lost = false;
        for (key, op, worked) in &run.did {
            let at = Key::from_slice(&[*key]);
            // Without its element the program takes another path.
            let works = !is_lost && op.apply(&mut state, *key);
            if *worked {
                elements.note(&at, op.act(), None, by);
            }
            if works != *worked || is_lost {
                elements.doubt(&at, op.act(), None, by);
            }
            let has_pointer = matches!(op, Op::Add(_) | Op::Store(_) | Op::StoreHalf(_));
            is_lost |= has_pointer && *worked && !works;
        }
    }
    (state, elements)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        any::<u64>().prop_map(Op::Add),
        any::<u64>().prop_map(Op::Store),
        any::<u8>().prop_map(Op::StoreHalf),
        any::<u64>().prop_map(Op::Create),
        any::<u64>().prop_map(Op::Update),
        Just(Op::Delete),
    ]
}

/// Firings of some CPUs, each of a few operations on a few keys.
fn machine() -> impl Strategy<Value = Vec<Vec<Vec<(u8, Op)>>>> {
    let firing = proptest::collection::vec((0u8..3, op()), 0..4);
    let firings = proptest::collection::vec(firing, 0..6);
    proptest::collection::vec(firings, 1..4)
}

proptest! {
    /// However firings of several CPUs interleave, an element without doubt has its real value.
    #[test]
    fn what_is_not_in_doubt_is_right(
        cpus in machine(),
        schedule in proptest::collection::vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let schedule: Vec<_> = schedule.iter().map(|at| at.index(cpus.len())).collect();
        let (was, runs) = really(&cpus, &schedule);
        let (is, elements) = replayed(&runs);
        for key in 0..3 {
            if !elements.is_doubtful(&[key]) {
                prop_assert_eq!(was.get(&key), is.get(&key), "element {}: {:?}", key, runs);
            }
        }
    }

    /// Firings of several CPUs that never overlap leave no doubt.
    #[test]
    fn one_at_a_time_is_never_in_doubt(cpus in machine()) {
        let turns = cpus.iter().enumerate().flat_map(|(cpu, firings)| {
            let steps = firings.iter().map(|ops| ops.len() + 2);
            std::iter::repeat_n(cpu, steps.sum())
        });
        let (was, runs) = really(&cpus, &turns.collect::<Vec<_>>());
        let (is, elements) = replayed(&runs);
        prop_assert_eq!(elements.doubtful(), None);
        prop_assert_eq!(was, is);
    }
}
