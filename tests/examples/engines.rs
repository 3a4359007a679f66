//! One test, all engines and kernels.

use std::path::{Path, PathBuf};

use crate::shared::{Need, skip_part};
use bpflab::harness::{EngineKind, Fallback};
use bpflab::object::Target;
use bpflab::{Object, Result, Vm};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// The objects of an example: those that look at registers are built for each machine,
/// and events have the registers of the machine that a program was built for.
fn objects(example: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/bpf");
    let builds = ["bpf.o", "arm64.bpf.o"].map(|kind| folder.join(format!("{example}.{kind}")));
    let objects: Vec<_> = builds.into_iter().filter(|path| path.exists()).collect();
    assert!(!objects.is_empty(), "{example} is not built");
    objects
}

/// Types of no kernel, and this machine's where it shows them.
fn targets() -> Vec<Target> {
    let btf = "/sys/kernel/btf/vmlinux";
    if Path::new(btf).exists() {
        return vec![Target::Own, Target::Auto];
    }
    skip_part(Need::Kernel, format_args!("{btf} is not there"));
    vec![Target::Own]
}

/// Runs a test of an example on each engine.
pub fn on_every_engine(example: &str, test: impl Fn(&mut Vm) -> Result<()>) {
    on_every_engine_with(example, |_| Ok(()), test);
}

/// The same, with changes to the object before it is loaded.
pub fn on_every_engine_with(
    example: &str,
    change: impl Fn(&mut Object) -> Result<()>,
    test: impl Fn(&mut Vm) -> Result<()>,
) {
    for target in targets() {
        on_each(example, &change, &test, &target);
    }
}

/// Runs a test of an example whose program uses objects of the kernel: on each engine with
/// the types of this machine's kernel. Without a kernel's types the program is unjudged, and
/// the checked interpreter runs it, whatever engine is asked for.
pub fn with_kernel_types(example: &str, test: impl Fn(&mut Vm) -> Result<()>) {
    let engines = (EngineKind::default(), EngineKind::Checked);
    let unchanged = |_: &mut Object| Ok(());
    run(
        example,
        &unchanged,
        &test,
        Vm::unverified,
        engines,
        Target::Own,
    );
    for target in targets() {
        if !matches!(target, Target::Own) {
            on_each(example, &unchanged, &test, &target);
        }
    }
}

fn on_each(
    example: &str,
    change: &impl Fn(&mut Object) -> Result<()>,
    test: &impl Fn(&mut Vm) -> Result<()>,
    target: &Target,
) {
    for engine in ENGINES {
        // Machine code where this build makes it for the host.
        let expected = match engine {
            EngineKind::Jit => EngineKind::default(),
            other => other,
        };
        let engines = (engine, expected);
        run(example, change, test, Vm::new, engines, target.clone());
    }
}

fn run(
    example: &str,
    change: &impl Fn(&mut Object) -> Result<()>,
    test: &impl Fn(&mut Vm) -> Result<()>,
    load: fn(Object) -> Result<Vm>,
    (engine, expected): (EngineKind, EngineKind),
    target: Target,
) {
    for path in objects(example) {
        let setting = format!("{} on {engine}, for {target:?}", path.display());
        // Shown where the test fails.
        eprintln!("{setting}");
        let whole = || -> Result<()> {
            let mut object = Object::open(&path)?;
            object.set_target(target.clone());
            change(&mut object)?;
            let mut vm = load(object)?;
            vm.set_engine(engine);
            for program in vm.handles() {
                // It may be the checked one where another is asked for only since the
                // verifier does not judge the program, and the code's absence is no other.
                let ran_on = vm.engine_of(program)?;
                assert_eq!(ran_on.engine, expected);
                let why = match (engine, expected) {
                    (asked, expected) if asked == expected => None,
                    (_, EngineKind::Interp) => Some(Fallback::NoCode),
                    _ => Some(Fallback::Unjudged),
                };
                assert_eq!(ran_on.fallback, why);
            }
            test(&mut vm)
        };
        whole().unwrap_or_else(|error| panic!("{setting}: {error}"));
    }
}
