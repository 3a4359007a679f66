//! Programs whose rules come from what they attach to: a member of a structure of operations, or
//! a function of another program.
//!
//! Each object of `tests/attach_targets` has files beside it, with a line for each of its
//! programs: `name | verdict`. Where the running kernel has the target, its verdict must be the
//! same. Other targets are in `kernel.bpf.c`, a kernel that is made up; the lines then are what
//! Linux 6.18's sources say. `BLESS=1` rewrites the files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpflab::Object;
use bpflab::object::Target;
use bpflab::program::{Program, TargetProgram};
use bpflab::verifier::diagnose::Report;
use bpflab::verifier::{Decision, Options, Verdict, verify};

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attach_targets");
    folder.join(name)
}

fn open(name: &str) -> Object {
    Object::open(file(&format!("{name}.bpf.o"))).expect("an object")
}

/// The kernel that is made up.
fn made_up() -> Target {
    Target::file(file("kernel.bpf.o")).expect("BTF")
}

/// A verdict in a line, with the number of instructions that the verifier processed.
fn words(verdict: &Verdict) -> String {
    let processed = verdict.processed();
    match (verdict.decision, verdict.errno) {
        (Decision::Unjudged, _) => format!("unjudged: {}", verdict.message),
        (_, Some(errno)) => {
            // `EINVAL (Invalid argument)`
            let errno = errno.to_string();
            let name = errno.split(' ').next().unwrap_or_default();
            let text = format!("reject {processed} {name} {}", verdict.message);
            text.trim_end().to_owned()
        }
        _ => format!("accept {processed}"),
    }
}

fn programs(object: &Object) -> Vec<Arc<Program>> {
    let programs = object.programs();
    programs
        .map(|program| Arc::new(program.expect("a program")))
        .collect()
}

/// Compares the verdicts on an object's programs with the committed ones.
fn hold(name: &str, programs: &[Arc<Program>]) {
    let mut text = String::new();
    for program in programs {
        let verdict = verify(program, &Options::default()).verdict;
        writeln!(text, "{} | {}", program.name, words(&verdict)).expect("a string");
    }
    let path = file(&format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        !programs.is_empty() && text == wanted,
        "is\n{text}\nexpected\n{wanted}"
    );
}

/// Holds a whole object, for the kernel that is made up.
fn hold_made_up(name: &str) {
    let mut object = open(name);
    object.set_target(made_up());
    hold(name, &programs(&object));
}

#[test]
fn congestion_controls_write_some_of_a_socket() {
    let Some(path) = crate::shared::corpus() else {
        return;
    };
    let kernel = path.with_file_name("vmlinux-6.18.44.btf.xz");
    let mut object = open("tcp");
    object.set_target(Target::file(kernel).expect("BTF"));
    hold("tcp", &programs(&object));
}

/// Extensions of functions of LSM and struct_ops programs, for the corpus's kernel.
#[test]
fn extensions_of_hooks_may_return_anything() {
    let Some(path) = crate::shared::corpus() else {
        return;
    };
    let kernel = path.with_file_name("vmlinux-6.18.44.btf.xz");
    let kernel = Target::file(kernel).expect("BTF");
    for (target, name) in [
        ("target_lsm", "extension_lsm"),
        ("target_tcp", "extension_tcp"),
    ] {
        let mut object = open(target);
        object.set_target(kernel.clone());
        let target = object.program("watches").expect("a program");
        let verified = verify(&Arc::new(target), &Options::default()).outcome;
        let mut object = open("extension_tracing");
        object.set_target(kernel.clone());
        object.set_attach_program(verified.expect("an accepted program").target());
        hold(name, &programs(&object));
    }
}

#[test]
fn queueing_disciplines_own_their_packets() {
    hold_made_up("qdisc");
}

#[test]
fn schedulers_may_get_no_task_and_write_some_of_it() {
    hold_made_up("sched_ext");
}

#[test]
fn other_structures_have_their_rules() {
    hold_made_up("others");
}

/// A program of `target.bpf.c`, accepted.
fn target(name: &str) -> TargetProgram {
    let mut object = open("target");
    object.set_target(made_up());
    let program = object.program(name).expect("a program");
    let verification = verify(&Arc::new(program), &Options::default());
    verification.outcome.expect("an accepted program").target()
}

/// The programs of an object, by name or all, that attach to a target.
fn attached(object: &str, target: TargetProgram, names: &[&str]) -> Vec<Arc<Program>> {
    let mut object = open(object);
    object.set_target(made_up());
    object.set_attach_program(target);
    if !names.is_empty() {
        object.load_only(names.iter().copied()).expect("programs");
    }
    programs(&object)
}

