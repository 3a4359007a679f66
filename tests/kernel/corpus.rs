//! The shared corpus, loaded into the running kernel: each case must get the recorded verdict,
//! with errno, error line, number of processed instructions and return values of test runs.
//! This tests that the loader passes programs on correctly, and that the corpus is right.
//!
//! Every tenth case by default; `BPFLAB_WHOLE_CORPUS=1` takes all. Skipped without permission
//! to load programs, without the corpus, and on another kernel than the recorded one.

use super::verdicts::none_differ;
use crate::shared;
use crate::shared::here;

use std::sync::Arc;

use bpflab::Vm;
use bpflab::kernel::{LoadOptions, Loaded, LoadedMaps, NoVerdict, TestRun, load};
use bpflab::object::Target;
use bpflab::object::cases::{Case, Cases, KernelSays, Run};
use bpflab::program::Program;
use bpflab::spec::MapType;
use bpflab::vm::World;
use bpflab::vm::events::Event;

#[derive(Debug, Default)]
struct Count {
    cases: usize,
    verdict: usize,
    message: usize,
    processed: usize,
    runs: usize,
    retval: usize,
    /// Runs whose value differs each time: they return addresses, or make tail calls through
    /// prog arrays that the recorder filled with programs missing from the case.
    unrepeatable: usize,
    different: Vec<String>,
}

impl Count {
    fn check(&mut self, id: &str, what: &str, equal: bool, told: impl FnOnce() -> String) -> usize {
        if !equal {
            self.different.push(format!("{id}: {what}: {}", told()));
        }
        usize::from(equal)
    }

    fn compare(&mut self, case: &Case, says: &KernelSays, program: &Program, loaded: &Loaded) {
        let verdict = &loaded.verdict;
        let errno = verdict.errno.map_or(0, |errno| i32::from(errno.0));
        // The number was another open file of the recorder, not a map.
        let no_map = |message: &str| message.ends_with(" is not pointing to valid bpf_map");
        let same_fault = no_map(&verdict.message) && no_map(&says.log_last);
        let equal = same_fault || (verdict.is_accepted(), errno) == (says.accepts(), says.errno);
        self.verdict += self.check(&case.id, "verdict", equal, || {
            format!("{errno} ({}), recorded {}", verdict.message, says.errno)
        });
        let equal = same_fault || verdict.message == says.log_last;
        self.message += self.check(&case.id, "message", equal, || {
            format!("{:?}, recorded {:?}", verdict.message, says.log_last)
        });
        let equal = verdict.processed() == says.processed;
        self.processed += self.check(&case.id, "processed", equal, || {
            format!("{}, recorded {}", verdict.processed(), says.processed)
        });
        for run in &case.runs {
            self.runs += 1;
            let result = loaded
                .program
                .as_ref()
                .map(|program| program.test_run(&TestRun::packet(&run.data.0)))
                .map(|result| result.map(|result| result.retval));
            let equal = matches!(&result, Some(Ok(retval)) if *retval == run.retval);
            if !equal && matches!(result, Some(Ok(_))) && is_unrepeatable(program, run) {
                self.unrepeatable += 1;
                continue;
            }
            self.retval += self.check(&case.id, "retval", equal, || {
                format!("{result:?}, recorded {}", run.retval)
            });
        }
    }
}

/// Whether the kernel's value can't be reproduced: because of the program's maps (a case does
/// not have the arena pages that user space touched), or because bpflab's machine finds that
/// the return value is an address.
fn is_unrepeatable(program: &Program, run: &Run) -> bool {
    if program
        .maps
        .iter()
        .any(|map| matches!(map.map_type, MapType::ProgArray | MapType::Arena))
    {
        return true;
    }
    let program = Arc::new(program.clone());
    let mut vm = Vm::with_world(World::default());
    let handles = vm
        .load_unverified_programs(&program.maps.clone(), vec![program.clone()])
        .unwrap();
    let event = Event::input(program.prog_type, run.data.0.clone());
    let outcome = vm.run(handles[0], &event);
    let address = |r0: u64| i32::try_from(r0.cast_signed()).is_err() && u32::try_from(r0).is_err();
    outcome.is_ok_and(|outcome| address(outcome.runs[0].r0))
}

fn judge(program: &Program) -> Result<Loaded, NoVerdict> {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
    if let Some(refused) = maps.btf_refused() {
        eprintln!("{}: {refused}", program.name);
    }
    load(program, &maps, &LoadOptions::default())
}

#[test]
fn the_recorded_verdicts() {
    if here::judge().is_none() {
        return;
    }
    let Some(path) = shared::corpus() else { return };
    let step = if std::env::var_os("BPFLAB_WHOLE_CORPUS").is_some() {
        1
    } else {
        10
    };
    let mut cases = Cases::open(&path).unwrap();
    // Type ids in the cases are those of the recording kernel's build.
    let judge_btf = path.with_file_name("vmlinux-6.18.44.btf.xz");
    let Target::Kernel(btf) = Target::file(judge_btf).unwrap() else {
        panic!("a file of BTF");
    };
    cases.set_kernel(btf);
    let all: Vec<Case> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let mut count = Count::default();
    for case in all.iter().step_by(step) {
        let Some(says) = &case.kernel else { continue };
        count.cases += 1;
        let program = cases.program(case).unwrap();
        match judge(&program) {
            Ok(loaded) => count.compare(case, says, &program, &loaded),
            Err(none) => count
                .different
                .push(format!("{}: no verdict: {none}", case.id)),
        }
    }
    eprintln!("{count:#?}");
    assert!(count.cases > 100);
    none_differ(&count.different);
}
