//! The files of a crate and what each imports from which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;

use super::source::{self, Path, Source};

/// A module path: `[]` is the crate's root.
pub type Module = Vec<String>;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Into this module of the crate (a file).
    Module(Module),
    /// Out of it, or to something that the file itself has.
    Elsewhere(String),
}

/// One import: in which file, where it leads, how it was written.
#[derive(Debug, Clone)]
pub struct Import {
    pub from: Module,
    pub target: Target,
    /// `file:line: path`
    pub place: String,
    pub reexport: bool,
}

/// The files of a crate by module path.
#[derive(Debug, Default)]
pub struct Crate {
    files: BTreeMap<Module, (String, Source)>,
}

impl Crate {
    /// Reads every `.rs` file below `root` (a crate's `src`) that is not only a test's.
    pub fn read(root: &FilePath) -> Self {
        let files = rust_files(root).into_iter().map(|file| {
            let shown = file.strip_prefix(root).expect("below the root").to_owned();
            let text = std::fs::read_to_string(&file).expect("a readable source file");
            (shown.to_string_lossy().into_owned(), text)
        });
        Self::from_texts(files)
    }

    /// The crate of these files: (path below `src`, text).
    pub fn from_texts(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut files: BTreeMap<_, _> = texts
            .into_iter()
            .map(|(file, text)| (module_of(&file), (file, source::parse(&text))))
            .collect();
        let test_modules: Vec<Module> = files
            .iter()
            .flat_map(|(module, (_, source))| {
                source
                    .test_children
                    .iter()
                    .map(|child| joined(module, [child.clone()]))
            })
            .collect();
        files.retain(|module, _| !test_modules.iter().any(|test| module.starts_with(test)));
        Self { files }
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The file of a module.
    pub fn file(&self, module: &Module) -> &str {
        self.files.get(module).map_or("?", |(file, _)| file)
    }

    /// Every import of every file.
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (module, (file, source)) in &self.files {
            for path in &source.paths {
                imports.push(Import {
                    from: module.clone(),
                    target: self.target(module, source, path),
                    place: format!("src/{file}:{}: {}", path.line, path.segments.join("::")),
                    reexport: path.reexport,
                });
            }
        }
        imports
    }

    fn target(&self, module: &Module, source: &Source, path: &Path) -> Target {
        match absolute(module, source, path) {
            Some(absolute) => Target::Module(self.locate(&absolute, 0)),
            None => Target::Elsewhere(path.segments.first().cloned().unwrap_or_default()),
        }
    }

    /// The module whose file defines what `path` names: signposts (`pub use`) are
    /// followed, to a depth that ends circles.
    fn locate(&self, path: &[String], depth: usize) -> Module {
        let length = (0..=path.len())
            .rev()
            .find(|&length| self.files.contains_key(&path[..length]))
            .unwrap_or(0);
        let (module, rest) = path.split_at(length);
        let (Some((_, source)), Some((name, rest))) = (self.files.get(module), rest.split_first())
        else {
            return module.to_vec();
        };
        if depth > 8 || source.defined.contains(name) {
            return module.to_vec();
        }
        let signposts = source
            .paths
            .iter()
            .filter(|p| p.reexport && p.scope.is_empty());
        for signpost in signposts {
            let Some(mut absolute) = absolute(&module.to_vec(), source, signpost) else {
                continue;
            };
            if signpost.name == *name {
                absolute.extend_from_slice(rest);
                return self.locate(&absolute, depth + 1);
            }
            if signpost.name == "*" {
                absolute.pop();
                absolute.push(name.clone());
                let found = self.locate(&absolute, depth + 1);
                let defines = |(_, source): &(_, Source)| source.defined.contains(name);
                if self.files.get(&found).is_some_and(defines) {
                    return found;
                }
            }
        }
        module.to_vec()
    }

    /// The circles between the files of one top-level module, each as the imports
    /// that close it. A signpost is no import.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let mut edges: BTreeMap<Module, BTreeMap<Module, String>> = BTreeMap::new();
        for import in self.imports() {
            let Target::Module(to) = import.target else {
                continue;
            };
            if !import.reexport && to != import.from && to.first() == import.from.first() {
                edges
                    .entry(import.from)
                    .or_default()
                    .entry(to)
                    .or_insert(import.place);
            }
        }
        let mut cycles = Vec::new();
        let mut done = BTreeSet::new();
        for start in edges.keys() {
            walk(start, &edges, &mut Vec::new(), &mut done, &mut cycles);
        }
        cycles
    }
}

/// Depth first; a module that is met again on its own path closes a circle.
fn walk(
    module: &Module,
    edges: &BTreeMap<Module, BTreeMap<Module, String>>,
    trail: &mut Vec<(Module, String)>,
    done: &mut BTreeSet<Module>,
    cycles: &mut Vec<Vec<String>>,
) {
    if let Some(begin) = trail.iter().position(|(on_trail, _)| on_trail == module) {
        cycles.push(
            trail[begin..]
                .iter()
                .map(|(_, place)| place.clone())
                .collect(),
        );
        return;
    }
    if done.contains(module) {
        return;
    }
    for (next, place) in edges.get(module).into_iter().flatten() {
        trail.push((module.clone(), place.clone()));
        walk(next, edges, trail, done, cycles);
        trail.pop();
    }
    done.insert(module.clone());
}

