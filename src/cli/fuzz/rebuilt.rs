//! `bpflab fuzz --rebuilt`: two builds of one source.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::sources::of_object;
use crate::btf::Btf;
use crate::cli::exit::{Exit, Failure};
use crate::cli::files::is_cases;
use crate::cli::printer::Printer;
use crate::fuzz::{Candidate, Finding, Rebuilt, compare_builds};
use crate::report::FuzzFinding;

/// Compares the programs of two objects by their names.
pub(super) fn compare(
    files: [&Path; 2],
    kernel: Option<&Btf>,
    seed: u64,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let read = |file: &Path| {
        if is_cases(file) {
            let text = format!("{}: --rebuilt compares objects, not cases", file.display());
            return Err(Failure::bad(text));
        }
        of_object(file, kernel)
    };
    let builds = [read(files[0])?, read(files[1])?];
    let mut exit = Exit::Fine;
    for (id, result) in compare_builds(builds.each_ref().map(Vec::as_slice), seed) {
        let text = match result {
            Rebuilt::Same(runs) => format!("both accepted; the same results of {runs} runs"),
            Rebuilt::Rejected => "both rejected".to_owned(),
            Rebuilt::NotRun(why) => {
                let why = why.lines().next().unwrap_or_default();
                format!("both accepted; not run: {why}")
            }
            Rebuilt::Unjudged(why) => format!("not compared, no verdict: {why}"),
            Rebuilt::OnlyIn(which) => {
                exit = Exit::No;
                format!("only in {}", files[which].display())
            }
            Rebuilt::Different(problem) => {
                exit = Exit::No;
                let Some(program) = builds[0].iter().find(|it| it.name == id) else {
                    continue;
                };
                let finding = Finding {
                    candidate: Candidate::of_file(program.clone(), seed),
                    problem,
                    seed,
                    options: format!(" --rebuilt {}", files[1].display()),
                    insns_before: program.insns.len(),
                    programs: 1,
                    elapsed: Duration::ZERO,
                };
                printer.show(&FuzzFinding::new(&finding, Some(files[0]), ""))?;
                continue;
            }
        };
        tell(&id, &text, printer)?;
    }
    Ok(exit)
}

fn tell(id: &str, text: &str, printer: &mut Printer) -> Result<(), Failure> {
    if printer.is_json() {
        return printer.row(&json!({ "kind": "rebuilt", "id": id, "result": text }));
    }
    printer.text(format_args!("{id}: {text}\n"))
}
