//! Programs on which the verdicts differ: reduced, reported once for each kind, and written
//! as cases if a directory is given.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::fuzz::{Both, Compared, compare, reduce};
use bpflab::kernel::LoadedMaps;
use bpflab::object::cases::{Case, btf_name};
use bpflab::program::Program;
use bpflab::verifier::Options;

/// The maximum number of examples written for each kind.
const EXAMPLES: usize = 3;
/// The maximum number of attempts to remove a part of a program.
const TRIES: usize = 600;

/// The differences found.
pub struct Findings {
    directory: Option<PathBuf>,
    options: Options,
    kinds: BTreeMap<String, (usize, String)>,
}

impl Findings {
    /// With the directory of the environment variable.
    pub fn new(options: Options) -> Self {
        Self {
            directory: std::env::var_os("BPFLAB_FINDINGS").map(PathBuf::from),
            options,
            kinds: BTreeMap::new(),
        }
    }

    /// Adds a difference; `origin` describes how the program was made.
    pub fn add(&mut self, program: &Program, maps: &LoadedMaps, both: Both, origin: &str) {
        let Some(kind) = both.kind() else { return };
        let (count, _) = self
            .kinds
            .entry(kind.clone())
            .or_insert_with(|| (0, origin.to_owned()));
        *count += 1;
        let count = *count;
        if count > EXAMPLES || self.directory.is_none() {
            return;
        }
        let (program, both) = self.reduce(program, maps, both, &kind);
        self.write(&program, &both, &kind, &format!("{count} {origin}"));
    }

    /// Removes the parts of a program that the difference doesn't need.
    fn reduce(
        &self,
        program: &Program,
        maps: &LoadedMaps,
        both: Both,
        kind: &str,
    ) -> (Program, Both) {
        let mut last = both;
        let program = Arc::new(program.clone());
        let reduced = reduce(&program, TRIES, |program| {
            match compare(program, maps, &self.options) {
                Compared::Judged(both) if both.kind().as_deref() == Some(kind) => {
                    last = *both;
                    true
                }
                _ => false,
            }
        });
        (Arc::unwrap_or_clone(reduced), last)
    }

    fn write(&self, program: &Program, both: &Both, kind: &str, id: &str) {
        let Some(directory) = &self.directory else {
            return;
        };
        let types = directory.join("btf");
        fs::create_dir_all(&types).expect("BPFLAB_FINDINGS: a directory");
        if let Some(btf) = &program.btf {
            let file = types.join(format!("{}.btf", btf_name(btf)));
            fs::write(file, btf.to_bytes()).expect("the program's types");
        }
        let mut case = Case::from_program(id, program);
        case.kernel = Some(both.kernel.clone());
        let ours = format!(
            "{} {} {} {}",
            both.ours.decision.word(),
            both.ours.errno,
            both.ours.processed,
            both.ours.line
        );
        case.rest.insert("ours".into(), ours.into());
        case.rest.insert("difference".into(), kind.into());
        // A file for each kind.
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = kind.chars().map(plain).take(100).collect();
        let file = directory.join(format!("{name}.jsonl"));
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        text.push_str(&case.to_json().to_string());
        text.push('\n');
        fs::write(file, text).expect("a finding");
    }
}

/// The kinds, the most frequent first.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        kinds.iter().try_for_each(|(kind, (count, origin))| {
            writeln!(f, "{count:>6} x {kind}\n         first: {origin}")
        })
    }
}
