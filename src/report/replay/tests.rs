use std::num::NonZeroU64;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::ReplayView;
use crate::compare::replay::SourceLine;
use crate::compare::replay::{
    Different, FirstDifference, Instruction, MapReport, MapVerdict, NotCompared, OutputReport,
    OutputVerdict, ProgramReport, Report, Verdict, Word,
};
use crate::harness::EngineKind;
use crate::instrument::What;
use crate::isa::Reg;
use crate::util::Pc;

fn program(name: &str, verdict: Verdict) -> ProgramReport {
    ProgramReport {
        name: name.to_owned(),
        engine: Some(EngineKind::Jit),
        fallback: None,
        engine_why: None,
        firings: 12,
        led_to: 0,
        raced: 0,
        missed: 0,
        verdict,
    }
}

fn equal() -> Verdict {
    Verdict::Equal(NonZeroU64::MIN)
}

fn difference() -> FirstDifference {
    FirstDifference {
        firing: 7,
        cpu: 1,
        sequence: 3,
        time: 5_000_000_042,
        tgid: 42,
        pid: 43,
        what: Different::Given {
            what: What::Operand,
            expected: vec![9, 0, 0, 0, 0, 0, 0, 0],
            got: vec![1, 0, 0, 0, 0, 0, 0, 0],
        },
        place: Some(Instruction {
            pc: Pc(65),
            text: "(db) lock *(u64 *)(r0 +0) += r1".to_owned(),
            source: Some(SourceLine {
                file: "a.c".to_owned(),
                line: 52,
                column: 3,
                text: "__sync_fetch_and_add(count, 1);".to_owned(),
            }),
        }),
        registers: vec![(Reg::R0, 0x10), (Reg::R1, 1)],
    }
}

fn report() -> Report {
    Report {
        engine: EngineKind::Jit,
        programs: vec![
            program("count", Verdict::Different(Box::new(difference()))),
            ProgramReport {
                engine: Some(EngineKind::Checked),
                led_to: 0,
                fallback: Some(crate::vm::Fallback::Rejected),
                engine_why: Some("it is too long".to_owned()),
                raced: 2,
                missed: 1,
                ..program("other", equal())
            },
        ],
        maps: vec![
            MapReport {
                name: "hist".to_owned(),
                verdict: MapVerdict::Equal(64),
            },
            MapReport {
                name: "waiting".to_owned(),
                verdict: MapVerdict::OrderUnknown {
                    why: "CPU 0 and CPU 1 stored to it".to_owned(),
                    differing: 2,
                },
            },
        ],
        outputs: vec![OutputReport {
            name: "events".to_owned(),
            recorded: 3,
            replayed: 2,
            verdict: OutputVerdict::Different {
                at: 2,
                cpu: None,
                expected: Some(vec![0xab; 3]),
                got: None,
            },
        }],
        findings: Vec::new(),
        missing: vec!["2 lost of count: ring buffer full".to_owned()],
    }
}

fn view(report: &Report) -> ReplayView<'_> {
    ReplayView {
        recording: "a.rec",
        object: "a.bpf.o",
        report,
        elapsed: Some(Duration::from_nanos(2400)),
    }
}

#[test]
fn a_difference_is_told_with_its_place() {
    let report = report();
    let text = view(&report).to_string();
    let expected = "\
a.rec: 24 firings on jit, 100.0 ns each, reading included
  count    12  firings  different at firing 7
  other    12  firings  not run on jit, equal, 2 with a map value from the recording, 1 missed by the kernel on checked: it is too long
  hist     64  entries  equal
  waiting      map      order unknown: CPU 0 and CPU 1 stored to it; 2 entries differ
  events    3  outputs  different at number 2: ababab in the kernel, nothing in the replay
missing: 2 lost of count: ring buffer full

count differs at firing 7: number 3 on CPU 1, process 42, thread 43, 5.000000042 s after boot
  at 65: (db) lock *(u64 *)(r0 +0) += r1
    a.c:52  __sync_fetch_and_add(count, 1);
  operand: 9 (0900000000000000) in the kernel, 1 (0100000000000000) in the replay
  registers of the replay before that instruction:
    r0=0x10  r1=0x1
verdict: different
";
    assert_eq!(text, expected);
}

#[test]
fn everything_is_in_the_json() {
    let report = report();
    let json = view(&report).json();
    assert_eq!(json["verdict"], "different");
    assert_eq!(json["firings"], 24);
    assert_eq!(json["ns_per_firing"], 100.0);
    let first = &json["programs"][0]["difference"];
    assert_eq!(
        (&first["insn"], &first["kind"]),
        (&json!(65), &json!("given"))
    );
    assert_eq!(first["registers"]["r1"], "0x1");
    assert_eq!(first["source"]["line"], 52);
    assert_eq!(json["programs"][1]["difference"], Json::Null);
    assert_eq!(json["programs"][1]["verdict"], "nothing_compared");
    assert_eq!(json["programs"][1]["engine"], "checked");
    let gap =
        json!({ "program": "other", "why": "jit did not run it, checked did: it is too long" });
    assert_eq!(json["not_compared"], json!([gap]));
    assert_eq!(json["maps"][1]["verdict"], "order_unknown");
    assert_eq!(json["outputs"][0]["expected"], "ababab");
    assert_eq!(json["missing"][0], "2 lost of count: ring buffer full");
}

