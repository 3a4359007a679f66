//! The faults.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

/// What the table says of a fault.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its name, unique.
    pub id: String,
    /// The source file, from the root of the repository.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
    /// The published fix that it undoes, by CVE or commit.
    pub cite: Option<String>,
}

/// Faults that one build has, each behind a test of its number, from 1.
pub trait Seeds {
    fn all(&self) -> &[Fault];

    /// The text of a file with all of its faults.
    fn applied(&mut self, file: &str, text: &str) -> Result<Applied, String>;

    /// The faults that the build does without, by number: the compiler refuses them.
    fn left_out(&self) -> &BTreeSet<u32>;

    /// Leaves out a fault that the compiler refuses; an error if all have to compile.
    fn leave_out(&mut self, number: u32) -> Result<(), String>;

    /// Each fault that is built, with its number.
    fn numbered(&self) -> Box<dyn Iterator<Item = (u32, &Fault)> + '_> {
        let numbered = (1..).zip(self.all());
        Box::new(numbered.filter(|(number, _)| !self.left_out().contains(number)))
    }

    /// The files with faults.
    fn files(&self) -> BTreeSet<&str> {
        self.all().iter().map(|fault| fault.file.as_str()).collect()
    }
}

/// A text with faults.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub text: String,
    /// What the faults added, in bytes of the text, with their numbers.
    pub added: Vec<(Range<usize>, u32)>,
}

impl Applied {
    /// Appends what a fault makes of the expression or statements that follow.
    pub fn choice(&mut self, number: u32, changed: &str) {
        let start = self.text.len();
        self.text.push_str(&format!(
            "if crate::fault::active({number}) {{ {changed} }}"
        ));
        self.added.push((start..self.text.len(), number));
        self.text.push_str(" else ");
    }
}

/// A fault that is written down: a text of a source file and its replacement, both an
/// expression, or both a sequence of statements that ends with a semicolon or a block.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    file: String,
    /// A text around it, exactly once in the file; the file if it is missing.
    within: Option<String>,
    /// The text, exactly once within that.
    find: String,
    replace: String,
    what: String,
    cite: Option<String>,
}

/// A file of faults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    fault: Vec<Written>,
}

/// An error with the path that it is about.
pub fn at(path: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", path.display())
}

/// The faults that are written down.
#[derive(Debug)]
pub struct Faults {
    all: Vec<Fault>,
    written: Vec<Written>,
}

impl Faults {
    /// Reads the `.toml` files of the package, in the order of their names.
    pub fn read(package: &Path) -> Result<Self, Box<dyn Error>> {
        let entries = std::fs::read_dir(package).map_err(|why| at(package, &why))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let is_toml = path.extension().is_some_and(|end| end == "toml");
            if is_toml && path.file_name().is_some_and(|name| name != "Cargo.toml") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut written = Vec::new();
        for path in &paths {
            let text = std::fs::read_to_string(path).map_err(|why| at(path, &why))?;
            let file: File = toml::from_str(&text).map_err(|why| at(path, &why))?;
            written.extend(file.fault);
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = written.iter().find(|fault| !ids.insert(&fault.id)) {
            return Err(format!("two faults have the id `{}`", twice.id).into());
        }
        Ok(Self::new(written))
    }

    fn new(written: Vec<Written>) -> Self {
        let all = written.iter().map(|it| Fault {
            id: it.id.clone(),
            file: it.file.clone(),
            what: it.what.clone(),
            cite: it.cite.clone(),
        });
        Self {
            all: all.collect(),
            written,
        }
    }
}

impl Seeds for Faults {
    fn all(&self) -> &[Fault] {
        &self.all
    }

    fn left_out(&self) -> &BTreeSet<u32> {
        const { &BTreeSet::new() }
    }

    fn leave_out(&mut self, number: u32) -> Result<(), String> {
        let id = usize::try_from(number)
            .ok()
            .and_then(|it| self.all.get(it - 1));
        let id = id.map_or("?", |fault| &fault.id);
        Err(format!("{id} does not compile: mend it"))
    }

