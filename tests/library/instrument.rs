//! Recorded forms of existing programs: bpflab's own objects and the shared corpus. Each
//! program of a type that only observes is recorded, and its recorded form must be accepted by
//! bpflab's verifier and by the running kernel if the original is. Programs that can't be
//! recorded are counted by reason.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared;
use crate::shared::here;
use crate::shared::sample;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::Object;
use bpflab::instrument::{Plan, RecordMaps, RecordOptions, Relay, SchemaSite, Unrecordable};
use bpflab::kernel::{LoadOptions, LoadedMaps, NoVerdict, load};
use bpflab::object::Target;
use bpflab::object::cases::Cases;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::verifier::{self, LogLevel, Verdict};

const OPTIONS: RecordOptions = RecordOptions {
    number: 7,
    context_len: 64,
    all: false,
};

/// The forms of a program: the attached one, and the one for targets of tail calls.
fn recorded(program: &Program) -> Result<[Program; 2], Unrecordable> {
    let added = RecordMaps::add(&program.maps, 1 << 16);
    let plan = Plan::new(program)?;
    // Written to a file and read again, the schema of its logs gives the same sites.
    let schema = serde_json::to_string(&plan.schema()).unwrap();
    let schema: Vec<SchemaSite> = serde_json::from_str(&schema).unwrap();
    let read = Plan::with_schema(program, &schema).unwrap();
    assert_eq!(read.sites(), plan.sites(), "{}", program.name);
    let relay = Relay {
        context_len: 64,
        reads: 0,
        follows: true,
    };
    Ok([
        plan.record_opening(&added, &OPTIONS, &relay)?,
        plan.record_following(&added, &OPTIONS, &relay)?,
    ])
}

/// The programs of bpflab's own objects, each with its origin.
fn own() -> Vec<(String, Program)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = ["examples/bpf", "tests/objects"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .collect();
    paths.sort();
    let objects = paths.iter().filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((name, Object::open(path).ok()?))
    });
    objects
        .flat_map(|(name, object)| {
            let programs: Vec<Program> = object.programs().filter_map(Result::ok).collect();
            programs
                .into_iter()
                .map(move |program| (format!("{name} {}", program.name), program))
        })
        .collect()
}

fn corpus() -> Vec<(String, Program)> {
    let Some(path) = shared::corpus() else {
        return Vec::new();
    };
    let mut cases = Cases::open(&path).unwrap();
    // Type ids in the cases are those of the recording kernel's build.
    let judge_btf = path.with_file_name("vmlinux-6.18.44.btf.xz");
    let Target::Kernel(btf) = Target::file(judge_btf).unwrap() else {
        panic!("a file of BTF");
    };
    cases.set_kernel(btf);
    let mut programs = Vec::new();
    while let Some(case) = cases.next() {
        let case = case.unwrap();
        if !case.kernel.as_ref().is_some_and(|says| says.accepts()) {
            continue;
        }
        if let Ok(program) = cases.program(&case) {
            programs.push((case.id.clone(), program));
        }
    }
    programs
}

fn ours(program: &Program) -> Verdict {
    verifier::verify(&Arc::new(program.clone()), &verifier::Options::default()).verdict
}

fn kernels(program: &Program) -> Result<Verdict, NoVerdict> {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
    let options = LoadOptions::default().with_log(LogLevel::STATISTICS);
    Ok(load(program, &maps, &options)?.verdict)
}

/// The results for a set of programs.
#[derive(Debug, Default)]
struct Count {
    recorded: usize,
    /// Forms judged by bpflab's verifier, and below by the kernel.
    ours: usize,
    kernels: usize,
    /// Programs of other types, or that are not accepted.
    other: usize,
    reasons: BTreeMap<String, Vec<String>>,
    wrong: Vec<String>,
    /// Instructions processed by the verifier, for the originals and for the forms.
    processed: [usize; 2],
}