#[test]
fn the_worst_verdict_is_that_of_the_whole() {
    let mut report = report();
    report.programs.remove(0);
    report.outputs.clear();
    assert_eq!(report.word(), Word::Incomplete);
    report.missing.clear();
    // The only remaining program did not run on the engine that was asked for.
    assert_eq!(report.word(), Word::NothingCompared);
    report.programs[0].engine = Some(EngineKind::Jit);
    assert_eq!(report.word(), Word::OrderUnknown);
    assert!(report.is_fine());
    report.maps.clear();
    assert_eq!(report.word(), Word::Equal);
}

/// If any part is not compared, the whole is not equal, and the report names the part.
#[test]
fn each_gap_is_named() {
    let fine = || Report {
        engine: EngineKind::Jit,
        programs: vec![program("count", equal())],
        maps: vec![MapReport {
            name: "hist".to_owned(),
            verdict: MapVerdict::Equal(64),
        }],
        outputs: vec![OutputReport {
            name: "events".to_owned(),
            recorded: 1,
            replayed: 1,
            verdict: OutputVerdict::Equal(NonZeroU64::MIN),
        }],
        findings: Vec::new(),
        missing: Vec::new(),
    };
    assert_eq!((fine().word(), fine().gaps()), (Word::Equal, Vec::new()));
    let why = || "a reason".to_owned();
    for (not_compared, reason) in [
        (
            NotCompared::Unrecorded(why()),
            "its firings could not be recorded: a reason",
        ),
        (
            NotCompared::Unreplayable(why()),
            "this version of bpflab can't replay its firings: a reason",
        ),
        (NotCompared::NeverRan, "it never ran"),
        (NotCompared::LeftOut(why()), "a reason"),
        (
            NotCompared::Events,
            "no program ran when the events were recorded",
        ),
    ] {
        let mut report = fine();
        let verdict = Verdict::NotCompared(not_compared);
        report.programs.push(program("other", verdict));
        let text = view(&report).to_string();
        assert!(
            text.contains(&format!("not compared: {reason}\n")),
            "{text}"
        );
        assert!(
            text.ends_with("verdict: partly compared, without program other\n"),
            "{text}"
        );
        assert_eq!(view(&report).json()["verdict"], "partly_compared");
        assert!(!report.is_fine());
        // Without another program nothing was compared, even if maps were.
        report.programs.remove(0);
        assert_eq!(report.word(), Word::NothingCompared);
        report.programs[0].firings = 0;
        let text = view(&report).to_string();
        assert!(
            text.ends_with("verdict: nothing compared: no event came\n"),
            "{text}"
        );
    }
    let mut report = fine();
    report.maps[0].verdict = MapVerdict::NotCompared(why());
    assert_eq!(report.word(), Word::PartlyCompared);
    let text = view(&report).to_string();
    assert!(
        text.contains("not compared: a reason\n") && text.contains("without map hist\n"),
        "{text}"
    );
    let mut report = fine();
    report.outputs[0].verdict = OutputVerdict::NotCompared(why());
    assert_eq!(report.word(), Word::PartlyCompared);
    let text = view(&report).to_string();
    assert!(
        text.contains("not compared: a reason\n") && text.contains("without output events\n"),
        "{text}"
    );
}

/// A map that differs although all programs did the same was changed from outside.
#[test]
fn a_change_from_outside_is_named() {
    let mut report = report();
    report.maps[0].verdict = MapVerdict::Different {
        key: vec![8, 0, 0, 0],
        expected: Some(vec![1]),
        got: None,
        entries: 1,
        is_outside: true,
    };
    let cause = "no firing in the recording wrote that: map hist was likely changed from outside \
                 meanwhile, by bpftool or by another process or program";
    let text = view(&report).to_string();
    assert!(
        text.contains(&format!("nothing in the replay; {cause}\n")),
        "{text}"
    );
    assert_eq!(view(&report).json()["maps"][0]["cause"], cause);
    let mut first = difference();
    first.what = Different::Found {
        what: What::Loaded,
        expected: vec![1],
        got: vec![2],
        maps: vec!["hist".to_owned()],
    };
    report.programs[0].verdict = Verdict::Different(Box::new(first));
    let text = view(&report).to_string();
    assert!(text.contains(&format!("  {cause}\n")), "{text}");
}

#[test]
fn a_page_has_the_first_difference_side_by_side() {
    let mut report = report();
    report.programs[0].name = "a<b".to_owned();
    let mut page = crate::report::ReplayPage::default();
    page.add(&view(&report));
    let page = page.finish();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let sides = document
        .descendants()
        .find(|node| node.attribute("class") == Some("sides"))
        .unwrap();
    let cells: Vec<_> = sides
        .descendants()
        .filter(|node| ["th", "td"].contains(&node.tag_name().name()))
        .map(|node| {
            let texts = node.descendants().filter(|node| node.is_text());
            texts.filter_map(|node| node.text()).collect::<String>()
        })
        .collect();
    assert_eq!(
        cells,
        [
            "",
            "in the kernel",
            "in the replay",
            "operand",
            "9 (0900000000000000)",
            "1 (0100000000000000)"
        ]
    );
    for part in [
        "On jit: a&lt;b differs at firing 7: number 3 on CPU 1",
        "__sync_fetch_and_add(count, 1);",
        "<p class=\"word bad\">missing: 2 lost of count: ring buffer full</p>",
        "<p class=\"word bad\">verdict: different",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
