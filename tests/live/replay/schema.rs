//! Logs that this version of bpflab would not write: a recording carries their schema.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use bpflab::compare::recording::sites_checksum;
use bpflab::compare::replay::{Replay, ReplayError, Report, Word};
use bpflab::harness::EngineKind;
use bpflab::instrument::{
    AccessedState, Flow, Length, LoggedSite, Moment, Plan, ReplayMaps, SchemaSite, What,
};
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::World;
use bpflab::vm::events::Event;

use super::examples::{fired, programs};
use super::user_recording::{CPUS, Recorder, UserRecording};
use super::{is_equal_as_far_as_it_can_be, replayed};

/// The sites that this version gives a program.
fn sites(program: &Program) -> Vec<LoggedSite> {
    let schema = Plan::new(program).unwrap().schema();
    let sites = schema.iter().map(|site| site.known().unwrap().clone());
    sites.collect()
}

/// The plan of a version of bpflab with other sites.
fn plan(program: &Program, change: Change) -> Plan {
    let mut sites = sites(program);
    change(&mut sites);
    let schema: Vec<_> = sites.into_iter().map(SchemaSite::Known).collect();
    Plan::with_schema(program, &schema).unwrap_or_else(|error| panic!("{error}"))
}

type Change = fn(&mut Vec<LoggedSite>);

/// The last instruction first.
fn renumber(sites: &mut [LoggedSite]) {
    sites.sort_by_key(|site| Reverse(site.pc));
}

/// Each output of constant length twice, and an entry without fields before each instruction
/// that has only inputs.
fn log_more(sites: &mut Vec<LoggedSite>) {
    let outputs = sites.iter().filter(|site| site.moment == Moment::Before);
    let outputs: Vec<_> = outputs.map(|site| site.pc).collect();
    let mut more = Vec::new();
    for site in sites.iter_mut() {
        let twice = site.fields.clone().into_iter();
        let is_fixed = |length| matches!(length, Length::Fixed(_));
        let twice = twice.filter(|field| field.flow == Flow::Output && is_fixed(field.length));
        site.fields.splice(0..0, twice);
        if !outputs.contains(&site.pc) {
            more.push(LoggedSite {
                moment: Moment::Before,
                fields: Vec::new(),
                ..site.clone()
            });
        }
    }
    sites.extend(more);
}

/// Without the inputs that a replay can compute.
fn log_less(sites: &mut Vec<LoggedSite>) {
    sites.retain(|site| {
        let mut fields = site.fields.iter();
        let is_kept = fields.any(|field| field.flow == Flow::Output || field.what == What::Result);
        is_kept || site.accesses == AccessedState::World || site.fields.is_empty()
    });
}

/// All of these.
fn change_all(sites: &mut Vec<LoggedSite>) {
    log_less(sites);
    log_more(sites);
    renumber(sites);
}

/// Asserts that the recordings of an example by versions with other sites are equal, and are
/// refused without the schema.
fn is_equal(file: &str) {
    let changes: [Change; 4] = [|sites| renumber(sites), log_more, log_less, change_all];
    let mut refused = 0;
    for change in changes {
        let programs = programs(file);
        let plans: Vec<_> = programs
            .iter()
            .map(|program| plan(program, change))
            .collect();
        let other = programs.iter().zip(&plans).find(|(program, plan)| {
            sites_checksum(&Plan::new(program).unwrap()) != sites_checksum(plan)
        });
        let other = other.map(|(program, _)| program.name.clone());
        let world = World::with_cpus(CPUS);
        let recorder = Recorder::with_plans(world, programs, plans, 0, EngineKind::Jit);
        let recording = fired(recorder.unwrap(), 120, CPUS);
        is_equal_as_far_as_it_can_be(&recording, &replayed(&recording));

        let without = recording.file_with(|header| {
            header.programs.iter_mut().for_each(|one| one.schema = None);
        });
        let replay = Replay::of_programs(&recording.programs, &recording.maps, without);
        match replay {
            Err(ReplayError::WrongVersion(name)) => {
                assert_eq!(Some(name), other);
                refused += 1;
            }
            Err(error) => panic!("{error}"),
            Ok(_) => assert_eq!(other, None),
        }
    }
    // A program may have nothing that can be left out.
    assert!(refused >= 3, "{file}: {refused}");
}