impl Count {
    fn see(&mut self, name: &str, program: &Program, kernel: bool) {
        let original_ours = ours(program);
        let original = kernel.then(|| kernels(program).ok()).flatten();
        let accepted = original
            .as_ref()
            .map_or(original_ours.is_accepted(), |it| it.is_accepted());
        if !accepted {
            self.other += 1;
            return;
        }
        let forms = match recorded(program) {
            Ok(forms) => forms,
            Err(refused) => {
                let text = refused.to_string();
                if text.contains("act on the kernel") {
                    self.other += 1;
                    return;
                }
                let reason = text
                    .rsplit_once(": ")
                    .map_or(text.as_str(), |(_, reason)| reason);
                let whom = format!("{name}: {text}");
                self.reasons
                    .entry(reason.to_owned())
                    .or_default()
                    .push(whom);
                return;
            }
        };
        self.recorded += 1;
        self.ours += usize::from(original_ours.is_accepted());
        let original = original.filter(|it| it.is_accepted());
        self.kernels += usize::from(original.is_some());
        for form in &forms {
            if original_ours.is_accepted() {
                let verdict = ours(form);
                if !verdict.is_accepted() {
                    self.wrong.push(format!(
                        "{name}: ours: {:?} {}",
                        verdict.errno, verdict.message
                    ));
                }
            }
            let Some(original) = &original else {
                continue;
            };
            match kernels(form) {
                Ok(verdict) if verdict.is_accepted() => {
                    self.processed[0] += usize::try_from(original.processed()).unwrap();
                    self.processed[1] += usize::try_from(verdict.processed()).unwrap();
                }
                Ok(verdict) => {
                    self.wrong.push(format!(
                        "{name}: kernel: {:?} {}",
                        verdict.errno, verdict.message
                    ));
                }
                Err(none) => self.wrong.push(format!("{name}: kernel: {none}")),
            }
        }
    }

    fn unrecordable(&self) -> usize {
        self.reasons.values().map(Vec::len).sum()
    }

    fn tell(&self, what: &str) {
        eprintln!(
            "{what}: {} recorded ({} judged by us, {} by the kernel), {} unrecordable, {} others; \
             the kernel processed {} instructions, {} before",
            self.recorded,
            self.ours,
            self.kernels,
            self.unrecordable(),
            self.other,
            self.processed[1],
            self.processed[0],
        );
        for (reason, whom) in &self.reasons {
            eprintln!("  {} × {reason}", whom.len());
            for who in whom.iter().take(4) {
                eprintln!("      {who}");
            }
        }
    }
}

fn count(programs: &[(String, Program)], what: &str) -> Count {
    let kernel = here::kernel().is_some();
    let mut count = Count::default();
    for (name, program) in programs {
        // Reads registers of another machine.
        if program.arch == bpflab::spec::Arch::HOST {
            count.see(name, program, kernel);
        }
    }
    count.tell(what);
    assert!(
        count.wrong.is_empty(),
        "{} refused:\n{}",
        count.wrong.len(),
        count.wrong.join("\n")
    );
    count
}

#[test]
fn our_own_programs_are_recorded() {
    let own: Vec<_> = own().into_iter().step_by(sample::step()).collect();
    let count = count(&own, "our own");
    // Without kernel BTF there are fewer. Exceptions and arenas are not recorded.
    assert!(
        count.recorded > 60 / sample::step() && count.unrecordable() < 40,
        "{count:?}"
    );
}

#[test]
fn programs_of_the_corpus_are_recorded() {
    let programs = corpus();
    if programs.is_empty() {
        return;
    }
    let programs: Vec<_> = programs.into_iter().step_by(sample::step()).collect();
    let count = count(&programs, "the corpus");
    assert!(
        count.recorded > 400 / sample::step() && count.unrecordable() < 50,
        "{count:?}"
    );
}

#[test]
fn a_program_that_acts_is_none_to_record() {
    let program = Program::new("pass", ProgType::SkSkb, Vec::new());
    let error = recorded(&program).unwrap_err();
    assert!(error.to_string().contains("act on the kernel"), "{error}");
}
