//! Files of tests: YAML or TOML beside an object.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value as Json};

use crate::cli::exit::Failure;
use crate::cli::files::read_text;

/// How the names of such files end.
pub(super) const ENDINGS: &[&str] = &[".test.yaml", ".test.yml", ".test.toml"];

/// A file of tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    /// The object, relative to the file; without it the one that has the file's name.
    #[serde(default)]
    pub object: PathBuf,
    /// What all tests have in common.
    #[serde(default)]
    pub setup: Setup,
    pub tests: Vec<Test>,
    /// The folder of the file.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// What a test sets before its events.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Setup {
    /// Options of `bpflab run`.
    pub options: Vec<String>,
    /// The task, the clock and user memory: the keys of an events file without their `@`.
    pub world: Map<String, Json>,
    /// Global variables, before the object is loaded.
    pub globals: Map<String, Json>,
    /// Contents of maps, before the first event.
    pub maps: Map<String, Json>,
}

/// A test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    pub name: String,
    /// The programs to run; without one those that the events fire.
    #[serde(default, rename = "program", deserialize_with = "one_or_more")]
    pub programs: Vec<String>,
    #[serde(default)]
    pub setup: Setup,
    /// What happens, in order; without a list the event of the programs' sections, once.
    #[serde(default = "one_event")]
    pub events: Vec<Map<String, Json>>,
    #[serde(default)]
    pub expect: Expect,
    /// A recording in place of events, relative to the file.
    #[serde(default)]
    pub recording: Option<PathBuf>,
    /// The program that checks what the events left, of a test in C.
    #[serde(skip)]
    pub check: Option<String>,
}

/// What is expected after all events.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Expect {
    /// Return values: of all runs, or by the name of the program.
    pub returns: Option<Json>,
    /// Contents of maps.
    pub maps: Map<String, Json>,
    /// Values of global variables.
    pub globals: Map<String, Json>,
    /// The records of ring and perf buffers, by map.
    pub records: Map<String, Json>,
    /// Lines of `bpf_printk`.
    pub printk: Option<Vec<String>>,
    /// The fault that ends a run.
    pub fault: Option<String>,
}

impl Expect {
    /// Whether it is about single runs, not only about what they left.
    pub fn needs_runs(&self) -> bool {
        let needs = self.returns.is_some() || self.printk.is_some() || self.fault.is_some();
        needs || !self.records.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        !self.needs_runs()
            && self.maps.is_empty()
            && self.globals.is_empty()
            && self.records.is_empty()
    }
}

/// Expectations of one event.
pub(super) const RETURNS: &str = "@returns";
/// Whether perf gets the event, or the packet goes on.
pub(super) const PASSED: &str = "@passed";
/// The packet afterwards.
pub(super) const PACKET: &str = "@packet";
/// The packet or context of an event.
pub(super) const DATA: &str = "@data";

impl Setup {
    /// This setup with what a test adds or sets anew.
    pub fn with(&self, test: &Self) -> Self {
        let mut all = self.clone();
        all.options.extend(test.options.iter().cloned());
        all.world.extend(test.world.clone());
        all.globals.extend(test.globals.clone());
        all.maps.extend(test.maps.clone());
        all
    }
}

impl Suite {
    /// Reads a file of tests.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        let text = read_text(file)?;
        let is_toml = file.extension().is_some_and(|end| end == "toml");
        let mut suite = Self::parse(&text, is_toml).map_err(Failure::bad)?;
        suite.folder = file.parent().map(Path::to_owned).unwrap_or_default();
        suite.object = match suite.object.as_os_str().is_empty() {
            true => beside(file).map_err(Failure::bad)?,
            false => suite.folder.join(&suite.object),
        };
        if suite.tests.is_empty() {
            return Err(Failure::bad("no tests"));
        }
        let mut tests = suite.tests.iter();
        tests.try_for_each(|test| test.check().map_err(Failure::bad))?;
        Ok(suite)
    }

    fn parse(text: &str, is_toml: bool) -> Result<Self, String> {
        match is_toml {
            true => toml::from_str(text).map_err(|error| error.to_string()),
            false => serde_saphyr::from_str(text).map_err(|error| {
                let text = error.to_string();
                text.strip_prefix("error: ").unwrap_or(&text).to_owned()
            }),
        }
    }
}

