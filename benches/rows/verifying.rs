//! Verification against the kernel's, of the programs that take most of it.

use std::sync::Arc;
use std::time::Instant;

use bpflab::program::Program;
use bpflab::util::median;
use bpflab::verifier::{Options, verify};

use super::goals::{self, Figure, number};
use crate::measure::{Effort, geometric_mean};
use crate::suite::programs::PROGRAMS;

/// Programs that process more instructions than this are measured.
const LEAST: u64 = 100_000;

/// Milliseconds of one verification.
fn ours(program: &Arc<Program>) -> f64 {
    let start = Instant::now();
    let verification = verify(program, &Options::default());
    let elapsed = start.elapsed();
    drop(verification);
    elapsed.as_secs_f64() * 1e3
}

/// Milliseconds of one verification by the kernel, without the rest of its load: what its log
/// says.
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn kernel(program: &Program) -> Option<f64> {
    use bpflab::kernel::{LoadOptions, LoadedMaps, load};
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).ok()?;
    let loaded = load(program, &maps, &LoadOptions::default()).ok()?;
    let us = loaded.verdict.statistics?.time_us?;
    Some(f64::from(u32::try_from(us).ok()?) / 1e3)
}

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
fn kernel(_: &Program) -> Option<f64> {
    None
}

/// The factor by which bpflab is faster: the geometric mean of the programs.
pub fn figure(effort: Effort) -> Figure {
    let (mut ratios, mut notes) = (Vec::new(), Vec::new());
    for program in PROGRAMS {
        let linux = Arc::new(program.linux());
        let verification = verify(&linux, &Options::default());
        let statistics = verification.verdict.statistics;
        if statistics.is_none_or(|statistics| statistics.processed <= LEAST) {
            continue;
        }
        let samples: Option<Vec<_>> = (0..effort.samples)
            .map(|_| Some((ours(&linux), kernel(&linux)?)))
            .collect();
        let Some(samples) = samples else {
            return goals::VERIFYING.measured(None);
        };
        let middle = |of: fn(&(f64, f64)) -> f64| median(samples.iter().map(of).collect());
        ratios.push(middle(|(ours, theirs)| theirs / ours));
        let (ours, theirs) = (middle(|sample| sample.0), middle(|sample| sample.1));
        let (ours, theirs) = (number(ours), number(theirs));
        notes.push(format!("{}: {ours} ms to {theirs}", program.name));
    }
    goals::VERIFYING
        .measured(Some(geometric_mean(ratios)))
        .noted(notes.join("; "))
}
