//! Prints how many tests of this run were skipped, by what they need: the last test target
//! of a run by its name, without the harness that would keep its output.

#[path = "shared/sample.rs"]
#[allow(dead_code, reason = "what counts cases is for the other crates")]
mod sample;
#[path = "shared/skip.rs"]
#[allow(dead_code, reason = "what skips tests is for the other crates")]
mod skip;

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use skip::{Need, REQUIRE};

fn main() -> ExitCode {
    // What lists tests (an IDE, nextest) finds none here.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let words = std::env::var(REQUIRE).unwrap_or_default();
    if let Err(error) = skip::required(&words) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    remove_stale();
    let Some(file) = skip::run() else {
        eprintln!("the tests that were skipped are not counted: no target folder here");
        return ExitCode::FAILURE;
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            eprintln!(
                "the tests that were skipped are not counted: {}: {error}",
                file.display()
            );
            return ExitCode::FAILURE;
        }
    };
    match summary(&text) {
        Ok(summary) => print!("\n{summary}{}", sampled()),
        Err(line) => {
            eprintln!("{}: not a record of a skipped test: {line}", file.display());
            return ExitCode::FAILURE;
        }
    }
    let _ = fs::remove_file(&file);
    check();
    ExitCode::SUCCESS
}

/// That some tests took a part of their cases.
fn sampled() -> String {
    if sample::all() {
        return String::new();
    }
    let (step, variable) = (sample::step(), sample::ALL);
    format!("tests with many cases took about one in {step} of them; {variable}=1 takes all\n")
}

/// What is known of one test that was skipped.
#[derive(Default)]
struct Skipped<'a> {
    whole: bool,
    needs: Vec<(&'a str, &'a str)>,
}

/// The lines that are printed.
///
/// # Errors
/// The line that is no record.
fn summary(text: &str) -> Result<String, &str> {
    let mut tests: BTreeMap<(&str, &str), Skipped> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let &[need, how, binary, test, why] = &fields[..] else {
            return Err(line);
        };
        // A test calls for what it needs as often as it likes; it is one test.
        let skipped = tests.entry((binary, test)).or_default();
        if how == "whole" && !skipped.whole {
            skipped.whole = true;
            skipped.needs.clear();
        }
        if (how == "whole") == skipped.whole && skipped.needs.iter().all(|(n, _)| *n != need) {
            skipped.needs.push((need, why));
        }
    }
    let whole = tests.values().filter(|test| test.whole).count();
    let parts = tests.len() - whole;
    if tests.is_empty() {
        return Ok("skipped tests: 0\n".to_owned());
    }
    let mut out = format!("skipped tests: {whole}, and parts of {parts}; by what they need:\n");
    let mut words = Vec::new();
    for need in Need::ALL.map(Need::word) {
        let of = |wanted: bool| {
            let tests = tests.values().filter(move |test| test.whole == wanted);
            tests.flat_map(|test| test.needs.iter().filter(|(n, _)| *n == need))
        };
        let (whole, parts) = (of(true).count(), of(false).count());
        if whole + parts == 0 {
            continue;
        }
        words.push(need);
        let mut why: Vec<_> = of(true).chain(of(false)).map(|(_, why)| *why).collect();
        why.sort_unstable();
        why.dedup();
        let more = match why.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let reason = why.first().copied().unwrap_or_default();
        out += &format!("  {need:<14} {whole:>4} + {parts:>2} parts  {reason}{more}\n");
    }
    out += &format!("{REQUIRE}={} makes them fail\n", words.join(","));
    Ok(out)
}

/// Removes what runs left that have ended and did not come to this target.
fn remove_stale() {
    let files = skip::folder().and_then(|folder| fs::read_dir(folder).ok());
    for file in files.into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let ended = name.split_once('-').is_none_or(|(pid, began)| {
            let (pid, began) = (pid.parse(), began.parse());
            let (Ok(pid), Ok(began)) = (pid, began) else {
                return true;
            };
            // Without /proc nobody knows when a process began.
            began != 0 && skip::began(pid) != Some(began)
        });
        if ended {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// This target has no harness, so its own tests are here.
fn check() {
    assert_eq!(summary(""), Ok("skipped tests: 0\n".to_owned()));
    assert_eq!(summary("kernel\twhole\ta"), Err("kernel\twhole\ta"));
    let text = "kernel\twhole\ta\tx\tno root\n\
                kernel\twhole\ta\tx\tno root\n\
                corpus\tpart\ta\ty\tno file\n\
                clang\tpart\tb\tx\tno clang\n\
                kernel\twhole\tb\tx\tno BTF\n";
    let expected = "skipped tests: 2, and parts of 1; by what they need:\n  \
                    kernel            2 +  0 parts  no BTF (and 1 more)\n  \
                    corpus            0 +  1 parts  no file\n\
                    BPFLAB_REQUIRE=kernel,corpus makes them fail\n";
    assert_eq!(summary(text), Ok(expected.to_owned()));
    assert_eq!(
        skip::required(" kernel, corpus,"),
        Ok(vec![Need::Kernel, Need::Corpus])
    );
    let unknown = skip::required("kernel,root").unwrap_err();
    assert!(
        unknown.contains("`root`") && unknown.contains("kernel-6.18"),
        "{unknown}"
    );
}
