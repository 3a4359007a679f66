//! Subsumption, rule by rule.

use super::*;
use crate::spec::call::IteratorKind;
use crate::spec::helpers::TypeFlags;
use crate::util::{MapId, Pc};
use crate::verifier::prune::tests::{saved, state};
use crate::verifier::references::{
    Lock, LockKind, LockOwner, Reference, ReferenceKind, References,
};
use crate::verifier::reg::{
    ADD_CONST32, ADD_CONST64, AT_END, BEYOND_END, DynptrKind, IterState, MapRef,
};
use crate::verifier::scalar::Scalar;
use ExactLevel::{Exact, NotExact, RangeWithin};

const MAP: MapRef = MapRef {
    id: MapId(0),
    inner: false,
};
const VALUE: Kind = Kind::MapValue { map: MAP, uid: 0 };

fn compare<T>(level: ExactLevel, check: impl FnOnce(&mut Comparison<'_>) -> T) -> T {
    compare_with(&Pools::default(), level, check)
}

/// Whether `old` subsumes `current`, if the marks of `old` are complete.
fn subsumes(old: &State, current: &State) -> bool {
    let mut pools = Pools::default();
    let old = saved(old, &mut pools);
    compare_with(&pools, NotExact, |it| it.states(&old, current))
}

fn compare_with<T>(
    pools: &Pools,
    level: ExactLevel,
    check: impl FnOnce(&mut Comparison<'_>) -> T,
) -> T {
    let mut ids = IdMap::default();
    ids.reset(1000);
    let live = InsnInfo {
        live: u16::MAX,
        ..InsnInfo::default()
    };
    check(&mut Comparison {
        insns: &[live],
        pools,
        ids: &mut ids,
        level,
        strictness: Strictness::default(),
        sleepable: false,
        hint: 0,
    })
}

fn number(least: u64, most: u64) -> RegState {
    RegState::scalar(Scalar::range(least, most))
}

fn precise(least: u64, most: u64) -> RegState {
    RegState {
        precise: true,
        ..number(least, most)
    }
}

fn pointer(kind: Kind) -> RegState {
    RegState::pointer(kind, TypeFlags::empty())
}

fn packet(range: i32) -> RegState {
    pointer(Kind::Packet { range })
}

/// Old register, current register, and the exact levels at which old subsumes current.
#[test]
fn registers() {
    let with_id = |id, reg: RegState| RegState { id, ..reg };
    let at = |off, reg: RegState| RegState { off, ..reg };
    let wider = |reg: RegState| RegState {
        var: Scalar::range(0, 9),
        ..reg
    };
    let null = |reg: RegState| RegState {
        flags: TypeFlags::PTR_MAYBE_NULL,
        ..reg
    };
    let far = |flag, off| at(off, with_id(5 | flag, precise(0, 9)));
    let loose: &[ExactLevel] = &[NotExact, RangeWithin];
    let all: &[ExactLevel] = &[NotExact, RangeWithin, Exact];
    let cases: &[(&str, RegState, RegState, &[ExactLevel])] = &[
        (
            "unread subsumes anything",
            RegState::NOT_INIT,
            packet(3),
            &[NotExact],
        ),
        (
            "unread subsumes unread",
            RegState::NOT_INIT,
            RegState::NOT_INIT,
            all,
        ),
        (
            "a number is not nothing",
            number(0, 9),
            RegState::NOT_INIT,
            &[],
        ),
        (
            "on which nothing rests",
            number(1, 2),
            number(7, 9),
            &[NotExact],
        ),
        (
            "nor on the current one",
            number(1, 2),
            precise(7, 9),
            &[NotExact],
        ),
        ("a narrower one", number(0, 9), number(1, 2), loose),
        ("on which safety rests", precise(1, 2), number(7, 9), &[]),
        ("within the range", precise(0, 9), number(1, 2), loose),
        ("beyond it", precise(1, 2), number(0, 9), &[]),
        ("the same", precise(1, 2), number(1, 2), all),
        (
            "a number for a pointer",
            number(0, 9),
            pointer(Kind::Ctx),
            &[],
        ),
        ("linked now", precise(0, 9), with_id(3, number(0, 9)), loose),
        (
            "linked then",
            with_id(3, precise(0, 9)),
            number(0, 9),
            loose,
        ),
        (
            "as linked",
            with_id(3, precise(0, 9)),
            with_id(4, number(0, 9)),
            all,
        ),
        (
            "at the same distance",
            far(ADD_CONST64, 4),
            far(ADD_CONST64, 4),
            all,
        ),
        (
            "at another distance",
            far(ADD_CONST64, 4),
            far(ADD_CONST64, 5),
            &[],
        ),
        (
            "at another width",
            far(ADD_CONST64, 4),
            far(ADD_CONST32, 4),
            &[Exact],
        ),
        (
            "at no distance",
            far(ADD_CONST64, 4),
            with_id(5, number(0, 9)),
            &[],
        ),
        (
            "at a distance now",
            with_id(5, precise(0, 9)),
            far(ADD_CONST64, 4),
            &[],
        ),
        ("another offset", pointer(VALUE), at(4, pointer(VALUE)), &[]),
        (
            "a narrower offset",
            wider(pointer(VALUE)),
            pointer(VALUE),
            loose,
        ),
        ("a wider offset", pointer(VALUE), wider(pointer(VALUE)), &[]),
        ("null or not", null(pointer(VALUE)), pointer(VALUE), &[]),
        (
            "another map's",
            pointer(Kind::MapValue { map: MAP, uid: 1 }),
            pointer(VALUE),
            &[],
        ),
        ("more bytes checked", packet(4), packet(8), loose),
        ("fewer bytes checked", packet(8), packet(4), &[]),
        (
            "packets from one look",
            with_id(3, packet(8)),
            with_id(4, packet(8)),
            all,
        ),
        (
            "packets from another",
            with_id(3, packet(8)),
            packet(8),
            &[],
        ),
        (
            "an object's size",
            pointer(Kind::Mem { size: 8 }),
            pointer(Kind::Mem { size: 9 }),
            &[],
        ),
        (
            "a frame's stack",
            pointer(Kind::Stack { frame: 0 }),
            pointer(Kind::Stack { frame: 1 }),
            &[],
        ),
        ("the context", pointer(Kind::Ctx), pointer(Kind::Ctx), all),
    ];
    for (what, old, current, expected) in cases {
        for level in all {
            let subsumes = compare(*level, |it| it.reg(old, current));
            assert_eq!(subsumes, expected.contains(level), "{what}: {level:?}");
        }
    }
}

/// With this pruning, the branch that reads the packet would never be explored: the old
/// path saw the pointer past the end.
#[test]
fn a_pointer_past_the_end_covers_none_before_it() {
    for (old, current) in [
        (BEYOND_END, 8),
        (AT_END, 8),
        (BEYOND_END, AT_END),
        (8, AT_END),
    ] {
        assert!(!compare(NotExact, |it| it.reg(&packet(old), &packet(current))));
    }
    assert!(compare(NotExact, |it| it.reg(&packet(AT_END), &packet(AT_END))));
}

/// With this pruning, a bound of one scalar would wrongly hold for the other, which is
/// linked to it in the old state only.
#[test]
fn linked_numbers_cover_linked_numbers_only() {
    let linked = |id| RegState {
        id,
        ..precise(0, 9)
    };
    let pair = |old: [u32; 2], current: [u32; 2]| {
        compare(NotExact, |it| {
            it.reg(&linked(old[0]), &linked(current[0]))
                && it.reg(&linked(old[1]), &linked(current[1]))
        })
    };
    assert!(pair([1, 1], [2, 2]) && pair([1, 2], [3, 4]) && pair([0, 0], [1, 1]));
    assert!(!pair([1, 1], [2, 3]) && !pair([1, 1], [0, 0]) && !pair([1, 2], [3, 3]));
}

fn slot(bytes: &str, reg: RegState) -> Slot {
    let kind = |byte| match byte {
        b'r' => SlotKind::Spill,
        b'm' => SlotKind::Misc,
        b'0' => SlotKind::Zero,
        _ => SlotKind::Invalid,
    };
    let bytes: Vec<SlotKind> = bytes.bytes().map(kind).collect();
    Slot {
        reg,
        bytes: bytes.try_into().unwrap(),
    }
}

/// Old bytes and register, current ones, and the exact levels; byte 7 has the lowest
/// address.
#[test]
fn slots() {
    let (any, some) = (RegState::UNKNOWN, precise(0, 9));
    let none = RegState::NOT_INIT;
    let ctx = pointer(Kind::Ctx);
    let loose: &[ExactLevel] = &[NotExact, RangeWithin];
    // At `RangeWithin`, bytes have to be of the same kind, unwritten ones included.
    let lax: &[ExactLevel] = &[NotExact];
    let all: &[ExactLevel] = &[NotExact, RangeWithin, Exact];
    type Case<'a> = (
        &'a str,
        &'a str,
        RegState,
        &'a str,
        RegState,
        &'a [ExactLevel],
    );
    let cases: &[Case<'_>] = &[
        (
            "unwritten subsumes anything",
            "????????",
            none,
            "rrrrrrrr",
            ctx,
            lax,
        ),
        ("so does anything", "mmmmmmmm", none, "????????", none, lax),
        (
            "anything, a spilled pointer",
            "mmmmmmmm",
            none,
            "rrrrrrrr",
            ctx,
            lax,
        ),
        ("zeros", "00000000", none, "00000000", none, all),
        (
            "anything for zeros",
            "00000000",
            none,
            "mmmmmmmm",
            none,
            &[],
        ),
        (
            "zeros for half of them",
            "0000mmmm",
            none,
            "00000000",
            none,
            lax,
        ),
        (
            "anything for half of them",
            "00000000",
            none,
            "0000mmmm",
            none,
            &[],
        ),
        ("a pointer", "rrrrrrrr", ctx, "rrrrrrrr", ctx, all),
        ("another", "rrrrrrrr", ctx, "rrrrrrrr", pointer(VALUE), &[]),
        (
            "a number for a pointer",
            "rrrrrrrr",
            ctx,
            "rrrrrrrr",
            any,
            &[],
        ),
        (
            "anything for a pointer",
            "rrrrrrrr",
            ctx,
            "mmmmmmmm",
            none,
            &[],
        ),
        (
            "a number that matters",
            "rrrrrrrr",
            some,
            "rrrrrrrr",
            any,
            &[],
        ),
        (
            "a smaller one",
            "rrrrrrrr",
            some,
            "rrrrrrrr",
            number(1, 2),
            loose,
        ),
        (
            "anything for a number",
            "rrrrrrrr",
            any,
            "mmmmmmmm",
            none,
            lax,
        ),
        (
            "anything for one that matters",
            "rrrrrrrr",
            some,
            "mmmmmmmm",
            none,
            &[],
        ),
        (
            "four bytes of a number",
            "????rrrr",
            some,
            "????rrrr",
            number(1, 2),
            loose,
        ),
        (
            "four bytes of another",
            "????rrrr",
            some,
            "????rrrr",
            any,
            &[],
        ),
        (
            "four bytes for eight",
            "rrrrrrrr",
            some,
            "????rrrr",
            some,
            &[],
        ),
    ];
    for (what, old, a, current, b, expected) in cases {
        for level in all {
            let (old, current) = (slot(old, *a), slot(current, *b));
            let subsumes = compare(*level, |it| it.slot(&old, Some(&current)));
            assert_eq!(subsumes, expected.contains(level), "{what}: {level:?}");
        }
    }
}

#[test]
fn unwritten_stack_may_have_to_be_unwritten() {
    let none = RegState::NOT_INIT;
    let (unwritten, part, any) = (
        slot("????????", none),
        slot("????mmmm", none),
        slot("mmmmmmmm", none),
    );
    let spilled = slot("rrrrrrrr", pointer(Kind::Ctx));
    let stacks = |unwritten, old: Slot, current: &[Slot]| {
        let mut frame = Frame::new(None, 0, 0);
        frame.stack = vec![old];
        let mut pools = Pools::default();
        let old = pools.save(&frame, None);
        compare_with(&pools, NotExact, |it| {
            it.strictness.unwritten = unwritten;
            it.stacks(&old.stack, current)
        })
    };
    for (old, current, subsumes) in [
        (unwritten, &[unwritten][..], true),
        (unwritten, &[], true),
        (unwritten, &[unwritten, unwritten], true),
        (unwritten, &[spilled], false),
        (unwritten, &[any], false),
        (unwritten, &[unwritten, spilled], false),
        (part, &[part], true),
        (part, &[any], false),
        (any, &[spilled], false),
        (spilled, &[spilled], true),
        (Slot::DEAD, &[spilled], true),
        (Slot::DEAD, &[], true),
    ] {
        assert_eq!(stacks(true, old, current), subsumes, "{old:?} {current:?}");
        assert!(stacks(false, old, current), "{old:?} {current:?}");
    }
}

#[test]
fn the_current_stack_may_be_deeper_but_not_shallower() {
    let (zero, any) = (
        slot("00000000", RegState::NOT_INIT),
        slot("mmmmmmmm", RegState::NOT_INIT),
    );
    let stacks = |level, old: &[Slot], current: &[Slot]| {
        let mut frame = Frame::new(None, 0, 0);
        frame.stack = old.to_vec();
        let mut pools = Pools::default();
        let old = pools.save(&frame, None);
        compare_with(&pools, level, |it| it.stacks(&old.stack, current))
    };
    assert!(stacks(NotExact, &[zero], &[zero, any]));
    assert!(!stacks(NotExact, &[zero, zero], &[zero]));
    assert!(
        stacks(NotExact, &[zero, any], &[zero]),
        "it asked for nothing"
    );
    assert!(!stacks(Exact, &[zero, any], &[zero]));
}

#[test]
fn the_same_is_held_in_the_same_order() {
    let held = |id, kind| Reference {
        id,
        pc: Pc(1),
        kind,
    };
    let list = |held: &[Reference]| {
        let mut list = References::default();
        held.iter().for_each(|reference| list.push(*reference));
        list
    };
    let refs = |old: &[Reference], current: &[Reference]| {
        compare(NotExact, |it| it.references(&list(old), &list(current)))
    };
    let owner = LockOwner::Map(MAP);
    let of_kind = |kind| ReferenceKind::Lock(Lock { kind, owner });
    let (object, lock) = (ReferenceKind::Object, of_kind(LockKind::Spin));
    assert!(refs(
        &[held(1, object), held(2, object)],
        &[held(7, object), held(8, object)]
    ));
    assert!(!refs(
        &[held(1, object), held(1, object)],
        &[held(7, object), held(8, object)]
    ));
    assert!(!refs(&[held(1, object)], &[]), "released on this path");
    assert!(!refs(&[], &[held(1, object)]), "not released on this path");
    assert!(!refs(&[held(1, object)], &[held(1, lock)]));
    let resilient = of_kind(LockKind::Resilient);
    assert!(refs(&[held(1, resilient)], &[held(4, resilient)]));
    assert!(!refs(&[held(1, resilient)], &[held(1, lock)]));
}

#[test]
fn states_are_told_apart_by_more_than_registers() {
    let old = state(&[], Pc(0));
    let mut other = old.clone();
    assert!(subsumes(&old, &other));
    other.sleepable = true;
    assert!(!subsumes(&old, &other));
    assert!(!subsumes(&old, &state(&[3], Pc(0))));
    assert!(!subsumes(&state(&[3], Pc(0)), &state(&[4], Pc(0))));
    // Fewer simulated calls of a callback: fewer iterations behind it.
    let mut more = old.clone();
    more.frame_mut().callback_depth = 1;
    assert!(subsumes(&old, &more) && !subsumes(&more, &old));
    // An id has the same counterpart in the whole state.
    let (mut a, mut b) = (old.clone(), old.clone());
    for (n, reg) in [(0, 6), (1, 7)] {
        a.frame_mut().regs[reg] = RegState {
            id: 1,
            ..pointer(VALUE)
        };
        b.frame_mut().regs[reg] = RegState {
            id: 1 + n,
            ..pointer(VALUE)
        };
    }
    assert!(subsumes(&a, &a) && !subsumes(&a, &b));
}

#[test]
fn a_register_that_is_dead_is_no_difference() {
    let mut ids = IdMap::default();
    let live = InsnInfo {
        live: 1 << 6,
        ..InsnInfo::default()
    };
    let mut subsumes = |old: &State, current: &State| {
        let mut pools = Pools::default();
        let old = saved(old, &mut pools);
        let mut comparison = Comparison {
            insns: &[live],
            pools: &pools,
            ids: &mut ids,
            level: NotExact,
            strictness: Strictness::default(),
            sleepable: false,
            hint: 0,
        };
        comparison.states(&old, current)
    };
    let (mut old, mut current) = (state(&[], Pc(0)), state(&[], Pc(0)));
    old.frame_mut().regs[7] = pointer(Kind::Ctx);
    assert!(subsumes(&old, &current));
    old.frame_mut().regs[6] = pointer(Kind::Ctx);
    assert!(!subsumes(&old, &current));
    current.frame_mut().regs[6] = pointer(Kind::Ctx);
    assert!(subsumes(&old, &current));
}

/// The hinted register is compared twice; its id must map to the same id both times.
#[test]
fn a_hint_leaves_no_ids_behind() {
    let (mut old, mut current) = (state(&[], Pc(0)), state(&[], Pc(0)));
    old.frame_mut().regs[6] = RegState {
        id: 5,
        ..precise(0, 9)
    };
    current.frame_mut().regs[6] = number(0, 9);
    let mut pools = Pools::default();
    let old = saved(&old, &mut pools);
    for hint in [0, 6] {
        assert!(compare_with(&pools, NotExact, |it| {
            it.hint = hint;
            it.states(&old, &current)
        }));
    }
}

/// A pointer that was null is the scalar 0, but not the same as another 0.
#[test]
fn a_null_pointer_is_another_zero() {
    let zero = RegState::constant(0);
    let null = |kind| RegState {
        dynptr_id: pointer(kind).leftover(),
        ..zero
    };
    let value = null(VALUE);
    assert_eq!(
        null(Kind::Socket),
        zero,
        "it has nothing that could be left"
    );
    for (old, current, same) in [
        (zero, value, false),
        (value, zero, false),
        (value, value, true),
        (value, null(Kind::Mem { size: 8 }), false),
    ] {
        assert_eq!(compare(Exact, |it| it.reg(&old, &current)), same);
        assert!(compare(RangeWithin, |it| it.reg(&old, &current)));
        let exact_scalars = compare(NotExact, |it| {
            it.strictness.scalars = true;
            it.reg(&old, &current)
        });
        assert_eq!(exact_scalars, same);
    }
}

/// A state with a precise scalar subsumes none whose scalar there is out of its range.
#[test]
fn a_precise_range_excludes_all_values_outside() {
    let with = |reg: RegState| {
        let mut made = state(&[], Pc(0));
        made.frame_mut().regs[6] = reg;
        made
    };
    let (inside, outside) = (with(number(2, 3)), with(number(2, 10)));
    for (old, excludes) in [(precise(0, 9), true), (number(0, 9), false)] {
        let mut pools = Pools::default();
        let old = saved(&with(old), &mut pools);
        let range = compare_with(&pools, NotExact, |it| {
            assert_eq!(it.states(&old, &outside), !excludes);
            it.hint = 6;
            it.violated_range(&old, &outside.frame().regs)
        });
        assert_eq!(range.is_some(), excludes);
        if let Some(range) = range {
            assert!(range.excludes(&outside.frame().regs));
            assert!(!range.excludes(&inside.frame().regs));
            // A pointer is for the whole comparison.
            assert!(!range.excludes(&with(pointer(Kind::Ctx)).frame().regs));
        }
    }
}

#[test]
fn a_loop_that_changes_nothing_may_be_endless() {
    let mut pools = Pools::default();
    let (old, mut current) = (saved(&state(&[], Pc(0)), &mut pools), state(&[], Pc(0)));
    let mut differed = Differed::new(3, &RegState::NOT_INIT);
    assert!(may_loop(&old, &pools, &current, &mut differed));
    current.frame_mut().regs[6] = RegState::constant(1);
    assert!(!differed.still(&current.frame().regs));
    assert!(!may_loop(&old, &pools, &current, &mut differed));
    assert!(differed.still(&current.frame().regs));
    assert!(!differed.still(&state(&[], Pc(0)).frame().regs));
    assert!(!may_loop(&old, &pools, &state(&[3], Pc(0)), &mut differed));
}

/// Objects in stack slots: what they are and their references have to match, not the steps of
/// an iterator.
#[test]
fn objects_in_slots() {
    let slot = |kind, ref_id, byte| Slot {
        reg: RegState {
            ref_id,
            ..pointer(kind)
        },
        bytes: [byte; SLOT],
    };
    let iterator = |state, depth| Kind::Iter {
        kind: IteratorKind::Num,
        state,
        depth,
    };
    let dynptr = |kind, first| Kind::Dynptr { kind, first };
    let active = slot(iterator(IterState::Active, 1), 3, SlotKind::Iter);
    let record = slot(dynptr(DynptrKind::Ringbuf, true), 3, SlotKind::Dynptr);
    let cases = [
        (
            active,
            slot(iterator(IterState::Active, 2), 7, SlotKind::Iter),
            true,
        ),
        (
            active,
            slot(iterator(IterState::Drained, 1), 3, SlotKind::Iter),
            false,
        ),
        (
            active,
            slot(iterator(IterState::Active, 1), 0, SlotKind::Iter),
            false,
        ),
        (
            record,
            slot(dynptr(DynptrKind::Ringbuf, true), 8, SlotKind::Dynptr),
            true,
        ),
        (
            record,
            slot(dynptr(DynptrKind::Ringbuf, false), 3, SlotKind::Dynptr),
            false,
        ),
        (
            record,
            slot(dynptr(DynptrKind::Skb, true), 3, SlotKind::Dynptr),
            false,
        ),
        (record, active, false),
    ];
    for level in [NotExact, RangeWithin, Exact] {
        for (old, current, expected) in &cases {
            let same = compare(level, |comparison| comparison.slot(old, Some(current)));
            assert_eq!(same, *expected, "{level:?} {old:?} {current:?}");
        }
    }
}
