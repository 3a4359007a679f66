//! `bpflab test`: tests without Rust, in files beside the objects.

mod cilium;
mod expect;
mod file;
mod in_c;
mod junit;
mod messages;
mod recorded;
mod rows;
mod run;
mod suite;
mod tap;

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Exit, Failure};
use super::printer::Printer;
use super::run::{Engine, Uninit};
use crate::coverage::collector;
use crate::harness::{EngineKind, is_here};
use crate::util::glob;
use file::{How, TestFile};
use rows::{Summary, TestRow};
use suite::ENDINGS;

/// Run the tests in files beside objects
///
/// A test says what happens and what is expected afterwards, in YAML or TOML (NAME.test.yaml,
/// NAME.test.yml, NAME.test.toml), or in C, in the object itself (NAME.bpf.o). It runs on each
/// engine.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 all passed; 1 a test failed; 2 a test can't run as it is written, or there is none.

Examples:
  bpflab test .
  bpflab test tests/write_hist.test.yaml --name '*write*'
  bpflab test --header > bpflab/test.h           for tests in C
  bpflab test . --junit junit.xml                for CI services
  bpflab test . --tap | tappy
  BPFLAB_COVERAGE=cov bpflab test . && bpflab cover cov --lcov lcov.info")]
pub(super) struct Arguments {
    /// Files of tests, objects with tests in C, and folders that have some
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Run only the tests whose name matches a pattern: '*write*'
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Run on this engine only [default: on each]
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// What to do about uninitialised bytes that leave programs; the checked engine looks for
    /// them. A test sets it for itself by options: [--uninit=off]
    #[arg(long, value_enum, value_name = "WHAT", default_value = "warn")]
    uninit: Uninit,
    /// Write the results as XML of JUnit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the results in the Test Anything Protocol
    #[arg(long, conflicts_with = "json")]
    tap: bool,
    /// Print the header for tests in C
    #[arg(long, conflicts_with_all = ["paths", "name", "engine", "junit", "tap", "json"])]
    header: bool,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    if arguments.header {
        printer.text(in_c::HEADER)?;
        return Ok(Exit::Fine);
    }
    let mut files = Vec::new();
    for path in &arguments.paths {
        match path.is_dir() {
            true => find(path, &mut files)?,
            false => files.push((path.clone(), true)),
        }
    }
    let mut tests = Tests {
        arguments,
        rows: Vec::new(),
        summary: Summary::new(),
        exit: Exit::Fine,
        warned: Vec::new(),
    };
    if arguments.tap {
        printer.text("TAP version 14\n")?;
    }
    for (file, is_named) in &files {
        tests.run_file(file, *is_named, printer)?;
    }
    if tests.summary.is_empty() {
        return Err(Failure::bad(format!(
            "no tests: no file is called *{}, and no *.bpf.o has some",
            ENDINGS.join(", ")
        )));
    }
    tests.finish(printer)
}

/// How the names of objects in folders end: other files that are called `.o` are no BPF objects.
const OBJECT: &str = ".bpf.o";

/// Adds the files that may have tests in a folder and its folders, sorted by name; hidden folders
/// are left out.
fn find(folder: &Path, files: &mut Vec<(PathBuf, bool)>) -> Result<(), Failure> {
    let wrong = |error| Failure::bad(format!("{}: can't be read: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(wrong)?;
    let mut entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(wrong)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        // A link to a folder could lead back here.
        let is_folder = entry.file_type().map_err(wrong)?.is_dir();
        if is_folder && !name.starts_with('.') {
            find(&path, files)?;
        } else if name.ends_with(OBJECT) || ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            files.push((path, false));
        }
    }
    Ok(())
}

struct Tests<'a> {
    arguments: &'a Arguments,
    rows: Vec<TestRow>,
    summary: Summary,
    exit: Exit,
    /// Warnings that were shown.
    warned: Vec<String>,
}

impl Tests<'_> {
    /// Runs the tests of a file. An object that was not named may have none.
    fn run_file(
        &mut self,
        path: &Path,
        is_named: bool,
        printer: &mut Printer,
    ) -> Result<(), Failure> {
        let name = path.display().to_string();
        let may_have_none = !is_named && name.ends_with(OBJECT);
        let file = match TestFile::read(path) {
            Ok(Some(file)) => file,
            Ok(None) if may_have_none => return Ok(()),
            Ok(None) => {
                return Err(Failure::bad(format!(
                    "{name}: no tests in it: BPF_TEST of bpflab/test.h makes some (bpflab test \
                     --header)"
                )));
            }
            Err(Failure::Error { text, .. }) if may_have_none => {
                return printer.warn(&format!("left out: {text}"));
            }
            Err(failure) => {
                let mut row = TestRow::new(&name, "(the file)");
                row.error(failure)?;
                return self.add(row, printer);
            }
        };
        let engines = engines(self.arguments.engine);
        let wanted = self.arguments.name.as_ref();
        let is_wanted = |test: &str| wanted.is_none_or(|pattern| glob(pattern, test));
        printer.working(format_args!("running the tests of {name}"));
        self.summary.left_out += file.names().filter(|test| !is_wanted(test)).count();
        let how = How {
            engines: &engines,
            uninit: self.arguments.uninit,
        };
        file.run(&name, how, is_wanted, |row| self.add(row, printer))
    }

    fn add(&mut self, row: TestRow, printer: &mut Printer) -> Result<(), Failure> {
        for warning in &row.warnings {
            if !self.warned.contains(warning) {
                printer.warn(warning)?;
                self.warned.push(warning.clone());
            }
        }
        self.summary.add(&row);
        self.exit = self.exit.max(row.exit);
        match self.arguments.tap {
            true => printer.text(tap::lines(self.rows.len() + 1, &row))?,
            false => printer.show(&row)?,
        }
        self.rows.push(row);
        Ok(())
    }

    fn finish(self, printer: &mut Printer) -> Result<Exit, Failure> {
        if let Some(file) = &self.arguments.junit {
            let document = junit::document(&self.rows).map_err(Failure::bad)?;
            std::fs::write(file, document).map_err(|error| {
                Failure::bad(format!("{}: can't be written: {error}", file.display()))
            })?;
        }
        match self.arguments.tap {
            true => printer.text(format_args!("1..{}\n", self.rows.len()))?,
            false => printer.show(&self.summary)?,
        }
        Ok(self.exit)
    }
}

/// The engines to run on: the one that was named, or those of this machine. Only the checked one
/// measures coverage.
fn engines(named: Option<Engine>) -> Vec<EngineKind> {
    match named {
        Some(engine) => vec![engine.into()],
        None if collector().is_some() => vec![EngineKind::Checked],
        None => [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit]
            .into_iter()
            .filter(|engine| is_here(*engine))
            .collect(),
    }
}
