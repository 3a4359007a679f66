//! The programs of `docs/findings.md`: bpflab's verdicts, and the running kernel's.

use std::sync::Arc;

use crate::shared::corpus;

use bpflab::Pc;
use bpflab::btf::{Btf, Builder, Encoding, FuncInfo, Kind, Linkage};
use bpflab::isa::{RawInsn, assemble, assemble_with};
use bpflab::object::Target;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgFlags, ProgType};
use bpflab::verifier::diagnose::diagnose;
use bpflab::verifier::{Options, verify};

/// A program of the page, and what the page says of it: verdict and processed instructions.
struct Told {
    program: Program,
    linux: String,
    bpflab: String,
}

/// A program with two maps: an array and an arena.
fn program(name: &str, prog_type: ProgType, text: &str) -> Program {
    let mut program = Program::new(name, prog_type, Vec::new());
    program.license = "GPL".into();
    let arena = MapDef::new("arena", MapType::Arena, 0, 0, 1);
    program.maps = Arc::new([
        MapDef::new("values", MapType::Array, 4, 8, 1),
        arena.with_flags(MapFlags::MMAPABLE),
    ]);
    program.insns = assemble_with(text, &program).unwrap().slots;
    add_callbacks(&mut program);
    program
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
        let mut program = program(words[0], prog_type, text);
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

/// The program whose iterator outlives its read section, for a kernel with these types.
fn iterator_between_sections(btf: &Btf, flags: ProgFlags) -> Program {
    const LOCK: &str = "bpf_rcu_read_lock";
    const UNLOCK: &str = "bpf_rcu_read_unlock";
    let iterator = ["r1 = r10", "r1 += -24"];
    let new = ["r2 = 0", "r3 = 0", "call bpf_iter_task_new"];
    let next = ["call bpf_iter_task_next", "if r0 == 0 goto +3"];
    let lines = [LOCK].iter().chain(&iterator).chain(&new).chain(&iterator);
    let lines = lines.chain(&next).chain(&[UNLOCK, LOCK, "goto -7"]);
    let lines = lines
        .chain(&iterator)
        .chain(&["call bpf_iter_task_destroy", UNLOCK]);
    let insn = |line: &&str| {
        let name = line.strip_prefix("call ").unwrap_or(line);
        match btf.find(name, Kind::Func) {
            Some(kfunc) => RawInsn::new(0x85, 0, 2, 0, kfunc.id().0.cast_signed()),
            None => assemble(line).unwrap()[0],
        }
    };
    let mut insns: Vec<RawInsn> = lines.map(insn).collect();
    insns.extend(assemble("r0 = 0\nexit").unwrap());
    let mut program = Program::new("between", ProgType::Syscall, insns);
    program.license = "GPL".into();
    program.kernel_btf = Some(btf.clone());
    program.flags = flags;
    program
}

#[test]
fn an_iterator_is_left_from_its_read_section() {
    let Some(path) = corpus() else { return };
    let kernel = Target::file(path.with_file_name("vmlinux-6.18.44.btf.xz"));
    let Ok(Target::Kernel(btf)) = kernel else {
        panic!("no types of a kernel");
    };
    let program = iterator_between_sections(&btf, ProgFlags::SLEEPABLE);
    let verdict = verify(&program.into(), &Options::default()).verdict;
    assert_eq!(
        verdict.message,
        "expected an RCU CS when using bpf_iter_task_next"
    );
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn the_kernel_does_not_see_that_an_iterator_is_left() {
    use bpflab::kernel::{LoadOptions, LoadedMaps, load, running_btf};

    let (Some(_), Some(btf)) = (crate::shared::here::judge(), running_btf()) else {
        return;
    };
    let program = iterator_between_sections(btf, ProgFlags::SLEEPABLE);
    let maps = LoadedMaps::create(&[], None).unwrap();
    let loaded = load(&program, &maps, &LoadOptions::default()).unwrap();
    assert_eq!(words(&loaded.verdict), "accept 29");
}

/// What an atomic operation of four bytes fetches from an arena may be any number of 64 bits,
/// since nothing is fetched on a missing page. A number of a plain load has four bytes.
#[test]
fn a_number_fetched_from_an_arena_has_no_bounds() {
    let verdict = |load: &str| {
        let text = format!(
            "r3 = *(u64 *)(r1 +0)\nr2 = map[idx:1]\nr1 = 0\nr1 = addr_space_cast(r1, 0, 1)\n\
             r0 = 0\n{load}\nr2 = map[idx:0][0]+0\nr3 >>= 32\nr2 += r3\n\
             r0 = *(u8 *)(r2 +0)\nexit\n"
        );
        let mut program = program("fetch", ProgType::Syscall, &text);
        program.flags = ProgFlags::SLEEPABLE;
        verify(&Arc::new(program), &Options::default()).verdict
    };
    for load in [
        "r3 = atomic_fetch_add((u32 *)(r1 +0), r3)",
        "r3 = atomic_xchg((u32 *)(r1 +0), r3)",
        "r3 = load_acquire((u32 *)(r1 +0))",
    ] {
        let verdict = verdict(load);
        assert!(!verdict.is_accepted(), "{load}");
        let message = &verdict.message;
        assert!(message.contains("unbounded memory access"), "{message}");
    }
    let plain = verdict("r3 = *(u32 *)(r1 +0)");
    assert!(plain.is_accepted(), "{}", plain.message);
}

fn words(verdict: &bpflab::verifier::Verdict) -> String {
    format!("{} {}", verdict.decision.word(), verdict.processed())
}

#[test]
fn bpflab_says_what_the_page_says() {
    let all = told();
    assert_eq!(all.len(), 8);
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

/// The running kernel's verdict on a program of the page. Of the programs that return what the verifier
/// excludes also what it has for `r0`, and what a test run returns.
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn said_here(told: &Told) -> String {
    use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load};
    use bpflab::verifier::LogLevel;

    // Older kernels have no arenas.
    let mut program = told.program.clone();
    program.maps = program.needed_maps();
    let options = LoadOptions::default().with_log(LogLevel::ALL);
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref());
    let Ok(loaded) = maps.and_then(|maps| load(&program, &maps, &options)) else {
        return "no verdict".to_owned();
    };
    let said = &loaded.verdict;
    match (loaded.program, program.name.as_str()) {
        (None, _) => said.message.clone(),
        (Some(accepted), "signed-fill" | "arena-fetch") => {
            // `R0=0`, in older kernels also `R0_w=0`.
            let last = said.log.rsplit(" R0").next().unwrap_or_default();
            let (_, last) = last.split_once('=').unwrap_or_default();
            let believed = last.split_whitespace().next().unwrap_or_default();
            let run = accepted.test_run(&TestRun::context(&[0xff; 16])).unwrap();
            let returned = run.retval.cast_signed();
            format!("{}, R0={believed}, returned {returned}", words(said))
        }
        _ => words(said),
    }
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn the_kernel_says_what_the_page_says() {
    use crate::shared::here;

    if here::judge().is_none() {
        return;
    }
    for told in told() {
        let returned = match told.program.name.as_str() {
            "signed-fill" => ", R0=0, returned 1",
            "arena-fetch" => ", R0=0, returned -1",
            _ => "",
        };
        let name = &told.program.name;
        assert_eq!(said_here(&told), told.linux.clone() + returned, "{name}");
    }
}

/// Without the first way to the comparison, the path that no run takes is explored.
#[test]
fn without_the_other_way_an_error_is_found() {
    let mut all = told();
    all.retain(|told| told.program.name == "maybe-odd");
    let mut told = all.pop().expect("the program");
    let branch = told.program.insns[5];
    told.program.insns[5] = RawInsn::new(0x05, 0, 0, branch.off, 0);
    let error = "invalid read from stack R2 off=0 size=1";
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    if crate::shared::here::judge().is_some() {
        assert_eq!(said_here(&told), error);
    }
    let program = Arc::new(told.program);
    let verification = verify(&program, &Options::default());
    assert_eq!(verification.verdict.message, error);
    let why = verification.outcome.expect_err("a reject");
    let diagnosis = diagnose(&program, why.reject().expect("a reject"));
    let comparison = diagnosis.labels.iter().find(|label| label.pc == Pc(7));
    let text = comparison.map(|label| label.text.as_str());
    assert!(text.is_some_and(|text| text.starts_with("no run gets past here")));
}

/// What a load makes of a spilled pointer is rejected if the path that spills is explored first, and
/// accepted if the other one is.
#[test]
fn the_order_of_paths_decides() {
    for (load, error) in [
        ("r1 = *(u32 *)(r9 +0)", "invalid size of register fill"),
        (
            "r1 = *(u64 *)(r9 +0)\nr1 *= 31",
            "R1 pointer arithmetic with *= operator prohibited",
        ),
    ] {
        let orders = [
            ("if r9 == 0 goto +1", error),
            ("if r9 != 0 goto +1\ngoto +1", ""),
        ];
        for (branch, message) in orders {
            let text = format!(
                "r9 = r10\nr9 += -64\n{branch}\n*(u64 *)(r9 +0) = r9\n{load}\nr0 = 0\nexit"
            );
            let mut program = program("order", ProgType::SchedCls, &text);
            program.flags = ProgFlags::TEST_STATE_FREQ;
            let told = Told {
                program,
                linux: String::new(),
                bpflab: String::new(),
            };
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            if crate::shared::here::judge().is_some() {
                let said = said_here(&told);
                let accepts = message.is_empty() && said.starts_with("accept ");
                assert!(accepts || said == message, "{text}: {said}");
            }
            let verdict = verify(&told.program.into(), &Options::default()).verdict;
            assert_eq!(verdict.message, message, "{text}");
        }
    }
}

/// What the page's table says of other kernels: the beginning of `uname -r`, and each program's words.
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn of_other_kernels() -> Vec<(String, Vec<(String, String)>)> {
    let page = include_str!("../../docs/findings.md");
    let (_, rest) = page.split_once("| program | Linux ").expect("a table");
    let mut lines = rest.lines();
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let kernels = cells(lines.next().expect("the rest of its head"));
    let rows: Vec<_> = lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect();
    let columns = kernels.into_iter().enumerate();
    let column = |(number, kernel): (usize, String)| {
        let said = rows.iter().map(|row| {
            let name = row[0].trim_matches('`').to_owned();
            (name, row[number + 1].replace('`', ""))
        });
        (kernel, said.collect())
    };
    columns.map(column).collect()
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn the_table_has_each_program() {
    let programs: Vec<String> = told().into_iter().map(|told| told.program.name).collect();
    for (release, said) in of_other_kernels() {
        let names: Vec<String> = said.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, programs, "Linux {release}");
    }
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn other_kernels_say_what_the_table_says() {
    use crate::shared::{Need, here, skip};

    let Some(kernel) = here::kernel() else { return };
    let columns = of_other_kernels();
    let mut columns = columns.iter();
    let told_of = columns.find(|(release, _)| kernel.release.starts_with(release.as_str()));
    let name = |told: &Told| told.program.name.clone();
    let said = told()
        .iter()
        .map(|told| (name(told), said_here(told)))
        .collect::<Vec<_>>();
    eprintln!("{}: {said:#?}", kernel.release);
    let Some((_, of_table)) = told_of else {
        let text = format!("the table has no Linux {}", kernel.release);
        return skip(Need::Guest, text);
    };
    assert_eq!(&said, of_table, "Linux {}", kernel.release);
}
