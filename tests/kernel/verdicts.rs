//! The verdicts of both sides on a program, for this machine and a loader.

use std::num::NonZeroU32;

use bpflab::kernel::{
    LoadOptions, LoadedMaps, Loader, NoVerdict, load, possible_cpus, running_config,
};
use bpflab::program::Program;
use bpflab::spec::Capabilities;
use bpflab::verifier::{Options, Verdict};

/// The running kernel's verdict.
pub fn theirs(program: &Program, loader: impl Into<Loader>) -> Result<Verdict, NoVerdict> {
    let loader = loader.into();
    let maps = match LoadedMaps::create_as(&program.needed_maps(), program.btf.as_ref(), &loader) {
        Ok(maps) => maps,
        Err(none) => return none.as_verdict(&loader).ok_or(none),
    };
    let options = LoadOptions::default().with_loader(loader);
    load(program, &maps, &options).map(|loaded| loaded.verdict)
}

/// Options for the running kernel.
pub fn options(loader: Capabilities) -> Options {
    Options::default()
        .with_capabilities(loader)
        .with_kernel(running_config().expect("a kernel that gives verdicts"))
        .with_cpus(NonZeroU32::new(possible_cpus()))
}

/// The parts of a verdict that must be equal.
pub fn parts(verdict: &Verdict) -> String {
    let processed = verdict.is_accepted().then(|| verdict.processed());
    format!("{:?} {} {processed:?}", verdict.errno, verdict.message)
}

/// How many differences a failed test prints: thousands are of a few kinds.
const PRINTED: usize = 20;

/// Fails if there is a difference.
pub fn none_differ(different: &[String]) {
    let printed = &different[..different.len().min(PRINTED)];
    assert!(
        different.is_empty(),
        "{} differ, of which:\n{}",
        different.len(),
        printed.join("\n")
    );
}
