//! Kernel rules that depend on two things, tested in every combination: our verdict is
//! compared with the running kernel's, or with the verdict recorded in
//! `tests/verifier/matrix/*.txt` on machines without such a kernel.
//!
//! | matrix | rows | columns |
//! |---|---|---|
//! | `fields` | special fields of a map's value | ways to access memory |
//! | `sections` | what is held during a call | calls |
//! | `graphs` | what a program holds: objects, elements of lists and trees, locks | what it does then |
//! | `pointers` | kinds of pointers | loads, stores, atomic operations; strict alignment; another kind on another path |
//! | `arithmetic` | kinds of pointers | arithmetic and comparisons, then a load |
//! | `paths` | what one path leaves in a register or slot, and what another one does | uses of it where they meet |
//! | `attributes` | program types | attributes of `BPF_PROG_LOAD` |
//!
//! `arithmetic` and `paths` are also judged for a loader without `CAP_PERFMON`
//! (`*_without_perfmon.txt`).
//!
//! A line of a file is `mark name | the kernel's verdict`. The mark is `=` if our verdict
//! is the same (error number, error line, or number of processed instructions), `?` if the
//! program is unjudged, and `-` if the kernel has no verdict (it was built without the
//! program type, or rejects the program's BTF). Everything else fails. `BLESS=1` on a
//! kernel 6.18 rewrites the files.

#![cfg(all(feature = "kernel", target_os = "linux"))]

mod arithmetic;
mod attributes;
mod fields;
mod graphs;
mod paths;
mod pointers;
mod sections;
use crate::shared;
use crate::shared::sample;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::isa::assemble;
use bpflab::kernel::{Availability, LoadOptions, LoadedMaps, Loader, load, running_config};
use bpflab::program::{MapDef, Program};
use bpflab::spec::helpers::{Caller, Helper, helpers};
use bpflab::spec::{
    Backports, BuildOptions, Capabilities, KernelConfig, Lockdown, ProgFlags, ProgType, Traits,
};
use bpflab::verifier::{Decision, Options, Verdict, verify};

use shared::{Need, skip_part};

/// The kernel version that we reproduce.
const JUDGE: &str = "6.18.";

/// The text in place of a missing verdict.
const NONE: &str = "none";

/// A combination.
struct Case {
    name: String,
    program: Program,
}

fn words(verdict: &Verdict) -> String {
    match verdict.errno {
        Some(errno) => {
            // `EINVAL (Invalid argument)`
            let errno = errno.to_string();
            let name = errno.split(' ').next().unwrap_or_default();
            format!("{name} {}", verdict.message).trim_end().to_owned()
        }
        None => format!("accept {}", verdict.processed()),
    }
}

/// Our verdict; `None` if the program is unjudged.
fn ours(program: &Arc<Program>, loader: Capabilities, backports: Backports) -> Option<String> {
    let kernel = KernelConfig::default().with_backports(backports);
    let options = Options::default()
        .with_capabilities(loader)
        .with_kernel(kernel);
    let verdict = verify(program, &options).verdict;
    (verdict.decision != Decision::Unjudged).then(|| words(&verdict))
}

/// The running kernel; without that version, or where it can't create the maps, there are
/// no verdicts.
struct Judge {
    there: bool,
    /// What it has of later kernels. Records are of a kernel without: what differs by that is
    /// compared with the running kernel only.
    backports: Backports,
    loader: Loader,
    /// The maps of the previous case, which are often the same.
    maps: Option<(Arc<[MapDef]>, LoadedMaps)>,
}

impl Judge {
    fn new(loader: Capabilities) -> Self {
        let kernel = Availability::probe();
        let there = kernel.usable() && kernel.btf && kernel.release.starts_with(JUDGE);
        if !there {
            let text = format!("asking Linux {JUDGE}x: what it said once stands in for it");
            skip_part(Need::Release, text);
        }
        let backports = match running_config() {
            Ok(config) if there => config.backports,
            _ => Backports::empty(),
        };
        Self {
            there,
            backports,
            loader: loader.into(),
            maps: None,
        }
    }