/// Programs that attach to programs, and the file with their verdicts.
fn all_attached() -> [(&'static str, Vec<Arc<Program>>); 9] {
    // Those of functions that this target calls, too.
    let same = ["counts", "returns_pointer", "reads_past", "pulls", "calls"];
    [
        ("extension", attached("extension", target("filters"), &[])),
        (
            "extension_relies",
            attached("extension_relies", target("filters"), &[]),
        ),
        (
            "extension_cgroup",
            attached("extension", target("lets_out"), &same),
        ),
        (
            "extension_xdp",
            attached("extension_xdp", target("passes"), &[]),
        ),
        ("extension_again", vec![extension_of_extension()]),
        (
            "extension_fentry",
            attached("extension_tracing", target("traces"), &[]),
        ),
        (
            "extension_tp_btf",
            attached("extension_tracing", target("watches"), &[]),
        ),
        ("tracing", attached("tracing", target("filters"), &[])),
        ("tracing_again", tracing_of_tracing()),
    ]
}

/// An extension of the extension `counts`.
fn extension_of_extension() -> Arc<Program> {
    let first = attached("extension", target("filters"), &["counts"]);
    let verified = verify(&first[0], &Options::default()).outcome;
    let mut object = open("extension");
    object.set_attach_program(verified.expect("an accepted program").target());
    let entry = object.entry_mut("calls").expect("a program");
    entry.set_attach_target("counts");
    Arc::new(object.program("calls").expect("a program"))
}

/// A program that traces `traces`, and one that traces that one.
fn tracing_of_tracing() -> Vec<Arc<Program>> {
    let mut first = attached("tracing_again", target("traces"), &["traces_traces"]);
    let verified = verify(&first[0], &Options::default()).outcome;
    let target = verified.expect("an accepted program").target();
    first.extend(attached("tracing_again", target, &["traces_again"]));
    first
}

#[test]
fn programs_that_attach_to_programs_have_the_rules_of_their_targets() {
    for (name, programs) in all_attached() {
        hold(name, &programs);
    }
}

#[test]
fn without_a_target_an_extension_is_unjudged() {
    let program = Arc::new(open("extension").program("counts").expect("a program"));
    let verification = verify(&program, &Options::default());
    assert_eq!(
        verification.verdict.message,
        "not modelled by bpflab: extension program without its target"
    );
    let why = verification.outcome.expect_err("unjudged");
    let help = Report::new(&program, &why).help.unwrap_or_default();
    assert!(help.contains("--target OBJ:PROGRAM"), "{help}");
}

#[test]
fn a_function_that_the_target_lacks_is_named() {
    let mut object = open("extension");
    object.set_attach_program(target("passes"));
    let entry = object.entry_mut("counts").expect("a program");
    entry.set_attach_target("nothing");
    let error = object.program("counts").expect_err("no such function");
    let text = error.to_string();
    assert!(
        text.ends_with("no function of this name; there is 'passes'"),
        "{text}"
    );
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel {
    use super::{Program, all_attached, open, programs, words};
    use crate::shared::{Need, here, skip, skip_part};
    use bpflab::btf::Kind;
    use bpflab::kernel::{LoadOptions, LoadedMaps, NoVerdictKind, load};
    use bpflab::spec::AttachType;
    use bpflab::verifier::{Options, verify};
    use std::sync::Arc;

    /// The kernel release that bpflab models.
    const JUDGE: &str = "6.18.";

    /// Compares verdicts with the running kernel's; whether there is one to ask.
    fn compare(programs: &[Arc<Program>]) -> bool {
        let Some(kernel) = here::kernel() else {
            return false;
        };
        if !kernel.release.starts_with(JUDGE) {
            let text = format!("asking Linux {JUDGE}x about attach targets");
            skip(Need::Release, text);
            return false;
        }
        let mut wrong = Vec::new();
        for program in programs {
            let maps = LoadedMaps::create(&program.maps, program.btf.as_ref());
            let loaded = load(program, &maps.expect("maps"), &LoadOptions::default());
            let said = match loaded {
                Ok(loaded) => words(&loaded.verdict),
                Err(none) if none.kind == NoVerdictKind::Feature => {
                    skip_part(Need::Feature, format_args!("{}: {none}", program.name));
                    return false;
                }
                Err(none) => format!("no verdict: {none}"),
            };
            let ours = words(&verify(program, &Options::default()).verdict);
            if ours != said {
                let name = &program.name;
                wrong.push(format!("{name}:\n  kernel {said}\n  ours   {ours}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        true
    }

    #[test]
    fn the_kernel_says_the_same_of_its_structures() {
        compare(&programs(&open("tcp")));
    }

    #[test]
    fn targets_by_number_are_judged_alike() {
        let object = open("tcp");
        let named = object.program("halves").expect("a program");
        let Some(kernel) = &named.kernel_btf else {
            return;
        };
        let with = |id, attach_type| {
            let mut program = named.clone();
            (program.attach_target, program.attach_btf_id) = (None, id);
            program.expected_attach_type = attach_type;
            Arc::new(program)
        };
        let structure = |name| kernel.find(name, Kind::Struct).map(|ty| ty.id());
        let operations = structure("tcp_congestion_ops");
        let later = AttachType::from_number(50);
        compare(&[
            with(operations, None),
            with(operations, AttachType::from_number(1)),
            with(operations, AttachType::from_number(12)),
            with(operations, later),
            with(structure("task_struct"), None),
            with(None, None),
        ]);
    }

    #[test]
    fn a_structure_that_the_kernel_lacks_is_refused() {
        let object = open("others");
        let program = |name| Arc::new(object.program(name).expect("a program"));
        let programs = ["fixes", "grows", "implements_new_structure"].map(program);
        if compare(&programs) {
            let verdict = verify(&programs[0], &Options::default()).verdict;
            assert_eq!(words(&verdict), "reject 0 ENOTSUPP");
        }
    }

    #[test]
    fn the_kernel_says_the_same_of_programs_that_attach_to_programs() {
        for (_, programs) in all_attached() {
            compare(&programs);
        }
    }
}
