//! The copy of the sources with the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;

use crate::fault::{Fault, Seeds, at};

/// The module that the copy gets: which fault is active. A constant function may read it,
/// because the operations of the tristate numbers are constant functions; nothing may read it
/// at compile time.
const MODULE: &str = r#"#![allow(unsafe_code, missing_docs)]
use std::sync::atomic::{AtomicU32, Ordering};

static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Reads the number of the active fault.
extern "C" fn init() {
    if let Some(number) = std::env::var("BPFLAB_FAULT").ok().and_then(|it| it.parse().ok()) {
        ACTIVE.store(number, Ordering::SeqCst);
    }
}

// SAFETY: what the section holds is called before `main`, in which the environment is there.
#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn() = init;

#[inline(always)]
pub const fn active(number: u32) -> bool {
    // SAFETY: it is written once, before there are other threads.
    unsafe { *ACTIVE.as_ptr() == number }
}
"#;

/// The sources, and what they and the tests include.
const FOLDERS: [&str; 5] = ["src", "include", "examples/bpf", "tests", "docs"];

/// The copy of the sources and what is built of it.
#[derive(Debug, Clone, Copy)]
pub struct SourceCopy<'a> {
    /// The root of the repository.
    pub root: &'a Path,
    /// The folder under `target` that has it.
    pub name: &'a str,
}

/// How often faults that do not compile may be taken out.
const ATTEMPTS: usize = 20;

impl SourceCopy<'_> {
    fn base(self) -> PathBuf {
        self.root.join("target").join(self.name)
    }

    /// The root of the copy.
    pub fn sources(self) -> PathBuf {
        self.base().join("copy")
    }

    /// The path of the copy's binary.
    pub fn binary(self) -> PathBuf {
        self.base().join("target/release/bpflab")
    }

    /// The file with the faults of the build: their ids by number, from 1; none for those that
    /// are left out.
    fn built(self) -> PathBuf {
        self.base().join("built.json")
    }

    /// Leaves out what the last build did.
    ///
    /// # Errors
    /// It was made with other faults: numbers would not be theirs.
    pub fn as_built(self, faults: &mut dyn Seeds) -> Result<(), Box<dyn Error>> {
        let path = self.built();
        let built: Vec<Option<String>> =
            serde_json::from_slice(&read(&path)?).map_err(|why| at(&path, &why))?;
        let same =
            |(id, fault): (&Option<String>, &Fault)| id.as_ref().is_none_or(|id| *id == fault.id);
        let is_same = built.len() == faults.all().len();
        if !is_same || !built.iter().zip(faults.all()).all(same) {
            return Err(self
                .fails("it was built with other faults: build it again")
                .into());
        }
        for (id, number) in built.iter().zip(1..) {
            if id.is_none() {
                faults.leave_out(number)?;
            }
        }
        Ok(())
    }

    /// Builds the copy, without the faults that do not compile.
    pub fn build(self, faults: &mut dyn Seeds) -> Result<(), Box<dyn Error>> {
        for _ in 0..ATTEMPTS {
            let added = self.write(faults)?;
            let refused = self.refused(&added)?;
            if refused.is_empty() {
                let left_out = faults.left_out();
                let id = |(number, fault): (u32, &Fault)| {
                    (!left_out.contains(&number)).then(|| fault.id.clone())
                };
                let built: Vec<_> = (1..).zip(faults.all()).map(id).collect();
                return Ok(write(&self.built(), &serde_json::to_vec(&built)?)?);
            }
            for (number, why) in refused {
                eprintln!("fault {number} does not compile: {why}");
                faults.leave_out(number)?;
            }
        }
        Err(self.fails("there are faults that do not compile").into())
    }

    fn fails(self, why: &str) -> String {
        format!("the copy {}: {why}", self.base().display())
    }

    /// Writes the copy; returns what the faults added to which file.
    fn write(self, faults: &mut dyn Seeds) -> Result<Added, Box<dyn Error>> {
        let copy = self.sources();
        let mut writer = Writer {
            root: self.root,
            copy: &copy,
            files: faults.files().into_iter().map(str::to_owned).collect(),
            faults,
            written: BTreeSet::new(),
            added: Added::new(),
        };
        for folder in FOLDERS {
            writer.folder(Path::new(folder))?;
        }
        remove_others(&copy.join("src"), &writer.written)?;
        let added = writer.added;
        write(&copy.join("src/fault.rs"), MODULE.as_bytes())?;
        write(&copy.join("Cargo.toml"), manifest(self.root)?.as_bytes())?;
        write(
            &copy.join("Cargo.lock"),
            &read(&self.root.join("Cargo.lock"))?,
        )?;
        Ok(added)
    }

    /// Builds the tests of the verifier; returns each target with its binary.
    pub fn tests(self) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
        let output = self.cargo(&["test", "--no-run", "--lib", "--test", "verifier"])?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(self
                .fails(&format!("its tests do not compile: {why}"))
                .into());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let artifacts = text.lines().map(serde_json::from_str::<Artifact>);
        let tests = artifacts.filter_map(|it| it.ok().filter(|it| it.profile.test));
        Ok(tests
            .filter_map(|it| Some((it.target.name, it.executable?)))
            .collect())
    }

    /// Runs cargo on the copy.
    fn cargo(self, arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
        Ok(Command::new(env!("CARGO"))
            .args(arguments)
            .args(["--release", "--quiet", "--message-format", "json"])
            .current_dir(self.sources())
            .env("CARGO_TARGET_DIR", self.base().join("target"))
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .env("RUSTFLAGS", "-Awarnings")
            .output()?)
    }

    /// Builds it; returns the faults that the compiler refuses, and its words.
    fn refused(self, added: &Added) -> Result<BTreeMap<u32, String>, Box<dyn Error>> {
        let output = self.cargo(&["build", "--bin", "bpflab"])?;
        let mut refused = BTreeMap::new();
        if output.status.success() {
            return Ok(refused);
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(Message { message }) = serde_json::from_str(line) else {
                continue;
            };
            if message.level != "error" {
                continue;
            }
            for number in message.faults(added) {
                refused.insert(number, message.message.clone());
            }
        }
        if refused.is_empty() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(self.fails(&format!("it does not compile: {why}")).into());
        }
        Ok(refused)
    }
}

