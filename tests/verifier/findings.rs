//! The programs of `docs/findings.md`: bpflab's verdicts, and the running kernel's.

use std::sync::Arc;

use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgFlags, ProgType};
use bpflab::verifier::{Options, verify};

/// A program of the page, and what the page says of it: verdict and processed instructions.
struct Told {
    program: Program,
    linux: String,
    bpflab: String,
}

/// The blocks of the page: ```` ```asm NAME TYPE [FLAG]: Linux VERDICT N, bpflab VERDICT N ````.
fn told() -> Vec<Told> {
    let page = include_str!("../../docs/findings.md");
    let blocks = page.split("```asm ").skip(1);
    let read = |block: &str| {
        let (head, rest) = block.split_once('\n').unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        let (what, verdicts) = head.split_once(": Linux ").unwrap();
        let (linux, bpflab) = verdicts.split_once(", bpflab ").unwrap();
        let words: Vec<&str> = what.split(' ').collect();
        let prog_type = ProgType::from_name(words[1]).unwrap();
        let mut program = Program::new(words[0], prog_type, Vec::new());
        program.license = "GPL".into();
        program.maps = Arc::new([MapDef::new("values", MapType::Array, 4, 8, 1)]);
        program.insns = assemble_with(text, &program).unwrap().slots;
        program.flags = match words.get(2) {
            None => ProgFlags::empty(),
            Some(&"sleepable") => ProgFlags::SLEEPABLE,
            Some(&"test-state-freq") => ProgFlags::TEST_STATE_FREQ,
            Some(word) => panic!("{word}"),
        };
        Told {
            program,
            linux: linux.to_owned(),
            bpflab: bpflab.to_owned(),
        }
    };
    blocks.map(read).collect()
}

fn words(verdict: &bpflab::verifier::Verdict) -> String {
    format!("{} {}", verdict.decision.word(), verdict.processed())
}

#[test]
fn bpflab_says_what_the_page_says() {
    let all = told();
    assert_eq!(all.len(), 4);
    for told in all {
        let name = told.program.name.clone();
        let verdict = verify(&told.program.into(), &Options::default()).verdict;
        assert_eq!(words(&verdict), told.bpflab, "{name}: {}", verdict.message);
        assert!(
            told.linux.starts_with("accept "),
            "{name}: a finding is unsound"
        );
    }
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn the_kernel_says_what_the_page_says() {
    use crate::shared::here;
    use bpflab::kernel::{LoadOptions, LoadedMaps, load};

    if here::judge().is_none() {
        return;
    }
    for told in told() {
        let maps = LoadedMaps::create(&told.program.maps, None).unwrap();
        let loaded = load(&told.program, &maps, &LoadOptions::default()).unwrap();
        let verdict = &loaded.verdict;
        let name = &told.program.name;
        assert_eq!(words(verdict), told.linux, "{name}: {}", verdict.message);
    }
}
