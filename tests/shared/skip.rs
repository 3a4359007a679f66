//! The one way in which a test is skipped. Each skip is recorded with what the test needs,
//! in a file below the target folder; `tests/zz_skipped.rs`, the last test target of a
//! run, prints the sums. `BPFLAB_REQUIRE` names needs whose skips are failures.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

/// The variable that names needs, separated by commas.
pub const REQUIRE: &str = "BPFLAB_REQUIRE";

/// What a test needs and may not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A kernel with BPF, its types and tracefs, and the right to use them (root).
    Kernel,
    /// A running kernel of the release that is modelled, Linux 6.18.
    Release,
    /// What a kernel may be built or started without: an attach type, a tracepoint.
    Feature,
    /// kprobes and kretprobes.
    Kprobes,
    /// Programs at a function's entry and exit: fentry, fexit, fmod_ret.
    Trampolines,
    /// Programs at LSM hooks (`lsm=bpf`).
    Lsm,
    /// The collection of programs beside the project.
    Corpus,
    /// clang-19 and its llvm-objdump-19.
    Clang,
    /// qemu-aarch64.
    Qemu,
    /// A program of the system: `cc`, `unshare`, `losetup`, `sleep`.
    Tools,
    /// Virtual machines in shared libraries (`docs/peers.md`).
    Peers,
    /// A host that is no emulator, and of the machine that was recorded.
    Native,
    /// rustdoc's JSON, which takes a minute to make.
    Rustdoc,
    /// qemu-system-x86_64, and kernels in the cache of `bpflab kernels`.
    Guest,
    /// qemu-system-aarch64, an arm64 kernel in the cache, and a bpflab for arm64
    /// (`BPFLAB_ARM64`).
    GuestArm64,
}

impl Need {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Kernel,
        Self::Release,
        Self::Feature,
        Self::Kprobes,
        Self::Trampolines,
        Self::Lsm,
        Self::Corpus,
        Self::Clang,
        Self::Qemu,
        Self::Tools,
        Self::Peers,
        Self::Native,
        Self::Rustdoc,
        Self::Guest,
        Self::GuestArm64,
    ];

    /// The word for it in `BPFLAB_REQUIRE` and in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Release => "kernel-6.18",
            Self::Feature => "kernel-feature",
            Self::Kprobes => "kprobes",
            Self::Trampolines => "trampolines",
            Self::Lsm => "lsm",
            Self::Corpus => "corpus",
            Self::Clang => "clang",
            Self::Qemu => "qemu",
            Self::Tools => "tools",
            Self::Peers => "peers",
            Self::Native => "native",
            Self::Rustdoc => "rustdoc",
            Self::Guest => "guest",
            Self::GuestArm64 => "guest-arm64",
        }
    }
}

/// The needs that a list of words names.
///
/// # Errors
/// The first word that names none, and those that there are.
pub fn required(words: &str) -> Result<Vec<Need>, String> {
    let words = words
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let found = words.map(|word| {
        let need = Need::ALL.into_iter().find(|need| need.word() == word);
        need.ok_or_else(|| {
            let known = Need::ALL.map(Need::word).join(", ");
            format!("unknown word in {REQUIRE}: `{word}`; it takes {known}")
        })
    });
    found.collect()
}

/// Says that this test does not run, since what it needs is not there.
///
/// # Panics
/// Where `BPFLAB_REQUIRE` names the need, or a word that it does not have.
#[track_caller]
pub fn skip(need: Need, why: impl Display) {
    record(need, "whole", &why.to_string());
}

/// Says that a part of this test does not run; the rest does.
///
/// # Panics
/// As for [`skip`].
#[track_caller]
pub fn skip_part(need: Need, why: impl Display) {
    record(need, "part", &why.to_string());
}

/// Whether this test runs in an emulator, as `.ci/run` says. Skips the test then: a process
/// with several threads that starts another one there may wait for ever, for a lock that
/// some thread held.
#[track_caller]
pub fn is_emulated() -> bool {
    let emulated = std::env::var_os("BPFLAB_EMULATED").is_some();
    if emulated {
        skip(Need::Native, "an emulator can't start processes reliably");
    }
    emulated
}

#[track_caller]
fn record(need: Need, how: &str, why: &str) {
    let words = std::env::var(REQUIRE).unwrap_or_default();
    match required(&words) {
        Ok(needs) if needs.contains(&need) => {
            panic!("{REQUIRE} names `{}`, but: {why}", need.word())
        }
        Ok(_) => {}
        Err(error) => panic!("{error}"),
    }
    eprintln!("skipped ({how}): {}: {why}", need.word());
    // Once for each need past the harness's capture: a run of one target has no summary.
    static TOLD: AtomicU16 = AtomicU16::new(0);
    let bit = 1 << need as u8;
    if TOLD.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        let word = need.word();
        let _ = writeln!(std::io::stderr(), "skipping what needs `{word}`: {why}");
    }
    let thread = std::thread::current();
    let binary = std::env::current_exe().ok();
    let binary = binary.as_deref().and_then(|path| path.file_stem());
    let binary = binary.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let line = format!(
        "{}\t{how}\t{binary}\t{}\t{}\n",
        need.word(),
        thread.name().unwrap_or("?"),
        why.replace(['\t', '\n'], " ").trim()
    );
    let file = run().expect("a test binary in a target folder");
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| {
        let mut file = OpenOptions::new().create(true).append(true).open(&file)?;
        // One write, so that lines of other processes don't get into it.
        file.write_all(line.as_bytes())
    });
    // What is not counted would be silent.
    if let Err(error) = written {
        panic!("this skip can't be recorded: {}: {error}", file.display());
    }
}

/// The file of this run's skips: one for each process that starts test binaries (cargo),
/// known by its number and the time at which it began, for numbers are used again.
pub fn run() -> Option<PathBuf> {
    let folder = folder()?;
    #[cfg(unix)]
    let parent = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let parent = 0;
    Some(folder.join(format!("{parent}-{}", began(parent).unwrap_or(0))))
}

/// Where the files are: beside `deps`, the folder of the test binaries.
pub fn folder() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    Some(exe.parent()?.parent()?.join("skipped"))
}

/// When a process began, in clock ticks since the machine's start (field 22 of
/// /proc/PID/stat); none where it is gone or there is no such file.
pub fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// A file of the folder `shared` beside the project; skips the test where the file is not
/// there. `BPFLAB_SHARED` names another folder.
#[track_caller]
pub fn file(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("BPFLAB_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let path = shared.join(name);
    if !path.exists() {
        skip(
            Need::Corpus,
            format_args!("{} is not there", path.display()),
        );
        return None;
    }
    Some(path)
}

/// The collection of programs with a real kernel's verdicts.
#[track_caller]
pub fn corpus() -> Option<PathBuf> {
    file("corpus/selftests.jsonl.xz")
}
