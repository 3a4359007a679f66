//! The copy of the sources with the faults.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::{Faults, at};

/// The module that the copy gets: which fault is active. A constant function may read it,
/// because the operations of the tristate numbers are constant functions; nothing may read it
/// at compile time.
const MODULE: &str = r#"#![allow(unsafe_code, missing_docs)]
use std::sync::atomic::{AtomicU32, Ordering};

static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Reads the number of the active fault; to be called before any other thread starts.
pub fn init() {
    if let Some(number) = std::env::var("BPFLAB_FAULT").ok().and_then(|it| it.parse().ok()) {
        ACTIVE.store(number, Ordering::SeqCst);
    }
}

#[inline(always)]
pub const fn active(number: u32) -> bool {
    // SAFETY: it is written once, before there are other threads.
    unsafe { *ACTIVE.as_ptr() == number }
}
"#;

/// What else of the repository the sources include.
const FOLDERS: [&str; 3] = ["src", "include", "examples/bpf"];

/// Builds the copy; returns the path of its binary.
pub fn build(root: &Path, faults: &Faults) -> Result<PathBuf, Box<dyn Error>> {
    let base = root.join("target/faults");
    let copy = base.join("copy");
    let mut written = BTreeSet::new();
    for folder in FOLDERS {
        copy_folder(root, Path::new(folder), &copy, faults, &mut written)?;
    }
    remove_others(&copy.join("src"), &written)?;
    write(&copy.join("src/fault.rs"), MODULE.as_bytes())?;
    write(&copy.join("Cargo.toml"), manifest(root)?.as_bytes())?;
    let lock = root.join("Cargo.lock");
    write(&copy.join("Cargo.lock"), &read(&lock)?)?;
    let target = base.join("target");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--bin", "bpflab"])
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("RUSTFLAGS", "-Awarnings")
        .status()?;
    if !status.success() {
        return Err(format!(
            "the copy with the faults does not build: {}",
            copy.display()
        )
        .into());
    }
    Ok(binary(root))
}

/// The path of the copy's binary.
pub fn binary(root: &Path) -> PathBuf {
    root.join("target/faults/target/release/bpflab")
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

fn copy_folder(
    root: &Path,
    folder: &Path,
    copy: &Path,
    faults: &Faults,
    written: &mut BTreeSet<PathBuf>,
) -> Result<(), Box<dyn Error>> {
    let from = root.join(folder);
    for entry in fs::read_dir(&from).map_err(|why| at(&from, &why))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(root, &path, copy, faults, written)?;
            continue;
        }
        let contents = read(&entry.path())?;
        let contents = match String::from_utf8(contents) {
            Ok(text) => changed(&path, text, faults)?.into_bytes(),
            Err(bytes) => bytes.into_bytes(),
        };
        let to = copy.join(&path);
        write(&to, &contents)?;
        written.insert(to);
    }
    Ok(())
}

/// The text of a source file in the copy.
fn changed(path: &Path, text: String, faults: &Faults) -> Result<String, String> {
    let name = path.to_string_lossy();
    match &*name {
        "src/lib.rs" => Ok(format!("{text}\n#[doc(hidden)]\npub mod fault;\n")),
        "src/main.rs" => {
            let call = "bpflab::cli::main()";
            if text.matches(call).count() != 1 {
                return Err(format!("{name}: expected one call of `{call}`"));
            }
            Ok(text.replace(call, "{ bpflab::fault::init(); bpflab::cli::main() }"))
        }
        _ if faults.files().contains(&*name) => faults.applied(&name, &text),
        _ => Ok(text),
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

/// The manifest of the copy: without tests and other packages.
fn manifest(root: &Path) -> Result<String, Box<dyn Error>> {
    let path = root.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|why| at(&path, &why))?;
    let mut manifest: toml::Table = text.parse().map_err(|why| at(&path, &why))?;
    for key in ["test", "dev-dependencies", "lints", "bench"] {
        manifest.remove(key);
    }
    manifest.insert("workspace".into(), toml::Table::new().into());
    Ok(toml::to_string(&manifest)?)
}
