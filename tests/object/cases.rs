//! The case format: cases round-trip, and errors contain the line.

use crate::shared;

use std::io::{BufRead, BufReader};

use bpflab::isa::{PseudoKind, RawInsn};
use bpflab::object::cases::{Case, CaseProblem, Cases, btf_name, read_case};
use bpflab::{Object, object::Target};

const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects");

#[test]
fn a_case_is_read_and_written_without_loss() {
    let line = r#"{"id":"a","prog_type":6,"license":"GPL","insn_cnt":4,
        "insns":"18110000000000000000000000000000b7000000020000009500000000000000",
        "fixups":[[0,0]],"note":{"kept":[1]},
        "maps":[{"idx":0,"type":2,"name":"m","key_size":4,"value_size":8,"max_entries":1,
                 "frozen":true,"init":[["00000000","0100000000000000"]],"more":1}],
        "runs":[{"data":"00ff","retval":2}],
        "kernel":{"verdict":"accept","processed":3,"time_us":10}}"#;
    let case = read_case(line).unwrap();
    assert_eq!(read_case(&case.to_json().to_string()).unwrap(), case);
    assert_eq!(case.rest["note"]["kept"][0], 1);
    assert_eq!(case.runs[0].data.0, [0, 255]);
    assert!(case.kernel.as_ref().unwrap().accepts());

    let program = case.to_program(None, None).unwrap();
    assert_eq!(program.insns[0].src(), PseudoKind::MapIdx.src());
    assert_eq!(program.maps[0].initial_value(&[0; 4]).unwrap()[0], 1);
    assert!(program.maps[0].frozen);
}

#[test]
fn broken_cases_say_which_key() {
    let key = |line: &str| match read_case(line).map(|case| case.to_program(None, None)) {
        Err(CaseProblem::Key { key, .. }) | Ok(Err(CaseProblem::Key { key, .. })) => key,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(key(r#"{"prog_type":6}"#), "insns");
    assert_eq!(key(r#"{"insns":"95"}"#), "insns");
    assert_eq!(key(r#"{"insns":"9500000000000000"}"#), "prog_type");
    assert_eq!(
        key(r#"{"insns":"9500000000000000","insn_cnt":2}"#),
        "insn_cnt"
    );
    assert_eq!(
        key(r#"{"insns":"9500000000000000","prog_type":"xdp"}"#),
        "prog_type"
    );
    assert_eq!(
        key(r#"{"insns":"9500000000000000","prog_type":99}"#),
        "prog_type"
    );
    assert_eq!(
        key(r#"{"insns":"9500000000000000","prog_type":6,"fixups":[[0,0]]}"#),
        "fixups[0]"
    );
    assert_eq!(
        key(r#"{"insns":"9500000000000000","prog_type":6,"maps":[{}]}"#),
        "maps"
    );
    assert!(matches!(read_case("[1]"), Err(CaseProblem::NotJson(_))));

    let text =
        "{\"insns\":\"9500000000000000\",\"prog_type\":1}\n\n{\n{\"insns\":\"\",\"prog_type\":1}\n";
    let cases = Cases::read("list", ".", BufReader::new(text.as_bytes())).unwrap();
    let read: Vec<_> = cases
        .map(|case| case.map_err(|error| error.to_string()))
        .collect();
    assert_eq!(read.len(), 3, "an error doesn't end the list");
    assert!(
        read[1]
            .as_ref()
            .unwrap_err()
            .starts_with("list:3: not a JSON object")
    );
    assert!(read[2].is_ok());
}

#[test]
fn a_relocated_program_becomes_the_same_program_through_a_case() {
    for file in ["globals", "map_in_map", "subprograms", "tail_calls"] {
        let mut object = Object::open(format!("{OBJECTS}/{file}.bpf.o")).unwrap();
        object.set_target(Target::Own);
        for program in object.programs() {
            let program = program.unwrap();
            let case = Case::from_program("x", &program);
            let case = read_case(&case.to_json().to_string()).unwrap();
            assert_eq!(case.btf, btf_name(program.btf.as_ref().unwrap()));
            let again = case.to_program(program.btf.clone(), None).unwrap();
            assert_eq!(again.insns, program.insns, "{file} {}", program.name);
            assert_eq!(again.subprograms, program.subprograms);
            assert_eq!(again.prog_type, program.prog_type);
            for (a, b) in again.maps.iter().zip(program.maps.iter()) {
                assert_eq!(
                    (a.map_type, a.value_size, a.flags),
                    (b.map_type, b.value_size, b.flags)
                );
                assert_eq!(a.inner.is_some(), b.inner.is_some());
                assert_eq!(a.value_type, b.value_type);
            }
        }
    }
}

#[test]
fn the_corpus_is_read_written_and_made_into_programs() {
    let Some(path) = shared::corpus() else {
        return;
    };
    let mut cases = Cases::open(&path).unwrap();
    let (mut count, mut accepted, mut runs, mut slots) = (0, 0, 0, 0);
    while let Some(case) = cases.next() {
        let case = case.unwrap();
        let program = cases
            .program(&case)
            .unwrap_or_else(|error| panic!("{}: {error}", case.id));
        assert_eq!(read_case(&case.to_json().to_string()).unwrap(), case);
        assert_eq!(program.insns.len(), case.insns.len());
        let by_fd = |insn: &&RawInsn| insn.opcode == 0x18 && matches!(insn.src(), 1 | 2);
        let kept = case.fixups.iter().filter(|fixup| fixup.1 < 0).count();
        assert!(
            program.insns.iter().filter(by_fd).count() <= kept,
            "{}",
            case.id
        );
        count += 1;
        accepted += usize::from(case.kernel.as_ref().unwrap().accepts());
        runs += case.runs.len();
        slots += program.insns.len();
    }
    assert_eq!((count, accepted, runs), (1650, 918, 530));
    assert!(slots > 50_000, "{slots}");
}

#[test]
fn the_corpus_in_json_stays_the_same_json() {
    let Some(path) = shared::corpus() else {
        return;
    };
    let file = std::fs::File::open(path).unwrap();
    let lines = lzma_rust2::XzReader::new(BufReader::new(file), true);
    for line in BufReader::new(lines).lines().step_by(37) {
        let line = line.unwrap();
        let before: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read_case(&line).unwrap().to_json(), before);
    }
}
