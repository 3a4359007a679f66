//! Every error of a public function converts into `bpflab::Error`, so that `?` fits it in a test.

use std::any::type_name;
use std::collections::BTreeSet;
use std::path::Path;

use bpflab::harness::Error;
use bpflab::{btf, compare, coverage, fuzz, isa, object, report, spec, util, verifier, vm};

use crate::layering::rust_files;

/// The name of an error that converts.
fn converts<E: Into<Error>>() -> String {
    let name = type_name::<E>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
}

fn of_all_builds() -> Vec<String> {
    vec![
        converts::<Error>(),
        converts::<std::io::Error>(),
        converts::<util::Errno>(),
        converts::<util::ReadError>(),
        converts::<isa::AsmError>(),
        converts::<isa::DecodeError>(),
        converts::<btf::BtfError>(),
        converts::<btf::DumpError>(),
        converts::<btf::LayoutError>(),
        converts::<btf::PathError>(),
        converts::<btf::SetError>(),
        converts::<btf::ValueError>(),
        converts::<object::ObjectError>(),
        converts::<object::cases::CaseError>(),
        converts::<object::cases::CaseProblem>(),
        converts::<object::core::CoreError>(),
        converts::<verifier::Reject>(),
        converts::<verifier::Unjudged>(),
        converts::<verifier::Unverified>(),
        converts::<coverage::CoverageError>(),
        converts::<spec::TokenError>(),
        converts::<spec::UnknownCapability>(),
        converts::<vm::AddMapError>(),
        converts::<vm::CpuError>(),
        converts::<vm::HelperProblem>(),
        converts::<vm::InjectError>(),
        converts::<vm::KernelError>(),
        converts::<Box<vm::Fault>>(),
        converts::<vm::events::CaptureError>(),
        converts::<vm::events::EventError>(),
        converts::<vm::events::TextError>(),
        converts::<vm::maps::MapError>(),
        converts::<vm::memory::AccessFault>(),
        converts::<vm::memory::KernelMemoryFull>(),
        converts::<vm::memory::SpaceFull>(),
        converts::<vm::world::NetError>(),
        converts::<compare::Unable>(),
        converts::<fuzz::OtherBuildError>(),
        converts::<compare::recording::RecordingError>(),
        converts::<compare::recording::WriteError>(),
        converts::<compare::replay::ReplayError>(),
        converts::<report::BaselineError>(),
        converts::<report::BenchBaselineError>(),
        converts::<report::FailOnError>(),
    ]
}

fn of_the_kernel() -> Vec<String> {
    use bpflab::kernel;
    vec![
        converts::<kernel::KernelError>(),
        converts::<kernel::Missing>(),
        converts::<kernel::NoVerdict>(),
        converts::<kernel::RunError>(),
        converts::<kernel::attach::AttachError>(),
        converts::<kernel::process::SpawnError<std::io::Error>>(),
        converts::<kernel::tracefs::TracefsError>(),
        converts::<kernel::tracepoints::BtfUnreadable>(),
        converts::<kernel::tracepoints::CatalogueError>(),
        converts::<compare::generated::GeneratedError>(),
        converts::<compare::live::LiveError>(),
    ]
}

/// The names of the error types that the sources declare, except those of the engines' and the
/// command's modules.
fn declared() -> BTreeSet<String> {
    const OTHERS: [&str; 4] = ["analysis", "cli", "instrument", "lower"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = BTreeSet::new();
    for file in rust_files(&source) {
        let module = file.strip_prefix(&source).expect("a source");
        if OTHERS.iter().any(|other| module.starts_with(other)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        let types = text.lines().filter_map(|line| {
            line.strip_prefix("pub enum ")
                .or_else(|| line.strip_prefix("pub struct "))
        });
        let names_of = types.filter_map(|rest| rest.split([' ', '<', '(', ';']).next());
        names.extend(
            names_of
                .filter(|name| name.ends_with("Error"))
                .map(str::to_owned),
        );
    }
    names
}

#[test]
fn every_error_converts() {
    let listed: BTreeSet<_> = of_all_builds().into_iter().chain(of_the_kernel()).collect();
    let declared = declared();
    assert!(declared.contains("AsmError"), "the sources were not read");
    let missing: Vec<_> = declared.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "not in the lists of this file: {missing:?}"
    );
}

#[test]
fn one_question_mark_fits_all() {
    fn reads(text: &str) -> bpflab::Result<usize> {
        let hex = vm::events::parse_hex(text)?;
        let (slots, _) = isa::RawInsn::slots(&hex);
        let code = isa::decode_program(&slots)?;
        Ok(code.len())
    }
    assert_eq!(reads("95 00 00 00 00 00 00 00").unwrap(), 1);
    let bad_text = reads("9").unwrap_err();
    let bad_code = reads("ff 00 00 00 00 00 00 00").unwrap_err();
    assert_ne!(format!("{bad_text:?}"), format!("{bad_code:?}"));
    for error in [bad_text, bad_code] {
        assert!(matches!(error, Error::Other(_)), "{error}");
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
