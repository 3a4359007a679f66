//! The programs of `docs/findings.md`: bpflab's verdicts, and the running kernel's.

use std::sync::Arc;

use bpflab::btf::{Builder, Encoding, FuncInfo, Linkage};
use bpflab::isa::{RawInsn, assemble_with};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgFlags, ProgType};
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
        let arena = MapDef::new("arena", MapType::Arena, 0, 0, 1);
        program.maps = Arc::new([
            MapDef::new("values", MapType::Array, 4, 8, 1),
            arena.with_flags(MapFlags::MMAPABLE),
        ]);
        program.insns = assemble_with(text, &program).unwrap().slots;
        add_callbacks(&mut program);
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

/// Gives a program with callbacks the types that the kernel wants of them: `int f(void)`.
fn add_callbacks(program: &mut Program) {
    // `BPF_LD | BPF_IMM | BPF_DW` with `BPF_PSEUDO_FUNC`.
    let is_function = |insn: &RawInsn| insn.opcode == 0x18 && insn.src() == 4;
    let insns = (0..).zip(&program.insns);
    let found = insns.filter(|(_, insn)| is_function(insn));
    let starts: Vec<i32> = found.map(|(at, insn)| at + insn.imm + 1).collect();
    if starts.is_empty() {
        return;
    }
    let mut types = Builder::new();
    let int = types.int("int", 4, Encoding::Signed);
    let prototype = types.prototype(int, &[]);
    for (number, start) in (0..).zip([0].into_iter().chain(starts)) {
        let name = format!("f{number}");
        program.func_info.push(FuncInfo {
            insn_off: start.cast_unsigned(),
            ty: types.function(&name, prototype, Linkage::Static),
        });
    }
    program.btf = Some(types.build().unwrap());
}

fn words(verdict: &bpflab::verifier::Verdict) -> String {
    format!("{} {}", verdict.decision.word(), verdict.processed())
}

#[test]
fn bpflab_says_what_the_page_says() {
    let all = told();
    assert_eq!(all.len(), 6);
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
    use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load};
    use bpflab::verifier::LogLevel;

    if here::judge().is_none() {
        return;
    }
    for told in told() {
        let maps = LoadedMaps::create(&told.program.maps, told.program.btf.as_ref()).unwrap();
        let loaded = load(&told.program, &maps, &LoadOptions::default()).unwrap();
        let verdict = &loaded.verdict;
        let name = &told.program.name;
        assert_eq!(words(verdict), told.linux, "{name}: {}", verdict.message);
        // The verifier has R0=0.
        let returned = match name.as_str() {
            "signed-fill" => 1,
            "arena-fetch" => u32::MAX,
            _ => continue,
        };
        let options = LoadOptions::default().with_log(LogLevel::ALL);
        let log = load(&told.program, &maps, &options).unwrap().verdict.log;
        let last = log.rsplit(" R0=").next().unwrap_or_default();
        assert!(
            last.starts_with("0 ") || last.starts_with("0\n"),
            "{name}: {log}"
        );
        let program = loaded.program.expect("an accepted program");
        let run = program.test_run(&TestRun::context(&[0xff; 16])).unwrap();
        assert_eq!(run.retval, returned, "{name}");
    }
}