impl Test {
    /// Refuses a test that can't fail.
    fn check(&self) -> Result<(), String> {
        let of_events = [RETURNS, PASSED, PACKET];
        let has_any = |event: &Map<_, _>| of_events.iter().any(|key| event.contains_key(*key));
        if self.recording.is_some() {
            return match self.events == one_event() && self.programs.is_empty() {
                true => Ok(()),
                false => Err(format!(
                    "test '{}' has a recording, which has events and programs: leave out events: \
                     and program:",
                    self.name
                )),
            };
        }
        if self.expect.is_empty() && !self.events.iter().any(has_any) {
            return Err(format!(
                "test '{}' expects nothing: add expect: with returns, maps, globals, records, \
                 printk or fault, or {} to an event",
                self.name,
                of_events.join(", ")
            ));
        }
        Ok(())
    }
}

/// The object that has the name of a file of tests.
fn beside(file: &Path) -> Result<PathBuf, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    let Some(stem) = stem else {
        return Err("no object: name it: object: FILE.bpf.o".to_owned());
    };
    let names = [format!("{stem}.bpf.o"), format!("{stem}.o")];
    let found = names.iter().map(|name| file.with_file_name(name));
    found
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| {
            format!(
                "no object: neither {} nor {} is beside it; name it: object: FILE.bpf.o",
                names[0], names[1]
            )
        })
}

fn one_event() -> Vec<Map<String, Json>> {
    vec![Map::new()]
}

fn one_or_more<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let known = match Json::deserialize(input)? {
        Json::Array(values) => values.iter().map(text).collect(),
        one => text(&one).map(|name| vec![name]),
    };
    known.ok_or_else(|| D::Error::custom("expected the name of a program, or a list of names"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
object: count.bpf.o
setup:
  world: {pid: 7}
tests:
  - name: a write
    program: count_write
    events:
      - {'args[2]': 0x10, '@returns': 1}
    expect:
      maps:
        hist: {12: 1}
";

    const TOML: &str = "
object = 'count.bpf.o'
setup.world.pid = 7

[[tests]]
name = 'a write'
program = ['count_write']
events = [{'args[2]' = 0x10, '@returns' = 1}]
expect.maps.hist.12 = 1
";

    #[test]
    fn both_languages_say_the_same() {
        for (text, is_toml) in [(YAML, false), (TOML, true)] {
            let suite = Suite::parse(text, is_toml).unwrap();
            assert_eq!(suite.object, Path::new("count.bpf.o"));
            assert_eq!(suite.setup.world["pid"], 7);
            let test = &suite.tests[0];
            assert_eq!(test.programs, ["count_write"]);
            assert_eq!(test.events[0]["args[2]"], 16);
            assert_eq!(test.expect.maps["hist"]["12"], 1);
            test.check().unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = |text| Suite::parse(text, false).unwrap_err();
        let text = error("tests:\n  - name: x\n    evnts: []\n");
        assert!(text.contains("evnts") && text.contains("line 3"), "{text}");
        let text = error("tests:\n  - name: x\n    program: 3\n");
        assert!(text.contains("expected the name of a program"), "{text}");
        let toml = Suite::parse("tests = 3", true).unwrap_err();
        assert!(toml.contains("line 1"), "{toml}");
    }

    #[test]
    fn a_test_that_expects_nothing_is_refused() {
        let suite = Suite::parse("tests: [{name: idle}]", false).unwrap();
        let error = suite.tests[0].check().unwrap_err();
        assert!(error.starts_with("test 'idle' expects nothing"), "{error}");
    }

    #[test]
    fn a_test_adds_to_the_setup_of_all() {
        let setup = |text: &str| serde_saphyr::from_str::<Setup>(text).unwrap();
        let all = setup("{options: [--cpus=2], world: {pid: 1, uid: 2}}");
        let both = all.with(&setup("{options: [--seed=3], world: {pid: 4}}"));
        assert_eq!(both.options, ["--cpus=2", "--seed=3"]);
        assert_eq!(
            (&both.world["pid"], &both.world["uid"]),
            (&4.into(), &2.into())
        );
    }
}