macro_rules! examples {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                is_equal(stringify!($name));
            }
        )*
    };
}

examples! { write_hist softirqs execsnoop runqlat block_latency func_latency profile }

/// Its sites, with their instructions: 0 the time (5), 1 the memory that is read (11), 2 and 3 the
/// look-up (16), 4 the load (18), 5 the store (20).
const TEXT: &str = "
    r6 = *(u64 *)(r1 + 0)
    *(u64 *)(r10 - 8) = 0
    *(u64 *)(r10 - 16) = 0
    r8 = r6
    r8 &= 7
    call bpf_ktime_get_ns
    r7 = r0
    r1 = r10
    r1 += -16
    r2 = r8
    r3 = r6
    call bpf_probe_read_kernel
    r1 = map[idx:0]
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = *(u64 *)(r0 + 0)
    r1 += r7
    *(u64 *)(r0 + 0) = r1
    out: r0 = 0
    exit";

/// Three firings of a program, and the JSON of its schema.
fn recorded() -> (UserRecording, Value) {
    let mut program = Program::new("adds", ProgType::RawTracepoint, Vec::new());
    program.maps = [MapDef::new("sums", MapType::Array, 4, 8, 1)].into();
    program.license = "GPL".into();
    program.insns = assemble_with(TEXT, &program).unwrap().slots;
    let schema = serde_json::to_value(Plan::new(&program).unwrap().schema()).unwrap();
    let mut recorder = Recorder::new(vec![Arc::new(program)], 8);
    for time in 0..3u64 {
        recorder.vm.world().clock().set_ns(1000 + time);
        recorder.fire(0, &Event::bytes((5 + time).to_le_bytes().to_vec()));
    }
    (recorder.finish(), schema)
}

/// The replay of a recording whose program has this schema.
fn replay(recording: &UserRecording, schema: &Value) -> Result<Report, ReplayError> {
    let schema: Vec<SchemaSite> = serde_json::from_value(schema.clone()).unwrap();
    let file = recording.file_with(|header| header.programs[0].schema = Some(schema));
    let replay = Replay::of_programs(&recording.programs, &recording.maps, file)?;
    replay.run(EngineKind::Jit)
}

fn changed(schema: &Value, pointer: &str, value: Value) -> Value {
    let mut schema = schema.clone();
    *schema.pointer_mut(pointer).unwrap() = value;
    schema
}

#[test]
fn a_schema_that_contradicts_the_program_is_an_error() {
    let (recording, schema) = recorded();
    assert_eq!(replay(&recording, &schema).unwrap().word(), Word::Equal);
    let cases = [
        (
            "/0/pc",
            json!(9999),
            "site 0, instruction 9999: the program has no such instruction",
        ),
        // The second slot of an instruction.
        (
            "/0/pc",
            json!(13),
            "site 0, instruction 13: the program has no such instruction",
        ),
        (
            "/2/fields/0/length",
            json!({"fixed": 8}),
            "the length is not that of the argument",
        ),
        (
            "/2/fields/0/location",
            json!({"memory": 3}),
            "the pointer is not in the register",
        ),
        (
            "/2/fields/0/location",
            json!({"register": 2}),
            "the field is not in the memory of a call's argument",
        ),
        (
            "/2/fields/0/flow",
            json!("input"),
            "a field has another direction",
        ),
        ("/2/moment", json!("after"), "a field has another direction"),
        (
            "/3/fields/0/what",
            json!("loaded"),
            "the instruction has no such field",
        ),
        (
            "/4/fields/0/length",
            json!({"fixed": 4}),
            "the instruction has no such field",
        ),
        (
            "/4/fields/0/location",
            json!({"register": 2}),
            "the instruction has no such field",
        ),
        (
            "/5/fields/0/what",
            json!("operand"),
            "the instruction has no such field",
        ),
        (
            "/5/fields/0/location",
            json!({"constant": 1}),
            "the instruction has no such field",
        ),
    ];
    for (pointer, value, expected) in cases {
        let error = replay(&recording, &changed(&schema, pointer, value)).unwrap_err();
        let text = error.to_string();
        let start = "invalid schema of the logs of program 'adds': site ";
        assert!(
            text.starts_with(start) && text.contains(expected),
            "{pointer}: {text}"
        );
    }
    let mut elsewhere = schema.clone();
    elsewhere.as_array_mut().unwrap().push(json!({
        "pc": 4, "moment": "before", "accesses": "own", "fields": []
    }));
    let text = replay(&recording, &elsewhere).unwrap_err().to_string();
    assert!(
        text.contains("instruction 4: the instruction neither accesses memory"),
        "{text}"
    );
}