/// What the faults added to which file.
type Added = BTreeMap<String, Vec<(Range<usize>, u32)>>;

/// A message of cargo about something that was built.
#[derive(Debug, Deserialize)]
struct Artifact {
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// A message of cargo about the compiler.
#[derive(Debug, Deserialize)]
struct Message {
    message: Diagnostic,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    spans: Vec<Extent>,
    children: Vec<Self>,
}

#[derive(Debug, Deserialize)]
struct Extent {
    file_name: String,
    byte_start: usize,
}

impl Diagnostic {
    /// The faults whose text it is about.
    fn faults(&self, added: &Added) -> BTreeSet<u32> {
        let mut faults: BTreeSet<u32> = BTreeSet::new();
        for span in &self.spans {
            let places = added.get(&span.file_name).into_iter().flatten();
            let inside = places.filter(|(range, _)| range.contains(&span.byte_start));
            faults.extend(inside.map(|(_, number)| *number));
        }
        for child in &self.children {
            faults.extend(child.faults(added));
        }
        faults
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|why| at(path, &why))
}

/// Writes a file, unless it has these contents: cargo goes by the time of the last change.
fn write(path: &Path, contents: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|why| at(folder, &why))?;
    }
    fs::write(path, contents).map_err(|why| at(path, &why))
}

/// Writes the sources with the faults.
struct Writer<'a> {
    root: &'a Path,
    copy: &'a Path,
    faults: &'a mut dyn Seeds,
    /// The files with faults.
    files: BTreeSet<String>,
    written: BTreeSet<PathBuf>,
    added: Added,
}

impl Writer<'_> {
    fn folder(&mut self, folder: &Path) -> Result<(), Box<dyn Error>> {
        let from = self.root.join(folder);
        for entry in fs::read_dir(&from).map_err(|why| at(&from, &why))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.folder(&path)?;
                continue;
            }
            let contents = match String::from_utf8(read(&entry.path())?) {
                Ok(text) => self.changed(&path, text)?.into_bytes(),
                Err(bytes) => bytes.into_bytes(),
            };
            let to = self.copy.join(&path);
            write(&to, &contents)?;
            self.written.insert(to);
        }
        Ok(())
    }

    /// The text of a source file in the copy.
    fn changed(&mut self, path: &Path, text: String) -> Result<String, String> {
        let name = path.to_string_lossy();
        match &*name {
            "src/lib.rs" => Ok(format!("{text}\n#[doc(hidden)]\npub mod fault;\n")),
            _ if self.files.contains(&*name) => {
                let applied = self.faults.applied(&name, &text)?;
                self.added.insert(name.into_owned(), applied.added);
                Ok(applied.text)
            }
            _ => Ok(text),
        }
    }
}

/// Removes files that the sources don't have any more.
fn remove_others(folder: &Path, written: &BTreeSet<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder).map_err(|why| at(folder, &why))? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, written)?;
        } else if !written.contains(&path) && path.file_name().is_some_and(|it| it != "fault.rs") {
            fs::remove_file(&path).map_err(|why| at(&path, &why))?;
        }
    }
    Ok(())
}

/// The manifest of the copy: without other packages.
fn manifest(root: &Path) -> Result<String, Box<dyn Error>> {
    let path = root.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|why| at(&path, &why))?;
    let mut manifest: toml::Table = text.parse().map_err(|why| at(&path, &why))?;
    for key in ["lints", "bench"] {
        manifest.remove(key);
    }
    manifest.insert("workspace".into(), toml::Table::new().into());
    Ok(toml::to_string(&manifest)?)
}
