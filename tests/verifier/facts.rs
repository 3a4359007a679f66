//! Facts stay true on pruned paths: for each kind of fact, a program in which the first
//! path shows something that a later path contradicts.

use std::sync::Arc;

use bpflab::isa::assemble;
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType};
use bpflab::util::{MapId, Pc};
use bpflab::verifier::{Options, Through, Verified, verify};

/// The facts about an accepted socket filter.
fn facts(text: &str) -> Verified {
    facts_of(ProgType::SocketFilter, text)
}

/// The facts about an accepted program with two array maps, a ring buffer, a map of maps, and an
/// array of constants.
fn facts_of(prog_type: ProgType, text: &str) -> Verified {
    let array = |name: &str| MapDef::new(name, MapType::Array, 4, 8, 1);
    let mut outer = MapDef::new("outer", MapType::ArrayOfMaps, 4, 4, 1);
    outer.inner = Some(Box::new(array("inner")));
    let mut program = Program::new("facts", prog_type, assemble(text).unwrap());
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096);
    let mut constants = array("constants").with_flags(MapFlags::RDONLY_PROG);
    constants.frozen = true;
    // The rest of the value is zero.
    let value = [0x11, 0x22, 0x33, 0x44, 0x85, 0x66].into();
    constants.initial = vec![Initial::Bytes {
        key: vec![0; 4],
        value,
    }];
    program.maps = Arc::new([array("one"), array("two"), ring, outer, constants]);
    program.license = "GPL".to_owned();
    let verification = verify(&Arc::new(program), &Options::default());
    assert!(
        verification.verdict.is_accepted(),
        "{}",
        verification.verdict.message
    );
    verification.outcome.unwrap()
}

/// The second path reaches the division with another r7 and is pruned there, because r7 is
/// imprecise. No fact may say that r7 is 1.
#[test]
fn a_number_that_nothing_rests_on_is_no_fact() {
    let facts = facts(
        "r0 = *(u32 *)(r1 + 0)
         r7 = 1
         if r0 != 0 goto +1
         r7 = 0
         r0 = 100
         r0 /= r7
         exit",
    );
    assert!((0..7).all(|pc| facts.is_reachable(Pc(pc))));
}

/// The first path decides a jump by a constant, the second path decides it differently. The
/// jump makes the scalar precise, so the second path is not pruned.
#[test]
fn code_is_dead_only_if_no_path_gets_there() {
    let facts = facts(
        "r0 = *(u32 *)(r1 + 0)
         r7 = 1
         if r0 != 0 goto +1
         r7 = 0
         r0 = 0
         if r7 == 1 goto +1
         r0 = 2
         if r0 == 7 goto +1
         exit
         r0 = 3
         exit",
    );
    assert!((0..9).all(|pc| facts.is_reachable(Pc(pc))));
    assert!(!facts.is_reachable(Pc(9)), "r0 is 0 or 2");
}

/// What a program loads from a frozen map that it may only read is known, for each size and sign.
#[test]
fn what_a_constant_map_has_is_known() {
    for (load, number) in [
        ("r0 = *(u8 *)(r1 + 1)", "0x22"),
        ("r0 = *(u16 *)(r1 + 2)", "0x4433"),
        ("r0 = *(u32 *)(r1 + 0)", "0x44332211"),
        ("r0 = *(u64 *)(r1 + 0)", "0x668544332211"),
        ("r0 = *(s8 *)(r1 + 4)", "-123"),
        ("r0 = *(u8 *)(r1 + 7)", "0"),
    ] {
        let text = format!(
            "r1 = map[idx:4][0]+0
             {load}
             r2 = {number} ll
             if r0 == r2 goto +2
             r0 = 1
             exit
             r0 = 0
             exit"
        );
        let facts = facts(&text);
        let reachable = |pc| facts.is_reachable(Pc(pc));
        assert!(!reachable(6) && !reachable(7) && reachable(8), "{load}");
    }
}

/// A store to the stack at two different offsets, and one at the same offset on each path.
#[test]
fn an_access_goes_through_what_it_does_on_every_path() {
    let facts = facts(
        "r0 = *(u32 *)(r1 + 0)
         r2 = r10
         r2 += -8
         if r0 != 0 goto +1
         r2 += -8
         *(u64 *)(r2 + 0) = 0
         *(u64 *)(r10 - 8) = 0
         r0 = 0
         exit",
    );
    assert_eq!(facts.through(Pc(0)), Some(Through::Context { off: 0 }));
    assert_eq!(facts.through(Pc(5)), Some(Through::Other));
    assert_eq!(facts.through(Pc(6)), Some(Through::Stack { off: -8 }));
    assert_eq!(facts.through(Pc(7)), None, "no access");
}

/// Each kind of pointer to memory that an engine knows, and some that it doesn't.
#[test]
fn an_access_goes_through_a_kind_of_pointer() {
    let look_up = |map: &str| {
        format!("{map}r2 = r10\nr2 += -4\ncall 1\nif r0 == 0 goto out\nr1 = *(u64 *)(r0 + 0)\n")
    };
    let text = format!(
        "*(u32 *)(r10 - 4) = 0
         r6 = *(u32 *)(r1 + 0)
         r7 = *(u32 *)(r1 + 4)
         r8 = r6
         r8 += 8
         if r8 > r7 goto out
         r1 = *(u8 *)(r6 + 0)
         {}r1 = map[idx:3]
         r2 = r10
         r2 += -4
         call 1
         if r0 == 0 goto out
         {}r1 = map[idx:2]
         r2 = 8
         r3 = 0
         call 131
         if r0 == 0 goto out
         *(u64 *)(r0 + 0) = 1
         r1 = r0
         r2 = 0
         call 133
         out:
         r0 = 0
         exit",
        look_up("r1 = map[idx:1]\n"),
        look_up("r1 = r0\n"),
    );
    let facts = facts_of(ProgType::Xdp, &text);
    let through: Vec<_> = (0..50).filter_map(|pc| facts.through(Pc(pc))).collect();
    let expected = [
        Through::Stack { off: -4 },
        Through::Context { off: 0 },
        Through::Context { off: 4 },
        Through::Packet,
        Through::MapValue { map: MapId(1) },
        // A value of an inner map: which one is known at run time.
        Through::Other,
        // A record.
        Through::Other,
    ];
    assert_eq!(through, expected);
}

/// A call that looks up either map, and one that always looks up the same.
#[test]
fn a_call_gets_the_map_that_it_gets_on_every_path() {
    let facts = facts(
        "r6 = *(u32 *)(r1 + 0)
         *(u32 *)(r10 - 4) = 0
         r1 = map[idx:0]
         if r6 != 0 goto +2
         r1 = map[idx:1]
         r2 = r10
         r2 += -4
         call 1
         r1 = map[idx:1]
         r2 = r10
         r2 += -4
         call 1
         r0 = 0
         exit",
    );
    let calls: Vec<_> = (0..20).filter_map(|pc| facts.map_of_call(Pc(pc))).collect();
    assert_eq!(calls, [MapId(1)]);
}