    fn ask(&mut self, program: &Program) -> Option<String> {
        if !self.there {
            return None;
        }
        let same = |maps: &Arc<[_]>| Arc::ptr_eq(maps, &program.maps);
        if !self.maps.as_ref().is_some_and(|(defs, _)| same(defs)) {
            let maps = LoadedMaps::create_as(&program.maps, program.btf.as_ref(), &self.loader);
            let maps = maps.unwrap_or_else(|why| panic!("{}: {why:?}", program.name));
            self.maps = Some((Arc::clone(&program.maps), maps));
        }
        let (_, maps) = self.maps.as_ref()?;
        if maps.btf_refused().is_some() {
            // Programs are loaded without BTF then, which tests something else.
            return Some(format!("{NONE}: BTF"));
        }
        let options = LoadOptions::default().with_loader(self.loader.clone());
        match load(program, maps, &options) {
            Ok(loaded) => Some(words(&loaded.verdict)),
            Err(why) => Some(format!("{NONE}: {:?}", why.kind)),
        }
    }
}

/// Whether a kernel gave a verdict, and was not confused by a bug of its own verifier.
fn has_verdict(said: &str) -> bool {
    !said.starts_with(NONE) && !said.contains("verifier bug")
}

/// Compares the cases of a matrix with the kernel, or with its recorded verdict.
fn hold(matrix: &str, cases: &[Case]) {
    hold_for(Capabilities::all(), matrix, cases);
}

/// A loader without `CAP_PERFMON`: speculative paths are explored, and pointers must not leak.
const BPF_ONLY: Capabilities = Capabilities::BPF.union(Capabilities::NET_ADMIN);

