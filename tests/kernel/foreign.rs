//! Programs in the kernel as targets, named by their ids: what the kernel tells of them is what the
//! verifier found out, and programs that attach to them get the same verdicts as on their objects.

use std::sync::Arc;

use bpflab::Object;
use bpflab::kernel::{LoadOptions, LoadedMaps, LoadedProgram, load, loaded_target};
use bpflab::program::{Program, TargetProgram};
use bpflab::spec::{Capabilities, ProgType};
use bpflab::verifier::verify;

use super::objects::objects;
use super::verdicts::options;
use crate::shared::here;
use crate::shared::{Need, skip};

/// The program in the kernel, with its maps, if the kernel takes it.
fn loaded(program: &Program) -> Option<(LoadedProgram, LoadedMaps)> {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).ok()?;
    let loaded = load(program, &maps, &LoadOptions::default()).ok()?;
    Some((loaded.program?, maps))
}

fn target_of(program: &LoadedProgram) -> Result<TargetProgram, String> {
    let id = program.info().expect("information").id;
    loaded_target(id).map_err(|error| error.to_string())
}

#[test]
fn the_kernel_tells_what_the_verifier_found_out() {
    if here::judge().is_none() {
        return;
    }
    let (mut compared, mut functions, mut refused) = (0, 0, 0);
    for path in objects() {
        let Ok(object) = Object::open(&path) else {
            continue;
        };
        for program in object.programs().filter_map(Result::ok) {
            let Some((in_kernel, _maps)) = loaded(&program) else {
                continue;
            };
            let name = format!("{}: {}", path.display(), program.name);
            let has_own_target = matches!(program.prog_type, ProgType::Tracing | ProgType::Ext);
            let target = match target_of(&in_kernel) {
                Ok(target) => target,
                Err(error) if has_own_target => {
                    assert!(error.contains("give its object"), "{name}: {error}");
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{name}: {error}"),
            };
            assert!(!has_own_target, "{name}");
            let verified = verify(&Arc::new(program), &options(Capabilities::all())).outcome;
            let ours = verified.expect("accepted as by the kernel").target();
            assert_eq!(target.program.prog_type, ours.program.prog_type, "{name}");
            let types = ours.program.btf.as_ref().map(|btf| btf.to_bytes());
            let read = target.program.btf.as_ref().map(|btf| btf.to_bytes());
            assert_eq!(read.is_some(), types.is_some(), "{name}");
            assert_eq!(target.functions.len(), ours.functions.len(), "{name}");
            for (theirs, ours) in target.functions.iter().zip(&ours.functions) {
                assert_eq!(theirs.type_id, ours.type_id, "{name}");
                assert_eq!(theirs.exception_callback, ours.exception_callback, "{name}");
                assert!(theirs.reliable.is_none() || theirs.reliable == ours.reliable);
                functions += 1;
            }
            compared += 1;
        }
    }
    eprintln!("{compared} programs, {functions} functions, {refused} refused");
    assert!(compared > 100 && functions > compared && refused > 0);
    assert!(loaded_target(u32::MAX).is_err());
}

/// Where the kernel takes programs that attach to others.
#[test]
fn programs_attach_to_a_loaded_one() {
    if here::judge().is_none() {
        return;
    }
    let folder = format!("{}/tests/attach_targets", env!("CARGO_MANIFEST_DIR"));
    let open = |name: &str| Object::open(format!("{folder}/{name}.bpf.o")).expect("an object");
    let target = open("target").program("filters").expect("a program");
    let (in_kernel, _maps) = loaded(&target).expect("the kernel takes the target");
    let target = target_of(&in_kernel).expect("a target");
    let (mut compared, mut accepted, mut unjudged) = (0, 0, 0);
    for name in ["extension", "tracing"] {
        let mut object = open(name);
        object.set_attach_program(target.clone());
        for program in object.programs() {
            let program = program.expect("a program");
            let name = program.name.clone();
            let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).expect("maps");
            let theirs = match load(&program, &maps, &LoadOptions::default()) {
                Ok(loaded) => loaded.verdict,
                Err(none) => return skip(Need::Feature, none.error),
            };
            let ours = verify(&Arc::new(program), &options(Capabilities::all())).verdict;
            if ours.message.starts_with("not modelled") {
                unjudged += 1;
                continue;
            }
            assert_eq!(ours.errno, theirs.errno, "{name}: {}", theirs.message);
            assert_eq!(ours.message, theirs.message, "{name}");
            compared += 1;
            accepted += usize::from(ours.is_accepted());
        }
    }
    eprintln!("{compared} compared, {accepted} accepted, {unjudged} unjudged");
    assert!(compared > 25 && accepted > 5 && unjudged < 10);
}