    fn applied(&mut self, file: &str, text: &str) -> Result<Applied, String> {
        type Change<'a> = (u32, &'a str);
        let mut places: Vec<(usize, &str, Vec<Change<'_>>)> = Vec::new();
        for (number, fault) in (1..).zip(&self.written) {
            if fault.file != file {
                continue;
            }
            let start = place(fault, text)?;
            let change = (number, fault.replace.as_str());
            match places.iter_mut().find(|place| place.0 == start) {
                Some((_, find, changes)) if *find == fault.find => changes.push(change),
                Some(_) => return Err(format!("{}: overlaps another fault", fault.id)),
                None => places.push((start, &fault.find, vec![change])),
            }
        }
        places.sort_by_key(|place| place.0);
        let (mut applied, mut end) = (Applied::default(), 0);
        for (start, find, changes) in places {
            let kept = text.get(end..start);
            let kept = kept.ok_or_else(|| format!("{file}: overlapping faults: {find}"))?;
            applied.text.push_str(kept);
            let is_statement = find.ends_with([';', '}']);
            let (open, close) = if is_statement { ("", "") } else { ("(", ")") };
            applied.text.push_str(open);
            for (number, replacement) in changes {
                applied.choice(number, replacement);
            }
            applied.text.push_str(&format!("{{ {find} }}{close}"));
            end = start + find.len();
        }
        applied.text.push_str(&text[end..]);
        Ok(applied)
    }
}

/// Where the text of a fault is in its file.
fn place(fault: &Written, text: &str) -> Result<usize, String> {
    let Written { id, file, .. } = fault;
    let once = |part: &str, of: &str| {
        let mut found = of.match_indices(part).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(at),
            (None, _) => Err(format!(
                "{id}: its text is not in {file}: adapt the fault to the changed source"
            )),
            (Some(_), Some(_)) => Err(format!("{id}: its text is in {file} more than once")),
        }
    };
    match &fault.within {
        Some(within) => Ok(once(within, text)? + once(&fault.find, within)?),
        None => once(&fault.find, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> Faults {
        Faults::read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// The sources change; the faults have to follow.
    #[test]
    fn every_fault_has_its_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut faults = faults();
        let mut wrong = Vec::new();
        let files: Vec<_> = faults.files().into_iter().map(str::to_owned).collect();
        for file in &files {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            if faults.applied(file, &text).is_err() {
                let of = faults.written.iter().filter(|fault| fault.file == *file);
                wrong.extend(of.filter_map(|fault| place(fault, &text).err()));
                wrong.extend(faults.applied(file, &text).err());
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn faults_are_described_and_many_are_published_ones() {
        let faults = faults();
        let all = &faults.written;
        for fault in all {
            assert!(
                fault.what.len() > 10 && fault.find != fault.replace,
                "{}",
                fault.id
            );
            let ends = fault.find.ends_with([';', '}']);
            let too = fault.replace.is_empty() || fault.replace.ends_with([';', '}']);
            assert!(!ends || too, "{}: not both statements", fault.id);
        }
        let cited = all.iter().filter(|fault| fault.cite.is_some()).count();
        assert!(all.len() >= 100 && cited >= 40, "{} {cited}", all.len());
    }

    #[test]
    fn one_text_may_have_several_faults() {
        let fault = |id: &str, find: &str, replace: &str| Written {
            id: id.into(),
            file: "f".into(),
            within: None,
            find: find.into(),
            replace: replace.into(),
            what: String::new(),
            cite: None,
        };
        let mut faults = Faults::new(vec![
            fault("a", "x + 1", "x"),
            fault("b", "x + 1", "x + 2"),
            fault("c", "g();", ""),
        ]);
        let applied = faults.applied("f", "g(); y(x + 1)").unwrap();
        assert_eq!(
            applied.text,
            "if crate::fault::active(3) {  } else { g(); } \
             y((if crate::fault::active(1) { x } else if crate::fault::active(2) { x + 2 } \
             else { x + 1 }))"
        );
        assert!(faults.applied("f", "g(); x + 1; x + 1").is_err());
        assert!(faults.applied("f", "x + 1").is_err());
    }
}
