//! Compares the logs with the running kernel's.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::Object;
use bpflab::kernel::{LoadOptions, LoadedMaps, load, possible_cpus, running_config};
use bpflab::object::cases::Cases;
use bpflab::program::Program;
use bpflab::verifier::{LogLevel, Options, verify};

use crate::shared::{case, here, sample};

/// Whether a program is unjudged: its log ends where the verifier stops.
fn is_beyond_us(program: &Arc<Program>) -> bool {
    verify(program, &Options::default()).verdict.is_unjudged()
}

/// This repository's objects.
fn objects() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<_> = ["tests/objects", "examples/bpf"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "o"))
        .collect();
    found.sort();
    found
}

/// The kernel's log; `None` if it gives no verdict.
fn kernel_log(program: &Program) -> Option<String> {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).ok()?;
    let options = LoadOptions::default().with_log(LogLevel::ALL);
    Some(load(program, &maps, &options).ok()?.verdict.log)
}

/// Options for this machine: its CPUs, its kernel's configuration and lockdown state.
fn options() -> Options {
    Options::default()
        .with_cpus(NonZeroU32::new(possible_cpus()))
        .with_kernel(running_config().unwrap_or_default())
}

/// A log without the parts that vary: map addresses and times. The statistics that the
/// loader requests are not in ours.
fn normal(log: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in log.lines() {
        if line.starts_with("verification time ") {
            break;
        }
        lines.push(without_address(line));
    }
    lines
}

/// A line with zeros in place of the address that a 64-bit immediate loads.
fn without_address(line: &str) -> String {
    const IMMEDIATE: &str = "(18) r";
    let address = line
        .find(IMMEDIATE)
        .and_then(|at| Some(at + line[at..].find("= 0xffff")? + 2));
    let mut text = line.to_owned();
    if let Some(at) = address {
        let digits = text[at..].find(' ').map_or(text.len(), |end| at + end);
        if digits - at == 18 {
            text.replace_range(at..digits, "0x0000000000000000");
        }
    }
    text
}

/// The first lines that differ.
fn difference(program: &Arc<Program>) -> Option<Option<String>> {
    let theirs = kernel_log(program)?;
    let (ours, theirs) = (
        normal(&crate::log::log(program, options())),
        normal(&theirs),
    );
    if ours == theirs {
        return Some(None);
    }
    let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    let show = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "(end)".into());
    Some(Some(format!(
        "line {}:\n  ours  {}\n  Linux {}",
        at + 1,
        show(&ours),
        show(&theirs)
    )))
}

#[test]
fn the_kernel_prints_the_same() {
    if here::judge().is_none() {
        return;
    }
    let mut different = Vec::new();
    for path in case::all() {
        let told = difference(&case::read(&path)).expect("a verdict");
        different.extend(told.map(|how| format!("{}: {how}", path.display())));
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn the_kernel_prints_the_same_of_our_objects() {
    if here::judge().is_none() {
        return;
    }
    let (mut different, mut equal, mut unfetched) = (Vec::new(), 0, 0);
    for path in objects().into_iter().step_by(sample::step()) {
        let Ok(object) = Object::open(&path) else {
            continue;
        };
        for program in object.programs().filter_map(Result::ok) {
            let program = Arc::new(program);
            match difference(&program) {
                Some(None) => equal += 1,
                Some(Some(_)) if is_beyond_us(&program) => {}
                Some(Some(how)) if may_fetch_nothing(&how) => unfetched += 1,
                Some(Some(how)) => {
                    different.push(format!("{} {}: {how}", path.display(), program.name));
                }
                None => {}
            }
        }
    }
    eprintln!("{equal} equal, {} different", different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    // `atomics` of arena_edges, and six programs of arena_faults.
    assert!(unfetched == 7 || !sample::all(), "{unfetched}");
}

/// Whether the lines that differ are of an atomic operation that fetches from an arena: the result
/// is any number to bpflab (`docs/verifier-differences.md`).
fn may_fetch_nothing(how: &str) -> bool {
    how.lines().skip(1).all(|line| {
        line.contains("=arena") && (line.contains(" atomic") || line.contains("load_acquire"))
    })
}

/// The corpus's programs with plain data, maps, helpers and packets. Every eighth by
/// default; `BPFLAB_WHOLE_CORPUS=1` runs all of them and lists the differences.
#[test]
fn the_corpus_is_told_alike() {
    const STAGES: [&str; 5] = ["S2", "S3", "S4", "S5", "S6"];
    let Some(path) = crate::shared::corpus() else {
        return;
    };
    if here::judge().is_none() {
        return;
    }
    let whole = std::env::var_os("BPFLAB_WHOLE_CORPUS").is_some();
    let mut cases = Cases::open(&path).unwrap();
    let all: Vec<_> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let accepted = all.iter().filter(|case| {
        let stage = case.rest.get("stage").and_then(|stage| stage.as_str());
        case.kernel.as_ref().is_some_and(|says| says.accepts())
            && stage.is_some_and(|stage| STAGES.contains(&stage))
    });
    let (mut equal, mut count, mut different) = (0, 0, Vec::new());
    for case in accepted.step_by(if whole { 1 } else { 8 }) {
        let program = Arc::new(cases.program(case).unwrap());
        let Some(told) = difference(&program) else {
            continue;
        };
        count += 1;
        match told {
            None => equal += 1,
            Some(how) => different.push(format!("{}: {how}", case.id)),
        }
    }
    if whole {
        eprintln!("{}", different.join("\n"));
    }
    eprintln!("{equal} of {count} logs are equal");
    assert!(equal * 10 >= count * 9, "{}", different.join("\n"));
}
