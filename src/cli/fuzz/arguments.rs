//! The arguments of `bpflab fuzz`.

use std::path::PathBuf;

use clap::Args;

#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::cli::vm::{GuestVerb, VmArguments};
use crate::fuzz::{Oracle, Strategy};

/// Search for bugs: generate programs and judge them by oracles
///
/// Each oracle checks a program in its own way: that runs stay in the states that the verifier
/// explored (state), that all engines agree (value), that accepted programs don't fault (safety),
/// that the running kernel has the same verdict (verdict, Linux and root), that no uninitialised
/// byte leaves the program (memory, on request). A finding is reduced
/// and, with --output, written as a case. With one thread the same seed gives the same programs
/// in the same order; --programs then makes the whole campaign reproducible.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bpflab fuzz --seconds 60
  bpflab fuzz --seconds 600 --threads 2 --oracle state,value --output findings
  bpflab fuzz --programs 1000 --seed 7 --threads 1 --json
  bpflab fuzz --seed 7 --first 4711 --programs 1 --oracle state    one program of a campaign
  bpflab fuzz --from prog.bpf.o --strategy mutants --seconds 60    changes of an object's programs
  bpflab fuzz --oracle verdict,value --seconds 60 --vm 6.18        beside another kernel
  bpflab fuzz --oracle value --other-bpflab arm64/bpflab           machine code for arm64, too
  bpflab fuzz --corpus fuzz/corpus --from prog.bpf.o               inputs for cargo-fuzz
  bpflab fuzz --replay findings/state-12.jsonl --oracle state      a finding again
  bpflab fuzz --replay prog.bpf.o --oracle memory,value            the programs of an object
  bpflab fuzz --replay prog.bpf.o --rebuilt clang-16/prog.bpf.o    two builds of one source")]
pub(in crate::cli) struct Arguments {
    /// End after N seconds [default: 10, unless --programs is given]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) seconds: Option<u64>,
    /// End after N programs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) programs: Option<u64>,
    /// End after N kinds of findings
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) findings: u64,
    /// Set the seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Begin with program number N of the seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) first: u64,
    /// Use N threads [default: one for each CPU]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    /// Judge by these oracles only (comma-separated) [default: all that are available here, but
    /// memory]
    #[arg(long, value_name = "ORACLE", value_delimiter = ',', value_parser = oracle)]
    pub(super) oracle: Vec<Oracle>,
    /// Make programs by these strategies only (comma-separated) [default: a mix of all]
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', value_parser = strategy)]
    pub(super) strategy: Vec<Strategy>,
    /// Don't ask the running kernel
    #[arg(long)]
    pub(super) no_kernel: bool,
    /// Compare the engines of this bpflab, too: one built for another architecture, which
    /// qemu-aarch64 or qemu-x86_64 runs; for the oracle value
    #[arg(long, value_name = "FILE", conflicts_with = "corpus")]
    pub(super) other_bpflab: Option<PathBuf>,
    /// Run the candidates of another bpflab, which come on the standard input
    #[arg(long, hide = true, conflicts_with_all = ["programs", "seconds", "replay", "corpus"])]
    pub(super) answer: bool,
    /// Don't reduce the programs of findings
    #[arg(long)]
    pub(super) no_reduce: bool,
    /// Change the programs of this object or case file (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(super) from: Vec<PathBuf>,
    /// Take the types of kernel objects from this BTF [default: the running kernel's]
    #[arg(long, value_name = "FILE")]
    pub(super) btf: Option<PathBuf>,
    /// Write findings as cases into this directory
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Write inputs for the fuzz targets into this directory, with the objects and recordings of
    /// --from, and run no campaign
    #[arg(long, value_name = "DIR", conflicts_with_all = ["programs", "seconds", "replay"])]
    pub(super) corpus: Option<PathBuf>,
    /// Judge that the programs of this object, which has the source of the other one and another
    /// compiler, have the same verdicts and results
    #[arg(
        long,
        value_name = "OBJ",
        requires = "replay",
        conflicts_with = "other_bpflab"
    )]
    pub(super) rebuilt: Option<PathBuf>,
    /// Judge the programs of this case file or object instead of generated ones
    #[arg(long, value_name = "FILE", conflicts_with_all = ["programs", "seconds", "from", "strategy"])]
    pub(super) replay: Option<PathBuf>,
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[command(flatten)]
    pub(in crate::cli) vm: VmArguments,
}

fn oracle(name: &str) -> Result<Oracle, String> {
    Oracle::named(name).ok_or_else(|| {
        let names = Oracle::all().names().join(", ");
        format!("unknown oracle; there are {names}")
    })
}

fn strategy(name: &str) -> Result<Strategy, String> {
    Strategy::named(name).ok_or_else(|| {
        let names: Vec<_> = Strategy::ALL.iter().map(|(_, name, _)| *name).collect();
        format!("unknown strategy; there are {}", names.join(", "))
    })
}

impl Arguments {
    /// What a virtual machine does.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    pub(in crate::cli) fn guest_verb(&self) -> GuestVerb {
        GuestVerb {
            output: self.output.as_ref().or(self.corpus.as_ref()).cloned(),
            ..GuestVerb::default()
        }
    }

    /// The options besides the seed on which the programs of a campaign depend, each after a space.
    pub(super) fn made_with(&self) -> String {
        let mut text = String::new();
        let names: Vec<_> = self.strategy.iter().map(|it| it.name()).collect();
        if !names.is_empty() {
            text += &format!(" --strategy {}", names.join(","));
        }
        for file in &self.from {
            text += &format!(" --from {}", file.display());
        }
        if let Some(file) = &self.btf {
            text += &format!(" --btf {}", file.display());
        }
        text
    }
}