/// `a/b.rs` and `a/b/mod.rs` are `[a, b]`; `lib.rs` is `[]`, `main.rs` is `[main]`.
fn module_of(file: &str) -> Module {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let mut module: Module = stem.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod") || stem == "lib" {
        module.pop();
    }
    module
}

/// The path from the crate's root; `None` when it leads to another crate, or to a
/// name of the file's own.
fn absolute(module: &Module, source: &Source, path: &Path) -> Option<Module> {
    let here = joined(module, path.scope.iter().cloned());
    let (first, rest) = path.segments.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Module::new(),
        // The binary sees the library as a crate.
        "bpflab" if module.first().is_some_and(|top| top == "main") => Module::new(),
        "self" => here,
        "super" => here.split_last()?.1.to_vec(),
        child if path.scope.is_empty() && source.children.contains(child) => {
            joined(&here, [child.to_owned()])
        }
        _ => return None,
    };
    for segment in rest {
        match segment.as_str() {
            "super" => drop(base.pop()),
            _ => base.push(segment.clone()),
        }
    }
    Some(base)
}

fn joined(module: &Module, names: impl IntoIterator<Item = String>) -> Module {
    module.iter().cloned().chain(names).collect()
}

/// Every `.rs` file below `folder`, in order.
pub fn rust_files(folder: &FilePath) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("a readable folder")
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Crate {
        Crate::from_texts(
            files
                .iter()
                .map(|(f, t)| ((*f).to_owned(), (*t).to_owned())),
        )
    }

    fn targets(krate: &Crate) -> Vec<String> {
        let shown = |import: Import| match import.target {
            Target::Module(module) => module.join("::"),
            Target::Elsewhere(name) => format!("<{name}>"),
        };
        krate.imports().into_iter().map(shown).collect()
    }

    #[test]
    fn paths_lead_to_the_file_that_defines() {
        let krate = of(&[
            ("lib.rs", "pub mod a; pub mod b;"),
            (
                "a/mod.rs",
                "mod inner; mod other; pub use inner::{Thing, Gone as Renamed}; pub use other::*; pub fn here() {}",
            ),
            ("a/inner.rs", "pub struct Thing;"),
            (
                "a/other.rs",
                "pub struct Starred; use super::here; use std::fmt;",
            ),
            ("b.rs", "use crate::a::{Thing, Renamed, Starred, here};"),
        ]);
        let from_b: Vec<_> = targets(&krate).split_off(5);
        assert_eq!(targets(&krate)[3..5], ["a", "<std>"]);
        assert_eq!(from_b, ["a::inner", "a::inner", "a::other", "a"]);
    }

    #[test]
    fn paths_continue_through_the_signpost_of_a_module() {
        let krate = of(&[
            ("a/mod.rs", "mod room; pub use room::inner;"),
            ("a/room/mod.rs", "pub mod inner;"),
            ("a/room/inner/mod.rs", "mod file; pub use file::Thing;"),
            ("a/room/inner/file.rs", "pub struct Thing;"),
            ("b.rs", "use crate::a::inner::Thing;"),
        ]);
        assert_eq!(targets(&krate).last().unwrap(), "a::room::inner::file");
    }

    #[test]
    fn super_leaves_inline_modules_and_folders() {
        let krate = of(&[
            ("a/mod.rs", ""),
            ("a/b/mod.rs", ""),
            (
                "a/b/c.rs",
                "use super::super::X; mod d { use super::super::Y; }",
            ),
        ]);
        assert_eq!(targets(&krate), ["a", "a::b"]);
    }

    #[test]
    fn a_circle_is_found_also_through_a_signpost() {
        let krate = of(&[
            ("a/mod.rs", "mod x; mod y; pub use y::Y;"),
            ("a/x.rs", "use super::Y; pub struct X;"),
            ("a/y.rs", "pub struct Y(super::x::X);"),
        ]);
        let cycles = krate.cycles();
        assert_eq!(cycles.len(), 1, "{cycles:?}");
        assert_eq!(
            cycles[0],
            ["src/a/x.rs:1: super::Y", "src/a/y.rs:1: super::x::X"]
        );
    }

    #[test]
    fn signposts_and_test_files_close_no_circle() {
        let krate = of(&[
            (
                "a/mod.rs",
                "mod x; pub use x::X; pub struct M; #[cfg(test)] mod tests;",
            ),
            ("a/x.rs", "use super::M; pub struct X;"),
            ("a/tests.rs", "use super::x::X;"),
        ]);
        assert_eq!(krate.len(), 2);
        assert!(krate.cycles().is_empty());
    }
}