#[test]
fn a_schema_that_this_version_cannot_replay_is_not_compared() {
    let (recording, schema) = recorded();
    let mut short = schema.clone();
    let sites = short.as_array_mut().unwrap();
    sites.pop();
    let lacks = "instruction 20: a replay needs its inputs and outputs";
    let cases = [
        (
            changed(&schema, "/0/moment", json!("between")),
            "site 0: unknown variant `between`",
        ),
        (
            changed(&schema, "/4/accesses", json!("cloud")),
            "site 4: unknown variant `cloud`",
        ),
        (
            changed(&schema, "/2/fields/0/what", json!({"mood": 1})),
            "site 2: unknown variant `mood`",
        ),
        (
            changed(&schema, "/0/fields/0/length", json!({"text": 8})),
            "unknown variant `text`",
        ),
        (
            changed(&schema, "/0/fields/0/location", json!({"register": 11})),
            "unknown register 11",
        ),
        (
            changed(&schema, "/2", json!({"pc": 4})),
            "site 2: missing field `moment`",
        ),
        (
            changed(&schema, "/3/accesses", json!("world")),
            "replays the instruction in another way",
        ),
        (
            changed(&schema, "/0/fields", json!([])),
            "instruction 5: a replay needs",
        ),
        (short, lacks),
    ];
    for (schema, expected) in cases {
        let report = replay(&recording, &schema).unwrap();
        assert_eq!(
            report.word(),
            Word::NothingCompared,
            "{expected}: {report:#?}"
        );
        assert_eq!(report.missing, [""; 0]);
        let gaps = report.gaps();
        let why = &gaps[0].why;
        let start = "this version of bpflab can't replay its firings: ";
        assert!(
            why.starts_with(start) && why.contains(expected),
            "{expected}: {why}"
        );
        assert_eq!((gaps[1].kind, gaps.len()), ("map", 2));
        let why = &gaps[1].why;
        assert_eq!(
            why,
            "program 'adds' uses it and can't be replayed by this version of bpflab"
        );
    }
}

/// A load whose memory this version takes for the program's own is replayed from the log, if
/// the recorder took it for the kernel's.
#[test]
fn the_schema_decides_what_a_load_accesses() {
    let (recording, schema) = recorded();
    let world = changed(&schema, "/4/accesses", json!("world"));
    assert_eq!(replay(&recording, &world).unwrap().word(), Word::Equal);
}

/// Every value of the schema, as a JSON pointer.
fn values(schema: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match schema {
        Value::Array(all) => {
            for (nth, one) in all.iter().enumerate() {
                values(one, &format!("{at}/{nth}"), found);
            }
        }
        Value::Object(all) => {
            for (key, one) in all {
                values(one, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// Whatever a schema has, the answer is a report or an error.
#[test]
fn no_schema_stops_a_replay() {
    let (recording, schema) = recorded();
    let program = &recording.programs[0];
    let added = ReplayMaps::add(&program.maps);
    let mut pointers = Vec::new();
    values(&schema, "", &mut pointers);
    let others: Vec<Value> = pointers[1..]
        .iter()
        .map(|pointer| schema.pointer(pointer).unwrap().clone())
        .chain([
            json!(0),
            json!(7),
            json!(-1),
            json!(65_535),
            json!(u32::MAX),
            json!(null),
        ])
        .collect();
    let (mut made, mut refused) = (0, 0);
    for pointer in &pointers[1..] {
        for (nth, other) in others.iter().enumerate() {
            let changed = changed(&schema, pointer, other.clone());
            let sites: Vec<SchemaSite> = serde_json::from_value(changed.clone()).unwrap();
            match Plan::with_schema(program, &sites) {
                Ok(plan) if plan.replay_form(&added).is_ok() => {
                    made += 1;
                    if nth % 8 == 0 {
                        replay(&recording, &changed).unwrap();
                    }
                }
                Ok(_) | Err(_) => refused += 1,
            }
        }
    }
    assert!(made > 100 && refused > 1000, "{made} {refused}");
}
