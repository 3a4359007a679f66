//! The verifier's log at level 2, line by line. Programs of `tests/cases/verifier_log` are
//! compared with the expected text next to them (`BLESS=1` rewrites it) and with the
//! running kernel, if available; the programs of `tests/objects` and `examples/bpf`, which
//! have source lines, with the kernel only.

use crate::shared::case;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel;

use std::sync::Arc;

use bpflab::program::Program;
use bpflab::verifier::{LogLevel, Options, verify};

/// Our log of a program at level 2.
fn log(program: &Arc<Program>, options: Options) -> String {
    verify(program, &options.with_log(LogLevel::ALL))
        .verdict
        .log
}

#[test]
fn the_expected_logs() {
    let bless = std::env::var_os("BLESS").is_some();
    let (mut different, mut count) = (Vec::new(), 0);
    for path in case::all() {
        let program = case::read(&path);
        let expected = path.with_extension("log");
        let log = log(&program, Options::default());
        if bless {
            std::fs::write(&expected, &log).unwrap();
        }
        if std::fs::read_to_string(&expected).unwrap_or_default() != log {
            different.push((expected, log));
        }
        count += 1;
    }
    assert!(count >= 11, "{count} cases");
    assert!(different.is_empty(), "{different:#?}");
}

/// Level 1 keeps only the path to the error; paths that were explored as safe are removed.
#[test]
fn at_level_1_only_the_path_that_fails_is_left() {
    let text = "r6 = *(u32 *)(r1 +0)\nif r6 == 7 goto bad\nr0 = 11\nexit\nbad:\nr0 = r9\nexit\n";
    let program = case::program(text);
    let options = Options::default().with_log(LogLevel::PATH);
    let log = verify(&program, &options).verdict.log;
    assert!(
        log.contains("5: (bf) r0 = r9") || log.contains("(bf) r0 = r9"),
        "{log}"
    );
    assert!(!log.contains("r0 = 11"), "{log}");
    assert!(log.ends_with("R9 !read_ok\n"), "{log}");
}

#[test]
fn no_log_but_the_error_where_it_is_off() {
    let bad = verify(&case::program("r0 = r9\nexit\n"), &Options::default());
    assert_eq!(bad.verdict.log, "R9 !read_ok\n");
    let good = verify(&case::program("r0 = 0\nexit\n"), &Options::default());
    assert_eq!(good.verdict.log, "");
}
