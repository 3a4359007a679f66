//! Programs on which the verdicts differ: reduced, reported once for each kind, and written
//! as cases if a directory is given.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::kernel::LoadedMaps;
use bpflab::object::cases::{Case, btf_name};
use bpflab::program::Program;
use bpflab::verifier::Options;

use super::judge::{Both, Compared, compare};
use super::listing::Listing;

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
        let mut best = (program.clone(), both);
        let mut listing = Listing::of(program);
        let mut tries = 0;
        let mut size = listing.items.len() / 2;
        while size > 0 {
            let (mut at, mut smaller) = (0, false);
            while at + size <= listing.items.len() && listing.items.len() > size {
                tries += 1;
                if tries > TRIES {
                    return best;
                }
                let mut without = listing.clone();
                without.remove(at, size);
                let made = without.program(program).map(Arc::new);
                let compared = made.as_ref().map(|made| compare(made, maps, &self.options));
                match (made, compared) {
                    (Some(made), Some(Compared::Judged(both)))
                        if both.kind().as_deref() == Some(kind) =>
                    {
                        best = (Arc::unwrap_or_clone(made), *both);
                        listing = without;
                        smaller = true;
                    }
                    _ => at += size,
                }
            }
            if !smaller || size > 1 {
                size /= 2;
            }
        }
        best
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