/// The same for a loader with these capabilities. `matrix` is the file's name.
fn hold_for(loader: Capabilities, matrix: &str, cases: &[Case]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/verifier/matrix/{matrix}.txt"));
    let bless = std::env::var_os("BLESS").is_some();
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    let before: BTreeMap<&str, (char, &str)> = recorded
        .lines()
        .filter_map(|line| {
            let (left, said) = line.split_once(" | ")?;
            Some((left.get(2..)?, (left.chars().next()?, said)))
        })
        .collect();
    let mut judge = Judge::new(loader);
    let (mut text, mut wrong) = (String::new(), String::new());
    let (mut asked, mut unjudged) = (0, 0);
    let step = if bless { 1 } else { sample::step() };
    for Case { name, program } in cases.iter().step_by(step) {
        let program = Arc::new(program.clone());
        let ours = ours(&program, loader, Backports::empty());
        let mut kernel = judge.ask(&program);
        if !judge.backports.is_empty() {
            let here = self::ours(&program, loader, judge.backports);
            if here != ours
                && let (Some(said), Some(here)) = (kernel.take(), here)
                && has_verdict(&said)
                && here != said
            {
                let backports = judge.backports;
                let both = format!("  kernel {said}\n  ours   {here}");
                writeln!(wrong, "{name}, {backports:?}:\n{both}").unwrap();
            }
        }
        let known = before.get(name.as_str()).copied();
        let Some(said) = kernel.or_else(|| known.map(|(_, said)| said.to_owned())) else {
            writeln!(wrong, "{name}: no verdict of a kernel is recorded").unwrap();
            continue;
        };
        asked += 1;
        unjudged += usize::from(ours.is_none());
        let mark = match &ours {
            _ if said.starts_with(NONE) => '-',
            // The kernel ran into a bug of its own verifier, and says so: no verdict to compare.
            _ if said.contains("verifier bug") => '!',
            Some(_) => '=',
            None => '?',
        };
        writeln!(text, "{mark} {name} | {said}").unwrap();
        if mark == '=' && ours.as_ref() != Some(&said) {
            let ours = ours.unwrap_or_default();
            writeln!(wrong, "{name}:\n  kernel {said}\n  ours   {ours}").unwrap();
        } else if known != Some((mark, said.as_str())) && !bless {
            writeln!(wrong, "{name}: {mark} {said}, recorded is {known:?}").unwrap();
        }
    }
    eprintln!(
        "{matrix}: {asked} of {} cases, {} judged as the kernel does, {unjudged} not judged",
        cases.len(),
        asked - unjudged
    );
    if bless && judge.there {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn special_fields_and_ways_to_touch_them() {
    hold("fields", &fields::cases());
}

#[test]
fn sections_and_calls() {
    hold("sections", &sections::cases());
}

#[test]
fn objects_lists_and_trees() {
    let cases = graphs::cases();
    if cases.is_empty() {
        skip_part(Need::Release, "kfuncs, which need the kernel's BTF");
        return;
    }
    hold("graphs", &cases);
}

#[test]
fn pointers_and_accesses() {
    hold("pointers", &pointers::cases());
}

#[test]
fn pointers_and_arithmetic() {
    let cases = arithmetic::cases();
    hold("arithmetic", &cases);
    hold_for(BPF_ONLY, "arithmetic_without_perfmon", &cases);
}

#[test]
fn paths_that_meet() {
    let mut cases = paths::cases();
    hold("paths", &cases);
    // With speculative paths, a loop without pruning takes a million instructions.
    cases.retain(|case| !case.name.ends_with("loop"));
    hold_for(BPF_ONLY, "paths_without_perfmon", &cases);
}

#[test]
fn program_types_and_load_attributes() {
    hold("attributes", &attributes::cases());
}

/// A program that calls a helper, of the first type that may call it; `None` for helpers of
/// types that attach by BTF.
fn caller_of(helper: &Helper) -> Option<Program> {
    let prog_type = ProgType::ALL.iter().find(|prog_type| {
        !prog_type.info().traits.contains(Traits::ATTACH_BTF)
            && prog_type.attach_type(None).is_some()
            && helper.prototype(&Caller::of(**prog_type)).is_some()
    })?;
    let text = format!("call {}\nr0 = 1\nexit", helper.id);
    let mut program = Program::new("caller", *prog_type, assemble(&text).unwrap());
    "GPL".clone_into(&mut program.license);
    if *prog_type == ProgType::Syscall {
        program.flags = ProgFlags::SLEEPABLE;
    }
    Some(program)
}

/// Whether a verdict says that the program type doesn't have the helper.
fn lacks(verdict: &Verdict) -> bool {
    verdict
        .message
        .starts_with("program of this type cannot use helper")
}

#[test]
fn helpers_that_a_kernel_is_built_or_started_without() {
    let all = KernelConfig::default();
    let options = BuildOptions::all().iter();
    let options = options.map(|option| all.with_build(BuildOptions::all() - option));
    let levels = [Lockdown::Integrity, Lockdown::Confidentiality];
    let levels = levels.map(|lockdown| all.with_lockdown(lockdown));
    let mut kernels: Vec<KernelConfig> = options.chain(levels).collect();
    let mut judge = Judge::new(Capabilities::all());
    // With a running kernel, compare with its verdict on each helper, too.
    let running = judge.there.then(|| running_config().unwrap());
    kernels.extend(running);
    let (mut gone, mut asked) = (0, 0);
    for helper in helpers() {
        let Some(program) = caller_of(helper) else {
            continue;
        };
        let program = Arc::new(program);
        assert!(
            !lacks(&verify(&program, &Options::default()).verdict),
            "{}",
            helper.name
        );
        for kernel in &kernels {
            let options = Options::default().with_kernel(*kernel);
            let refused = lacks(&verify(&program, &options).verdict);
            assert_eq!(
                refused,
                !kernel.has_helper(helper.id),
                "{}: {kernel:?}",
                helper.name
            );
            gone += usize::from(refused);
        }
        let Some(running) = running else { continue };
        let said = judge.ask(&program).unwrap();
        if !said.starts_with(NONE) {
            let lacks = said.contains("program of this type cannot use helper");
            assert_eq!(
                lacks,
                !running.has_helper(helper.id),
                "{}: {said}",
                helper.name
            );
            asked += 1;
        }
    }
    eprintln!(
        "{} kernels, {gone} times a helper is gone; the running one asked about {asked}: {running:?}",
        kernels.len()
    );
    assert!(gone >= kernels.len() - 1);
}
