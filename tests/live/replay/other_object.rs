//! Objects that differ from the recorded one although their instructions are the same: each is
//! refused, and the error names the difference.

use std::sync::Arc;

use bpflab::compare::recording::{RecordedMap, Recording};
use bpflab::compare::replay::{Replay, Word};
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType};
use bpflab::vm::events::Event;

use super::replayed;
use super::user_recording::{Recorder, UserRecording};

fn recorded() -> UserRecording {
    let hash = MapDef::new("seen", MapType::Hash, 4, 8, 16);
    let mut data = MapDef::new("x.data", MapType::Array, 4, 8, 1);
    data.initial = vec![Initial::Bytes {
        key: vec![0; 4],
        value: Arc::from(&[5, 0][..]),
    }];
    let inner = MapDef::new("inner", MapType::Array, 4, 8, 1);
    let outer = MapDef::new("outer", MapType::ArrayOfMaps, 4, 4, 2).with_inner(Box::new(inner));
    let mut program = Program::new("counts", ProgType::RawTracepoint, Vec::new());
    program.maps = [hash, data, outer].into();
    program.license = "GPL".into();
    let text = "
        *(u32 *)(r10 - 4) = 0
        r1 = map[idx:1]
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r1 = 1
        lock *(u64 *)(r0 + 0) += r1
        out: r0 = 0
        exit";
    program.insns = bpflab::isa::assemble_with(text, &program).unwrap().slots;
    let mut recorder = Recorder::new(vec![Arc::new(program)], 8);
    recorder.fire(0, &Event::bytes(vec![0; 8]));
    recorder.finish()
}

/// The error for the recording with a changed object.
fn refused(
    recording: &UserRecording,
    file: &[u8],
    change: impl FnOnce(&mut Program, &mut Vec<MapDef>),
) -> String {
    let mut program = Program::clone(&recording.programs[0]);
    let mut maps = recording.maps.clone();
    change(&mut program, &mut maps);
    program.maps = maps.clone().into();
    match Replay::of_programs(&[Arc::new(program)], &maps, file.to_vec()) {
        Ok(_) => "taken".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_differs_is_named() {
    let recording = recorded();
    assert_eq!(replayed(&recording).word(), Word::Equal);
    let file = recording.file();
    assert_eq!(refused(&recording, &file, |_, _| ()), "taken");
    type Change = fn(&mut Program, &mut Vec<MapDef>);
    let changes: [(Change, &str); 14] = [
        (
            |program, _| program.license = "Proprietary".to_owned(),
            "its program 'counts' has the license 'GPL', the object's has 'Proprietary'",
        ),
        (
            |program, _| program.prog_type = ProgType::Tracepoint,
            "its program 'counts' has the type 'raw_tracepoint', the object's has 'tracepoint'",
        ),
        (
            |_, maps| maps[0].name = "other".to_owned(),
            "there is no map 'seen'",
        ),
        (
            |_, maps| maps[0].map_type = MapType::LruHash,
            "its map 'seen' has the type hash, the object's has lru_hash",
        ),
        (
            |_, maps| maps[0].max_entries = 17,
            "its map 'seen' has the max_entries 16, the object's has 17",
        ),
        (
            |_, maps| maps[0].key_size = 8,
            "its map 'seen' has the size of keys 4, the object's has 8",
        ),
        (
            |_, maps| maps[0].value_size = 16,
            "its map 'seen' has the size of values 8, the object's has 16",
        ),
        (
            |_, maps| maps[0].flags = MapFlags::NO_PREALLOC,
            "its map 'seen' has the flags 0, the object's has 1",
        ),
        (
            |_, maps| maps[0].extra = 3,
            "its map 'seen' has the map_extra 0, the object's has 3",
        ),
        (
            |_, maps| {
                maps[1].initial = vec![Initial::Bytes {
                    key: vec![0; 4],
                    value: Arc::from(&[6][..]),
                }];
            },
            "its map 'x.data' has the data at the start checksum ",
        ),
        (
            |_, maps| maps[1].initial.clear(),
            "its map 'x.data' has the data at the start checksum ",
        ),
        (
            |_, maps| {
                let inner = maps[2].inner.as_mut().unwrap();
                inner.max_entries = 2;
            },
            "its map 'outer' has the max_entries 1, the object's has 2",
        ),
        (
            |_, maps| maps[2].inner = None,
            "its map 'outer' has the inner map declared, the object's has not declared",
        ),
        (
            |_, maps| maps.push(MapDef::new("more", MapType::Array, 4, 8, 1)),
            "the object has a map 'more' that the recording does not have",
        ),
    ];
    for (change, expected) in changes {
        let told = refused(&recording, &file, change);
        assert!(told.contains(expected), "{expected}:\n{told}");
        assert!(told.contains("was made with another object"), "{told}");
    }
    // Trailing zeros of a value make no difference.
    let padded = refused(&recording, &file, |_, maps| {
        maps[1].initial = vec![Initial::Bytes {
            key: vec![0; 4],
            value: Arc::from(&[5][..]),
        }];
    });
    assert_eq!(padded, "taken");
}

/// Recordings of earlier versions have less data: what they have must match.
#[test]
fn what_a_recording_does_not_say_is_not_held_against_an_object() {
    let recording = recorded();
    let file = recording.file();
    let header = Recording::new(&file[..]).unwrap().header().clone();
    let mut old: RecordedMap = header.maps[1].clone();
    assert!(old.initial.is_some());
    old.initial = None;
    let mut other = recording.maps[1].clone();
    other.initial.clear();
    assert_eq!(old.differs(&other), None);
    other.max_entries = 2;
    assert_eq!(old.differs(&other).unwrap().0, "max_entries");
    let mut program = header.programs[0].clone();
    program.license = None;
    let mut proprietary = Program::clone(&recording.programs[0]);
    proprietary.license = "Proprietary".to_owned();
    assert_eq!(program.differs(&proprietary), None);
}
