//! A file with tests, in any of their forms.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cilium::CiliumTests;
use super::in_c;
use super::recorded;
use super::rows::TestRow;
use super::run;
use super::suite::Suite;
use crate::cli::exit::Failure;
use crate::cli::run::Uninit;
use crate::harness::EngineKind;
use crate::object::Object;

/// How tests run.
#[derive(Debug, Clone, Copy)]
pub(super) struct How<'a> {
    /// On each of these engines.
    pub engines: &'a [EngineKind],
    /// What to do about uninitialised bytes that leave programs.
    pub uninit: Uninit,
}

/// A file with tests.
pub(super) enum TestFile {
    /// YAML, TOML, or tests in C of an object. Each test has a machine of its own.
    Suite(Box<Suite>),
    /// An object with tests in Cilium's form, which share a machine.
    Cilium(PathBuf, CiliumTests),
}

impl TestFile {
    /// Reads a file; none for an object without tests.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        if path.extension().is_none_or(|end| end != "o") {
            return Ok(Some(Self::Suite(Box::new(Suite::read(path)?))));
        }
        let object = Object::open(path)?;
        let in_c = in_c::suite(path, &object)?.map(|suite| Self::Suite(Box::new(suite)));
        match CiliumTests::of(&object)? {
            Some(_) if in_c.is_some() => Err(Failure::bad(format!(
                "{}: tests of bpflab/test.h and of Cilium's form in one object",
                path.display()
            ))),
            Some(tests) => Ok(Some(Self::Cilium(path.to_owned(), tests))),
            None => Ok(in_c),
        }
    }

    /// The names of the tests.
    pub fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Suite(suite) => Box::new(suite.tests.iter().map(|test| test.name.as_str())),
            Self::Cilium(_, tests) => Box::new(tests.names()),
        }
    }

    /// Runs the wanted tests on engines, and gives away the result of each.
    ///
    /// # Errors
    /// Those of `done`; that a test can't run is its result.
    pub fn run(
        &self,
        file: &str,
        how: How<'_>,
        is_wanted: impl Fn(&str) -> bool,
        mut done: impl FnMut(TestRow) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let suite = match self {
            Self::Suite(suite) => suite,
            Self::Cilium(path, tests) => {
                let rows = run_cilium(file, path, tests, how, is_wanted)?;
                return rows.into_iter().try_for_each(done);
            }
        };
        for test in suite.tests.iter().filter(|test| is_wanted(&test.name)) {
            let mut row = TestRow::new(file, &test.name);
            for engine in how.engines {
                let start = Instant::now();
                let ran = match &test.recording {
                    Some(file) => recorded::run(suite, test, file, *engine),
                    None => run::run(suite, test, *engine, how.uninit),
                };
                row.took(start.elapsed());
                row.ran(*engine, ran)?;
            }
            row.finish();
            done(row)?;
        }
        Ok(())
    }
}

/// Runs tests in Cilium's form on engines, on each all of them in their order.
fn run_cilium(
    file: &str,
    path: &Path,
    tests: &CiliumTests,
    how: How<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<TestRow>, Failure> {
    let mut rows: Vec<_> = tests
        .names()
        .filter(|name| is_wanted(name))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|name| TestRow::new(file, name))
        .collect();
    let setup = run::no_options()?;
    for engine in how.engines {
        let mut loaded = match tests.load(path, &setup, *engine) {
            Ok(loaded) => loaded,
            Err(Failure::Error { exit, text }) => {
                for row in &mut rows {
                    row.ran(*engine, Err(Failure::with(exit, &text)))?;
                }
                break;
            }
            Err(failure) => return Err(failure),
        };
        loaded.find_uninit(how.uninit != Uninit::Off && *engine == EngineKind::Checked);
        for row in &mut rows {
            let start = Instant::now();
            let ran = tests.run(&mut loaded, &row.test, how.uninit);
            row.took(start.elapsed());
            row.ran(*engine, ran)?;
        }
    }
    rows.iter_mut().for_each(TestRow::finish);
    Ok(rows)
}
