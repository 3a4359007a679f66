//! The faults.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use serde::Deserialize;

/// A fault: a text of a source file and its replacement, both an expression, or both a
/// sequence of statements that ends with a semicolon or a block.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its name, unique.
    pub id: String,
    /// The source file, from the root of the repository.
    pub file: String,
    /// A text around it, exactly once in the file; the file if it is missing.
    pub within: Option<String>,
    /// The text, exactly once within that.
    pub find: String,
    pub replace: String,
    /// What is wrong with it.
    pub what: String,
    /// The published fix that it undoes, by CVE or commit.
    pub cite: Option<String>,
}

/// A file of faults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    fault: Vec<Fault>,
}

/// An error with the path that it is about.
pub fn at(path: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", path.display())
}

/// All faults.
#[derive(Debug)]
pub struct Faults(Vec<Fault>);

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
        let mut all = Vec::new();
        for path in &paths {
            let text = std::fs::read_to_string(path).map_err(|why| at(path, &why))?;
            let file: File = toml::from_str(&text).map_err(|why| at(path, &why))?;
            all.extend(file.fault);
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = all.iter().find(|fault| !ids.insert(fault.id.clone())) {
            return Err(format!("two faults have the id `{}`", twice.id).into());
        }
        Ok(Self(all))
    }

    pub fn all(&self) -> &[Fault] {
        &self.0
    }

    /// Each fault with its number, from 1.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Fault)> {
        (1..).zip(&self.0)
    }

    /// The files with faults.
    pub fn files(&self) -> BTreeSet<&str> {
        self.0.iter().map(|fault| fault.file.as_str()).collect()
    }

    /// The text of a file with all of its faults, each behind a test of its number.
    pub fn applied(&self, file: &str, text: &str) -> Result<String, String> {
        let mut places: Vec<(usize, &str, String)> = Vec::new();
        for (number, fault) in self.numbered().filter(|(_, fault)| fault.file == file) {
            let start = place(fault, text)?;
            let test = format!("if crate::fault::active({number}) {{ {} }}", fault.replace);
            match places.iter_mut().find(|place| place.0 == start) {
                Some((_, find, tests)) if *find == fault.find => {
                    tests.push_str(" else ");
                    tests.push_str(&test);
                }
                Some(_) => return Err(format!("{}: overlaps another fault", fault.id)),
                None => places.push((start, &fault.find, test)),
            }
        }
        places.sort_by_key(|place| place.0);
        let (mut result, mut end) = (String::new(), 0);
        for (start, find, tests) in places {
            let kept = text.get(end..start);
            result.push_str(kept.ok_or_else(|| format!("{file}: overlapping faults: {find}"))?);
            let is_statement = find.ends_with([';', '}']);
            let (open, close) = if is_statement { ("", "") } else { ("(", ")") };
            result.push_str(&format!("{open}{tests} else {{ {find} }}{close}"));
            end = start + find.len();
        }
        result.push_str(&text[end..]);
        Ok(result)
    }
}

/// Where the text of a fault is in its file.
fn place(fault: &Fault, text: &str) -> Result<usize, String> {
    let Fault { id, file, .. } = fault;
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
        let faults = faults();
        let mut wrong = Vec::new();
        for file in faults.files() {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            if faults.applied(file, &text).is_err() {
                let of = faults.all().iter().filter(|fault| fault.file == file);
                wrong.extend(of.filter_map(|fault| place(fault, &text).err()));
                wrong.extend(faults.applied(file, &text).err());
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn faults_are_described_and_many_are_published_ones() {
        let faults = faults();
        let all = faults.all();
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
        let fault = |id: &str, find: &str, replace: &str| Fault {
            id: id.into(),
            file: "f".into(),
            within: None,
            find: find.into(),
            replace: replace.into(),
            what: String::new(),
            cite: None,
        };
        let faults = Faults(vec![
            fault("a", "x + 1", "x"),
            fault("b", "x + 1", "x + 2"),
            fault("c", "g();", ""),
        ]);
        let applied = faults.applied("f", "g(); y(x + 1)").unwrap();
        assert_eq!(
            applied,
            "if crate::fault::active(3) {  } else { g(); } \
             y((if crate::fault::active(1) { x } else if crate::fault::active(2) { x + 2 } \
             else { x + 1 }))"
        );
        assert!(faults.applied("f", "g(); x + 1; x + 1").is_err());
        assert!(faults.applied("f", "x + 1").is_err());
    }
}
