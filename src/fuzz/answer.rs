//! The other side of [`OtherBuild`](super::OtherBuild): runs the candidates that it is sent.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::case::FuzzCase;
use super::judge::text_of;
use super::other_build::{Hello, Reply, Request};
use super::values;
use crate::btf::Btf;
use crate::harness::Judged;
use crate::object::cases::read_case;

/// Answers requests, one a line, to their end. `kernel` gives the types of kernel objects, and is
/// called after the greeting.
///
/// # Errors
/// Input that can't be read, output that can't be written.
pub fn answer<E: From<io::Error>>(
    input: impl BufRead,
    mut output: impl Write,
    kernel: impl FnOnce() -> Result<Option<Btf>, E>,
) -> Result<(), E> {
    let mut write = |line: serde_json::Result<String>| {
        let line = line.map_err(io::Error::from)?;
        writeln!(output, "{line}")?;
        output.flush()
    };
    write(serde_json::to_string(&Hello::own()))?;
    let mut lines = input.lines();
    let Some(mut line) = lines.next().transpose()? else {
        return Ok(());
    };
    let kernel = kernel()?;
    loop {
        let ran = catch_unwind(AssertUnwindSafe(|| run(&line, kernel.as_ref())));
        let reply = match ran {
            Ok(Ok(reply)) => reply,
            Ok(Err(why)) => Reply::Failed(why.to_string()),
            Err(panic) => Reply::Failed(format!("panic: {}", text_of(&*panic))),
        };
        write(serde_json::to_string(&reply))?;
        match lines.next().transpose()? {
            Some(next) => line = next,
            None => return Ok(()),
        }
    }
}

/// Runs the candidate of a request on all engines.
fn run(request: &str, kernel: Option<&Btf>) -> Result<Reply, Box<dyn Error>> {
    let request: Request = serde_json::from_str(request)?;
    let case = read_case(&request.case.to_string())?;
    let btf = request.btf.map(|hex| Btf::parse(&hex.0)).transpose()?;
    let program = case.to_program(btf, kernel.cloned())?;
    let candidate = FuzzCase::candidate(&case, program, kernel)?;
    let judged: Vec<_> = candidate.programs().cloned().map(Judged::new).collect();
    for Judged { verification, .. } in &judged {
        let verdict = &verification.verdict;
        if !verdict.is_accepted() {
            return Ok(Reply::NotAccepted(verdict.message.clone()));
        }
    }
    let values = values::compare(&candidate, &judged, false);
    let checked = values.checked.ok_or("the checked engine does not run it")?;
    Ok(Reply::Ran {
        runs: values.runs + 1,
        answer: checked.texts(),
        problem: values.problem.map(|it| (it.kind, it.ours, it.other)),
    })
}
